// The live graph: the line that says how the run stands, the drawing, and what wants an eye: questions, the debugger,
// what is known of the stage that was clicked. Where they stand is in live_view.css: beside the drawing, or around it.

import { makeBeneath } from "./beneath.js";
import { makeSwitch } from "./controls.js";
import { makeDebugger } from "./debugger.js";
import { isActive, isFlat, makeDrawing, spokenState } from "./drawing.js";
import { showGates } from "./gates_view.js";
import { makeIcon } from "./icons.js";
import { makeInspector } from "./inspector.js";
import { atMostEvery, make, makeButton, makeTable, makeView } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { CHILD_SEPARATOR, shareStates } from "./run_states.js";
import { stageWord } from "./state_words.js";
import { makeStatusLine } from "./status_line.js";
import { makeText } from "./texts.js";
import { __ } from "./wording.js";

const TICK_MS = 200;
const FOLLOW_MS = 250;
const HIGH = 0.45; // of the window: below a higher drawing there is no room for what is known of a node
const QUIET_MS = 2500;
const NAMED = 3;
const SHORT_ANSWER = 240; // characters
const SILENCE_SECONDS = 16; // a kernel says every 5 seconds that it lives
const STATE_COLUMNS = [__("Node"), __("State"), __("Attempt"), __("Visits"), __("What is known")];
const AFTER_THE_END = [
  { what: "replay", label: __("Replay"), title: __("Every moment of the run, with a slider") },
  { what: "timeline", label: __("Timeline"), title: __("When each stage ran, as bars") },
  { what: "compare", label: __("Compare with parent"), title: __("The fork beside the run that it was made from") },
];

// One statement: a page leaves it out.
export default asPlacedWidget((host, el, shared) => showLiveRun(host, el, shared), shareStates);

