// What is known of the stage, or the edge, that was clicked. It shows the plain forms of studio/inspect/inspect_run.py and
// asks for more through `onAsk`: {node, visit, attempt, branch}, {node, …, file}; who owns it sends that on. What can be
// done with a stage is in `actions` of its plain form; without it, or without `onAct`, there are no buttons.

import { makeContextDiff } from "./context_diff.js";
import { makeFileList } from "./file_list.js";
import { makeItemTable } from "./item_table.js";
import { make, makeButton } from "./parts.js";
import { makeTabs } from "./tabs.js";
import { makeText, makeWords } from "./texts.js";
import { makeCandidates, makeReasons, makeVerdicts } from "./reasons.js";
import { makeStageActions } from "./stage_actions.js";
import { makeStageMessage } from "./stage_message.js";
import { makeTries } from "./tries.js";
import { __ } from "./wording.js";

const SLOW_REPLY_MS = 1500;
const BUSY = { kernel: __("The kernel is busy. The texts follow when the cell has ended."), server: __("The server has not answered yet.") };
const STAGE_TABS = {
  Prompt: __("Prompt"), Response: __("Response"), Status: __("Status"), Context: __("Context"), Files: __("Files"), Attempts: __("Attempts"),
  Items: __("Items"), Why: __("Why"),
};

export function makeInspector({ onClose, onAsk = () => {}, onAct, who = "kernel", opensItems = true }) {
  const element = make("aside", "al-inspector");
  element.hidden = true;
  element.setAttribute("aria-label", __("Inspector"));
  const head = make("div", "al-inspector-head");
  const title = make("h4", "al-inspector-title");
  head.append(title);
  if (onClose) {
    const shut = makeButton("al-close", "×", "", onClose);
    shut.setAttribute("aria-label", __("Close"));
    head.append(shut);
  }
  const state = make("div", "al-inspector-state");
  state.setAttribute("role", "status");
  const problems = make("div", "al-problems");
  const body = make("div", "al-inspector-body");
  const acting = makeStageActions((request) => onAct(request));
  const telling = makeStageMessage((request) => onAct(request));
  element.append(head, state, problems, acting.element, body);

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
      title.textContent = name === id ? String(id) : `${name} (${id})`;
      state.textContent = words;
      problems.replaceChildren();
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
    setState(words) {
      state.textContent = words;
    },
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
      if (onAct && message.can_be_told && !element.contains(telling.element)) acting.element.after(telling.element);
      telling.show(onAct && message.can_be_told, message.status === undefined ? null : { ...message, node: shown });
      problems.replaceChildren(...(message.problems || []).map((words) => make("p", "al-problem", words)));
      if (message.edge !== undefined && message.source !== undefined) {
        title.textContent = `${message.source} → ${message.target}`;
        state.textContent = passesOf(message.passes);
        body.replaceChildren(...makeVerdicts(message));
      } else if (message.status === undefined) {
        body.replaceChildren();
      } else {
        if (message.visit) state.textContent = headOf(message);
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

const passesOf = (passes) => (passes > 1 ? __("taken %1 times", passes) : passes ? __("taken once") : __("never taken"));

function itemsOf(plain, ask, askForAll) {
  if (plain.item !== undefined) return [makeButton("al-button", __("All items"), "", askForAll)];
  return plain.items?.length ? [makeItemTable(plain, ask)] : [];
}

function headOf(plain) {
  const counting = (plain.visits || []).filter((one) => !one.is_set_aside).length;
  const parts = [plain.status.replace("_", " ") + (plain.cached ? `, ${__("cached")}` : "")];
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
  const parts = [];
  if (plain.carried) {
    const box = make("details", "al-part");
    box.append(make("summary", "", __("Preamble: the run so far")), textOf(plain, modes, "carried"));
    parts.push(box);
  }
  const name = { tool: __("Command"), function: __("Function") }[plain.handler] || "";
  parts.push(textOf(plain, modes, "prompt", { name, nothing: __("No prompt was sent.") }));
  if (plain.messages?.length) parts.push(messagesOf(plain.messages));
  return parts;
}

// What the attempt was told meanwhile, and how it received it.
function messagesOf(messages) {
  const part = make("section", "al-part al-told");
  part.setAttribute("aria-label", __("Messages"));
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
  const parts = [];
  const list = make("dl", "al-facts");
  const add = (name, words) => {
    if (words) list.append(make("dt", "", name), make("dd", "", words));
  };
  add(__("Outcome"), plain.status.replace("_", " "));
  add(__("Reason"), plain.reason);
  add(__("Notes"), plain.notes);
  add(__("By hand"), (plain.by_hand || []).join("\n"));
  add(__("Cache"), plain.cached);
  add(__("Used"), plain.usage_words);
  if (plain.usage?.calls) add(__("Calls"), String(plain.usage.calls));
  add(__("Handler"), plain.handler);
  add(__("Label"), plain.label);
  add(__("Working directory"), plain.workdir);
  add(__("Branch"), plain.branch);
  parts.push(list);
  if (plain.traceback) {
    const box = make("details", "al-part");
    box.append(make("summary", "", __("Traceback")), textOf(plain, modes, "traceback"));
    parts.push(box);
  }
  if (plain.why_next?.candidates?.length) parts.push(makeCandidates(plain.why_next.candidates));
  return parts;
}
