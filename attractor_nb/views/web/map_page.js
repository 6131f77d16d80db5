// The rows of a map on a page of its own: the table that stands there is sorted and searched. Nobody is asked.

import { make, makeButton } from "./parts.js";
import { __, _n } from "./wording.js";

export function makeMapTable(root) {
  const table = root.querySelector(".am-table");
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  let status = "";
  let kept = null;

  const field = make("input", "am-filter", "", { type: "search", placeholder: __("Filter"), "aria-label": __("Filter the rows by any text") });
  field.addEventListener("input", show);
  const count = make("span", "am-count", "", { role: "status" });
  const states = [...new Set(rows.map((row) => row.dataset.status))];
  const choices = ["", ...states].map(makeChoice);
  const bar = make("div", "am-find", [field, ...(states.length > 1 ? choices : []), count]);
  table.parentElement.before(bar);

  makeSorting(table);
  show();
  return { bar, keep };

  // Only the rows in these places are shown, of which the field and the statuses choose; null for all.
  function keep(places) {
    kept = places && new Set(rows.filter((_, place) => places.has(place)));
    show();
  }

  function makeChoice(name) {
    const total = rows.filter((row) => !name || row.dataset.status === name).length;
    const button = makeButton("am-choice", `${name || __("all")} ${total}`, "", () => {
      status = name;
      show();
    }, { "data-status": name });
    return button;
  }

  function show() {
    const words = field.value.trim().toLowerCase();
    let found = 0;
    for (const row of rows) {
      row.hidden = !((!kept || kept.has(row)) && (!status || row.dataset.status === status) && texts.get(row).includes(words));
      found += row.hidden ? 0 : 1;
    }
    for (const button of choices) button.setAttribute("aria-pressed", String(button.dataset.status === status));
    count.textContent = found === rows.length ? _n("%1 row", "%1 rows", found) : __("%1 of %2 rows", found, rows.length);
  }
}

// A table is sorted by its headings. `order`, the column and the direction, is changed with it: another table may be given it.
export function makeSorting(table, order = { index: -1, isDown: false }) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells].map(makeHeading);
  if (headings[order.index]) sort();

  function makeHeading(cell, index) {
    const title = cell.textContent;
    const button = makeButton("am-sort", title, __("Sort by %1", title), () => {
      Object.assign(order, { index, isDown: order.index === index && !order.isDown });
      sort();
    });
    cell.replaceChildren(button);
    return { cell, button, title };
  }

  function sort() {
    const rows = [...body.rows];
    const keyOf = (row) => row.cells[order.index].dataset.order ?? row.cells[order.index].textContent;
    const keys = new Map(rows.map((row) => [row, keyOf(row)]));
    const isNumber = rows.every((row) => row.cells[order.index].dataset.order !== undefined || !keys.get(row));
    const compare = isNumber ? (a, b) => Number(a) - Number(b) : new Intl.Collator(undefined, { numeric: true }).compare;
    const sign = order.isDown ? -1 : 1;
    body.append(...rows.toSorted((a, b) => sign * compare(keys.get(a), keys.get(b))));
    for (const [index, { cell, button, title }] of headings.entries()) {
      const isSorted = index === order.index;
      cell.setAttribute("aria-sort", isSorted ? (order.isDown ? "descending" : "ascending") : "none");
      button.textContent = title + (isSorted ? (order.isDown ? " ↓" : " ↑") : "");
    }
  }
}
