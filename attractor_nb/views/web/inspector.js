// What is known of the stage, or the edge, that was clicked. It shows the plain forms of studio/inspect/inspect_run.py and
// asks for more through `onAsk`: {node, visit, attempt, branch}, {node, …, file}; who owns it sends that on. What can be
// done with a stage is in `actions` of its plain form; without it, or without `onAct`, there are no buttons.

import { makeFileList } from "./file_list.js";
import { makeIcon } from "./icons.js";
import { make, makeButton, makeFacts, makeTable, seconds } from "./parts.js";
import { makeInline } from "./prose.js";
import { makeStageActions, makeStageMessage } from "./stage_actions.js";
import { runWord, stageWord } from "./state_words.js";
import { makeText, makeWords } from "./texts.js";
import { __, _n } from "./wording.js";

const SLOW_REPLY_MS = 1500;
const BUSY = { kernel: __("The kernel is busy. The texts follow when the cell has ended."), server: __("The server has not answered yet.") };
const STAGE_TABS = {
  Prompt: __("Prompt"), Response: __("Response"), Status: __("Status"), Context: __("Context"), Files: __("Files"), Attempts: __("Attempts"),
  Items: __("Items"), Why: __("Why"),
};
const OUTPUTS = { Output: __("Output"), Errors: __("Errors"), Response: __("Response") };
let tabCount = 0;
const SHORT_VALUE = 160;
const SIGNS = { added: "+", changed: "~", removed: "−", same: "" };

export function makeInspector({ onClose, onAsk = () => {}, onAct, who = "kernel", opensItems = true }) {
  const element = make("aside", "al-inspector", "", { hidden: true, "aria-label": __("Inspector") });
  const title = make("h4", "al-inspector-title");
  const state = make("div", "al-inspector-state", "", { role: "status" });
  const problems = make("div", "al-problems");
  const failure = make("div", "");
  const body = make("div", "al-inspector-body");
  const acting = makeStageActions((request) => onAct(request));
  const telling = makeStageMessage((request) => onAct(request));
  const head = make("div", "al-inspector-head", [title, state, acting.element]);
  if (onClose) head.append(makeButton("al-close", "×", "", onClose, { "aria-label": __("Close") }));
  element.append(head, problems, failure, acting.panel, body);

  let timer = 0;
  let shown = null; // the id that was opened
  let plain = null; // what is shown of it
  let files = null;
  let isOpened = false; // and nothing is shown of it yet
  const tabs = makeTabs(STAGE_TABS);
  const modes = new Map(); // which texts are wanted raw

  // Of an item that is shown the run is asked, until somebody asks for another item, or for none.
  const ask = (more) => {
    const own = plain?.item !== undefined && more.item === undefined ? { item: plain.item, visit: plain.of_visit } : {};
    onAsk({ node: shown, ...more, ...own });
  };
  const askForAll = () => onAsk({ node: shown, visit: plain.of_visit });

  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => body.replaceChildren(makeWords(BUSY[who])), SLOW_REPLY_MS);
  }

  function fillStage() {
    const { visit, attempt, branch } = plain;
    files = makeFileList(plain, (file) => ask({ visit, attempt, branch, file }), modes);
    tabs.show({
      Prompt: promptOf(plain, modes),
      Response: [responseOf(plain, modes)],
      Status: statusOf(plain, modes),
      Context: [makeContextDiff(plain.context || [])],
      Files: [files.element],
      Attempts: [makeTries(plain, ask)],
      Items: itemsOf(plain, opensItems && ask, askForAll),
      Why: makeReasons(plain),
    });
    tabs.mark("Context", (plain.context || []).filter((one) => one.change !== "same").length);
    tabs.mark("Files", (plain.files || []).length);
    tabs.mark("Items", (plain.items || []).length);
    tabs.offer("Items", Boolean(plain.items?.length) || plain.item !== undefined);
    tabs.mark("Attempts", (plain.attempts || []).length > 1 || (plain.visits || []).length > 1
      ? `${(plain.visits || []).length}·${(plain.attempts || []).length}` : 0);
    body.replaceChildren(tabs.element);
    if (isOpened && plain.status === "fail") tabs.choose("Status"); // which has the reason
    isOpened = false;
  }

  return {
    element,
    // Begin with a stage, or with an edge: its id, what it is called, how it stands in words.
    open(id, name = id, words = "") {
      say(title, name === id ? String(id) : `${name} (${id})`);
      say(state, words);
      problems.replaceChildren();
      failure.replaceChildren();
      body.replaceChildren();
      acting.show(null);
      telling.show(false, null);
      element.hidden = false;
      if (id !== shown) {
        tabs.reset();
        isOpened = true;
      }
      shown = id;
      plain = null;
      wait();
    },
    setState: (words) => say(state, words),
    // Show a plain form: of a stage, of an edge, or of a file of the stage that is shown.
    show(message) {
      if (message.kind === "acted") {
        if (message.call !== "tell") {
          acting.answer(message);
          return;
        }
        telling.answer(message);
        if (message.said && plain) ask({ visit: plain.visit, attempt: plain.attempt, branch: plain.branch });
        return;
      }
      clearTimeout(timer);
      if (message.kind === "file") {
        const isOfShown = plain && message.visit === plain.visit && message.attempt === plain.attempt && message.item === plain.item;
        if (files && isOfShown) files.show(message);
        return;
      }
      plain = message;
      acting.show((onAct && message.actions) || null, { ...message, node: shown });
      // A page that cannot tell anything has no form; one that has it keeps it where it stands, with its focus.
      if (onAct && message.can_be_told && !element.contains(telling.element)) acting.panel.after(telling.element);
      telling.show(onAct && message.can_be_told, message.status === undefined ? null : { ...message, node: shown });
      failure.replaceChildren(...(message.failure ? [makeFailure(message, modes)] : []));
      problems.replaceChildren(...(message.problems || []).map((words) => make("p", "al-problem", words)));
      if (message.edge !== undefined && message.source !== undefined) {
        say(title, `${message.source} → ${message.target}`);
        say(state, passesOf(message.passes));
        body.replaceChildren(...makeVerdicts(message));
      } else if (message.status === undefined) {
        body.replaceChildren();
      } else {
        if (message.visit) say(state, headOf(message));
        fillStage();
      }
    },
    // The run may stand otherwise now: ask again what can be done.
    look: acting.look,
    hide() {
      clearTimeout(timer);
      acting.close();
      telling.close();
      element.hidden = true;
      shown = plain = null;
    },
  };
}

