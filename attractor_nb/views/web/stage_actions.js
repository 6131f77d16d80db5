// What can be done with the stage that is looked at: fork, rewind, pin, save. The tooltip of a button has the call that does the
// same, or the reason where it is off, which a click also shows. `onAct(request)` sends a request; what comes of it comes back
// through `answer`.

import { make, makeButton, newKey, onCommandEnter } from "./parts.js";
import { makeCopy } from "./texts.js";
import { __ } from "./wording.js";

const SLOW_ACTION_MS = 1500;
const ACTION_BUSY = __("The kernel is busy. It will do this when it is free.");
const NOT_LOST = __("Later stages are set aside. They stay in the log, and nothing is lost.");
const ASIDE = { fork: __("Not now"), rewind: __("Not now") };
const SLOW_ANSWER_MS = 1500;
const MAX_MESSAGE_CHARACTERS = 20000; // model/instruction.py

export function makeStageActions(onAct) {
  const bar = make("div", "as-actions", "", { role: "group", "aria-label": __("Actions for this stage"), hidden: true });
  const panel = make("section", "as-panel", "", { hidden: true });

  const makeAction = (name) => {
    const button = makeButton("al-button as-button", "", "", () => {
      if (button.getAttribute("aria-disabled") !== "true") choose(name);
      else if (!form) say({ words: actions[name].why });
    });
    bar.append(button);
    return button;
  };
  const buttons = { fork: makeAction("fork"), rewind: makeAction("rewind"), pin: makeAction("pin"), save: makeAction("save") };
  const typed = new Map(); // by stage: a prompt that was begun
  let place = null; // {node, visit, branch}
  let actions = null;
  let opened = ""; // what the panel is about: "fork", "rewind", or what was said
  let form = null;
  let key = "";
  let timer = 0;

  const name = () => `${place.node}@${place.visit}@${place.branch}`;

  function showButtons() {
    const isFailed = place.status === "fail";
    const words = {
      fork: [__("Fork"), wordsOfFork(isFailed)],
      rewind: [__("Rewind"), wordsOfRewind(isFailed)],
      pin: actions.is_pinned ? [__("Unpin"), __("Unpin this answer")] : [__("Pin"), __("Pin this answer")],
      save: [__("Save as row"), actions.save ? __("Save as row in %1", actions.save.file) : ""],
    };
    buttons.pin.hidden = !actions.pin || (isFailed && !actions.is_pinned); // nobody keeps an answer that failed
    buttons.save.hidden = !actions.save;
    for (const [each, button] of Object.entries(buttons).filter(([, one]) => !one.hidden)) {
      const { why, call } = actions[each];
      const [short, whole] = words[each];
      button.textContent = (isFailed || actions.at) && each !== "save" ? whole : short;
      button.setAttribute("aria-label", whole);
      button.title = why || `${whole}: ${call}`;
      button.setAttribute("aria-disabled", String(Boolean(why)));
      if (each === "fork" || each === "rewind") button.setAttribute("aria-expanded", String(opened === each));
    }
  }

  // `actions.at` is where a run goes back for a stage of a branch or a child run.
  function wordsOfFork(isFailed) {
    if (actions.at) return __("Fork from %1", actions.at);
    if (actions.prompt === null) return __("Fork from here");
    return isFailed ? __("Fix the prompt and rerun from here") : __("Edit prompt and fork from here");
  }

  function wordsOfRewind(isFailed) {
    if (actions.at) return __("Rerun from %1", actions.at);
    return isFailed ? __("Rerun this stage") : __("Rewind to before this stage");
  }

  function choose(each) {
    if (each === "save") act({ call: "save" });
    else if (each === "pin") act({ call: actions.is_pinned ? "unpin" : "pin" });
    else if (opened === each) close();
    else open(each);
  }

  function close() {
    opened = "";
    form = null;
    panel.hidden = true;
    panel.replaceChildren();
    showButtons();
  }

  function open(each) {
    opened = each;
    key = newKey();
    form = each === "fork" ? makeForkForm() : makeRewindForm();
    panel.replaceChildren(form.element);
    panel.hidden = false;
    showButtons();
    form.focus();
  }

  function act(request) {
    clearTimeout(timer);
    if (form) form.setBusy(true);
    timer = setTimeout(() => say({ words: ACTION_BUSY }, form), SLOW_ACTION_MS);
    onAct({ ...place, ...(actions.at ? { at: actions.at } : {}), ...request });
  }

  function makeForkForm() {
    const box = makeForm({
      words: actions.prompt === null ? __("A run of its own begins just before %1.", actions.at || place.node) : "",
      go: __("Fork and run"),
      aside: ASIDE.fork,
      onGo: () => {
        const prompt = field ? field.value : null;
        act({ call: "fork", key, ...(field && prompt !== actions.prompt ? { prompt } : {}) });
      },
      onAside: () => {
        close();
        buttons.fork.focus();
      },
    });
    let field = null;
    const showCall = () => {
      const isOther = field && field.value !== actions.prompt;
      box.showCall(isOther ? withPrompt(actions.fork.call, field.value) : actions.fork.call);
    };
    if (actions.prompt !== null) {
      const label = make("label", "as-label", __("Prompt of the fork"));
      field = make("textarea", "as-prompt");
      field.value = typed.get(name()) ?? actions.prompt;
      field.rows = Math.min(12, Math.max(4, field.value.split("\n").length + 1));
      field.spellcheck = false;
      label.append(field);
      const hint = make("p", "al-dim", __("$name and ${stage.response} stand for values, as in the graph."));
      field.addEventListener("input", () => {
        typed.set(name(), field.value);
        showCall();
      });
      onCommandEnter(field, () => box.go.click());
      box.top.append(label, hint);
    }
    showCall();
    return { ...box, focus: () => (field || box.go).focus(), refresh: showCall };
  }

  function makeRewindForm() {
    const where = actions.at ? actions.at : place.visit ? __("%1, visit %2", place.node, place.visit) : place.node;
    const box = makeForm({
      words: __("The run goes back to just before %1 and resumes from there. %2", where, NOT_LOST),
      go: __("Rewind and run"),
      aside: ASIDE.rewind,
      onGo: () => act({ call: "rewind", key }),
      onAside: () => {
        close();
        buttons.rewind.focus();
      },
    });
    box.showCall(actions.rewind.call);
    return { ...box, focus: () => box.go.focus(), refresh: () => box.showCall(actions.rewind.call) };
  }

  // What came of it, in the panel; under a form, where that is still open.
  function say({ words, call = "", isProblem = false }, under = null) {
    if (under) {
      under.say(words, isProblem);
      return;
    }
    const line = make("p", isProblem ? "as-problem" : "as-said", words, { role: isProblem ? "alert" : "status" });
    panel.replaceChildren(line, ...(call ? [makeCallLine(call)] : []));
    panel.hidden = false;
  }

  return {
    element: bar,
    panel,
    // What can be done with a stage that is shown; null for nothing.
    show(found, about) {
      const { node, visit, branch = "", status = "" } = about || {};
      const isSame = place && about && place.node === node && place.visit === visit && place.branch === branch;
      bar.hidden = !found;
      if (!found) panel.hidden = true;
      if (!isSame) {
        clearTimeout(timer);
        opened = "";
        form = null;
        panel.hidden = true;
        panel.replaceChildren();
      }
      place = about ? { node, visit, branch, status } : null;
      actions = found;
      if (!found) return;
      showButtons();
      if (opened && form && !actions[opened].why) form.refresh();
    },
    // What came of a request about the stage that is shown.
    answer(message) {
      if (!place || message.node !== place.node || (message.visit ?? null) !== (place.visit ?? null)) return;
      actions = message.actions || actions;
      if (message.said || message.problem) {
        clearTimeout(timer);
        if (form) form.setBusy(false);
      }
      if (message.problem) {
        say({ words: message.problem, isProblem: true }, form);
      } else if (message.said) {
        const from = opened;
        typed.delete(name());
        close();
        say(message.said);
        if (from && panel.contains(document.activeElement)) buttons[from].focus();
      } else if (form) {
        form.refresh();
      }
      showButtons();
    },
    // How things stand may be otherwise now.
    look() {
      if (place && actions) onAct({ ...place, call: "look" });
    },
    close: () => clearTimeout(timer),
  };
}

