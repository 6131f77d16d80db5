// The live graph. The picture is drawn once; after that only classes and a few short texts change.

import { asWidget } from "./host.js";
import { makeInspector } from "./inspector.js";
import { importDrawing, make, wholeSeconds } from "./parts.js";
import { CHILD_SEPARATOR, shareStates } from "./run_states.js";
import { makeStatusLine } from "./status_line.js";

const ACTIVE = new Set(["running", "waiting", "retrying"]);
const TICK_MS = 200;

export default asWidget(showLiveRun, shareStates);

// The path of an element: those of the child runs that it is drawn in, and its own id.
function pathOf(element, id) {
  const child = element.closest("[data-child]");
  return child ? child.dataset.child + CHILD_SEPARATOR + id : id;
}

export function showLiveRun(host, el, { truth, views, now }) {
  const root = make("div", "attractor-ui attractor-live");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", `Run of ${host.get("caption") || "a pipeline"}`);
  // Keys pressed here are ours, not JupyterLab's shortcuts (Lumino honours this attribute).
  root.dataset.lmSuppressShortcuts = "true";

  const stage = make("div", "al-stage");
  const canvas = make("div", "al-canvas");
  const drawing = importDrawing(host.get("svg"));
  drawing.setAttribute("role", "group");
  canvas.append(drawing);
  // The inspector stands beside the picture where both fit, else below: the picture keeps its size.
  canvas.style.setProperty("--al-width", `${parseFloat(drawing.getAttribute("width")) || 340}px`);
  const inspector = makeInspector(() => select(null));
  stage.append(canvas, inspector.element);

  const line = makeStatusLine(() => host.send({ kind: "stop" }));
  const tail = make("div", "al-tail");
  tail.setAttribute("aria-hidden", "true"); // it moves too fast to be read aloud; the inspector has it
  const tailName = make("span", "al-tail-name");
  const tailText = make("pre", "al-tail-text");
  tail.append(tailName, tailText);
  root.append(stage, line.element);
  if (host.get("has_output")) root.append(tail);
  el.append(root);

  const nodes = new Map();
  for (const element of drawing.querySelectorAll("[data-node]")) {
    const id = pathOf(element, element.dataset.node);
    const detail = element.querySelector(".detail");
    nodes.set(id, {
      element,
      mark: element.querySelector(".mark path"),
      counts: element.querySelector(".counts"),
      detail,
      detailText: detail ? detail.textContent : "",
      name: (element.querySelector(".label") || element).textContent,
    });
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "button");
    element.addEventListener("click", () => select(id));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        select(id);
      }
    });
  }
  const edges = new Map();
  for (const element of drawing.querySelectorAll("[data-edge]")) {
    const index = pathOf(element, element.dataset.edge);
    edges.set(index, [...(edges.get(index) || []), element]);
  }
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selected !== null) {
      event.stopPropagation();
      select(null);
    }
  });

  let selected = null;
  const marks = host.get("marks");

  function showNode(id) {
    const parts = nodes.get(id);
    if (!parts) return;
    const state = truth.nodes[id] || { status: "pending" };
    const kept = [...parts.element.classList].filter((name) => !name.startsWith("state-"));
    parts.element.setAttribute("class", [...kept, `state-${state.status}`].join(" "));
    if (parts.mark) parts.mark.setAttribute("d", marks[state.status] || "");
    if (parts.detail) parts.detail.textContent = short(state) || parts.detailText;
    parts.element.setAttribute("aria-label", `${parts.name}: ${spoken(state)}`);
    showCounts(parts, state);
  }

  function short(state) {
    const words = state.status === "fail" && state.reason ? state.reason : state.note || "";
    return words.length > 28 ? `${words.slice(0, 27)}…` : words;
  }

  const spoken = (state) => [state.status.replace("_", " "), state.reason, state.note].filter(Boolean).join(", ");

  function showCounts(parts, state) {
    if (!parts.counts) return;
    const texts = state.progress ? [state.progress] : [];
    if (state.attempt > 1) texts.push(`×${state.attempt}`);
    if (state.visits > 1) texts.push(`↻${state.visits}`);
    if (ACTIVE.has(state.status)) {
      if (state.until) texts.push(wholeSeconds(state.until - now()));
      else if (state.status === "running" && state.since) texts.push(wholeSeconds(now() - state.since));
    }
    const text = texts.join(" ");
    if (parts.counts.textContent !== text) parts.counts.textContent = text;
  }

  function showEdge(index) {
    const passes = truth.edges[index] || 0;
    for (const element of edges.get(index) || []) {
      element.classList.toggle("taken", passes > 0);
      const count = element.querySelector(".passes");
      if (count) count.textContent = passes > 1 ? `×${passes}` : "";
    }
  }

  function showTail() {
    tail.classList.toggle("is-empty", !truth.tail.text);
    tailName.textContent = truth.tail.node || "";
    tailText.textContent = truth.tail.text || "";
    tailText.scrollTop = tailText.scrollHeight;
  }

  function showLine() {
    line.show(truth.line, now());
    drawing.classList.toggle("ended", Boolean(truth.line.is_ended));
  }

  function select(id) {
    if (selected !== null && nodes.has(selected)) nodes.get(selected).element.classList.remove("selected");
    const before = selected;
    selected = id === selected ? null : id;
    if (selected === null) {
      inspector.hide();
      if (before !== null && nodes.has(before)) nodes.get(before).element.focus({ preventScroll: true });
      return;
    }
    nodes.get(selected).element.classList.add("selected");
    inspector.open(selected, nodes.get(selected).name, spoken(truth.nodes[selected] || { status: "pending" }));
    host.send({ kind: "inspect", node: selected });
  }

  function showAll() {
    for (const id of nodes.keys()) showNode(id);
    for (const index of edges.keys()) showEdge(index);
    showLine();
    showTail();
  }

  showAll();
  const ticker = setInterval(() => {
    if (truth.line.is_ended || !root.isConnected) return;
    line.tick(truth.line, now());
    for (const [id, state] of Object.entries(truth.nodes)) {
      if (ACTIVE.has(state.status) && nodes.has(id)) showCounts(nodes.get(id), state);
    }
  }, TICK_MS);

  const view = {
    showAll,
    show(delta) {
      for (const id of Object.keys(delta.nodes || {})) showNode(id);
      for (const index of Object.keys(delta.edges || {})) showEdge(index);
      if (delta.line) showLine();
      if (delta.tail) showTail();
      if (selected !== null && delta.nodes && selected in delta.nodes) {
        inspector.setState(spoken(delta.nodes[selected]));
        if (!ACTIVE.has(delta.nodes[selected].status)) host.send({ kind: "inspect", node: selected });
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
    inspector.hide();
  };
}