// Words of the head, which has one line: what is cut off is in the tooltip.
function say(part, words) {
  part.textContent = part.title = words;
}

const passesOf = (passes) => (passes > 1 ? __("taken %1 times", passes) : passes ? __("taken once") : __("never taken"));

function itemsOf(plain, ask, askForAll) {
  if (plain.item !== undefined) return [makeButton("al-button", __("All items"), "", askForAll)];
  return plain.items?.length ? [makeItemTable(plain, ask)] : [];
}

function headOf(plain) {
  const counting = (plain.visits || []).filter((one) => !one.is_set_aside).length;
  const parts = [stageWord(plain.status) + (plain.cached ? `, ${__("cached")}` : "")];
  if (plain.item !== undefined) parts.unshift(__("item %1", plain.item));
  if (plain.is_set_aside) parts.push(__("visit %1 (set aside)", plain.visit));
  else if (counting > 1) parts.push(__("visit %1 of %2", plain.visit, counting));
  if ((plain.attempts || []).length > 1) parts.push(__("attempt %1 of %2", plain.attempt, plain.attempts.length));
  if (plain.branch) parts.push(__("branch %1", plain.branch));
  if (plain.usage_words) parts.push(plain.usage_words);
  return parts.join(" · ");
}

// A text of the stage, by its name in the plain form.
function textOf(plain, modes, key, options = {}) {
  const text = key in (plain.output || {}) ? plain.output[key] : plain[key];
  return makeText(text, plain.cut?.[key], { shown: plain.shown?.[key], modes, label: key, ...options });
}

function promptOf(plain, modes) {
  const name = { tool: __("Command"), function: __("Function") }[plain.handler] || "";
  const sent = textOf(plain, modes, "prompt", { name, nothing: __("No prompt was sent.") });
  const parts = [plain.task ? textOf(plain, modes, "task") : sent];
  if (plain.messages?.length) parts.push(messagesOf(plain.messages));
  if (plain.carried) parts.push(makePart(__("Preamble: the run so far"), textOf(plain, modes, "carried")));
  if (plain.task) parts.push(makePart(__("The whole prompt as it was sent"), sent));
  return parts;
}

// What the attempt was told meanwhile, and how it received it.
function messagesOf(messages) {
  const part = make("section", "al-part al-told", "", { "aria-label": __("Messages") });
  for (const { text, given_by: by, words } of messages) {
    part.append(make("p", "al-dim", by ? __("Message (%1), %2", by, words) : __("Message, %1", words)), make("pre", "", text));
  }
  return part;
}

