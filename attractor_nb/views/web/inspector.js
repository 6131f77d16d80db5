// What is known of the stage that was clicked.

import { make, makeButton } from "./parts.js";

const SLOW_REPLY_MS = 1500;

export function makeInspector(close) {
  const element = make("aside", "al-inspector");
  element.hidden = true;
  element.setAttribute("aria-label", "Stage");
  const head = make("div", "al-inspector-head");
  const title = make("h4", "al-inspector-title");
  const shut = makeButton("al-close", "×", "", close);
  shut.setAttribute("aria-label", "Close");
  head.append(title, shut);
  const state = make("div", "al-inspector-state");
  const body = make("div", "al-inspector-body");
  element.append(head, state, body);
  let timer = 0;
  return {
    element,
    open(id, name, words) {
      title.textContent = name === id ? id : `${name} (${id})`;
      state.textContent = words;
      body.replaceChildren();
      element.hidden = false;
      clearTimeout(timer);
      timer = setTimeout(() => {
        body.replaceChildren(make("p", "al-dim", "The kernel is busy. The texts follow when the cell has ended."));
      }, SLOW_REPLY_MS);
    },
    setState(words) {
      state.textContent = words;
    },
    fill(message) {
      clearTimeout(timer);
      const parts = [];
      for (const { title: name, text } of message.parts) {
        const box = make("details", "al-part");
        box.open = true;
        box.append(make("summary", "", name), make("pre", "", text));
        parts.push(box);
      }
      if (!parts.length) parts.push(make("p", "al-dim", "Nothing recorded yet."));
      body.replaceChildren(...parts);
    },
    hide() {
      clearTimeout(timer);
      element.hidden = true;
    },
  };
}
