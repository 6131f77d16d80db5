// The debugger's bar: where the run stands and why, going on, and what can be changed there.
//
// Breakpoints stand on the drawing as badges: Alt-click on a node, or `b` with the keyboard on it, sets and
// takes one; the keys of the bar work there, too. What is known comes whole with each message; nothing is
// decided here. Whoever steps by keys stays where they are: buttons are switched off without losing the focus.

import { badgeIcon } from "./drawing_badges.js";
import { make, makeButton, onCommandEnter, optionsOf } from "./parts.js";
import { stageWord } from "./state_words.js";
import { makeText } from "./texts.js";
import { __ } from "./wording.js";

const TOGGLE_KEY = "b";
const NODE_HELP = __("On a node, b sets or removes a breakpoint, s steps, o steps over, c continues, p pauses.");

const pathOfStop = (stop) => stop.path + stop.node;
const isOff = (button) => button.getAttribute("aria-disabled") === "true";
const setOff = (button, value) => button.setAttribute("aria-disabled", String(value));
const OUTCOMES = ["success", "partial_success", "fail", "skipped", "retry"];

// `drawing` is one of makeDrawing; `ask(request)` sends a request that is answered by a message of kind "debug".
export function makeDebugger(drawing, ask) {
  const element = make("section", "db-bar", "", { "aria-label": __("Debugger") });
  const said = make("div", "db-said", "", { role: "status" });
  const call = (name) => () => ask({ call: name, branch: branchOf(current()) });
  const makeGoing = (text, title, act) => {
    const button = makeButton("al-button", text, title, () => isOff(button) || act());
    return button;
  };
  const going = makeGoing(__("Continue"), __("Continue to the next breakpoint (c)"), () => ask({ call: "continue" }));
  const step = makeGoing(__("Step"), __("Execute this stage and stop at the next (s)"), call("step"));
  const over = makeGoing(__("Step over"), __("As Step, but execute a fan-out with all its branches (o)"), call("step_over"));
  const pause = makeGoing(__("Pause"), __("Stop at the next stage (p); Alt-click on a node, or b, sets a breakpoint"), () => ask({ call: "pause" }));
  pause.classList.add("db-pause");
  const pin = makeButton("al-button", __("Pin"), "", () => ask({ call: isPinned() ? "unpin" : "pin", node: pinnable() }));
  const buttons = make("div", "db-buttons", [going, step, over, pin]);
  said.tabIndex = -1; // has the focus while nothing stands
  const points = make("ul", "db-points", "", { "aria-label": __("Breakpoints") });
  const problem = make("p", "db-problem", "", { role: "alert" });
  const editor = makeContextEditor(ask);
  element.append(make("div", "db-head", [said, buttons]), problem, points, editor.element);
  element.hidden = true;

  let state = { breakpoints: [], stops: [], pins: {}, prompts: {}, is_pausing: false, is_over: true };
  let chosen = null; // number of the stop that the editor is about
  let badged = new Set();
  let isUsed = false; // once it was used it stays: nothing moves between two steps

  const current = () => state.stops.find((stop) => stop.number === chosen) || state.stops[0] || null;
  const branchOf = (stop) => (stop ? stop.path + stop.branch : null);
  const pinnable = () => (current() && !current().path ? current().node : "");
  const isPinned = () => pinnable() in state.pins;

  function show(next) {
    if (!next || !next.breakpoints) return;
    const before = current();
    state = next;
    if (!current() || current().number !== chosen) chosen = current() ? current().number : null;
    const isLive = !state.is_over;
    isUsed ||= Boolean(state.stops.length || state.breakpoints.length || state.is_pausing || Object.keys(state.pins).length);
    element.hidden = !isLive || !isUsed;
    element.dataset.stands = String(state.stops.length > 0);
    showSaid();
    for (const button of [step, over]) setOff(button, !state.stops.length);
    setOff(going, !state.stops.length && !state.is_pausing);
    setOff(pause, state.is_pausing);
    editor.setOff(!state.stops.length);
    pin.hidden = !pinnable();
    pin.textContent = isPinned() ? __("Unpin") : __("Pin");
    pin.title = isPinned() ? __("Execute this node again") : __("Keep the last outcome of this node; it is no longer executed");
    showPoints();
    showBadges();
    const stop = current();
    if (stop && (!before || before.number !== stop.number)) ask({ call: "look", branch: branchOf(stop) });
  }

  function showSaid() {
    const hadFocus = said.contains(document.activeElement);
    fillSaid();
    if (hadFocus) (said.querySelector(".db-stop") || said).focus({ preventScroll: true });
  }

  function fillSaid() {
    said.replaceChildren();
    if (!state.stops.length) {
      said.append(make("span", "db-words", state.is_pausing ? __("Pauses at the next stage.") : __("Running.")));
      return;
    }
    for (const stop of state.stops) {
      const where = [stop.branch && __("branch %1", stop.branch), stop.path && __("child run of %1", stop.path.replace(/>$/, ""))];
      const words = [__("Stopped"), stop.words.replaceAll("`", "").replaceAll("->", "→"), ...where.filter(Boolean)].join(" ");
      const row = makeButton("db-stop", words, __("Show the prompt and context of this stop"), () => {
        chosen = stop.number;
        showSaid();
        ask({ call: "look", branch: branchOf(stop) });
      }, { "aria-pressed": String(current().number === stop.number) });
      if (stop.breakpoint !== stop.node) row.append(make("span", "db-why", stop.breakpoint));
      said.append(row);
    }
  }

  function showPoints() {
    const at = [...points.children].findIndex((item) => item.contains(document.activeElement));
    fillPoints();
    if (at < 0) return;
    const next = points.children[Math.min(at, points.children.length - 1)];
    (next ? next.querySelector("button") : going).focus({ preventScroll: true });
  }

  function fillPoints() {
    points.replaceChildren();
    for (const text of state.breakpoints) {
      const item = make("li", "db-point", [badgeIcon("breakpoint"), make("code", "", text)]);
      const remove = makeButton("al-close", "×", __("Remove the breakpoint %1", text), () => ask({ call: "clear", text }));
      remove.setAttribute("aria-label", __("Remove the breakpoint %1", text));
      item.append(remove);
      points.append(item);
    }
    points.hidden = !state.breakpoints.length;
  }

  function showBadges() {
    const badges = new Map();
    const put = (id, kind, words) => {
      const there = badges.get(id) || [];
      const same = there.find((badge) => badge.kind === kind);
      if (same) same.words += `, ${words}`;
      else badges.set(id, [...there, { kind, words }]);
    };
    for (const stop of state.stops) put(pathOfStop(stop), "here", stop.moment === "after" ? __("stopped after it") : __("stopped before it"));
    for (const text of state.breakpoints) {
      const id = nodeOf(text);
      if (id) put(id, "breakpoint", __("breakpoint %1", text));
    }
    for (const [id, words] of Object.entries(state.pins)) put(id, words === "mocked" ? "mocked" : "pinned", words);
    for (const id of Object.keys(state.prompts)) put(id, "changed", __("another prompt in this run"));
    if (state.is_over) badges.clear();
    for (const id of new Set([...badged, ...badges.keys()])) drawing.setBadges(id, badges.get(id) || []);
    badged = new Set(badges.keys());
  }

  function toggle(id) {
    const text = state.breakpoints.find((entry) => entry === id);
    ask(text ? { call: "clear", text } : { call: "break", text: id });
  }

  function onClick(event) {
    const id = event.altKey ? drawing.idOf(event.target) : null;
    if (id === null || state.is_over) return;
    event.preventDefault();
    event.stopPropagation();
    toggle(id);
  }

  const isOther = (event) =>
    event.ctrlKey || event.metaKey || event.altKey || state.is_over || event.target.matches("input, textarea, select");

  // Whether a key was one of the bar's.
  function goByKey(event) {
    const button = { c: going, s: step, o: over, p: pause }[event.key];
    if (!button || isOther(event)) return;
    event.preventDefault();
    event.stopPropagation();
    button.click();
  }

  function onKey(event) {
    const id = drawing.idOf(event.target);
    if (id === null || isOther(event)) return;
    if (event.key !== TOGGLE_KEY) {
      goByKey(event);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    toggle(id);
  }

  drawing.element.addEventListener("click", onClick, true);
  drawing.element.addEventListener("keydown", onKey, true);
  element.addEventListener("keydown", goByKey);
  drawing.describe(NODE_HELP);

  return {
    element,
    pause, // stands beside Stop
    show,
    // Takes the answer to a request: how things stand, what went wrong, the values at a stop.
    answer(message) {
      problem.textContent = message.problem || "";
      problem.hidden = !message.problem;
      if (message.debugger) show(message.debugger);
      if (message.look && current() && message.look.number === current().number) editor.show(message.look, current());
    },
    close() {
      drawing.element.removeEventListener("click", onClick, true);
      drawing.element.removeEventListener("keydown", onKey, true);
    },
  };
}

// The node on which a breakpoint is drawn: `plan`, `plan@2`, `after:plan`, `a->plan`; none for a condition.
function nodeOf(text) {
  const path = /^(?:\w+>)*/.exec(text)[0];
  const rest = text.slice(path.length);
  const found = /^(?:after:)?(\w+)(?:@\d+)?$/.exec(rest) || /^\w+->(\w+)$/.exec(rest);
  return found && !rest.startsWith("on:") ? path + found[1] : null;
}

// What can be changed where a run stands: values of the context, the prompt of the stage, the outcome of one
// that has just ended.
// `ask(request)` sends a request of the debugger.
function makeContextEditor(ask) {
  const title = make("summary", "", __("Change"));
  const outcome = make("form", "db-outcome");
  const prompt = make("form", "db-prompt");
  const values = make("form", "db-values");
  const element = make("details", "db-editor", [title, outcome, prompt, values], { hidden: true });

  let branch = null;
  let about = ""; // what the fields are of
  let rows = new Map(); // by key, the row of a value
  let shownPrompt = null;

  // A text of any number of lines: an input would make one line of them. Ctrl+Enter is done with it.
  const field = (label, value, most = 6) => {
    const input = make("textarea", "db-field", "", { rows: 1, "aria-label": label });
    input.addEventListener("input", () => fit(input, most));
    onCommandEnter(input, () => {
      if (input.closest("table")) input.dispatchEvent(new Event("change"));
      else input.form.requestSubmit();
    });
    put(input, value, most);
    return input;
  };
  const fit = (input, most) => {
    input.rows = Math.min(most, Math.max(1, input.value.split("\n").length));
  };
  // Gives a field its value, unless somebody is writing in it, or has written and not sent it.
  function put(input, value, most = 6) {
    if (input.value !== (input.shown ?? "")) return;
    input.value = value;
    input.shown = input.value;
    fit(input, most);
  }
  const sent = (input) => {
    input.shown = input.value;
    return input.value;
  };

  const onSubmit = (form, act) =>
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!form.querySelector("button[aria-disabled=true]")) act();
    });

  let submitOutcome = () => {};
  let submitPrompt = () => {};
  let submitValue = () => {};
  onSubmit(outcome, () => submitOutcome());
  onSubmit(prompt, () => submitPrompt());
  onSubmit(values, () => submitValue());

  function showOutcome(stop) {
    outcome.hidden = stop.moment !== "after";
    if (outcome.hidden) return;
    const status = make("select", "db-field", optionsOf(OUTCOMES.map((name) => [name, stageWord(name)])), { "aria-label": __("Outcome") });
    if (OUTCOMES.includes(stop.status)) status.value = stop.status;
    const label = field(__("Preferred label"), "");
    label.placeholder = __("preferred label");
    const reason = field(__("Reason"), "");
    reason.placeholder = __("reason of a failure");
    outcome.replaceChildren(make("span", "db-name", __("Outcome")), status, label, reason, submitButton(__("Set"), __("Before an edge is chosen")));
    submitOutcome = () =>
      ask({ call: "set_outcome", status: status.value, label: label.value, reason: reason.value, branch });
  }

  function showPrompt(look, stop) {
    prompt.hidden = look.prompt === null || stop.moment !== "before";
    if (prompt.hidden) return;
    if (!shownPrompt) {
      const text = field(__("Prompt of %1", stop.node), look.prompt, 8);
      shownPrompt = { text, note: make("div", "db-sent"), sent: null, modes: new Map() };
      prompt.replaceChildren(make("span", "db-name", __("Prompt")), text, submitButton(__("Set"), __("For this run only (Ctrl+Enter)")), shownPrompt.note);
    }
    const { text, note } = shownPrompt;
    put(text, look.prompt, 8);
    if (shownPrompt.sent !== look.sent) {
      const options = { name: __("Sent as"), shown: look.sent_shown, modes: shownPrompt.modes };
      note.replaceChildren(...(look.sent ? [makeText(look.sent, 0, options)] : []));
      shownPrompt.sent = look.sent;
    }
    submitPrompt = () => ask({ call: "set_prompt", node: stop.node, text: sent(text) });
  }

  const body = make("tbody");
  const table = make("table", "db-table", [make("caption", "", __("Context")), body]);
  const newKey = make("input", "db-field", "", { "aria-label": __("New key"), placeholder: __("key") });
  const newValue = field(__("New value"), "");
  newValue.placeholder = __("value, as JSON or text");
  const more = make("p", "al-dim");
  values.append(table, newKey, newValue, submitButton(__("Add"), __("Put a value into the context (Ctrl+Enter)")), more);
  submitValue = () => {
    if (!newKey.value.trim()) return;
    ask({ call: "set_context", key: newKey.value.trim(), text: newValue.value, branch });
    newKey.value = newValue.value = "";
    newValue.rows = 1;
  };

  function makeRow(key, isFixed) {
    const name = make("th", "", key, { scope: "row" });
    const value = isFixed ? make("span", "db-fixed") : field(__("Value of %1", key), "");
    if (!isFixed) {
      value.addEventListener("change", () => {
        if (value.value !== value.shown) ask({ call: "set_context", key, text: sent(value), branch });
      });
    }
    const line = make("tr", "", [name, make("td", "", [value])]);
    return { line, value, isFixed };
  }

  // A row that is there stays, so that who is in it can go on.
  function showValues(look) {
    const before = rows;
    rows = new Map();
    for (const { key, is_fixed: isFixed } of look.context) {
      const known = before.get(key);
      rows.set(key, known && known.isFixed === isFixed ? known : makeRow(key, isFixed));
    }
    const wanted = [...rows.values()].map(({ line }) => line);
    for (const gone of [...body.children].filter((line) => !wanted.includes(line))) gone.remove();
    for (const [number, { key, text }] of look.context.entries()) {
      const { line, value, isFixed } = rows.get(key);
      if (isFixed) value.textContent = text || __("(empty)");
      else put(value, text);
      if (body.children[number] !== line) body.insertBefore(line, body.children[number] || null);
    }
    more.textContent = look.more ? __("%1 more values: run.debugger.context()", look.more) : "";
  }

  return {
    element,
    show(look, stop) {
      const place = `${stop.number} ${stop.node} ${stop.moment} ${stop.path}${stop.branch}`;
      if (place !== about) shownPrompt = null; // it is another one's
      if (branch !== stop.path + stop.branch) rows.clear();
      about = place;
      branch = stop.path + stop.branch;
      title.textContent = stop.moment === "after" ? __("Change outcome and context") : __("Change prompt and context");
      if (outcome.dataset.place !== place) showOutcome(stop);
      outcome.dataset.place = place;
      showPrompt(look, stop);
      showValues(look);
      element.hidden = false;
    },
    // While nothing stands nothing can be sent; what was written stays.
    setOff(value) {
      for (const button of element.querySelectorAll("button")) setOff(button, value);
    },
  };
}

function submitButton(text, tip) {
  return makeButton("al-button", text, tip, () => {}, { type: "submit" });
}
