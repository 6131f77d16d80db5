// How a text becomes a run: its inputs and options, the commands that are to be read first, and its beginning.

import { Refusal } from "./page_server.js";
import { make, makeButton, newKey, optionsOf } from "./parts.js";
import { sizeOf } from "./texts.js";
import { __ } from "./wording.js";

const MOST_SENT_BYTES = 1024 * 1024; // what the server takes of a request
const bytesOf = (text) => new TextEncoder().encode(text).length;
const SHOWN_DIGITS = 12; // of a hash, as the command line shows it
const KINDS = { text: __("text"), json: "JSON" };
const JSON_TYPES = ["integer", "number", "boolean", "array", "object"];

export const tooLong = (text) => (bytesOf(text) > MOST_SENT_BYTES ? __("It has %1; the server accepts %2.", sizeOf(bytesOf(text)), sizeOf(MOST_SENT_BYTES)) : "");

// Where a refusal is shown: at the inputs, or at a field by its name; empty for neither.
function placeOfWrong(kind, wrong, words) {
  if (wrong) return wrong.place.split("/")[0];
  if (kind === "context-value" || /^(parameter|inputs of) /.test(words)) return "params";
  return kind === "option" ? (/\b(max_\w+)\b/.exec(words)?.[1] ?? "backend") : "";
}

// `draft` keeps the key of the request; `textOf()` is the text; `obstacleOf()` says what of it keeps it from running, as
// { words, go }, or null; `look(isAnew)` has it looked at; `onChange()` is called for each change, `onBegin()` before the
// request, and `onBegun(id, text)` for the run that has begun.
export function makeLauncher(server, { draft, textOf, obstacleOf, look, onChange, onBegin = () => {}, onBegun }) {
  const commands = makeCommands({ onTick: showState });
  const inputs = makeInputs({ onChange: changed });
  const options = makeOptions({ onChange: changed });
  const begin = makeButton("al-button an-begin", __("Run"), "Ctrl-Enter", run);
  const state = make("p", "an-state", "", { "aria-live": "polite" });
  const refused = make("p", "ap-said", "", { role: "alert" });
  const bar = make("div", "an-bar", [begin, state, refused]);
  const more = make("div", "an-more", [inputs.element, options.element]);
  let isBeginning = false;
  let isClosed = false;

  function changed() {
    draft.key = ""; // it is another request now
    refused.textContent = "";
    onChange();
    showState();
  }

  // What keeps it from running: words, and where to go.
  function obstacle() {
    const ofText = obstacleOf();
    if (ofText) return ofText;
    const wrong = inputs.wrong();
    if (wrong) return { words: __("An input is not valid."), go: () => wrong.focus() };
    const left = commands.left();
    const words = left === 1 ? __("A command is not ticked yet.") : __("%1 commands are not ticked yet.", left);
    return left ? { words, go: () => commands.next().focus() } : null;
  }

  function showState() {
    const against = obstacle();
    begin.disabled = isBeginning || against !== null;
    state.textContent = isBeginning ? __("It begins.") : against ? against.words : __("Ctrl-Enter runs it.");
  }

  function body() {
    const plain = { source: textOf(), ...options.plain(), ...(commands.hash ? { trust: commands.hash } : {}) };
    return `${JSON.stringify(plain).slice(0, -1)}, "params": ${inputs.toJson()}}`; // numbers stay as they were typed
  }

  async function run() {
    if (isBeginning) return;
    isBeginning = true; // a second click comes while the text is being looked at
    await look(false);
    await send();
    isBeginning = false;
    if (!isClosed) showState();
  }

  async function send() {
    const against = obstacle();
    const text = against ? "" : body();
    if (against || tooLong(text)) {
      if (against) against.go();
      else refused.textContent = tooLong(text);
      return;
    }
    const begun = textOf();
    draft.key ||= newKey();
    onBegin();
    showState();
    refused.textContent = "";
    inputs.say("");
    options.clear();
    try {
      const { id } = await server.postOnce("pipelines", text, draft.key);
      draft.key = ""; // the text is kept: the next run is often nearly the same
      onBegin();
      if (!isClosed) onBegun(id, begun);
    } catch (problem) {
      if (problem instanceof Refusal && !isClosed) showRefusal(problem);
    }
  }

  // A refusal stands where it can be mended.
  function showRefusal(refusal) {
    const { kind, problem } = refusal;
    const words = [refusal.message, refusal.hint].filter(Boolean).join("\n");
    if (kind === "untrusted-source") {
      look(true).then(() => isClosed || commands.refuse(refusal));
      return;
    }
    const [wrong] = kind === "body" ? problem.errors || [] : [];
    const place = placeOfWrong(kind, wrong, refusal.message);
    if (place === "params") inputs.say(words);
    else if (!options.refuse(place, wrong ? wrong.message : words)) refused.textContent = words;
  }

  return {
    commands,
    inputs,
    options,
    more,
    bar,
    run,
    changed,
    showState,
    // What the server says of the text: nobody has read its commands yet.
    show(answer) {
      commands.show(answer?.executes || { hash: "", commands: [] });
      if (answer?.nodes) inputs.declare(answer.inputs);
      options.setName(answer?.name || "");
      showState();
    },
    close() {
      isClosed = true;
    },
  };
}

