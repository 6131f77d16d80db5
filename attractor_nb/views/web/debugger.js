// The debugger's bar: where the run stands and why, going on, and what can be changed there.
//
// Breakpoints stand on the drawing as badges: Alt-click on a node, or `b` with the keyboard on it, sets and
// takes one; the keys of the bar work there, too. What is known comes whole with each message; nothing is
// decided here. Whoever steps by keys stays where they are: buttons are switched off without losing the focus.

import { makeContextEditor } from "./debugger_context.js";
import { badgeIcon } from "./drawing_badges.js";
import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const TOGGLE_KEY = "b";
const NODE_HELP = __("On a node, b sets or removes a breakpoint, s steps, o steps over, c continues, p pauses.");

const pathOfStop = (stop) => stop.path + stop.node;
const isOff = (button) => button.getAttribute("aria-disabled") === "true";
const setOff = (button, value) => button.setAttribute("aria-disabled", String(value));

// `drawing` is one of makeDrawing; `ask(request)` sends a request that is answered by a message of kind "debug".
export function makeDebugger(drawing, ask) {
  const element = make("section", "db-bar");
  element.setAttribute("aria-label", __("Debugger"));
  const said = make("div", "db-said");
  said.setAttribute("role", "status");
  const buttons = make("div", "db-buttons");
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
  buttons.append(going, step, over, pin);
  said.tabIndex = -1; // has the focus while nothing stands
  const points = make("ul", "db-points");
  points.setAttribute("aria-label", __("Breakpoints"));
  const problem = make("p", "db-problem");
  problem.setAttribute("role", "alert");
  const editor = makeContextEditor(ask);
  const head = make("div", "db-head");
  head.append(said, buttons);
  element.append(head, problem, points, editor.element);
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
      const words = [__("Stopped"), stop.words.replaceAll("`", ""), ...where.filter(Boolean)].join(" ");
      const row = makeButton("db-stop", words, __("Show the prompt and context of this stop"), () => {
        chosen = stop.number;
        showSaid();
        ask({ call: "look", branch: branchOf(stop) });
      });
      row.setAttribute("aria-pressed", String(current().number === stop.number));
      row.append(make("span", "db-why", stop.breakpoint));
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
      const item = make("li", "db-point");
      item.append(badgeIcon("breakpoint"), make("code", "", text));
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
