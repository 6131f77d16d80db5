// The quiet buttons at the top right of a drawing: zoom, fit, find, follow; and their keys.

import { makeFinder } from "./finder.js";
import { makeIcon } from "./icons.js";
import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const CORNERS = ["", "is-low", "is-left", "is-low is-left"];

// `nodes` are those of the drawing; `mark(found, current)` shows what was found, `look(id)` goes there.
export function makeDrawingTools(viewport, nodes, { mark, look, frame, fold }) {
  const element = make("div", "ad-tools");
  element.setAttribute("role", "toolbar");
  element.setAttribute("aria-label", __("Drawing"));
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
    element.className = `ad-tools ${CORNERS[costs.indexOf(Math.min(...costs))]}`.trim();
  }
  // Under a pointer they stay where they are.
  frame.parentElement.addEventListener("pointerenter", stepAside);
  frame.addEventListener("focusin", stepAside);
  // What opens beside the drawing makes it narrow while they are seen.
  const observer = new ResizeObserver(() => {
    const { parentElement: drawing } = frame;
    if (drawing?.matches(":hover, :focus-within") && !element.matches(":hover, :focus-within")) stepAside();
  });
  observer.observe(frame.parentElement);

  return {
    element,
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
      if (isFollowing && viewport.isLarger && !frame.contains(document.activeElement)) viewport.reveal(node, true);
    },
  };
}