// `questions` is an element with cards that somebody else fills; without it those of the host are shown.
export function showLiveRun(host, el, { truth, views, now }, questions = null) {
  const root = makeView("attractor-live", __("Run of %1", host.get("caption") || __("a pipeline")));
  root.classList.toggle("was-ended", Boolean(truth.line.is_ended)); // no question will need room

  const stage = make("div", "al-stage");
  const side = make("div", "al-side");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, onEdge: selectEdge, now });
  drawing.element.classList.add("al-canvas");
  const inspector = makeInspector({ onClose: close, onAsk: ask, onAct: act, who: host.who });
  stage.style.setProperty("--al-drawing-width", `${drawing.size.width}px`);
  stage.classList.toggle("is-flat", isFlat(drawing.size));
  let isPlaced = false;
  const heights = new ResizeObserver(([{ target }]) => {
    stage.style.setProperty("--al-frame-height", `${target.offsetHeight}px`);
    stage.classList.toggle("is-high", target.offsetHeight > HIGH * window.innerHeight);
    if (!isPlaced && target.offsetHeight) followActive(); // what was active before the view had a size
    isPlaced = isPlaced || target.offsetHeight > 0;
  });
  heights.observe(drawing.element.querySelector(".ad-frame"));
  const cards = questions || make("div");
  cards.classList.add("al-questions");
  const endCards = questions ? () => {} : showGates(host, cards);

  const { nameOf } = drawing;
  const follow = atMostEvery(FOLLOW_MS, drawing.follow); // it asks where things are, so all of them are laid out anew
  const isActiveNode = (id) => id in truth.nodes && isActive(truth.nodes[id]);
  const line = makeStatusLine(() => host.send({ kind: "stop" }), () => showTable(true, true));
  const table = makeStateTable(drawing.ids, { nameOf, onNode: select });
  const speech = makeSpeech({ nameOf, onNode: select });
  const announcer = makeAnnouncer(nameOf);
  const beside = makeBeside(host, { nameOf, onOpen: (isOpen) => root.classList.toggle("is-beside", isOpen) });
  const asking = makeSwitch(root, ".db-bar :is(button, input, select, textarea), .ag-card :is(button, input, select, textarea), .al-asks");
  const lost = makeLostKernel(host, (reason) => {
    line.setUnanswered(reason);
    asking.set(Boolean(reason));
    root.classList.toggle("is-lost", Boolean(reason));
  });
  const debugBar = makeDebugger(drawing, (request) => lost.isLost || host.send({ kind: "debug", ...request }));
  const asTable = makeButton("", "", __("The states as a table"), () => showTable(table.element.hidden));
  asTable.append(makeIcon("table"));
  asTable.setAttribute("aria-label", __("The states as a table"));
  drawing.addTool(asTable);
  showTable(false);
  line.addButton(debugBar.pause);
  line.element.append(beside.bar);
  if (host.get("has_output")) side.append(speech.element);
  side.append(beside.answer, debugBar.element, cards, inspector.element);
  stage.append(drawing.element, side, lost.element, line.element, beside.said, beside.forgotten, beside.above, table.element);
  const beneath = makeBeneath(host);
  root.append(stage, beside.below, beneath.element, announcer.element);
  el.append(root);

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && (selected !== null || selectedEdge !== null)) {
      event.stopPropagation();
      close();
    }
  });

  let selected = null;
  let selectedEdge = null;
  let stood = "";
  let isFailureOpened = false;

  function showTable(isWanted, isActiveOnly) {
    if (isWanted) table.open(truth.nodes, isActiveOnly);
    else table.close();
    asTable.setAttribute("aria-pressed", String(isWanted));
  }

  function showBeside() {
    beside.show(truth);
    speech.element.hidden = Boolean(truth.answer && truth.answer.text); // the answer has it whole
  }

  function showLine() {
    line.show(truth.line, now());
    showBeside();
    drawing.setEnded(truth.line.is_ended);
    root.classList.toggle("is-ended", Boolean(truth.line.is_ended));
    openFailed();
  }

  // A failed run opens its failed stage, once, unless another one is open: when it is over, which is a moment after its
  // last event, for it can be neither forked nor rewound before. Nothing scrolls but the drawing.
  function openFailed() {
    const { is_over: isOver, failed } = truth.line;
    if (!isOver || !failed || isFailureOpened) return;
    isFailureOpened = true;
    const id = drawing.ids.includes(failed) ? failed : failed.split(CHILD_SEPARATOR)[0];
    if (selected !== null || selectedEdge !== null || !drawing.ids.includes(id)) return;
    choose(id, null);
    inspector.open(id, nameOf(id), spokenState(drawing.stateOf(id)));
    follow(id);
    ask({ node: id });
  }

  function close() {
    const before = selected;
    choose(null, null);
    inspector.hide();
    if (before !== null) drawing.focus(before);
  }

  // Ask the kernel what is known; nobody is asked who is gone.
  function ask(request) {
    if (lost.isLost) inspector.show({ problems: [__("%1 The drawing and the table show the last known state.", lost.reason)] });
    else host.send({ kind: "inspect", ...request });
  }

  function act(request) {
    if (!lost.isLost) host.send({ kind: "act", ...request });
  }

  // Whether a stage can be forked depends on how the run stands.
  function lookAgain() {
    const { status, is_ended: isEnded, is_over: isOver } = truth.line;
    const standing = [status, isEnded, isOver, (truth.debugger?.stops || []).length].join();
    if (standing !== stood && selected !== null) inspector.look();
    stood = standing;
  }

  function choose(id, index) {
    selected = id;
    selectedEdge = index;
    drawing.select(id);
    drawing.selectEdge(index);
  }

  function selectEdge(index) {
    if (index === selectedEdge) {
      close();
      return;
    }
    choose(null, index);
    inspector.open(index, __("Edge"));
    inspector.element.scrollIntoView({ block: "nearest" });
    ask({ edge: index });
  }

  function select(id) {
    if (id === null || id === selected) {
      close();
      return;
    }
    choose(id, null);
    inspector.open(selected, nameOf(selected), spokenState(drawing.stateOf(selected)));
    inspector.element.scrollIntoView({ block: "nearest" });
    drawing.uncover(selected, line.element, inspector.element); // which a low window may have pushed it under
    ask({ node: selected });
  }

  function showNode(id, state) {
    drawing.setNode(id, state);
    table.set(id, state);
  }

  function showAll() {
    for (const id of drawing.ids) showNode(id, truth.nodes[id]);
    for (const index of drawing.edgeIds) drawing.setEdge(index, truth.edges[index] || 0);
    showLine();
    debugBar.show(truth.debugger);
    speech.show(truth.tails, isActiveNode);
    lookAgain();
    if (isPlaced) followActive();
  }

  // Keep in sight what waits for a person, else what runs.
  function followActive(nodes = truth.nodes) {
    const active = drawing.ids.filter((id) => isActive(nodes[id] || {}));
    const wanted = active.find((id) => nodes[id].status === "waiting") ?? active.at(-1);
    if (wanted !== undefined) follow(wanted);
  }

  function showChanged(nodes) {
    for (const [id, state] of Object.entries(nodes)) {
      const before = drawing.stateOf(id).status;
      showNode(id, state);
      if (state.status !== before) announcer.say(id, spokenState(state));
    }
    followActive(nodes);
    if (selected !== null && selected in nodes) {
      inspector.setState(spokenState(nodes[selected]));
      if (!isActive(nodes[selected])) ask({ node: selected });
    }
  }

  showAll();
  const ticker = setInterval(() => {
    if (truth.line.is_ended || !root.isConnected) return;
    lost.check();
    if (lost.isLost) return;
    line.tick(truth.line, now());
    drawing.tick();
  }, TICK_MS);

  const view = {
    showAll,
    show(delta) {
      if (delta.nodes) showChanged(delta.nodes);
      for (const index of Object.keys(delta.edges || {})) drawing.setEdge(index, truth.edges[index]);
      if (delta.line) showLine();
      if (delta.others || delta.answer) showBeside();
      if (delta.debugger) debugBar.show(delta.debugger);
      if (delta.line || delta.debugger) lookAgain();
      if (delta.tails || delta.nodes) speech.show(truth.tails, isActiveNode);
    },
    showDebug: debugBar.answer,
    showStage(message) {
      const isOfEdge = message.kind === "edge" && String(message.edge) === String(selectedEdge);
      if (isOfEdge || (message.node !== undefined && message.node === selected)) inspector.show(message);
    },
  };
  views.add(view);
  return () => {
    views.delete(view);
    clearInterval(ticker);
    heights.disconnect();
    announcer.close();
    beside.close();
    asking.close();
    beneath.close();
    endCards();
    debugBar.close();
    lost.close();
    drawing.close();
    inspector.hide();
  };
}