// What a new run would execute, command by command: each is read and ticked before it may run.
// `onTick()` is called when a tick was set or taken away.
function makeCommands({ onTick }) {
  const title = make("h2", "an-title", "", { id: "an-commands" });
  const why = make("p", "an-why");
  const list = make("ul", "an-list");
  const operator = make("p", "al-dim");
  const said = make("div", "an-refused", "", { role: "alert" });
  const element = make("section", "an-commands", [title, why, list, operator, said], { "aria-labelledby": "an-commands", hidden: true });

  let ticks = [];
  let hash = "";

  function makeItem({ node, attribute, shown }) {
    const tick = make("input", "an-tick", "", { type: "checkbox" });
    tick.addEventListener("change", onTick);
    const label = make("label", "an-of", [tick, make("strong", "", node || __("the graph")), make("span", "al-dim", attribute)]);
    const text = make("pre", "an-command", shown, { tabIndex: 0, "aria-label": __("%1 of %2", attribute, node || __("the graph")) });
    const item = make("li", "", [label, text]);
    ticks.push(tick);
    return item;
  }

  return {
    element,
    get hash() {
      return hash;
    },
    // The first that was not ticked; null where none is left.
    next: () => ticks.find((tick) => !tick.checked) || null,
    left: () => ticks.filter((tick) => !tick.checked).length,
    // The commands of a text that was looked at: nobody has read them yet.
    show(executes) {
      const { commands } = executes;
      hash = executes.hash;
      ticks = [];
      said.replaceChildren();
      element.hidden = !commands.length;
      const many = commands.length > 1;
      title.textContent = many ? __("It runs %1 commands", commands.length) : __("It runs a command");
      why.textContent = many
        ? __("They run on the server's machine, as the server's user. Review each, then tick it.")
        : __("It runs on the server's machine, as the server's user. Review it, then tick the box.");
      list.replaceChildren(...commands.map(makeItem));
      operator.replaceChildren(__("The person who starts the server can allow them permanently: "));
      operator.append(make("code", "", `ATTRACTOR_TRUST=${hash.slice(0, SHOWN_DIGITS)} attractor-nb serve`));
    },
    // Another text is there: what was read is not what would run.
    forget() {
      for (const tick of ticks) tick.checked = false;
    },
    // The server does not let them run all the same.
    refuse(problem) {
      element.hidden = false;
      said.replaceChildren(make("pre", "ap-words", problem.message), make("p", "al-dim", problem.hint));
      element.scrollIntoView({ block: "nearest" });
    },
  };
}

// How a new run runs: what answers its prompts, its name, its bounds. Each field has its refusal below it.
const BACKENDS = {
  simulated: __("simulated: answers are made up"),
  local: __("local: the model installed here"),
  llm: __("llm: providers, by the server's keys"),
  claude: "claude: Claude Code",
  codex: "codex: Codex",
  gemini: "gemini: Gemini CLI",
};
const LIMITS = {
  max_steps: [__("Stages at most"), "1000"],
  max_duration: [__("Time at most"), "30m"],
  max_tokens_total: [__("Tokens at most"), __("no bound")],
  max_budget_usd: [__("Cost at most, in USD"), __("no bound")],
};

