// What nodes say while they run: a card for each that speaks, side by side; all branches at once.

import { make } from "./parts.js";

export function makeSpeech({ nameOf, onNode }) {
  const element = make("div", "al-speech is-empty");
  element.setAttribute("aria-hidden", "true"); // it moves too fast to be read aloud; the inspector has it
  const cards = new Map();

  function cardOf(id) {
    if (!cards.has(id)) {
      const card = make("div", "al-words");
      const name = make("span", "al-words-name", nameOf(id));
      const text = make("pre", "al-words-text");
      card.append(name, text);
      card.addEventListener("click", () => onNode(id));
      cards.set(id, { card, text, shown: "" });
    }
    return cards.get(id);
  }

  return {
    element,
    // `tails` are the latest words by node, who spoke last at the end. Those that speak are shown; when
    // nobody does, who spoke last is.
    show(tails, isActiveNode) {
      const spoken = Object.keys(tails).filter((id) => tails[id]);
      const speaking = spoken.filter(isActiveNode);
      const wanted = new Set(speaking.length ? speaking : spoken.slice(-1));
      for (const [id, { card }] of cards) {
        if (wanted.has(id)) continue;
        card.remove();
        cards.delete(id);
      }
      for (const id of wanted) {
        const place = cardOf(id);
        if (!place.card.isConnected) element.append(place.card); // whoever has a place keeps it
        if (place.shown === tails[id]) continue;
        place.shown = tails[id];
        place.text.textContent = tails[id];
        place.text.scrollTop = place.text.scrollHeight;
      }
      element.classList.toggle("is-empty", !wanted.size);
    },
  };
}