// Says aloud, to who uses a screen reader, what has changed: not each change, but what a listener can follow.
function makeAnnouncer(nameOf) {
  const element = make("div", "al-unseen", "", { role: "status", "aria-live": "polite" });
  const waiting = new Map();
  let timer = 0;

  function speak() {
    timer = 0;
    if (!waiting.size) return;
    const changes = [...waiting];
    const more = changes.length - NAMED;
    const words = changes.slice(-NAMED).map(([id, state]) => `${nameOf(id)}: ${state}`);
    if (more > 0) words.unshift(__("%1 more changes", more));
    element.textContent = words.join(". ");
    waiting.clear();
    timer = setTimeout(speak, QUIET_MS);
  }

  return {
    element,
    // The first change after a silence is said at once, further ones together.
    say(id, words) {
      waiting.delete(id);
      waiting.set(id, words);
      if (!timer) timer = setTimeout(speak, 0);
    },
    close: () => clearTimeout(timer),
  };
}

// A view whose kernel, or server, is gone or not heard: it says so, says where the rest is, and asks nobody any more.
// `onChange(reason)` is called with why nothing can be asked now, or with an empty text.
function makeLostKernel(host, onChange) {
  const element = make("div", "al-lost", "", { role: "alert", hidden: true });
  const directory = host.get("directory");
  const call = directory ? `Run.load(${JSON.stringify(directory)})` : "Run.load(…)";
  const who = host.who || "kernel";
  let heardAt = performance.now();
  let reason = "";

  function say(text) {
    if (text === reason) return;
    reason = text;
    element.hidden = !text;
    element.replaceChildren();
    if (text) {
      element.append(make("span", "", __("%1 This is the last known state. ", text)));
      if (who === "kernel") element.append(make("code", "", call), make("span", "", __(" shows the rest.")));
      else element.append(make("span", "", __("This page keeps trying to reach it.")));
    }
    onChange(text);
  }

  const stops = [
    host.listen(() => {
      heardAt = performance.now();
      delete element.dataset.isGone;
      say("");
    }),
    host.onLost(() => {
      element.dataset.isGone = ""; // another kernel can open the run, as reopen.js offers in here
      say(__("The %1 is gone.", who));
    }),
  ];
  return {
    element,
    get reason() {
      return reason;
    },
    get isLost() {
      return Boolean(reason);
    },
    // Called again and again while the run is not over.
    check() {
      const silent = (performance.now() - heardAt) / 1000;
      if (!reason && host.get("has_beats") && silent > SILENCE_SECONDS) say(__("The %1 does not respond.", who));
    },
    close: () => stops.forEach((stop) => stop()),
  };
}

