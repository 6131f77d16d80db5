// The states of all nodes as a table: what the drawing says in words, for reading, for a screen reader, and
// where a drawing is too large to be looked through.

import { isActive } from "./drawing.js";
import { make } from "./parts.js";
import { __ } from "./wording.js";

const COLUMNS = [__("Node"), __("State"), __("Attempt"), __("Visits"), __("What is known")];

export function makeStateTable(ids, { nameOf, onNode }) {
  const element = make("div", "al-table");
  element.hidden = true;
  const bar = make("label", "al-table-bar");
  const onlyActive = make("input");
  onlyActive.type = "checkbox";
  bar.append(onlyActive, make("span", "", __("only active nodes")));
  const table = make("table");
  table.append(make("caption", "al-unseen", __("States of all nodes")));
  const head = make("tr");
  for (const name of COLUMNS) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  const thead = make("thead");
  thead.append(head);
  const body = make("tbody");
  table.append(thead, body);
  element.append(bar, table);
  const rows = new Map();

  function build() {
    for (const id of ids) {
      const row = make("tr");
      const name = make("th");
      name.scope = "row";
      const open = make("button", "al-link", nameOf(id) === id ? id : `${nameOf(id)} (${id})`);
      open.type = "button";
      open.addEventListener("click", () => onNode(id));
      name.append(open);
      const cells = COLUMNS.slice(1).map(() => make("td"));
      row.append(name, ...cells);
      body.append(row);
      rows.set(id, { row, cells, state: { status: "pending" } });
    }
  }

  function set(id, state) {
    const parts = rows.get(id);
    if (!parts) return;
    parts.state = state || { status: "pending" };
    const { status, attempt, visits, progress, reason, note } = parts.state;
    const texts = [status.replace("_", " "), attempt > 1 ? attempt : "", visits || "", [progress, reason, note].filter(Boolean).join("; ")];
    texts.forEach((text, number) => {
      if (parts.cells[number].textContent !== String(text)) parts.cells[number].textContent = text;
    });
    parts.row.dataset.status = status;
    parts.row.hidden = onlyActive.checked && !isActive(parts.state);
  }

  const filter = () => {
    for (const [id, { state }] of rows) set(id, state);
  };
  onlyActive.addEventListener("change", filter);

  return {
    element,
    set: (id, state) => !element.hidden && set(id, state),
    // Shows it with the states as they are; it is made when it is first wanted.
    open(states, isActiveOnly) {
      if (!rows.size) build();
      element.hidden = false;
      onlyActive.checked = Boolean(isActiveOnly);
      for (const id of ids) set(id, states[id]);
    },
    close() {
      element.hidden = true;
    },
  };
}
