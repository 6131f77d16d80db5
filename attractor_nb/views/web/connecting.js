// A new edge in a drawing: dragged from one node to another, or by keys: c on the one, Enter on the other.

import { CHILD_SEPARATOR } from "./run_states.js";
import { __ } from "./wording.js";

const PULL_PX = 6; // less is a click
const SVG_SPACE = "http://www.w3.org/2000/svg";

// `onConnect(from, to)` is called with ids of nodes, `onSaid(words)` with what the keys do next.
export function makeConnecting(drawing, { onConnect, onSaid }) {
  const { element } = drawing;
  const overlay = document.createElementNS(SVG_SPACE, "svg");
  overlay.setAttribute("class", "ad-pull");
  overlay.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG_SPACE, "line");
  overlay.append(line);
  let from = null; // the node that is dragged from: { id, x, y, isMoved }
  let marked = null;
  let begun = null; // the node that keys began at

  // Nodes of child runs are of another text.
  const nodeAt = (target) => {
    const id = target instanceof Element ? drawing.idOf(target) : null;
    return id !== null && !id.includes(CHILD_SEPARATOR) ? id : null;
  };

  function mark(target) {
    if (marked) marked.classList.remove("is-target");
    marked = target;
    if (marked) marked.classList.add("is-target");
  }

  function press(event) {
    const id = nodeAt(event.target);
    if (event.button !== 0 || event.pointerType === "touch" || id === null) return;
    from = { id, x: event.clientX, y: event.clientY, isMoved: false };
    event.stopPropagation(); // a drag that begins at a node does not move the drawing
  }

  function pull(event) {
    if (!from) return;
    if (!from.isMoved) {
      if (Math.hypot(event.clientX - from.x, event.clientY - from.y) < PULL_PX) return;
      from.isMoved = true;
      element.setPointerCapture(event.pointerId);
      element.append(overlay);
    }
    const { left, top } = element.getBoundingClientRect();
    for (const [name, value] of Object.entries({ x1: from.x - left, y1: from.y - top, x2: event.clientX - left, y2: event.clientY - top })) {
      line.setAttribute(name, String(value));
    }
    const over = document.elementFromPoint(event.clientX, event.clientY);
    const id = over && element.contains(over) ? nodeAt(over) : null;
    mark(id !== null && id !== from.id ? over.closest("[data-node]") : null);
  }

  function drop(event) {
    if (!from) return;
    const { id, isMoved } = from;
    const target = event.type === "pointerup" && marked ? nodeAt(marked) : null;
    from = null;
    mark(null);
    overlay.remove();
    if (!isMoved) return;
    element.addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => element.removeEventListener("click", swallow, true));
    if (target !== null) onConnect(id, target);
  }

  function stop() {
    begun = null;
    onSaid("");
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = nodeAt(event.target);
    if (event.key === "c" && id !== null) {
      begun = id;
      onSaid(__("An edge from %1: go to another node and press Enter. Escape cancels it.", id));
    } else if (begun !== null && event.key === "Escape") stop();
    else if (begun !== null && event.key === "Enter" && id !== null) {
      const source = begun;
      stop();
      onConnect(source, id);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  element.addEventListener("pointerdown", press, true);
  for (const [name, listener] of Object.entries({ pointermove: pull, pointerup: drop, pointercancel: drop })) {
    element.addEventListener(name, listener);
  }
  element.addEventListener("keydown", key, true);
  drawing.describe(__("To add an edge, drag from node to node, or press c and then Enter. Delete removes what is selected."));
}

function swallow(event) {
  event.stopPropagation();
  event.preventDefault();
}
