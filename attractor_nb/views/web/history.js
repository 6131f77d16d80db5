// The runs that are kept: found, sorted, opened, resumed, tagged and deleted. Live ones are asked about again.

import { showCompare } from "./compare.js";
import { switchOffWhenLost } from "./controls.js";
import { makeDrawing } from "./drawing.js";
import { makeHistoryActions } from "./history_actions.js";
import { compareRows, HISTORY_COLUMNS, matchesRow, SHOWN_ROWS } from "./history_rows.js";
import { makeHistoryChoice } from "./history_choice.js";
import { asWidget, staticHost } from "./host.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { standIn } from "./place.js";
import { __ } from "./wording.js";

const SETTLED_MS = 150; // between the last key and the question for other rows
const LOOK_MS = 2000; // at least, between two looks at runs that go on
const HISTORY_SILENCE_MS = 5000;
const LOOK_FACTOR = 10; // a kernel that takes long to answer is asked as much less often

export default asWidget(() => () => {}, (host) => standIn(host.get("place"), (el) => showHistory(host, el)));

// A host whose rows are a part of a longer list says how long that is (`counts`), and is asked for other parts.
export function showHistory(host, el) {
  const root = make("div", "attractor-ui ah-history");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", __("Runs in %1", host.get("caption") || __("the runs base")));
  keepKeys(root);

  const bar = make("div", "ah-bar");
  const field = make("input", "ah-filter");
  field.type = "search";
  field.placeholder = __("Filter");
  field.setAttribute("aria-label", __("Filter the runs by any text"));
  const count = make("span", "ah-count");
  count.setAttribute("role", "status");
  bar.append(field, count);
  const wanted = host.get("actions");
  const choice = host.isLive && (!wanted || wanted.includes("Compare")) ? makeHistoryChoice({ send: ask, onChange: showRows }) : null;
  if (choice) bar.append(choice.element);
  if (host.isLive) bar.append(makeButton("al-button", __("Refresh"), __("Read the list of runs again"), look));

  const table = make("table", "ah-table");
  const head = make("tr");
  const body = make("tbody");
  const top = make("thead");
  top.append(head);
  table.append(top, body);
  const frame = make("div", "ah-frame");
  frame.append(table);
  const more = makeButton("al-button ah-more", "", "", () => {
    room += SHOWN_ROWS;
    find();
  });
  const panel = make("section", "ah-panel");
  panel.setAttribute("aria-live", "polite");
  panel.hidden = true;
  root.append(bar, frame, more, panel);
  el.append(root);

  let order = { column: "index", isDown: false };
  let room = SHOWN_ROWS;
  let settling = 0;
  let asked = 0;
  let wait = LOOK_MS;
  let silence = 0;
  let endBoth = () => {};
  const who = host.who || "kernel";
  const actions = makeHistoryActions({ send: ask, say, wanted });
  const headings = HISTORY_COLUMNS.map((column) => makeHeading(column));
  if (choice) head.append(choice.heading);
  head.append(...headings.map(({ element }) => element));
  if (host.isLive) head.append(make("th", "", __("actions")));

  function makeHeading(column) {
    const element = make("th", column.isNumber ? "is-number" : "");
    element.scope = "col";
    element.dataset.column = column.name;
    const button = makeButton("ah-sort", column.title, __("Sort by %1", column.title), () => {
      order = { column: column.name, isDown: order.column === column.name && !order.isDown };
      find();
    });
    element.append(button);
    return { element, button, column };
  }

  // Whoever has all rows finds and sorts them.
  function find() {
    if (host.get("counts")) host.send({ kind: "find", words: field.value.trim(), sort: order.column, descending: order.isDown, limit: room });
    else showRows();
  }

  function foundRows() {
    const all = host.get("rows") || [];
    const counts = host.get("counts");
    if (counts) return { rows: all, total: counts.total, found: counts.found, going: counts.under_way };
    const rows = all.filter((row) => matchesRow(row, field.value)).toSorted(compareRows(order));
    return { rows: rows.slice(0, room), total: all.length, found: rows.length, going: rows.filter((row) => row.is_live).length };
  }

  function showRows() {
    const { rows, total, found, going } = foundRows();
    if (choice) choice.show(host.get("rows") || []);
    for (const { element, button, column } of headings) {
      const isSorted = column.name === order.column;
      element.setAttribute("aria-sort", isSorted ? (order.isDown ? "descending" : "ascending") : "none");
      button.textContent = column.title + (isSorted ? (order.isDown ? " ↓" : " ↑") : "");
    }
    const hadFocus = body.contains(document.activeElement) ? document.activeElement.dataset.focus : "";
    body.replaceChildren(...rows.map(makeRow));
    if (hadFocus) [...body.querySelectorAll("[data-focus]")].find((each) => each.dataset.focus === hadFocus)?.focus();
    const shown = __("%1 of %2 runs", found, total);
    count.textContent = going ? __("%1, %2 under way", shown, going) : shown;
    more.hidden = found <= rows.length;
    more.textContent = __("Show more (%1 left)", found - rows.length);
    if (!total) body.append(makeEmpty(__("There are no runs here.")));
    else if (!found) body.append(makeEmpty(__("No run has this text.")));
  }

  const textOf = (name, row) => HISTORY_COLUMNS.find((column) => column.name === name).text(row);

  function makeRow(row) {
    const line = make("tr", row.state ? `is-${row.state}` : "");
    line.dataset.run = row.key;
    if (row.is_live) line.classList.add("is-live");
    if (choice) line.append(choice.cellOf(row));
    for (const column of HISTORY_COLUMNS) {
      const cell = make("td", column.isNumber ? "is-number" : "", column.name === "tags" ? "" : column.text(row));
      if (column.name === "tags") for (const tag of row.tags) cell.append(make("span", "ah-tag", tag));
      // What a narrow list leaves out (history.css) is told where there is room for the rest.
      if (column.name === "key" || column.name === "note") cell.title = column.text(row);
      if (column.name === "status") cell.title = row.note;
      if (column.name === "pipeline") {
        cell.title = [column.text(row), __("started %1, took %2", textOf("started", row), textOf("took", row)), row.key].join("\n");
      }
      cell.dataset.column = column.name;
      line.append(cell);
    }
    if (host.isLive) line.append(actions.cellOf(row));
    return line;
  }

  // What a click came to: words, the call that does the same, and of an opened run its picture.
  function say({ title, words = "", call = "", isError = false, svg = "", marks = {}, states = {}, extra = null, both = null }) {
    endBoth();
    panel.replaceChildren();
    panel.hidden = false;
    panel.classList.toggle("is-error", isError);
    const shut = makeButton("al-close", "×", "", () => {
      panel.hidden = true;
    });
    shut.setAttribute("aria-label", __("Close"));
    const heading = make("div", "ah-panel-head");
    heading.append(make("strong", "", title), shut);
    panel.append(heading);
    if (words) panel.append(make("pre", "ah-words", words));
    if (extra) panel.append(extra);
    if (svg) {
      const drawing = makeDrawing(svg, marks);
      for (const [id, state] of Object.entries(states)) drawing.setNode(id, state);
      panel.append(drawing.element);
    }
    if (both) {
      const beside = make("div", "");
      panel.append(beside);
      endBoth = showCompare(staticHost(both), beside);
    }
    if (call) {
      const line = make("p", "al-dim", __("In Python: "));
      line.append(make("code", "", call));
      panel.append(line);
    }
  }

  // A click that nothing comes of is told: a busy kernel answers it later, one that is gone never.
  function ask(message) {
    clearTimeout(silence);
    silence = setTimeout(() => {
      say({ title: __("The %1 has not answered yet.", who), words: __("It is busy or gone. If it is busy, it will do this when it is free.") });
    }, HISTORY_SILENCE_MS);
    host.send(message);
  }

  function look() {
    asked = performance.now();
    host.send({ kind: "refresh" });
  }

  const ticker = setInterval(() => {
    const isSeen = root.isConnected && document.visibilityState === "visible";
    const isDue = performance.now() - asked > wait;
    if (host.isLive && isSeen && isDue && (host.get("rows") || []).some((row) => row.is_live)) look();
  }, LOOK_MS / 4);
  const stops = [
    switchOffWhenLost(host, root, ".ah-do, .ah-tagging :is(button, input)"),
    host.on("rows", () => {
      clearTimeout(silence);
      if (asked) wait = Math.max(LOOK_MS, LOOK_FACTOR * (performance.now() - asked));
      showRows();
    }),
    host.listen((message) => {
      clearTimeout(silence);
      if (message.kind === "said") say(message);
    }),
    host.onLost(() => {
      const words = __("The list shows the last known state. Run the cell again; the runs are in their directories.");
      say({ title: __("The %1 is gone.", who), words, call: "runs()", isError: true });
    }),
  ];
  field.addEventListener("input", () => {
    room = SHOWN_ROWS;
    clearTimeout(settling);
    if (host.get("counts")) settling = setTimeout(find, SETTLED_MS);
    else showRows();
  });
  showRows();
  return () => {
    clearInterval(ticker);
    clearTimeout(silence);
    clearTimeout(settling);
    actions.close();
    endBoth();
    for (const stop of stops) stop();
  };
}

function makeEmpty(words) {
  const line = make("tr");
  const cell = make("td", "al-dim", words);
  cell.colSpan = HISTORY_COLUMNS.length + 2;
  line.append(cell);
  return line;
}
