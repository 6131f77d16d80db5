// The quiet buttons at the top right of a drawing: zoom, fit, find, follow; and their keys.

import { makeFinder } from "./finder.js";
import { makeIcon } from "./icons.js";
import { make, makeButton } from "./parts.js";

// `nodes` are those of the drawing; `mark(found, current)` shows what was found, `look(id)` goes there.
export function makeDrawingTools(viewport, nodes, { mark, look, frame, fold }) {
  const element = make("div", "ad-tools");
  element.setAttribute("role", "toolbar");
  element.setAttribute("aria-label", "Drawing");
  const finder = makeFinder(new Map([...nodes].map(([id, { words }]) => [id, words])), mark);

  const tool = (icon, title, act) => {
    const button = makeButton("ad-tool", "", title, act);
    button.append(makeIcon(icon));
    button.setAttribute("aria-label", title);
    return button;
  };
  const openFinder = () => (finder.isOpen ? finder.close() : finder.open());
  let isFollowing = true;
  const following = tool("follow", "Follow what is running", () => setFollowing(!isFollowing));
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
  const folding = tool("fold", "Fold all groups ( g )", fold);
  folding.hidden = true;
  element.append(
    finder.element,
    tool("find", "Find a node ( / )", openFinder),
    folding,
    following,
    tool("smaller", "Smaller ( − )", viewport.zoomOut),
    tool("larger", "Larger ( + )", viewport.zoomIn),
    tool("whole", "Show the whole drawing ( 0 )", viewport.fit),
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

  return {
    element,
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
      folding.title = folded ? "Open all groups ( g )" : "Fold all groups ( g )";
      folding.setAttribute("aria-label", folding.title);
    },
    follow(node) {
      following.hidden = !viewport.isLarger;
      if (isFollowing && viewport.isLarger && !frame.contains(document.activeElement)) viewport.reveal(node, true);
    },
  };
}
