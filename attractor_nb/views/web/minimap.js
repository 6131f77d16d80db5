// Where in a large drawing the reader is: all of it, small, with a frame around what is seen, which can be dragged.
// It is hidden from the keyboard and from screen readers: arrow keys, the finder and the table do what it does.

import { atMostEvery, make } from "./parts.js";

const LEAST_NODES = 100;
const MOST = { width: 150, height: 130 };
const LEAST = 56;
const LEAST_DOT = 2; // px
const REDRAW_MS = 200;

// `places()` gives { x, y, width, height, colour } of every node that is shown.
export function makeMinimap(viewport, nodeCount, places) {
  if (nodeCount <= LEAST_NODES) return null;
  const element = make("div", "ad-map");
  element.setAttribute("aria-hidden", "true");
  const canvas = make("canvas", "ad-map-nodes");
  const view = make("div", "ad-map-view");
  element.append(canvas, view);
  let [across, down] = [1, 1]; // scales: what is very high or very wide is shown out of proportion

  function size() {
    const { whole } = viewport.seen;
    const scale = Math.min(MOST.width / whole.width, MOST.height / whole.height);
    const [width, height] = [whole.width, whole.height].map((side) => Math.max(LEAST, Math.round(side * scale)));
    [across, down] = [width / whole.width, height / whole.height];
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    return [width, height];
  }

  function draw() {
    const [width, height] = size();
    const sharp = window.devicePixelRatio || 1;
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    for (const place of places()) {
      pen.fillStyle = place.colour;
      const [w, h] = [Math.max(LEAST_DOT, place.width * across), Math.max(LEAST_DOT, place.height * down)];
      pen.fillRect(place.x * across - w / 2, place.y * down - h / 2, w, h);
    }
    showView();
  }

  function showView() {
    const { x, y, width, height, whole } = viewport.seen;
    const [shownWidth, shownHeight] = [Math.min(width, whole.width), Math.min(height, whole.height)];
    const box = { left: x * across, top: y * down, width: shownWidth * across, height: shownHeight * down };
    for (const [name, value] of Object.entries(box)) view.style[name] = `${value}px`;
    element.hidden = shownWidth >= whole.width - 1 && shownHeight >= whole.height - 1;
  }

  // Many states can change in one message, and many times a second: they are drawn once, and not in each frame.
  const redraw = atMostEvery(REDRAW_MS, () =>
    requestAnimationFrame(() => {
      if (element.isConnected) draw();
    }));

  const look = (event) => {
    const edge = element.getBoundingClientRect();
    viewport.lookAt((event.clientX - edge.left) / across, (event.clientY - edge.top) / down);
  };
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
    look(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (element.hasPointerCapture(event.pointerId)) look(event);
  });
  // Behind what else changes in a frame: asked before it, the browser would lay out all of it twice.
  let isDue = false;
  viewport.listen(() => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      showView();
    });
  });
  return { element, redraw };
}