function responseOf(plain, modes) {
  const { stdout, stderr } = plain.output || {};
  const part = make("div", "al-parts");
  if (plain.response || !(stdout || stderr)) {
    part.append(textOf(plain, modes, "response", { nothing: __("There was no response.") }));
  }
  if (stdout) part.append(textOf(plain, modes, "stdout", { name: __("Output") }));
  if (stderr) part.append(textOf(plain, modes, "stderr", { name: __("Errors") }));
  if (plain.changes) part.append(textOf(plain, modes, "changes", { name: __("Changes") }));
  return part;
}

function statusOf(plain, modes) {
  const facts = makeFacts([
    [__("Outcome"), stageWord(plain.status)],
    [__("Reason"), plain.reason],
    [__("Notes"), plain.notes],
    [__("By hand"), (plain.by_hand || []).join("\n")],
    [__("Cache"), plain.cached],
    [__("Used"), plain.usage_words],
    [__("Calls"), plain.usage?.calls],
    [__("Handler"), plain.handler],
    [__("Label"), plain.label],
    [__("Working directory"), plain.workdir],
    [__("Branch"), plain.branch],
  ]);
  const parts = [facts];
  if (plain.traceback && !plain.failure) parts.push(makePart(__("Traceback"), textOf(plain, modes, "traceback")));
  if (plain.why_next?.candidates?.length) parts.push(makeCandidates(plain.why_next.candidates));
  return parts;
}

// A failure on one screen: the reason, the user's own line between others, the last output, what a resume would do.
function makeFailure(plain, modes) {
  const { sentence, place, code, outputs, resume } = plain.failure;
  const box = make("section", "al-failure", [make("p", "al-failure-words", sentence)], { "aria-label": __("Failure") });
  if (code.length) {
    const lines = code.map(([number, text, isFailed]) => {
      const line = make("span", isFailed ? "al-code is-failed" : "al-code", `${isFailed ? ">" : " "} ${String(number).padStart(4)}  ${text}\n`);
      if (isFailed) line.setAttribute("aria-current", "true");
      return line;
    });
    box.append(make("div", "al-text-name", place), make("pre", "al-failure-code", lines));
  }
  for (const [name, text, isCut] of outputs) {
    box.append(make("div", "al-text-name", isCut ? __("%1, its last lines", OUTPUTS[name]) : OUTPUTS[name]), make("pre", "", text));
  }
  if (plain.traceback) box.append(makePart(__("Traceback"), textOf(plain, modes, "traceback")));
  if (resume) box.append(make("p", "al-failure-resume", resume));
  return box;
}

const makePart = (title, content) => make("details", "al-part", [make("summary", "", title), content]);

