// What a new run would execute, command by command: each is read and ticked before it may run.

import { make } from "./parts.js";
import { __ } from "./wording.js";

const SHOWN_DIGITS = 12; // of a hash, as the command line shows it

// `onTick()` is called when a tick was set or taken away.
export function makeCommands({ onTick }) {
  const element = make("section", "an-commands");
  element.setAttribute("aria-labelledby", "an-commands");
  element.hidden = true;
  const title = make("h2", "an-title");
  title.id = "an-commands";
  const why = make("p", "an-why");
  const list = make("ul", "an-list");
  const operator = make("p", "al-dim");
  const said = make("div", "an-refused");
  said.setAttribute("role", "alert");
  element.append(title, why, list, operator, said);

  let ticks = [];
  let hash = "";

  function makeItem({ node, attribute, shown }) {
    const tick = make("input", "an-tick");
    tick.type = "checkbox";
    tick.addEventListener("change", onTick);
    const label = make("label", "an-of");
    label.append(tick, make("strong", "", node || __("the graph")), make("span", "al-dim", attribute));
    const text = make("pre", "an-command", shown);
    text.tabIndex = 0;
    text.setAttribute("aria-label", __("%1 of %2", attribute, node || __("the graph")));
    const item = make("li", "");
    item.append(label, text);
    ticks.push(tick);
    return item;
  }

  return {
    element,
    get hash() {
      return hash;
    },
    // The first that was not ticked; null where none is left.
    next: () => ticks.find((tick) => !tick.checked) || null,
    left: () => ticks.filter((tick) => !tick.checked).length,
    // The commands of a text that was looked at: nobody has read them yet.
    show(executes) {
      const { commands } = executes;
      hash = executes.hash;
      ticks = [];
      said.replaceChildren();
      element.hidden = !commands.length;
      const many = commands.length > 1;
      title.textContent = many ? __("It runs %1 commands", commands.length) : __("It runs a command");
      why.textContent = many
        ? __("They run on the server's machine, as the server's user. Review each, then tick it.")
        : __("It runs on the server's machine, as the server's user. Review it, then tick the box.");
      list.replaceChildren(...commands.map(makeItem));
      operator.replaceChildren(__("The person who starts the server can allow them permanently: "));
      operator.append(make("code", "", `ATTRACTOR_TRUST=${hash.slice(0, SHOWN_DIGITS)} attractor-nb serve`));
    },
    // Another text is there: what was read is not what would run.
    forget() {
      for (const tick of ticks) tick.checked = false;
    },
    // The server does not let them run all the same.
    refuse(problem) {
      element.hidden = false;
      said.replaceChildren(make("pre", "ap-words", problem.message), make("p", "al-dim", problem.hint));
      element.scrollIntoView({ block: "nearest" });
    },
  };
}
