// The live graph: the drawing, the line under it, what is said, and what is known of the stage that was clicked.

import { isActive, makeDrawing, spokenState } from "./drawing.js";
import { asWidget } from "./host.js";
import { makeInspector } from "./inspector.js";
import { make } from "./parts.js";
import { shareStates } from "./run_states.js";
import { makeStatusLine } from "./status_line.js";

const TICK_MS = 200;

export default asWidget(showLiveRun, shareStates);

export function showLiveRun(host, el, { truth, views, now }) {
  const root = make("div", "attractor-ui attractor-live");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", `Run of ${host.get("caption") || "a pipeline"}`);
  // Keys pressed here are ours, not JupyterLab's shortcuts (Lumino honours this attribute).
  root.dataset.lmSuppressShortcuts = "true";

  // The inspector stands beside the picture where both fit, else below: the picture keeps its size.
  const stage = make("div", "al-stage");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, now });
  drawing.element.classList.add("al-canvas");
  const inspector = makeInspector(() => select(null));
  stage.append(drawing.element, inspector.element);

  const line = makeStatusLine(() => host.send({ kind: "stop" }));
  const tail = make("div", "al-tail");
  tail.setAttribute("aria-hidden", "true"); // it moves too fast to be read aloud; the inspector has it
  const tailName = make("span", "al-tail-name");
  const tailText = make("pre", "al-tail-text");
  tail.append(tailName, tailText);
  root.append(stage, line.element);
  if (host.get("has_output")) root.append(tail);
  el.append(root);

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selected !== null) {
      event.stopPropagation();
      select(null);
    }
  });

  let selected = null;

  function showTail() {
    tail.classList.toggle("is-empty", !truth.tail.text);
    tailName.textContent = truth.tail.node || "";
    tailText.textContent = truth.tail.text || "";
    tailText.scrollTop = tailText.scrollHeight;
  }

  function showLine() {
    line.show(truth.line, now());
    drawing.setEnded(truth.line.is_ended);
  }

  function select(id) {
    const before = selected;
    selected = id === selected ? null : id;
    drawing.select(selected);
    if (selected === null) {
      inspector.hide();
      if (before !== null) drawing.focus(before);
      return;
    }
    inspector.open(selected, drawing.nameOf(selected), spokenState(drawing.stateOf(selected)));
    host.send({ kind: "inspect", node: selected });
  }

  function showAll() {
    for (const id of drawing.ids) drawing.setNode(id, truth.nodes[id]);
    for (const index of drawing.edgeIds) drawing.setEdge(index, truth.edges[index] || 0);
    showLine();
    showTail();
  }

  showAll();
  const ticker = setInterval(() => {
    if (truth.line.is_ended || !root.isConnected) return;
    line.tick(truth.line, now());
    drawing.tick();
  }, TICK_MS);

  const view = {
    showAll,
    show(delta) {
      for (const [id, state] of Object.entries(delta.nodes || {})) {
        drawing.setNode(id, state);
        if (isActive(state)) drawing.follow(id);
      }
      for (const index of Object.keys(delta.edges || {})) drawing.setEdge(index, truth.edges[index]);
      if (delta.line) showLine();
      if (delta.tail) showTail();
      if (selected !== null && delta.nodes && selected in delta.nodes) {
        inspector.setState(spokenState(delta.nodes[selected]));
        if (!isActive(delta.nodes[selected])) host.send({ kind: "inspect", node: selected });
      }
    },
    showStage(message) {
      if (message.node === selected) inspector.fill(message);
    },
  };
  views.add(view);
  return () => {
    views.delete(view);
    clearInterval(ticker);
    drawing.close();
    inspector.hide();
  };
}
