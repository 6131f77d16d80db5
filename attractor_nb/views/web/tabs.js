// Tabs: one list that is walked with the arrow keys, one panel.

import { make, makeButton } from "./parts.js";
import { makeWords } from "./texts.js";
import { __ } from "./wording.js";

let tabCount = 0;

// `labels` are the words of each tab, by its name.
export function makeTabs(labels) {
  const names = Object.keys(labels);
  const prefix = `al-tabs-${(tabCount += 1)}`;
  const element = make("div", "al-tabs");
  const list = make("div", "al-tab-list");
  list.setAttribute("role", "tablist");
  const panel = make("div", "al-tab-panel");
  panel.id = `${prefix}-panel`;
  panel.setAttribute("role", "tabpanel");
  panel.tabIndex = 0;
  element.append(list, panel);
  const buttons = new Map();
  let contents = {};
  let current = names[0];

  for (const [index, name] of names.entries()) {
    const button = makeButton("al-tab", labels[name], "", () => choose(name));
    button.id = `${prefix}-${index}`;
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    const count = make("span", "al-tab-count");
    button.append(count);
    buttons.set(name, { button, count });
    list.append(button);
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const there = names.filter((name) => !buttons.get(name).button.hidden);
    const end = { Home: 0, End: there.length - 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const at = end ?? (there.indexOf(current) + step + there.length) % there.length;
    choose(there[at]);
    buttons.get(there[at]).button.focus();
  });

  function choose(name) {
    current = name;
    for (const [other, { button }] of buttons) {
      button.setAttribute("aria-selected", String(other === name));
      button.tabIndex = other === name ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", buttons.get(name).button.id);
    const parts = contents[name] || [];
    panel.replaceChildren(...(parts.length ? parts : [makeWords(__("Nothing is known about it."))]));
  }

  choose(current);
  return {
    element,
    choose,
    // Give each tab its elements; the chosen one stays.
    show(parts) {
      contents = parts;
      choose(current);
    },
    // Whether a tab is there; what was chosen of one that is not gives way to the first.
    offer(name, isThere) {
      buttons.get(name).button.hidden = !isThere;
      if (!isThere && current === name) choose(names[0]);
    },
    mark(name, count) {
      buttons.get(name).count.textContent = count ? ` ${count}` : "";
    },
    reset() {
      choose(names[0]);
    },
  };
}