// Words, room for fields, the call, and two buttons; what is said against it stands there, too.
function makeForm({ words, go, aside, onGo, onAside }) {
  const top = make("div", "");
  if (words) top.append(make("p", "as-words", words));
  const callLine = make("div", "");
  const problem = make("p", "as-problem", "", { role: "alert", hidden: true });
  const goButton = makeButton("al-button as-go", go, "", () => {
    if (goButton.getAttribute("aria-disabled") === "true") return;
    onGo();
  });
  const row = make("div", "as-buttons", [goButton, makeButton("al-button", aside, "", onAside)]);
  const element = make("div", "as-form", [top, problem, row, callLine]);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    onAside();
  });
  return {
    element,
    top,
    go: goButton,
    showCall: (call) => callLine.replaceChildren(...(call ? [makeCallLine(call)] : [])),
    setBusy(isBusy) {
      goButton.setAttribute("aria-disabled", String(isBusy));
      goButton.textContent = isBusy ? __("Starting…") : go;
      if (isBusy) problem.hidden = true;
    },
    say(said, isProblem) {
      problem.textContent = said;
      problem.classList.toggle("as-problem", isProblem);
      problem.hidden = false;
    },
  };
}

// The call that does the same, to be copied.
export function makeCallLine(call) {
  return make("div", "as-call", [make("span", "al-dim", __("In Python")), make("pre", "", call), makeCopy(call)]);
}

