// The items of a stage that is run for each of a list: what each is, how its run stands; a click opens that.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const ITEM_COLUMNS = [__("Item"), __("Value"), __("Status"), __("Reason")];

// `ask({visit, branch, item})` is called for a click on an item whose run has begun; without it none can be opened.
export function makeItemTable(plain, ask) {
  const head = make("tr");
  head.append(...ITEM_COLUMNS.map((name) => make("th", "", name)));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  body.append(...plain.items.map((one) => makeItemRow(one, plain, ask)));
  const table = make("table", "al-items");
  table.setAttribute("aria-label", __("Items"));
  table.append(top, body);
  return table;
}

function makeItemRow(one, { visit, branch }, ask) {
  const row = make("tr", `is-${one.status.replaceAll(" ", "-")}`);
  const place = make("td", "");
  if (one.run_id && ask) {
    const button = makeButton("al-try", String(one.index), "", () => ask({ visit, branch, item: one.index }));
    button.setAttribute("aria-label", __("Open item %1", one.index));
    place.append(button);
  } else place.textContent = String(one.index);
  const status = make("td", "al-try-status", one.status.replace("_", " "));
  row.append(place, make("td", "al-item-value", one.value), status, make("td", "al-dim", one.reason));
  return row;
}
