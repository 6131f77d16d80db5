// A new run: its text with the drawing and the findings, its inputs, the commands to be read, and its beginning.
// The server reads the text; the page asks it again a moment after each change.

import { makeFindingTable } from "./finding_table.js";
import { makeCommands } from "./page_commands.js";
import { keepDraft, keptDraft, newKey } from "./page_draft.js";
import { makeInputs } from "./page_inputs.js";
import { makeOptions } from "./page_options.js";
import { Refusal, Silence } from "./page_server.js";
import { makeSketch } from "./page_sketch.js";
import { MOST_BYTES, makeSourceField } from "./page_source.js";
import { make, makeButton } from "./parts.js";
import { sizeOf } from "./texts.js";

const CHECK_MS = 300; // between a change and the question what it means, and longer where the server takes long
const CHECK_FACTOR = 2;
const GRAVEST_FIRST = ["error", "warning", "info"];
const bytesOf = (text) => new TextEncoder().encode(text).length;
const tooLong = (text) => (bytesOf(text) > MOST_BYTES ? `It has ${sizeOf(bytesOf(text))}, and the server takes ${sizeOf(MOST_BYTES)}.` : "");
// Where a refusal is shown: at the inputs, or at a field by its name; empty for neither.
function placeOfWrong(kind, wrong, words) {
  if (wrong) return wrong.place.split("/")[0];
  if (kind === "context-value" || /^(parameter|inputs of) /.test(words)) return "params";
  return kind === "option" ? (/\b(max_\w+)\b/.exec(words)?.[1] ?? "backend") : "";
}
const howMany = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

