// A page of rows alone with its values: nobody is asked.

import { makeRowTable, makeWays, wholeSource } from "./row_table.js";

export function makeRowsPage(root) {
  const data = root.querySelector(".am-data");
  if (!data) return;
  const values = JSON.parse(data.textContent);
  const place = data.parentElement;
  const table = makeRowTable(wholeSource(values), place.parentElement, { keys: document });
  place.replaceWith(table.root);
  const drawing = root.querySelector(".am-graph");
  if (drawing) makeWays(drawing, Object.keys(values.ways), table);
}
