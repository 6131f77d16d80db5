// Says aloud, to who uses a screen reader, what has changed: not each change, but what a listener can follow.

import { make } from "./parts.js";
import { __ } from "./wording.js";

const QUIET_MS = 2500;
const NAMED = 3;

export function makeAnnouncer(nameOf) {
  const element = make("div", "al-unseen");
  element.setAttribute("role", "status");
  element.setAttribute("aria-live", "polite");
  const waiting = new Map();
  let timer = 0;

  function speak() {
    timer = 0;
    if (!waiting.size) return;
    const changes = [...waiting];
    const more = changes.length - NAMED;
    const words = changes.slice(-NAMED).map(([id, state]) => `${nameOf(id)}: ${state}`);
    if (more > 0) words.unshift(__("%1 more changes", more));
    element.textContent = words.join(". ");
    waiting.clear();
    timer = setTimeout(speak, QUIET_MS);
  }

  return {
    element,
    // The first change after a silence is said at once, further ones together.
    say(id, words) {
      waiting.delete(id);
      waiting.set(id, words);
      if (!timer) timer = setTimeout(speak, 0);
    },
    close: () => clearTimeout(timer),
  };
}
