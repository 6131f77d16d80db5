// The context at a moment as a table; what the event at hand has set comes first and is marked.

import { make, makeButton } from "./parts.js";
import { __, _n } from "./wording.js";

const SHOWN_KEYS = 300;
const LONG = 60; // characters that have room in a line of a narrow table

export function makeContextTable() {
  const element = make("details", "ar-context");
  element.open = true;
  const title = make("summary", "", __("Context"));
  const box = make("div", "ar-values");
  const table = make("table", "");
  const head = make("tr", "");
  for (const name of ["change", "key", "value"]) {
    const cell = make("th", `ar-${name}`, name);
    cell.scope = "col";
    head.append(cell);
  }
  const top = make("thead", "");
  top.append(head);
  const news = make("tbody", "ar-news");
  const rest = make("tbody", "ar-all");
  table.append(top, news, rest);
  box.append(table);
  element.append(title, box);
  const rows = new Map(); // of `rest`, by key, in its order
  let due = null;

  const makeRow = (key, value, word) => {
    const line = make("tr", word ? "is-changed" : "");
    line.append(make("td", "ar-change", word), make("td", "ar-key", key), make("td", "ar-value"));
    setValue(line.lastChild, key, value);
    return line;
  };

  function paint() {
    const { values, frame, branch } = due;
    due = null;
    const changed = (frame && frame.context) || {};
    const dropped = (frame && frame.dropped) || [];
    news.replaceChildren(
      ...dropped.map((key) => makeRow(key, "", "gone")),
      ...Object.keys(changed).map((key) => makeRow(key, values[key], "set")),
    );
    paintRest(values, changed);
    const count = Object.keys(values).length;
    const many = Object.keys(changed).length + dropped.length;
    const of = branch ? __("Context of branch %1", branch) : __("Context");
    const counted = _n("%1 value", "%1 values", count);
    title.textContent = `${of}: ${many ? __("%1, %2 changed here", counted, many) : counted}`;
  }

  // Rows stay where they are; what is other than before is written anew, and nothing else.
  function paintRest(values, changed) {
    const keys = Object.keys(values).filter((key) => !(key in changed)).toSorted().slice(0, SHOWN_KEYS);
    const wanted = new Set(keys);
    for (const [key, row] of rows) {
      if (wanted.has(key)) continue;
      row.line.remove();
      rows.delete(key);
    }
    let after = null;
    for (const key of keys) {
      let row = rows.get(key);
      if (!row) {
        row = { line: makeRow(key, values[key], ""), value: values[key] };
        rows.set(key, row);
        if (after) after.after(row.line);
        else rest.prepend(row.line);
      } else if (row.value !== values[key]) {
        row.value = values[key];
        setValue(row.line.lastChild, key, row.value);
      }
      after = row.line;
    }
  }

  element.addEventListener("toggle", () => due && paint());
  return {
    element,
    show(values, frame, branch) {
      due = { values, frame, branch };
      if (element.open) paint();
    },
  };
}

const spelled = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// What has no room in a line opens by a click, and stays open while it changes.
function setValue(cell, key, value) {
  const text = spelled(value);
  if (text.length <= LONG && !text.includes("\n")) {
    cell.textContent = text;
    return;
  }
  let button = cell.querySelector("button");
  if (!button) {
    button = makeButton("ar-long", "", __("Show all of %1, or one line of it", key), () => open(button.getAttribute("aria-expanded") !== "true"));
    button.setAttribute("aria-expanded", "false");
    cell.replaceChildren(button);
  }
  const open = (isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen && typeof button.shown !== "string" ? JSON.stringify(button.shown, null, 2) : spelled(button.shown);
  };
  button.shown = value;
  open(button.getAttribute("aria-expanded") === "true");
}
