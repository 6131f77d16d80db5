// What part of a drawing is seen, and how large. The drawing keeps its layout and is scaled as a whole, on a
// sheet of the size that it then has: laying out the texts of 500 nodes anew would take a tenth of a second.
// The frame scrolls, so that the wheel, the keys of a page and a screen reader move it as they move anything;
// dragging does too, and Ctrl with the wheel zooms.

import { make } from "./parts.js";

const SMALLEST = 0.02;
const LARGEST = 3;
const STEP = 1.25;
const READABLE = 0.7; // below it texts are too small to begin with
const FAR = 0.6; // small texts are left out
const FARTHER = 0.3; // all texts are
const ROOM = { least: 360, most: 900, part: 0.9 }; // height of a frame, in px and of the window
const PAN_PX = 60;
const DRAG_PX = 4;

// Puts a drawing into a frame.
export function makeViewport(frame, svg) {
  const box = svg.viewBox ? svg.viewBox.baseVal : null;
  const size = { width: (box && box.width) || 340, height: (box && box.height) || 120 };
  const sheet = make("div", "ad-sheet");
  sheet.append(svg);
  frame.append(sheet);
  svg.style.width = `${size.width}px`;
  svg.style.height = `${size.height}px`;
  let scale = 1;
  let isFitted = false;
  let isPlaced = false;

  function resize(value) {
    scale = Math.min(LARGEST, Math.max(SMALLEST, value));
    sheet.style.width = `${Math.floor(size.width * scale)}px`;
    sheet.style.height = `${Math.floor(size.height * scale)}px`;
    svg.style.transform = scale === 1 ? "" : `scale(${scale})`;
    frame.classList.toggle("is-far", scale < FAR);
    frame.classList.toggle("is-farther", scale < FARTHER);
    frame.classList.toggle("is-cut", size.height * scale > frame.clientHeight + 4 || size.width * scale > frame.clientWidth + 4);
  }

  // The first time that the frame has a width: its height is kept from then on, so that nothing below moves.
  function place() {
    const most = Math.max(ROOM.least, Math.min(ROOM.most, window.innerHeight * ROOM.part));
    const acrossScale = Math.min(1, frame.clientWidth / size.width);
    const wholeScale = Math.min(acrossScale, most / size.height);
    isFitted = wholeScale >= READABLE;
    resize(isFitted ? wholeScale : Math.max(acrossScale, READABLE));
    frame.style.height = `${Math.ceil(Math.min(most, size.height * scale)) + 2}px`;
    resize(scale);
    isPlaced = true;
  }

  function fit() {
    isFitted = true;
    resize(Math.min(1, frame.clientWidth / size.width, frame.clientHeight / size.height));
  }

  // Zooms so that what is under a point of the frame stays there; by default the middle.
  function zoomTo(value, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
    const [left, top] = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
    isFitted = false;
    resize(value);
    frame.scrollLeft = left * scale - x;
    frame.scrollTop = top * scale - y;
  }

  const pan = (x, y) => {
    frame.scrollLeft += x;
    frame.scrollTop += y;
  };

  // Brings an element into the frame, and nothing but the frame is moved for it.
  function reveal(element, isCalm = false) {
    const [inside, whole] = [element.getBoundingClientRect(), frame.getBoundingClientRect()];
    const missing = (low, high, from, to) =>
      low >= from + 8 && high <= to - 8 ? 0 : (low + high) / 2 - (from + to) / 2;
    const x = missing(inside.left, inside.right, whole.left, whole.left + frame.clientWidth);
    const y = missing(inside.top, inside.bottom, whole.top, whole.top + frame.clientHeight);
    if (!x && !y) return;
    const isStill = !isCalm || window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    frame.scrollBy({ left: x, top: y, behavior: isStill ? "instant" : "smooth" });
  }

  const observer = new ResizeObserver(() => {
    if (!frame.clientWidth) return;
    if (!isPlaced) place();
    else if (isFitted) fit();
  });
  observer.observe(frame);

  const stopDragging = followDrags(frame, pan);
  const wheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const edge = frame.getBoundingClientRect();
    zoomTo(scale * STEP ** (-event.deltaY / 100), event.clientX - edge.left, event.clientY - edge.top);
  };
  frame.addEventListener("wheel", wheel, { passive: false });

  return {
    fit,
    reveal,
    zoomIn: () => zoomTo(scale * STEP),
    zoomOut: () => zoomTo(scale / STEP),
    toRealSize: () => zoomTo(1),
    panBy: (x, y) => pan(x * PAN_PX, y * PAN_PX),
    get scale() {
      return scale;
    },
    // Whether part of the drawing lies outside of the frame.
    get isLarger() {
      return frame.scrollWidth > frame.clientWidth + 1 || frame.scrollHeight > frame.clientHeight + 1;
    },
    close() {
      observer.disconnect();
      stopDragging();
    },
  };
}

// A drag moves the frame; the click that ends it is nobody's.
function followDrags(frame, pan) {
  let from = null;
  let hasMoved = false;
  const begin = (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return; // a finger scrolls by itself
    from = [event.clientX, event.clientY];
    hasMoved = false;
  };
  const move = (event) => {
    if (!from) return;
    const [x, y] = [from[0] - event.clientX, from[1] - event.clientY];
    if (!hasMoved && Math.hypot(x, y) < DRAG_PX) return;
    if (!hasMoved) frame.setPointerCapture(event.pointerId);
    hasMoved = true;
    frame.classList.add("is-dragged");
    pan(x, y);
    from = [event.clientX, event.clientY];
    event.preventDefault();
  };
  const end = () => {
    from = null;
    frame.classList.remove("is-dragged");
  };
  const swallow = (event) => {
    if (!hasMoved) return;
    hasMoved = false;
    event.stopPropagation();
    event.preventDefault();
  };
  const heard = { pointerdown: begin, pointermove: move, pointerup: end, pointercancel: end };
  for (const [name, listener] of Object.entries(heard)) frame.addEventListener(name, listener);
  frame.addEventListener("click", swallow, true);
  return () => {
    for (const [name, listener] of Object.entries(heard)) frame.removeEventListener(name, listener);
  };
}
