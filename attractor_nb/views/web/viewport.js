// What part of a drawing is seen, and how large. The drawing keeps its layout and is scaled as a whole, on a
// sheet of the size that it then has: laying out the texts of 500 nodes anew would take a tenth of a second.
// The frame scrolls, so that the wheel, the keys of a page and a screen reader move it as they move anything;
// dragging does too, and Ctrl with the wheel zooms.

import { make } from "./parts.js";

const SMALLEST = 0.02;
const LARGEST = 3;
const STEP = 1.25;
const READABLE = 0.8; // below it texts are too small to begin with: the frame scrolls, with the map
const FAR = 0.6; // small texts are left out
const FARTHER = 0.3; // all texts are
const ROOM = { least: 360, most: 900, part: 0.7 }; // height of a frame, in px and of the window; Jupyter's bars take the rest
const PAN_PX = 60;
const DRAG_PX = 4;
const UNCOVER_PX = 12;
const LEAST_BELOW_PX = 140; // of what is below a drawing, that stays in sight
const STRIP_PX = 36; // at the lower edge of a frame, for the tools of a drawing that has no corner for them

// Puts a drawing into a frame. `before` is what was seen of the drawing that it takes the place of (`look`);
// `isCrowded()` says, of a drawing that is in its place, that its tools would cover a node in each corner.
export function makeViewport(frame, svg, before = null, isCrowded = () => false) {
  const box = svg.viewBox ? svg.viewBox.baseVal : null;
  let size = { width: (box && box.width) || 340, height: (box && box.height) || 120 };
  const sheet = make("div", "ad-sheet", [svg]);
  frame.append(sheet);
  let scale = 1;
  let isFitted = false;
  let isAsBegun = true; // nobody has zoomed
  let frameWidth = 0; // that the scale is for
  let isPlaced = false;
  const listeners = new Set();

  function resize(value) {
    write(value);
    for (const heard of listeners) heard();
    frame.classList.toggle("is-cut", size.height * scale > frame.clientHeight + 4 || size.width * scale > frame.clientWidth + 4);
  }

  function write(value) {
    scale = Math.min(LARGEST, Math.max(SMALLEST, value));
    // No part of a pixel is cut off; what fits but for the rounding of a number still fits.
    sheet.style.width = `${Math.ceil(size.width * scale - 0.01)}px`;
    sheet.style.height = `${Math.ceil(size.height * scale - 0.01)}px`;
    svg.style.width = `${size.width}px`;
    svg.style.height = `${size.height}px`;
    svg.style.transform = scale === 1 ? "" : `scale(${scale})`;
    frame.classList.toggle("is-far", scale < FAR);
    frame.classList.toggle("is-farther", scale < FARTHER);
  }

  // The scale of a drawing that nobody has zoomed: whole, if its texts can be read then, else as wide as the frame.
  function scaleToBegin(height) {
    const across = Math.min(1, frame.clientWidth / size.width);
    const whole = Math.min(across, height / size.height);
    return { first: whole >= READABLE ? whole : Math.max(across, READABLE), isWhole: whole >= READABLE };
  }

  // The first time that the frame has a width: its height is kept from then on, so that nothing below moves.
  function place() {
    const most = Math.max(ROOM.least, Math.min(ROOM.most, window.innerHeight * ROOM.part));
    const { first, isWhole } = scaleToBegin(most);
    frame.style.height = `${Math.ceil(Math.min(most, size.height * first)) + 2}px`;
    isPlaced = true;
    isFitted = isWhole && (!before || before.isFitted);
    isAsBegun = !before || before.isAsBegun;
    frameWidth = frame.clientWidth;
    resize(before && !before.isFitted ? before.scale : first);
    if (isCrowded()) frame.style.height = `${frame.offsetHeight + STRIP_PX}px`;
    if (!before) showBeginning();
    if (!before || before.isFitted) return;
    frame.scrollLeft = before.left;
    frame.scrollTop = before.top;
  }

  // What is wider than its frame begins at its first node, which may be in its middle.
  function showBeginning() {
    const node = svg.querySelector("[data-node]");
    if (!node || frame.scrollWidth <= frame.clientWidth) return;
    const [inside, whole] = [node, frame].map((one) => one.getBoundingClientRect());
    frame.scrollLeft += (inside.left + inside.right - whole.left - whole.right) / 2;
  }

  // The frame has become wider or narrower.
  function follow() {
    if (isFitted) fit();
    else if (isAsBegun && frame.clientWidth !== frameWidth) {
      const was = scale;
      const [left, top] = [frame.scrollLeft + frameWidth / 2, frame.scrollTop];
      frameWidth = frame.clientWidth;
      resize(scaleToBegin(frame.clientHeight).first);
      frame.scrollLeft = (left * scale) / was - frameWidth / 2;
      frame.scrollTop = (top * scale) / was;
    }
  }

  function fit() {
    isFitted = true;
    resize(Math.min(1, frame.clientWidth / size.width, frame.clientHeight / size.height));
  }

  // Zooms so that what is under a point of the frame stays there; by default the middle.
  function zoomTo(value, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
    const [left, top] = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
    isFitted = false;
    isAsBegun = false;
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

  // Moves an element out from under others that lie over what scrolls, one at its upper edge, one at its lower: by the
  // frame as far as that goes, then by whatever holds the frame and scrolls.
  function uncover(element, above, below) {
    const [inside, upper, lower] = [element, above, below].map((one) => one.getBoundingClientRect());
    const isUnder = lower.left < inside.right && inside.left < lower.right;
    let hidden = Math.max(0, upper.bottom + UNCOVER_PX - inside.top);
    if (hidden && isUnder) hidden = Math.max(0, Math.min(hidden, window.innerHeight - LEAST_BELOW_PX - lower.top));
    else if (isUnder) hidden = Math.min(0, lower.top - UNCOVER_PX - inside.bottom);
    for (let holder = frame; holder && Math.abs(hidden) >= 1; holder = holder.parentElement) {
      const was = holder.scrollTop;
      holder.scrollTop -= hidden;
      hidden -= was - holder.scrollTop;
    }
  }

  // The drawing has become larger or smaller: something in it was folded or opened.
  function setSize(width, height) {
    size = { width, height };
    if (!isPlaced) return;
    const whole = Math.min(1, frame.clientWidth / size.width, frame.clientHeight / size.height);
    if (isFitted && whole >= READABLE) fit();
    else resize(scale);
  }

  // Scrolls so that an element is where something was on the screen.
  function keepAt(element, [left, top]) {
    const now = element.getBoundingClientRect();
    pan(now.left - left, now.top - top);
  }

  if (before) write(before.scale); // most often it stays so: a large drawing is not laid out twice
  const observer = new ResizeObserver(() => {
    if (!frame.clientWidth) return;
    if (!isPlaced) place();
    else follow();
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
  frame.addEventListener("scroll", () => listeners.forEach((heard) => heard()), { passive: true });

  return {
    get size() {
      return size;
    },
    // What is seen, for the drawing that comes after this one.
    get look() {
      return isPlaced ? { scale, isFitted, isAsBegun, left: frame.scrollLeft, top: frame.scrollTop } : before;
    },
    fit,
    reveal,
    uncover,
    setSize,
    keepAt,
    panBy: (x, y) => pan(x * PAN_PX, y * PAN_PX),
    // What of the drawing is seen, in its own units, and how large all of it is.
    get seen() {
      const { scrollLeft, scrollTop, clientWidth, clientHeight } = frame;
      return { x: scrollLeft / scale, y: scrollTop / scale, width: clientWidth / scale, height: clientHeight / scale, whole: size };
    },
    // Brings the middle of the frame to a point of the drawing.
    lookAt(x, y) {
      frame.scrollLeft = x * scale - frame.clientWidth / 2;
      frame.scrollTop = y * scale - frame.clientHeight / 2;
    },
    // Called whenever another part of the drawing may be seen.
    listen: (heard) => listeners.add(heard),
    zoomIn: () => zoomTo(scale * STEP),
    zoomOut: () => zoomTo(scale / STEP),
    toRealSize: () => zoomTo(1),
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