// Tabs: one list that is walked with the arrow keys, one panel.
// `labels` are the words of each tab, by its name.
function makeTabs(labels) {
  const names = Object.keys(labels);
  const prefix = `al-tabs-${(tabCount += 1)}`;
  const list = make("div", "al-tab-list", "", { role: "tablist" });
  const panel = make("div", "al-tab-panel", "", { id: `${prefix}-panel`, role: "tabpanel", tabIndex: 0 });
  const element = make("div", "al-tabs", [list, panel]);
  const buttons = new Map();
  let contents = {};
  let current = names[0];

  for (const [index, name] of names.entries()) {
    const button = makeButton("al-tab", labels[name], "", () => choose(name), { id: `${prefix}-${index}`, role: "tab", "aria-controls": panel.id });
    const count = make("span", "al-tab-count");
    button.append(count);
    buttons.set(name, { button, count });
    list.append(button);
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const there = names.filter((name) => !buttons.get(name).button.hidden);
    const end = { Home: 0, End: there.length - 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const at = end ?? (there.indexOf(current) + step + there.length) % there.length;
    choose(there[at]);
    buttons.get(there[at]).button.focus();
  });

  function choose(name) {
    current = name;
    for (const [other, { button }] of buttons) {
      button.setAttribute("aria-selected", String(other === name));
      button.tabIndex = other === name ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", buttons.get(name).button.id);
    const parts = contents[name] || [];
    panel.replaceChildren(...(parts.length ? parts : [makeWords(__("Nothing is known about it."))]));
  }

  choose(current);
  return {
    element,
    choose,
    // Give each tab its elements; the chosen one stays.
    show(parts) {
      contents = parts;
      choose(current);
    },
    // Whether a tab is there; what was chosen of one that is not gives way to the first.
    offer(name, isThere) {
      buttons.get(name).button.hidden = !isThere;
      if (!isThere && current === name) choose(names[0]);
    },
    mark(name, count) {
      buttons.get(name).count.textContent = count ? ` ${count}` : "";
    },
    reset() {
      choose(names[0]);
    },
  };
}

// The context before and behind a visit: what was added, changed, removed; the rest is folded away.
function makeContextDiff(changes) {
  const changed = changes.filter((one) => one.change !== "same");
  const same = changes.filter((one) => one.change === "same");
  const parts = [changed.length ? makeChanges(changed) : makeWords(__("The visit changed nothing in the context."))];
  if (same.length) parts.push(makePart(_n("Unchanged: %1 key", "Unchanged: %1 keys", same.length), makeChanges(same)));
  return make("div", "al-parts", parts);
}

function makeChanges(changes) {
  const sides = changes[0].change === "same" ? ["after"] : ["before", "after"];
  const names = sides.length === 1 ? [__("Value")] : [__("Before"), __("After")];
  const rows = changes.map((one) => {
    const values = sides.map((side) => make("td", "al-value", [contextValue(one[side], one.shown?.[side])]));
    return make("tr", `is-${one.change}`, [make("td", "al-sign", SIGNS[one.change], { title: one.change }), make("td", "al-key", one.key), ...values]);
  });
  return makeTable("al-table al-context", ["", __("Key"), ...names], rows);
}

// A value; with a tree it is drawn by that, and a long one begins closed.
function contextValue(value, tree) {
  if (value === null || value === undefined) return make("span", "al-dim", "–");
  const whole = () => (tree ? makeInline(tree) : make("span", "", value));
  if (value.length <= SHORT_VALUE || tree?.[0]?.[0] === "div.json") return whole();
  const text = make("span", "");
  const more = makeButton("al-more", "", "", () => show(more.getAttribute("aria-expanded") !== "true"));
  function show(isWhole) {
    text.replaceChildren(isWhole ? whole() : `${value.slice(0, SHORT_VALUE)}…`);
    more.textContent = isWhole ? __("show less") : __("show all (%1 characters)", value.length.toLocaleString("en"));
    more.setAttribute("aria-expanded", String(isWhole));
  }
  show(false);
  return make("span", "", [text, " ", more]);
}

// Why a stage was reached and left as it was, and what became of an edge each time.
function makeReasons(plain) {
  const way = plain.why_next;
  const parts = [makeFacts([[__("Came here"), plain.why_here], [__("Went on"), way?.words], [__("But"), way?.mismatch, "al-problem"]])];
  if (!way) parts.push(makeWords(__("The run has not left this node yet.")));
  if (way?.rules?.length) {
    const rules = way.rules.map(({ name, words, decides }) =>
      make("li", decides ? "is-deciding" : "", [make("span", "al-rule", name), `: ${words}${decides ? " (this decided)" : ""}`]),
    );
    parts.push(make("div", "al-text-name", __("Rules, in their order")), make("ol", "al-rules", rules));
  }
  if (way?.candidates?.length) parts.push(makeCandidates(way.candidates));
  return parts;
}

function makeCandidates(candidates) {
  const rows = candidates.map((one) =>
    makeVerdict(one, [
      make("td", "al-key", one.target),
      make("td", "al-key", one.condition || "–"),
      clauses(one.values),
      make("td", "al-number", one.weight),
      make("td", "", one.words),
    ]),
  );
  return makeTable("al-table", ["", __("Edge to"), __("Condition"), __("Saw"), __("Weight"), __("Verdict")], rows);
}

function makeVerdicts(edge) {
  const facts = makeFacts([
    [__("Condition"), edge.condition || __("none")],
    [__("Label"), edge.label],
    [__("Weight"), String(edge.weight)],
    [__("Marked"), edge.is_default && "default=true"],
    [__("Marked"), edge.is_restart && "loop_restart=true"],
    [__("Marked"), edge.max_taken && `max_taken=${edge.max_taken}`],
  ]);
  if (!edge.verdicts.length) return [facts, makeWords(__("%1 was not left yet.", edge.source))];
  const rows = edge.verdicts.map((one) =>
    makeVerdict(one, [
      make("td", "", one.branch ? `${one.visit} (${one.branch})` : one.visit),
      clauses(one.values),
      make("td", "", one.words),
      make("td", "al-key", one.went_to || __("(the end)")),
    ]),
  );
  return [facts, makeTable("al-table", ["", __("Visit of %1", edge.source), __("Saw"), __("Verdict"), __("Went to")], rows)];
}

const makeVerdict = (one, cells) => make("tr", one.is_taken ? "is-taken" : "", [signOf(one), ...cells]);

function signOf(one) {
  const [icon, title] = one.is_taken
    ? ["taken", __("taken")]
    : one.holds === false ? ["refused", __("its condition does not hold")] : ["none", __("not taken")];
  return make("td", "al-sign", [makeIcon(icon)], { title });
}

function clauses(values) {
  const lines = values.map(({ clause, value, holds }) => {
    const key = clause.split(/!?=/)[0].replace(/^context\./, "");
    const saw = `${key} = ${value === "" ? "nothing" : value} ${holds ? "✓" : "✕"}`;
    return make("div", holds ? "" : "is-false", saw, { title: `${clause}: ${holds ? "holds" : "does not hold"}` });
  });
  return make("td", "al-key", lines.length ? lines : "–");
}

// Visits and attempts of a stage: which there were, how each ended; a click shows another.
function makeTries(plain, ask) {
  const box = make("div", "al-parts");
  const visits = plain.visits || [];
  const attempts = plain.attempts || [];
  if (visits.length) box.append(listOf(__("Visits"), visits.map((one) => visitLine(one, plain, ask))));
  if (attempts.length) box.append(listOf(__("Attempts of this visit"), attempts.map((one) => attemptLine(one, plain, ask))));
  if (!visits.length && !attempts.length) box.append(make("p", "al-dim", __("The run did not reach this node.")));
  return box;
}

function listOf(name, lines) {
  return make("div", "", [make("div", "al-text-name", name), make("ul", "al-tries", lines)]);
}

function visitLine(one, plain, ask) {
  const extra = [one.branch && __("in %1", one.branch), one.is_cached && __("cached"), one.is_set_aside && __("set aside by a rewind")];
  if (one.attempts > 1) extra.push(__("%1 attempts", one.attempts));
  const isShown = one.number === plain.visit && one.branch === plain.branch;
  return lineOf(__("visit %1", one.number), one.status, extra, isShown, () => ask({ visit: one.number, branch: one.branch }));
}

function attemptLine(one, plain, ask) {
  const tokens = (one.usage?.input_tokens || 0) + (one.usage?.output_tokens || 0);
  const extra = [
    one.seconds !== null && one.seconds !== undefined && seconds(one.seconds),
    tokens && __("%1 tokens", tokens.toLocaleString("en")),
    one.usage?.cached_tokens && __("%1 of them cached", one.usage.cached_tokens.toLocaleString("en")),
    one.usage?.cost_usd && `$${one.usage.cost_usd.toPrecision(2)}`,
    one.reason,
  ];
  const { visit, branch } = plain;
  return lineOf(__("attempt %1", one.number), one.status, extra, one.number === plain.attempt, () =>
    ask({ visit, branch, attempt: one.number }));
}

function lineOf(name, status, extra, isShown, onClick) {
  return make("li", `is-${status.replace(" ", "-")}`, [
    makeButton("al-try", name, "", onClick, isShown ? { "aria-current": "true" } : {}),
    make("span", "al-try-status", stageWord(status)),
    make("span", "al-dim", extra.filter(Boolean).join(", ")),
  ]);
}

// The items of a stage that is run for each of a list: what each is, how its run stands; a click opens that.
// `ask({visit, branch, item})` is called for a click on an item whose run has begun; without it none can be opened.
function makeItemTable(plain, ask) {
  const names = [__("Item"), __("Value"), __("Status"), __("Reason")];
  return makeTable("al-items", names, plain.items.map((one) => makeItemRow(one, plain, ask)), { "aria-label": __("Items") });
}

function makeItemRow(one, { visit, branch }, ask) {
  const open = () => ask({ visit, branch, item: one.index });
  const isOpened = one.run_id && ask;
  return make("tr", `is-${one.status.replaceAll(" ", "-")}`, [
    make("td", "", isOpened ? [makeButton("al-try", one.index, "", open, { "aria-label": __("Open item %1", one.index) })] : one.index),
    make("td", "al-item-value", one.value),
    make("td", "al-try-status", runWord(one.status)),
    make("td", "al-dim", one.reason),
  ]);
}