export function showNew(server, el, { go, way }) {
  document.title = "New run · attractor_nb";
  const root = make("form", "an-form");
  root.noValidate = true;
  root.setAttribute("aria-label", "New run");
  const back = make("a", "", "Runs");
  back.href = "#";
  way.append("/ ", back);

  const source = makeSourceField(root, { onChange: textChanged, onSaid: (words) => say(words) });
  const trouble = make("p", "ap-said");
  trouble.setAttribute("role", "alert");
  const findings = makeFindingTable({ onFix: fix, onGo: (_, finding) => source.selectFinding(finding) });
  const found = make("section", "an-findings");
  found.setAttribute("aria-label", "What lint says");
  const verdict = make("p", "an-verdict");
  verdict.setAttribute("aria-live", "polite");
  found.append(verdict, findings.element);
  const sketch = makeSketch({ onNode: source.selectNode });
  const commands = makeCommands({ onTick: showState });
  const inputs = makeInputs({ onChange: changed });
  const options = makeOptions({ onChange: changed });
  const begin = makeButton("al-button an-begin", "Run", "Ctrl-Enter", run);
  const state = make("p", "an-state");
  state.setAttribute("aria-live", "polite");
  const bar = make("div", "an-bar");
  const refused = make("p", "ap-said");
  refused.setAttribute("role", "alert");
  bar.append(begin, state, refused);
  const written = make("div", "an-written");
  written.append(source.element, trouble, found);
  const both = make("div", "an-both");
  both.append(written, sketch.element);
  const more = make("div", "an-more");
  more.append(inputs.element, options.element);
  root.append(make("h1", "ap-title", "New run"), both, commands.element, more, bar);
  el.append(root);

  const draft = keptDraft();
  let checked = null; // { text, answer, problem } of the text that was looked at last
  let looking = null;
  let timer = 0;
  let wait = CHECK_MS;
  let isBeginning = false;
  let isClosed = false;

  // Of the text it is said below it, of the run beside its button.
  function say(words, where = trouble) {
    trouble.textContent = refused.textContent = "";
    where.textContent = words;
  }

  function save() {
    Object.assign(draft, { text: source.value, inputs: inputs.plain() }, options.draft());
    return keepDraft(draft);
  }

  function changed() {
    draft.key = ""; // it is another request now
    save();
    showState();
  }

  function textChanged() {
    commands.forget();
    clearTimeout(timer);
    timer = setTimeout(look, wait);
    say("");
    changed();
  }

  const isCurrent = () => checked !== null && checked.text === source.value;

  // One question at a time, about the text as it is then.
  function look() {
    clearTimeout(timer);
    if (isClosed || isCurrent()) return looking || Promise.resolve();
    looking ||= lookAt(source.value).finally(() => {
      looking = null;
      if (!isClosed && checked && !isCurrent()) timer = setTimeout(look, wait);
    });
    return looking;
  }

  async function lookAt(text) {
    const begun = performance.now();
    let answer = null;
    let problem = text.trim() ? tooLong(JSON.stringify({ source: text })) : "";
    try {
      if (text.trim() && !problem) answer = await server.post("validate", { source: text, with_drawing: true });
    } catch (error) {
      if (error instanceof Silence) return; // the page says it, and asks again when somebody answers
      problem = error.message;
    }
    wait = Math.max(CHECK_MS, CHECK_FACTOR * (performance.now() - begun));
    if (isClosed) return;
    checked = { text, answer, problem };
    showChecked();
  }

  function showChecked() {
    const { text, answer, problem } = checked;
    const numbered = (answer?.diagnostics || []).map((finding, number) => ({ ...finding, number }));
    const severityOf = (finding) => GRAVEST_FIRST.indexOf(finding.severity);
    findings.show(numbered.sort((one, other) => severityOf(one) - severityOf(other)));
    verdict.textContent = answer ? verdictOf(answer) : "";
    say(problem);
    sketch.show(answer?.svg || "", !text.trim());
    commands.show(answer?.executes || { hash: "", commands: [] });
    if (answer?.nodes) inputs.declare(answer.inputs);
    options.setName(answer?.name || "");
    source.setInvalid(Boolean(problem) || errorCount() > 0);
    showState();
  }

  const errorCount = () => (checked?.answer?.diagnostics || []).filter((finding) => finding.severity === "error").length;

  function verdictOf({ nodes, diagnostics }) {
    const size = nodes ? howMany(nodes, "node") : "It cannot be read";
    return diagnostics.length ? `${size}, ${howMany(diagnostics.length, "finding")}` : `${size}, no findings`;
  }

  async function fix({ number }) {
    if (!isCurrent()) return;
    const { text } = checked;
    try {
      const answer = await server.post("validate", { source: text, fix: number });
      if (!isClosed && source.value === text) source.replace(answer.source);
      look();
    } catch (problem) {
      if (!(problem instanceof Silence)) say([problem.message, problem.hint].filter(Boolean).join(": "));
    }
  }

  // What keeps it from running: words, and where to go.
  function obstacle() {
    if (!source.value.trim()) return { words: "There is no text yet.", go: source.focus };
    if (!isCurrent()) return { words: "The text is being looked at.", go: source.focus };
    if (checked.problem) return { words: "The server does not take the text.", go: source.focus };
    if (errorCount()) {
      const first = checked.answer.diagnostics.find((finding) => finding.severity === "error");
      const go_ = () => (first.line ? source.selectFinding(first) : source.focus());
      return { words: `The text has ${howMany(errorCount(), "error")}.`, go: go_ };
    }
    const wrong = inputs.wrong();
    if (wrong) return { words: "An input will not do.", go: () => wrong.focus() };
    const left = commands.left();
    const words = left === 1 ? "A command is not ticked yet." : `${left} commands are not ticked yet.`;
    return left ? { words, go: () => commands.next().focus() } : null;
  }

  function showState() {
    const against = obstacle();
    begin.disabled = isBeginning || against !== null;
    state.textContent = isBeginning ? "It begins." : against ? against.words : "Ctrl-Enter runs it.";
  }

  function body() {
    const plain = { source: source.value, ...options.plain(), ...(commands.hash ? { trust: commands.hash } : {}) };
    return `${JSON.stringify(plain).slice(0, -1)}, "params": ${inputs.toJson()}}`; // numbers stay as they were typed
  }

  async function run() {
    if (isBeginning) return;
    if (!isCurrent()) await look();
    if (!isCurrent()) await look(); // what was looked at may have been the text before
    const against = obstacle();
    const text = against ? "" : body();
    if (against || tooLong(text)) {
      if (against) against.go();
      else say(tooLong(text), refused);
      return;
    }
    draft.key ||= newKey();
    isBeginning = true;
    save();
    showState();
    say("");
    inputs.say("");
    options.clear();
    try {
      const { id } = await server.postOnce("pipelines", text, draft.key);
      draft.key = ""; // the text is kept: the next run is often nearly the same
      save();
      if (!isClosed) go(id);
    } catch (problem) {
      if (problem instanceof Refusal && !isClosed) showRefusal(problem);
    }
    isBeginning = false;
    if (!isClosed) showState();
  }

  // A refusal stands where it can be mended.
  function showRefusal(refusal) {
    const { kind, problem } = refusal;
    const words = [refusal.message, refusal.hint].filter(Boolean).join("\n");
    if (kind === "untrusted-source") {
      checked = null;
      look().then(() => isClosed || commands.refuse(refusal));
      return;
    }
    const [wrong] = kind === "body" ? problem.errors || [] : [];
    const place = placeOfWrong(kind, wrong, refusal.message);
    if (place === "params") inputs.say(words);
    else if (!options.refuse(place, wrong ? wrong.message : words)) say(words, refused);
  }

  const keys = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  document.addEventListener("keydown", keys);
  root.addEventListener("submit", (event) => event.preventDefault());
  // Anywhere in a finding is its place.
  findings.element.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !event.target.closest("button") && !getSelection().toString()) row.querySelector(".af-go")?.click();
  });

  source.value = draft.text;
  inputs.show(draft.inputs);
  options.show(draft);
  options.setName("");
  showState();
  look();
  source.focus();
  return {
    find: look,
    close() {
      save();
      isClosed = true;
      clearTimeout(timer);
      document.removeEventListener("keydown", keys);
      sketch.close();
      root.remove();
    },
  };
}
