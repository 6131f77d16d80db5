// The live graph: the line that says how the run stands, the drawing, and what wants an eye: questions, the debugger,
// what is known of the stage that was clicked. Where they stand is in live_view.css: beside the drawing, or around it.

import { makeAnnouncer } from "./announcer.js";
import { makeBeneath } from "./beneath.js";
import { makeBeside } from "./beside.js";
import { makeSwitch } from "./controls.js";
import { makeDebugger } from "./debugger.js";
import { isActive, makeDrawing, spokenState } from "./drawing.js";
import { showGates } from "./gates_view.js";
import { asWidget } from "./host.js";
import { makeIcon } from "./icons.js";
import { makeInspector } from "./inspector.js";
import { makeLostKernel } from "./lost_kernel.js";
import { atMostEvery, keepKeys, make, makeButton } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { shareStates } from "./run_states.js";
import { makeSpeech } from "./speech.js";
import { makeStateTable } from "./state_table.js";
import { makeStatusLine } from "./status_line.js";
import { __ } from "./wording.js";

const TICK_MS = 200;
const FOLLOW_MS = 250;
const FLAT = 2.2; // a drawing that is so many times as wide as high keeps the whole line for itself

// One statement: a page leaves it out.
export default asWidget(showElsewhere, standInRun);

function standInRun(host) {
  const shared = shareStates(host);
  return standIn(host.get("place"), (el) => showLiveRun(host, el, shared));
}

// `questions` is an element with cards that somebody else fills; without it those of the host are shown.
export function showLiveRun(host, el, { truth, views, now }, questions = null) {
  const root = make("div", "attractor-ui attractor-live");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", __("Run of %1", host.get("caption") || __("a pipeline")));
  root.classList.toggle("was-ended", Boolean(truth.line.is_ended)); // no question will need room
  keepKeys(root);

  const stage = make("div", "al-stage");
  const side = make("div", "al-side");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, onEdge: selectEdge, now });
  drawing.element.classList.add("al-canvas");
  const inspector = makeInspector({ onClose: close, onAsk: ask, onAct: act, who: host.who });
  stage.style.setProperty("--al-drawing-width", `${drawing.size.width}px`);
  stage.classList.toggle("is-flat", drawing.size.width > FLAT * drawing.size.height);
  const heights = new ResizeObserver(([{ target }]) => stage.style.setProperty("--al-frame-height", `${target.offsetHeight}px`));
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
  if (host.get("has_output")) side.append(speech.element, beside.answer);
  side.append(debugBar.element, cards, inspector.element);
  stage.append(drawing.element, side, lost.element, line.element, beside.said, beside.notices, beside.above, table.element);
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
    const standing = [truth.line.status, truth.line.is_ended, (truth.debugger?.stops || []).length].join();
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
    drawing.uncover(selected, line.element); // which a low window may have pushed it under
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
  }

  function showChanged(nodes) {
    let active = null;
    for (const [id, state] of Object.entries(nodes)) {
      const before = drawing.stateOf(id).status;
      showNode(id, state);
      if (isActive(state)) active = id;
      if (state.status !== before) announcer.say(id, spokenState(state));
    }
    if (active !== null) follow(active);
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