// What nodes say while they run: a card for each that speaks, side by side; all branches at once.
function makeSpeech({ nameOf, onNode }) {
  const element = make("div", "al-speech is-empty");
  element.setAttribute("aria-hidden", "true"); // it moves too fast to be read aloud; the inspector has it
  const cards = new Map();

  function cardOf(id) {
    if (!cards.has(id)) {
      const name = make("span", "al-words-name", nameOf(id));
      const text = make("pre", "al-words-text");
      const card = make("div", "al-words", [name, text]);
      card.addEventListener("click", () => onNode(id));
      cards.set(id, { card, text, shown: "" });
    }
    return cards.get(id);
  }

  return {
    element,
    // `tails` are the latest words by node, who spoke last at the end. Those that speak are shown; when
    // nobody does, who spoke last is.
    show(tails, isActiveNode) {
      const spoken = Object.keys(tails).filter((id) => tails[id]);
      const speaking = spoken.filter(isActiveNode);
      const wanted = new Set(speaking.length ? speaking : spoken.slice(-1));
      for (const [id, { card }] of cards) {
        if (wanted.has(id)) continue;
        card.remove();
        cards.delete(id);
      }
      for (const id of wanted) {
        const place = cardOf(id);
        if (!place.card.isConnected) element.append(place.card); // whoever has a place keeps it
        if (place.shown === tails[id]) continue;
        place.shown = tails[id];
        place.text.textContent = tails[id];
        place.text.scrollTop = place.text.scrollHeight;
      }
      element.classList.toggle("is-empty", !wanted.size);
    },
  };
}

// The states of all nodes as a table: what the drawing says in words, for reading, for a screen reader, and
// where a drawing is too large to be looked through.
function makeStateTable(ids, { nameOf, onNode }) {
  const onlyActive = make("input", "", "", { type: "checkbox" });
  const bar = make("label", "al-table-bar", [onlyActive, make("span", "", __("only active nodes"))]);
  const table = makeTable("", STATE_COLUMNS, []);
  const body = table.tBodies[0];
  table.prepend(make("caption", "al-unseen", __("States of all nodes")));
  const element = make("div", "al-table", [bar, table], { hidden: true });
  const rows = new Map();

  function build() {
    for (const id of ids) {
      const open = makeButton("al-link", nameOf(id) === id ? id : `${nameOf(id)} (${id})`, "", () => onNode(id));
      const cells = STATE_COLUMNS.slice(1).map(() => make("td"));
      const row = make("tr", "", [make("th", "", [open], { scope: "row" }), ...cells]);
      body.append(row);
      rows.set(id, { row, cells, state: { status: "pending" } });
    }
  }

  function set(id, state) {
    const parts = rows.get(id);
    if (!parts) return;
    parts.state = state || { status: "pending" };
    const { status, attempt, visits, progress, reason, note } = parts.state;
    const texts = [stageWord(status), attempt > 1 ? attempt : "", visits || "", [progress, reason, note].filter(Boolean).join("; ")];
    texts.forEach((text, number) => {
      if (parts.cells[number].textContent !== String(text)) parts.cells[number].textContent = text;
    });
    parts.row.dataset.status = status;
    parts.row.hidden = onlyActive.checked && !isActive(parts.state);
  }

  const filter = () => {
    for (const [id, { state }] of rows) set(id, state);
  };
  onlyActive.addEventListener("change", filter);

  return {
    element,
    set: (id, state) => !element.hidden && set(id, state),
    // Shows it with the states as they are; it is made when it is first wanted.
    open(states, isActiveOnly) {
      if (!rows.size) build();
      element.hidden = false;
      onlyActive.checked = Boolean(isActiveOnly);
      for (const id of ids) set(id, states[id]);
    },
    close() {
      element.hidden = true;
    },
  };
}

