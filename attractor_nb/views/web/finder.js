// Finding nodes by what they are called, and by the first words of what they are to do.

import { make } from "./parts.js";
import { __ } from "./wording.js";

// `nodes` maps ids to nodes, whose `words` are searched; `show(found, current)` is called with a set of ids (null: no search)
// and the id that is looked at.
export function makeFinder(nodes, show) {
  const element = make("div", "ad-finder");
  element.hidden = true;
  element.setAttribute("role", "search");
  const input = make("input", "ad-find");
  input.type = "search";
  input.placeholder = __("Find a node");
  input.setAttribute("aria-label", __("Find a node by label, id or prompt"));
  const count = make("span", "ad-found");
  count.setAttribute("role", "status");
  element.append(input, count);
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