// `onChange()` is called for each change.
function makeOptions({ onChange }) {
  const fields = new Map();
  const backends = Object.entries(BACKENDS).map(([name, words]) => [name === "simulated" ? "" : name, words]);
  const backend = make("select", "ap-field", optionsOf(backends));
  const name = make("input", "ap-field", "", { maxLength: 500 });
  const grid = make("div", "an-grid");
  grid.append(makeField("backend", __("Prompts are answered by"), backend), makeField("name", __("Name of the run"), name));
  const bounds = make("details", "an-bounds", [make("summary", "", __("Bounds"))]);
  const inside = make("div", "an-grid");
  for (const [id, [label, hint]] of Object.entries(LIMITS)) {
    const input = make("input", "ap-field", "", { inputMode: id === "max_duration" ? "text" : "decimal", placeholder: hint });
    inside.append(makeField(id, label, input));
  }
  bounds.append(inside);
  const element = make("fieldset", "an-options", [make("legend", "", __("How it runs")), grid, bounds]);

  function makeField(id, label, field) {
    const wrong = make("span", "an-wrong");
    wrong.id = `an-${id}-wrong`;
    wrong.setAttribute("role", "alert");
    field.setAttribute("aria-describedby", wrong.id);
    field.addEventListener("input", () => {
      setWrong(id, "");
      onChange();
    });
    const box = make("label", "an-field", [make("span", "an-label", label), field, wrong]);
    fields.set(id, { field, wrong });
    return box;
  }

  function setWrong(id, words) {
    const { field, wrong } = fields.get(id);
    wrong.textContent = words;
    field.setAttribute("aria-invalid", String(Boolean(words)));
  }

  const limits = () => Object.keys(LIMITS).filter((id) => fields.get(id).field.value.trim());
  const textOf = (id) => fields.get(id).field.value.trim();

  return {
    element,
    show(draft) {
      backend.value = draft.backend in BACKENDS ? draft.backend : "";
      name.value = draft.name;
      for (const id of Object.keys(LIMITS)) fields.get(id).field.value = String(draft.limits[id] ?? "");
      bounds.open = limits().length > 0;
    },
    setName(words) {
      name.placeholder = words || __("as the text says");
    },
    draft: () => ({ backend: backend.value, name: name.value, limits: Object.fromEntries(limits().map((id) => [id, textOf(id)])) }),
    // As the server takes it: what is no number goes as it is, and the server says so.
    plain() {
      const valueOf = (id) => (id !== "max_duration" && /^\d+(\.\d+)?$/.test(textOf(id)) ? Number(textOf(id)) : textOf(id));
      return {
        ...(backend.value ? { backend: backend.value } : {}),
        ...(name.value.trim() ? { name: name.value.trim() } : {}),
        ...Object.fromEntries(limits().map((id) => [id, valueOf(id)])),
      };
    },
    // Says at a field what is wrong with it; whether there is that field.
    refuse(id, words) {
      if (!fields.has(id)) return false;
      if (id in LIMITS) bounds.open = true;
      setWrong(id, words);
      fields.get(id).field.focus();
      return true;
    },
    clear() {
      for (const id of fields.keys()) setWrong(id, "");
    },
  };
}

