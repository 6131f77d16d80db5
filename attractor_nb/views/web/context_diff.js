// The context before and behind a visit: what was added, changed, removed; the rest is folded away.

import { make, makeButton } from "./parts.js";
import { makeWords } from "./texts.js";

const SHORT_VALUE = 160;
const SIGNS = { added: "+", changed: "~", removed: "−", same: "" };

export function makeContextDiff(changes) {
  const box = make("div", "al-parts");
  const changed = changes.filter((one) => one.change !== "same");
  const same = changes.filter((one) => one.change === "same");
  box.append(changed.length ? tableOf(changed) : makeWords("The visit changed nothing in the context."));
  if (same.length) {
    const rest = make("details", "al-part");
    rest.append(make("summary", "", `Unchanged: ${same.length} ${same.length > 1 ? "keys" : "key"}`), tableOf(same));
    box.append(rest);
  }
  return box;
}

function tableOf(changes) {
  const table = make("table", "al-table al-context");
  const head = make("tr", "");
  const names = changes[0].change === "same" ? ["", "Key", "Value"] : ["", "Key", "Before", "After"];
  for (const name of names) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  table.append(head);
  for (const { key, change, before, after } of changes) {
    const row = make("tr", `is-${change}`);
    const sign = make("td", "al-sign", SIGNS[change]);
    sign.title = change;
    row.append(sign, make("td", "al-key", key));
    for (const value of change === "same" ? [after] : [before, after]) {
      const cell = make("td", "al-value");
      cell.append(contextValue(value));
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

function contextValue(value) {
  if (value === null || value === undefined) return make("span", "al-dim", "–");
  if (value.length <= SHORT_VALUE) return make("span", "", value);
  const box = make("span", "");
  const text = make("span", "", `${value.slice(0, SHORT_VALUE)}…`);
  const more = makeButton("al-more", `show all (${value.length.toLocaleString("en")} characters)`, "", () => {
    const isWhole = more.getAttribute("aria-expanded") === "true";
    text.textContent = isWhole ? `${value.slice(0, SHORT_VALUE)}…` : value;
    more.textContent = isWhole ? `show all (${value.length.toLocaleString("en")} characters)` : "show less";
    more.setAttribute("aria-expanded", String(!isWhole));
  });
  more.setAttribute("aria-expanded", "false");
  box.append(text, " ", more);
  return box;
}
