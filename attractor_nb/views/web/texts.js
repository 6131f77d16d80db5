// Texts of stages: rendered where there is something to render, and as they are by a click; what was left out is said,
// and a button copies the text as it is.

import { make, makeButton } from "./parts.js";
import { makeProse } from "./prose.js";
import { __ } from "./wording.js";

export const makeWords = (words) => make("p", "al-dim", words);

export const sizeOf = (bytes) =>
  bytes < 1024 ? `${bytes} B` : bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;

// `shown` is the tree of the text, if it has one; `modes` is what the view remembers of which texts are wanted raw, by name.
export function makeText(text, whole, { name = "", nothing = __("Nothing."), shown = null, modes = new Map(), label = name } = {}) {
  if (!text) return makeWords(nothing);
  const head = make("div", "al-text-head");
  if (name) head.append(make("span", "al-text-name", name));
  const place = make("div", "al-text-body");
  const buttons = make("span", "al-text-buttons");
  if (shown) buttons.append(makeModeButton(text, shown, place, modes, label));
  else place.append(makeRaw(text, label));
  buttons.append(makeCopy(text));
  head.append(buttons);
  const box = make("div", "al-text", [head, place]);
  if (whole) {
    const count = (number) => number.toLocaleString("en");
    box.append(makeWords(__("Cut: the first %1 of %2 characters. The file has all of it.", count(text.length), count(whole))));
  }
  return box;
}

function makeRaw(text, label) {
  const pre = make("pre", "", text);
  pre.tabIndex = 0; // it scrolls, by keys too
  if (label) pre.setAttribute("aria-label", label);
  return pre;
}

// Between a text rendered and the text as it is.
export function makeModeButton(text, shown, place, modes, label) {
  const button = makeButton("al-copy", "", "", () => {
    modes.set(label, !modes.get(label));
    show();
  });
  function show() {
    const isRaw = Boolean(modes.get(label));
    button.textContent = isRaw ? __("Rendered") : __("Raw");
    button.title = isRaw ? __("Show it rendered") : __("Show the text as it is");
    place.replaceChildren(isRaw ? makeRaw(text, label) : makeProse(shown, label));
  }
  show();
  return button;
}

export function makeCopy(text, label = __("Copy")) {
  const button = makeButton("al-copy", label, "", async () => {
    button.textContent = (await copied(text, button)) ? __("Copied") : __("Select and copy it");
    setTimeout(() => {
      button.textContent = label;
    }, 1500);
  });
  return button;
}

// The clipboard is closed to pages that are not served safely: there a text field helps.
async function copied(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", "al-unseen", "", { value: text });
    beside.after(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    beside.focus();
    return isDone;
  }
}
