// Texts of stages: as they are, with what was left out said, and a button that copies them.

import { make, makeButton } from "./parts.js";

export const makeWords = (words) => make("p", "al-dim", words);

export const sizeOf = (bytes) =>
  bytes < 1024 ? `${bytes} B` : bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;

export function makeText(text, whole, { name = "", nothing = "Nothing." } = {}) {
  if (!text) return makeWords(nothing);
  const box = make("div", "al-text");
  const head = make("div", "al-text-head");
  if (name) head.append(make("span", "al-text-name", name));
  head.append(makeCopy(text));
  const pre = make("pre", "", text);
  pre.tabIndex = 0;
  box.append(head, pre);
  if (whole) {
    const count = (number) => number.toLocaleString("en");
    box.append(makeWords(`Cut: the first ${count(text.length)} of ${count(whole)} characters. The file has all of it.`));
  }
  return box;
}

export function makeCopy(text, label = "Copy") {
  const button = makeButton("al-copy", label, "", async () => {
    button.textContent = (await copied(text, button)) ? "Copied" : "Select and copy it";
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
    const field = make("textarea", "al-unseen");
    field.value = text;
    beside.after(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    beside.focus();
    return isDone;
  }
}