// A call with another prompt: a JSON text is a text of Python, too.
const withPrompt = (call, prompt) => call && call.replace(/\)$/, () => `, prompt=${JSON.stringify(prompt)})`);

// A field in the inspector of a model stage that can still be told something. `onTell(request)` sends the message;
// what comes of it comes back through `answer`. What was begun stays with its stage.
export function makeStageMessage(onTell) {
  const label = make("label", "as-label", __("Tell this stage something"));
  const field = make("textarea", "as-text", "", { rows: 2, maxLength: MAX_MESSAGE_CHARACTERS });
  label.append(field);
  const go = makeButton("al-button as-tell", __("Tell"), "", () => send());
  const row = make("div", "as-buttons", [go]);
  const said = make("div", "");
  const element = make("form", "as-message", [label, row, said], { hidden: true });

  const typed = new Map(); // by stage
  let place = null; // {node, visit, branch}
  let sent = null; // the request that was not answered yet
  let timer = 0;

  const setBusy = (isBusy) => go.setAttribute("aria-disabled", String(isBusy || !field.value.trim()));

  function say(words, { isProblem = false, call = "" } = {}) {
    const line = make("p", isProblem ? "as-problem" : "as-said", words, { role: isProblem ? "alert" : "status" });
    said.replaceChildren(line, ...(call ? [makeCallLine(call)] : []));
  }

  function send() {
    if (sent || !place || !field.value.trim()) return;
    sent = { ...place, call: "tell", text: field.value, key: newKey() };
    setBusy(true);
    timer = setTimeout(() => say(__("This takes longer. The answer follows here.")), SLOW_ANSWER_MS);
    onTell(sent);
  }

  element.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", () => {
    typed.set(place.node, field.value);
    setBusy(Boolean(sent));
  });
  onCommandEnter(field, send);

  return {
    element,
    // The stage that is shown; whether it can be told something.
    show(canBeTold, about) {
      const isSame = place && about && place.node === about.node;
      if (!isSame) {
        clearTimeout(timer);
        sent = null;
        said.replaceChildren();
        field.value = about ? typed.get(about.node) || "" : "";
      }
      place = about ? { node: about.node, visit: about.visit ?? null, branch: about.branch || "" } : null;
      const isOpen = Boolean(canBeTold && place);
      element.hidden = !isOpen && !said.childElementCount; // what was said of the last message stays to be read
      label.hidden = row.hidden = !isOpen;
      setBusy(Boolean(sent));
    },
    // What came of a message.
    answer(message) {
      if (!place || !sent || message.node !== place.node) return;
      clearTimeout(timer);
      sent = null;
      if (message.problem) {
        say(message.problem, { isProblem: true });
      } else {
        typed.delete(place.node);
        field.value = "";
        say(message.said.words, message.said);
      }
      setBusy(false);
    },
    close: () => clearTimeout(timer),
  };
}
