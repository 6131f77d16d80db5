// The live graph: the drawing, the line under it, what is said, and what is known of the stage that was clicked.

import { makeAnnouncer } from "./announcer.js";
import { makeDebugger } from "./debugger.js";
import { isActive, makeDrawing, spokenState } from "./drawing.js";
import { asWidget } from "./host.js";
import { makeInspector } from "./inspector.js";
import { makeLostKernel } from "./lost_kernel.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { shareStates } from "./run_states.js";
import { makeSpeech } from "./speech.js";
import { makeStateTable } from "./state_table.js";
import { makeStatusLine } from "./status_line.js";

const TICK_MS = 200;

export default asWidget(showLiveRun, shareStates);

export function showLiveRun(host, el, { truth, views, now }) {
  const root = make("div", "attractor-ui attractor-live");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", `Run of ${host.get("caption") || "a pipeline"}`);
  keepKeys(root);

  // The inspector stands beside the picture where both fit, else below: the picture keeps its size.
  const stage = make("div", "al-stage");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, onEdge: selectEdge, now });
  drawing.element.classList.add("al-canvas");
  const inspector = makeInspector({ onClose: close, onAsk: ask, who: host.who });
  stage.append(drawing.element, inspector.element);

  const { nameOf } = drawing;
  const isActiveNode = (id) => id in truth.nodes && isActive(truth.nodes[id]);
  const line = makeStatusLine(() => host.send({ kind: "stop" }), () => showTable(true, true));
  const table = makeStateTable(drawing.ids, { nameOf, onNode: select });
  const speech = makeSpeech({ nameOf, onNode: select });
  const announcer = makeAnnouncer(nameOf);
  const lost = makeLostKernel(host, (reason) => {
    line.setUnanswered(reason);
    root.classList.toggle("is-lost", Boolean(reason));
  });
  const debugBar = makeDebugger(drawing, (request) => lost.isLost || host.send({ kind: "debug", ...request }));
  const asTable = makeButton("", "☰", "The states as a table", () => showTable(table.element.hidden));
  asTable.setAttribute("aria-label", "The states as a table");
  drawing.addTool(asTable);
  showTable(false);
  const control = make("div", "al-control");
  control.append(line.element, debugBar.element);
  root.append(stage, lost.element, control, table.element);
  if (host.get("has_output")) root.append(speech.element);
  root.append(announcer.element);
  el.append(root);

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && (selected !== null || selectedEdge !== null)) {
      event.stopPropagation();
      close();
    }
  });

  let selected = null;
  let selectedEdge = null;

  function showTable(isWanted, isActiveOnly) {
    if (isWanted) table.open(truth.nodes, isActiveOnly);
    else table.close();
    asTable.setAttribute("aria-pressed", String(isWanted));
  }

  function showLine() {
    line.show(truth.line, now());
    drawing.setEnded(truth.line.is_ended);
  }

  function close() {
    const before = selected;
    choose(null, null);
    inspector.hide();
    if (before !== null) drawing.focus(before);
  }

  // Ask the kernel what is known; nobody is asked who is gone.
  function ask(request) {
    if (lost.isLost) inspector.fill({ problems: [`${lost.reason} The drawing and the table have what was heard.`] });
    else host.send({ kind: "inspect", ...request });
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
    inspector.open(index, "Edge");
    ask({ edge: index });
  }

  function select(id) {
    if (id === null || id === selected) {
      close();
      return;
    }
    choose(id, null);
    inspector.open(selected, nameOf(selected), spokenState(drawing.stateOf(selected)));
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
  }

  function showChanged(nodes) {
    for (const [id, state] of Object.entries(nodes)) {
      const before = drawing.stateOf(id).status;
      showNode(id, state);
      if (isActive(state)) drawing.follow(id);
      if (state.status !== before) announcer.say(id, spokenState(state));
    }
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
      if (delta.debugger) debugBar.show(delta.debugger);
      if (delta.tails || delta.nodes) speech.show(truth.tails, isActiveNode);
    },
    showDebug: debugBar.answer,
    showStage(message) {
      const isOfEdge = message.kind === "edge" && String(message.edge) === String(selectedEdge);
      if (isOfEdge || (message.node !== undefined && message.node === selected)) inspector.fill(message);
    },
  };
  views.add(view);
  return () => {
    views.delete(view);
    clearInterval(ticker);
    announcer.close();
    debugBar.close();
    lost.close();
    drawing.close();
    inspector.hide();
  };
}
