// The drawing beside a text that is being written: of the last text that could be read.

import { makeDrawing } from "./drawing.js";
import { make } from "./parts.js";
import { __ } from "./wording.js";

const NOTHING_YET = __("The drawing follows the text.");
const STALE = __("The text cannot be parsed now: this drawing shows the last text that could.");

// `onNode(id)` is called for a click on a node.
export function makeSketch({ onNode }) {
  const element = make("section", "an-sketch");
  element.setAttribute("aria-label", __("Drawing of the text"));
  const words = make("p", "al-dim an-still", NOTHING_YET);
  const place = make("div", "an-place");
  element.append(words, place);
  let drawing = null;
  let drawn = "";

  function clear() {
    if (drawing) drawing.close();
    drawing = null;
    place.replaceChildren();
  }

  function drawAnew(svg) {
    clear();
    if (!svg) return;
    drawing = makeDrawing(svg, {}, { onNode });
    place.append(drawing.element);
  }

  return {
    element,
    // A text of SVG; of a text that cannot be read, and of none, an empty one.
    show(svg, isBlank) {
      if (svg !== drawn && (svg || isBlank)) {
        drawn = svg;
        if (!svg || !drawing?.update(svg)) drawAnew(svg);
      }
      words.textContent = svg ? "" : drawn ? STALE : NOTHING_YET;
      element.classList.toggle("is-stale", !svg && Boolean(drawn));
    },
    close: clear,
  };
}
