// What differs between two texts of a drawing, where only nodes do, and they stand where they stood: then these alone are
// written anew. Our writer escapes every text, so a piece begins where one of its groups does and nowhere else.

import { importDrawing } from "./parts.js";

const PIECES = /(?=<g class="(?:node|edge|edge-label|panel|lane|child)[ "])/;
const WHOLE_NODE = /^<g class="node [^>]* data-node="[^>]*>[^]*<\/g>\n?$/;
const openingOf = (piece) => piece.slice(0, piece.indexOf(">"));

// The new groups by their number among all nodes; null where more differs. `number` is that of the drawing's ids.
export function changedNodes(before, after, number) {
  const [old, now] = [before, after].map((text) => text.split(PIECES));
  if (old.length !== now.length) return null;
  const changed = new Map();
  let place = -1;
  for (const [at, piece] of now.entries()) {
    if (openingOf(piece).includes(" data-node=")) place += 1;
    if (piece === old[at]) continue;
    if (!WHOLE_NODE.test(piece) || openingOf(piece) !== openingOf(old[at])) return null;
    const group = importDrawing(`<svg xmlns="http://www.w3.org/2000/svg">${piece}</svg>`, number).firstElementChild;
    if (!group) return null;
    changed.set(place, group);
  }
  return changed;
}