// The inputs of a new run: names with values, each a text or JSON as it was typed. What the pipeline declares has a
// row of its own, and then nothing else will do.
// `onChange()` is called for each change.
function makeInputs({ onChange }) {
  const rows = make("div", "an-rows");
  const said = make("p", "ap-said", "", { role: "alert" });
  const add = makeButton("al-button", __("Add an input"), __("A value that the run's context begins with"), () => {
    addRow({ name: "", kind: "text", value: "" }).name.focus();
    onChange();
  });
  const hint = make("p", "al-dim", __("Values that the context begins with, by name."));
  const element = make("fieldset", "an-inputs", [make("legend", "", __("Inputs")), hint, rows, said, add]);
  const kept = new Set();
  let declared = [];

  const declaredAs = (row) => declared.find((input) => input.name === row.name.value.trim());

  function addRow(given) {
    const line = make("div", "an-input");
    const name = make("input", "ap-field an-name");
    name.placeholder = __("name");
    name.spellcheck = false;
    name.setAttribute("aria-label", __("Name of the input"));
    name.value = String(given.name ?? "");
    const kind = make("select", "ap-field an-kind", optionsOf(Object.entries(KINDS)), { "aria-label": __("How the value is read") });
    kind.value = given.kind in KINDS ? given.kind : "text";
    const value = make("textarea", "ap-field an-value", "", { rows: 1, spellcheck: false });
    value.value = String(given.value ?? "");
    const about = make("span", "an-about al-dim");
    const words = make("span", "an-wrong", "", { "aria-live": "polite" });
    const row = { line, name, kind, value, about, words };
    const drop = makeButton("al-close", "×", "", () => {
      kept.delete(row);
      line.remove();
      add.focus();
      check();
      onChange();
    });
    line.append(name, kind, value, drop, about, words);
    for (const field of [name, kind, value]) {
      field.addEventListener("input", () => {
        said.textContent = "";
        check();
        onChange();
      });
    }
    row.drop = drop;
    kept.add(row);
    rows.append(line);
    check();
    return row;
  }

  // Nothing is sent of a row without name and value, and of a declared input that has a default.
  const isBlank = (row) => !row.value.value.trim() && (declaredAs(row) ? !declaredAs(row).is_required : !row.name.value.trim());

  function wrongOf(row, names) {
    const name = row.name.value.trim();
    if (isBlank(row)) return "";
    if (declaredAs(row)?.is_required && !row.value.value.trim()) return __("It needs a value.");
    if (declared.length && !declaredAs(row)) return __("The pipeline has no such input.");
    if (!name) return __("It has no name.");
    if (names.filter((other) => other === name).length > 1) return __("The name occurs twice.");
    if (row.kind.value !== "json") return "";
    try {
      JSON.parse(row.value.value);
      return "";
    } catch {
      return __("This is not JSON: put a text in quotation marks.");
    }
  }

  function check() {
    const names = [...kept].map((row) => row.name.value.trim());
    for (const row of kept) {
      const about = row.name.value.trim() || __("the input");
      row.value.setAttribute("aria-label", __("Value of %1", about));
      row.value.rows = Math.min(6, row.value.value.split("\n").length);
      row.drop.setAttribute("aria-label", __("Remove %1", about));
      showDeclared(row, declaredAs(row));
      row.words.textContent = wrongOf(row, names);
      for (const field of [row.name, row.value]) field.setAttribute("aria-invalid", String(Boolean(row.words.textContent)));
    }
  }

  function showDeclared(row, input) {
    row.name.readOnly = row.drop.hidden = Boolean(input);
    row.value.required = Boolean(input?.is_required);
    row.value.placeholder = !input || input.is_required ? "" : textOf(input.default);
    row.about.textContent = input?.description || "";
  }

  const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  return {
    element,
    // What the pipeline declares: `name`, `is_required`, `default`, `type`, `description`.
    declare(inputs) {
      const before = declared.map((input) => input.name);
      declared = inputs;
      const names = declared.map((input) => input.name);
      for (const row of kept) {
        const name = row.name.value.trim();
        const isLeft = before.includes(name) && !names.includes(name);
        if (row.value.value.trim() || !(isLeft || (declared.length && !name))) continue;
        kept.delete(row);
        row.line.remove();
      }
      const there = [...kept].map((row) => row.name.value.trim());
      for (const { name, type } of declared.filter((input) => !there.includes(input.name))) {
        addRow({ name, kind: JSON_TYPES.includes(type) ? "json" : "text" });
      }
      add.hidden = declared.length > 0;
      hint.textContent = declared.length ? __("What the pipeline asks for.") : __("Values that the context begins with, by name.");
      check();
    },
    show(inputs) {
      kept.clear();
      rows.replaceChildren();
      for (const input of inputs) if (input && typeof input === "object") addRow(input);
    },
    plain: () => [...kept].map((row) => ({ name: row.name.value, kind: row.kind.value, value: row.value.value })),
    // The first invalid input, as an element; null if all are valid.
    wrong: () => [...kept].find((row) => row.words.textContent)?.name || null,
    // A text of JSON, in which numbers stay as they were typed.
    toJson() {
      const given = [...kept].filter((row) => !isBlank(row));
      const parts = given.map((row) => {
        const value = row.kind.value === "json" ? row.value.value.trim() : JSON.stringify(row.value.value);
        return `${JSON.stringify(row.name.value.trim())}: ${value}`;
      });
      return `{${parts.join(", ")}}`;
    },
    say: (words) => {
      said.textContent = words;
    },
  };
}
