// The quiet buttons at the top right of a drawing: zoom, fit, find, follow; and their keys.

import { makeIcon } from "./icons.js";
import { atMostEvery, make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const CORNERS = ["", "is-low", "is-left", "is-low is-left"];
const LEAST_NODES = 100;
const MOST = { width: 150, height: 130 };
const LEAST = 24; // px: what is more than five times as high as wide, or as wide as high, is shown out of proportion
const LEAST_DOT = 2; // px
const REDRAW_MS = 200;

// `nodes` are those of the drawing; `mark(found, current)` shows what was found, `look(id)` goes there.
export function makeDrawingTools(viewport, nodes, { mark, look, frame, fold }) {
  const element = make("div", "ad-tools", "", { role: "toolbar", "aria-label": __("Drawing") });
  const finder = makeFinder(nodes, mark);

  const tool = (icon, title, act) => {
    const button = makeButton("ad-tool", "", title, act);
    button.append(makeIcon(icon));
    button.setAttribute("aria-label", title);
    return button;
  };
  const openFinder = () => (finder.isOpen ? finder.close() : finder.open());
  let isFollowing = true;
  const following = tool("follow", __("Follow what is running"), () => setFollowing(!isFollowing));
  const setFollowing = (value) => {
    isFollowing = value;
    following.setAttribute("aria-pressed", String(value));
  };
  setFollowing(true);
  following.hidden = true;

  const moves = {
    "+": viewport.zoomIn,
    "=": viewport.zoomIn,
    "-": viewport.zoomOut,
    0: viewport.fit,
    1: viewport.toRealSize,
    "/": finder.open,
    g: fold,
  };
  const folding = tool("fold", __("Fold all groups ( g )"), fold);
  folding.hidden = true;
  element.append(
    finder.element,
    tool("find", __("Find a node ( / )"), openFinder),
    folding,
    following,
    tool("smaller", __("Smaller ( − )"), viewport.zoomOut),
    tool("larger", __("Larger ( + )"), viewport.zoomIn),
    tool("whole", __("Show the whole drawing ( 0 )"), viewport.fit),
  );

  finder.input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const current = finder.current;
    finder.close();
    if (current === null) frame.focus({ preventScroll: true });
    else look(current);
  });
  // Whoever moves the drawing wants to look elsewhere.
  for (const name of ["pointerdown", "wheel"]) frame.addEventListener(name, () => setFollowing(false), { passive: true });

  // In the first corner where they cover no node; if there is none, where they do not cover the one that has the focus.
  function stepAside() {
    const covers = (target) => {
      const [over, box] = [element, target.querySelector(".outline") || target].map((one) => one.getBoundingClientRect());
      return over.left < box.right && box.left < over.right && over.top < box.bottom && box.top < over.bottom;
    };
    const shapes = [...frame.querySelectorAll("[data-node]:not(.is-folded), .ad-group")];
    const focused = shapes.find((shape) => shape === document.activeElement);
    const costs = CORNERS.map((names) => {
      element.className = `ad-tools ${names}`;
      const map = frame.parentElement.querySelector(".ad-map:not([hidden])");
      if ((focused && covers(focused)) || (map && covers(map))) return 2;
      return shapes.some(covers) ? 1 : 0;
    });
    const least = Math.min(...costs);
    element.className = `ad-tools ${CORNERS[costs.indexOf(least)]}`.trim();
    return least > 0;
  }
  // Under a pointer they stay where they are.
  frame.parentElement.addEventListener("pointerenter", stepAside);
  frame.addEventListener("focusin", stepAside);
  // What opens beside the drawing makes it narrow while they are seen, and following moves it.
  const moved = () => {
    const { parentElement: drawing } = frame;
    if (drawing?.matches(":hover, :focus-within") && !element.matches(":hover, :focus-within")) stepAside();
  };
  const observer = new ResizeObserver(moved);
  observer.observe(frame.parentElement);

  return {
    element,
    isCrowded: stepAside,
    close: () => observer.disconnect(),
    add(button) {
      button.classList.add("ad-tool");
      element.append(button);
    },
    // Whether a key was one of the tools'.
    key(name) {
      if (!Object.hasOwn(moves, name)) return false;
      moves[name]();
      return true;
    },
    // How many groups there are, and how many of them are folded.
    showFolds(count, folded) {
      folding.hidden = !count;
      folding.setAttribute("aria-pressed", String(folded > 0));
      folding.title = folded ? __("Open all groups ( g )") : __("Fold all groups ( g )");
      folding.setAttribute("aria-label", folding.title);
    },
    follow(node) {
      following.hidden = !viewport.isLarger;
      if (!isFollowing || !viewport.isLarger || frame.contains(document.activeElement)) return;
      frame.addEventListener("scrollend", moved, { once: true });
      viewport.reveal(node, true);
    },
  };
}

// Finding nodes by what they are called, and by the first words of what they are to do.
// `nodes` maps ids to nodes, whose `words` are searched; `show(found, current)` is called with a set of ids (null: no search)
// and the id that is looked at.
function makeFinder(nodes, show) {
  const input = make("input", "ad-find", "", { type: "search", placeholder: __("Find a node") });
  input.setAttribute("aria-label", __("Find a node by label, id or prompt"));
  const count = make("span", "ad-found", "", { role: "status" });
  const element = make("div", "ad-finder", [input, count], { hidden: true, role: "search" });
  let found = [];
  let at = 0;

  function report() {
    const wanted = input.value.trim();
    count.textContent = !wanted ? "" : found.length ? `${at + 1}/${found.length}` : __("none");
    show(wanted ? new Set(found) : null, found.length ? found[at] : null);
  }

  function search() {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const isFound = ([, node]) => {
      const text = node.words.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    found = words.length ? [...nodes].filter(isFound).map(([id]) => id) : [];
    at = 0;
    report();
  }

  function close() {
    element.hidden = true;
    input.value = "";
    search();
  }

  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && found.length) {
      at = (at + (event.shiftKey ? found.length - 1 : 1)) % found.length;
      report();
    }
  });

  return {
    element,
    input,
    close,
    open() {
      element.hidden = false;
      input.focus({ preventScroll: true });
      input.select();
    },
    get isOpen() {
      return !element.hidden;
    },
    get current() {
      return found.length ? found[at] : null;
    },
  };
}

// Where in a large drawing the reader is: all of it, small, with a frame around what is seen, which can be dragged.
// It is hidden from the keyboard and from screen readers: arrow keys, the finder and the table do what it does.
// `places()` gives { x, y, width, height, colour } of every node that is shown.
export function makeMinimap(viewport, nodeCount, places) {
  if (nodeCount <= LEAST_NODES) return null;
  const canvas = make("canvas", "ad-map-nodes");
  const view = make("div", "ad-map-view");
  const element = make("div", "ad-map", [canvas, view], { "aria-hidden": "true" });
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