// What stands beside the live view of a run: other runs of the pipeline that wait, and, when it has ended, its answer and
// the ways to look into it again: replay, timeline, going on. Who opens a view says where it is; it stands in there.
// `onOpen(isOpen)` is told whether something stands in the place of the drawing.
function makeBeside(host, { nameOf, onOpen }) {
  const notices = make("ul", "al-others");
  const counted = make("summary", "al-others-count");
  const forgotten = make("details", "al-forgotten", [counted, notices], { hidden: true }); // one line, however many there are
  const answer = make("section", "al-answer", "", { hidden: true });
  const above = make("div", "al-beside");
  const below = make("div", "al-below"); // outside of what sticks to the window in this view
  const said = make("span", "al-after-said", "", { role: "status" });
  const modes = new Map();
  const opened = new Map(); // what was opened: its panel
  let current = "";

  const offered = AFTER_THE_END.filter(({ what }) => what !== "compare" || host.get("has_parent"));
  const buttons = offered.map(({ what, label, title }) => {
    const button = makeButton("al-button al-asks", label, title, () => choose(current === what ? "" : what), { "data-what": what });
    button.setAttribute("aria-pressed", "false");
    return button;
  });
  const resume = makeButton("al-button al-asks", __("Resume"), __("Resume the run where it stopped"), () => {
    resume.disabled = true;
    ask("resume");
  });
  const bar = make("div", "al-after", [...buttons, resume], { hidden: true });

  const ask = (what, run = "") => {
    said.textContent = "";
    host.send({ kind: "beside", what, run });
  };

  function choose(what) {
    current = what;
    if (what && !opened.has(what)) ask(what);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.what === what));
    for (const [name, panel] of opened) panel.hidden = name !== what && name !== "resume";
    onOpen(Boolean(what && opened.has(what)));
  }

  function showPanel(what, place) {
    const panel = make("div", "al-panel", "", { "data-attractor-place": place });
    opened.set(what, panel);
    return panel;
  }

  function makeNotice({ run, words }) {
    const stop = makeButton("al-button al-asks", __("Stop"), __("Stop run %1; it can be resumed", run), () => {
      stop.disabled = true;
      ask("stop", run);
    });
    const show = makeButton("al-button al-asks", __("Show"), __("Show run %1 here", run), () => ask("show", run));
    return make("li", "al-other", [make("span", "al-other-words", words), stop, show], { "data-run": run });
  }

  // The answer comes into a room that was kept for it; a click gives a long one more.
  function makeWhole() {
    const button = makeButton("al-copy", "", "", () => show(answer.classList.toggle("is-whole")));
    const show = (isWhole) => {
      button.textContent = isWhole ? __("Show less") : __("Show all");
      button.setAttribute("aria-expanded", String(isWhole));
    };
    show(answer.classList.contains("is-whole"));
    return button;
  }

  const stopListening = host.listen((message) => {
    if (message.kind !== "beside") return;
    const { what, run, place, problem } = message;
    if (problem) {
      said.textContent = problem;
      bar.hidden = false;
      resume.disabled = false;
      if (current === what) choose("");
    } else if (what === "show" && place) {
      const notice = [...notices.children].find((one) => one.dataset.run === run);
      if (notice && !notice.querySelector(".al-panel")) notice.append(showPanel(`show ${run}`, place));
    } else if (what === "resume" && place) {
      resume.hidden = true;
      below.append(showPanel(what, place));
    } else if (place && !opened.has(what)) {
      for (const button of buttons) if (button.dataset.what === what) button.classList.remove("al-asks"); // it opens by itself now
      above.append(showPanel(what, place));
      choose(current);
    }
  });

  return {
    above,
    below,
    forgotten,
    bar,
    said,
    answer,
    show({ line, others, answer: last }) {
      const known = [...notices.children].map((notice) => notice.dataset.run).join();
      if (known !== (others || []).map(({ run }) => run).join()) {
        notices.replaceChildren(...(others || []).map(makeNotice));
        const count = notices.children.length;
        forgotten.hidden = !count;
        forgotten.open = counted.hidden = count === 1;
        counted.textContent = __("%1 other runs of this pipeline wait for an answer", count);
      }
      const isOver = Boolean(line.is_ended && host.get("has_beside"));
      bar.hidden = !isOver;
      resume.hidden = line.status !== "interrupted" || opened.has("resume");
      const { node, text, shown } = last || {};
      answer.hidden = !text;
      if (text && answer.dataset.text !== text) {
        answer.dataset.text = text;
        const label = __("The answer of %1", nameOf(node));
        answer.replaceChildren(makeText(text, 0, { name: label, shown, modes }));
        if (text.length > SHORT_ANSWER || text.split("\n").length > 2) answer.querySelector(".al-text-buttons").prepend(makeWhole());
      }
    },
    close: stopListening,
  };
}
