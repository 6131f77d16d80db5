// The context before and behind a visit: what was added, changed, removed; the rest is folded away.

import { make, makeButton } from "./parts.js";
import { makeInline } from "./prose.js";
import { makeWords } from "./texts.js";
import { __, _n } from "./wording.js";

const SHORT_VALUE = 160;
const SIGNS = { added: "+", changed: "~", removed: "−", same: "" };

export function makeContextDiff(changes) {
  const box = make("div", "al-parts");
  const changed = changes.filter((one) => one.change !== "same");
  const same = changes.filter((one) => one.change === "same");
  box.append(changed.length ? tableOf(changed) : makeWords(__("The visit changed nothing in the context.")));
  if (same.length) {
    const rest = make("details", "al-part");
    rest.append(make("summary", "", _n("Unchanged: %1 key", "Unchanged: %1 keys", same.length)), tableOf(same));
    box.append(rest);
  }
  return box;
}

function tableOf(changes) {
  const table = make("table", "al-table al-context");
  const head = make("tr", "");
  const names = changes[0].change === "same" ? ["", __("Key"), __("Value")] : ["", __("Key"), __("Before"), __("After")];
  for (const name of names) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  table.append(head);
  for (const { key, change, before, after, shown } of changes) {
    const row = make("tr", `is-${change}`);
    const sign = make("td", "al-sign", SIGNS[change]);
    sign.title = change;
    row.append(sign, make("td", "al-key", key));
    for (const side of change === "same" ? ["after"] : ["before", "after"]) {
      const cell = make("td", "al-value");
      cell.append(contextValue(side === "after" ? after : before, shown?.[side]));
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

// A value; with a tree it is drawn by that, and a long one begins closed.
function contextValue(value, tree) {
  if (value === null || value === undefined) return make("span", "al-dim", "–");
  const whole = () => (tree ? makeInline(tree) : make("span", "", value));
  if (value.length <= SHORT_VALUE || tree?.[0]?.[0] === "div.json") return whole();
  const box = make("span", "");
  const text = make("span", "");
  const more = makeButton("al-more", "", "", () => show(more.getAttribute("aria-expanded") !== "true"));
  function show(isWhole) {
    text.replaceChildren(isWhole ? whole() : `${value.slice(0, SHORT_VALUE)}…`);
    more.textContent = isWhole ? __("show less") : __("show all (%1 characters)", value.length.toLocaleString("en"));
    more.setAttribute("aria-expanded", String(isWhole));
  }
  show(false);
  box.append(text, " ", more);
  return box;
}
