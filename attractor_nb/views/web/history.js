// The runs that are kept: found, sorted, opened, resumed, tagged and deleted. Live ones are asked about again.

import { showCompare } from "./compare.js";
import { switchOffWhenLost } from "./controls.js";
import { makeDrawing } from "./drawing.js";
import { staticHost } from "./host.js";
import { make, makeButton, makeView } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { showRowsView } from "./rows_view.js";
import { __, _n } from "./wording.js";

const SETTLED_MS = 150; // between the last key and the question for other rows
const LOOK_MS = 2000; // at least, between two looks at live runs
const HISTORY_SILENCE_MS = 5000;
const LOOK_FACTOR = 10; // a kernel that takes long to answer is asked as much less often
const SURE_MS = 4000; // how long a delete waits for its second click

export default asPlacedWidget(showHistory);

// A host whose rows are a part of a longer list says how long that is (`counts`), and is asked for other parts.
export function showHistory(host, el) {
  const root = makeView("ah-history", __("Runs in %1", host.get("caption") || __("the runs base")));

  const field = make("input", "ah-filter", "", { type: "search", placeholder: __("Filter"), "aria-label": __("Filter the runs by any text") });
  const count = make("span", "ah-count", "", { role: "status" });
  const bar = make("div", "ah-bar", [field, count]);
  const wanted = host.get("actions");
  const choice = host.isLive && (!wanted || wanted.includes("Compare")) ? makeHistoryChoice({ send: ask, onChange: showRows }) : null;
  if (choice) bar.append(choice.element);
  if (host.isLive) bar.append(makeButton("al-button", __("Refresh"), __("Read the list of runs again"), look));

  const head = make("tr");
  const body = make("tbody");
  const frame = make("div", "ah-frame", [make("table", "ah-table", [make("thead", "", [head]), body])]);
  const more = makeButton("al-button ah-more", "", "", () => {
    room += SHOWN_ROWS;
    find();
  });
  const panel = make("section", "ah-panel", "", { "aria-live": "polite", hidden: true });
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
  if (host.isLive) head.append(make("th", "ah-actions", __("actions")));

  function makeHeading(column) {
    const button = makeButton("ah-sort", column.title, __("Sort by %1", column.title), () => {
      order = { column: column.name, isDown: order.column === column.name && !order.isDown };
      find();
    });
    const element = make("th", column.isNumber ? "is-number" : "", [button], { scope: "col", "data-column": column.name });
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
    if (choice) choice.show(host.get("counts") ? null : host.get("rows") || []); // a run that is not shown may be chosen
    for (const { element, button, column } of headings) {
      const isSorted = column.name === order.column;
      element.setAttribute("aria-sort", isSorted ? (order.isDown ? "descending" : "ascending") : "none");
      button.textContent = column.title + (isSorted ? (order.isDown ? " ↓" : " ↑") : "");
    }
    const hadFocus = body.contains(document.activeElement) ? document.activeElement.dataset.focus : "";
    body.replaceChildren(...rows.map(makeRow));
    if (hadFocus) [...body.querySelectorAll("[data-focus]")].find((each) => each.dataset.focus === hadFocus)?.focus();
    const shown = __("%1 of %2 runs", found, total);
    count.textContent = going ? __("%1, %2 live", shown, going) : shown;
    more.hidden = found <= rows.length;
    more.textContent = __("Show more (%1 left)", found - rows.length);
    if (!total) body.append(makeEmpty(__("There are no runs here.")));
    else if (!found) body.append(makeEmpty(__("No run has this text.")));
  }

  const textOf = (name, row) => HISTORY_COLUMNS.find((column) => column.name === name).text(row);

  function makeRow(row) {
    const line = make("tr", row.state ? `is-${row.state}` : "", "", { "data-run": row.key });
    if (row.is_live) line.classList.add("is-live");
    if (choice) line.append(choice.cellOf(row));
    for (const column of HISTORY_COLUMNS) {
      const cell = make("td", column.isNumber ? "is-number" : "", column.name === "tags" ? "" : column.text(row));
      if (column.name === "tags") for (const tag of row.tags) cell.append(make("span", "ah-tag", tag));
      // What a narrow list leaves out (history.css) is told where there is room for the rest.
      if (["key", "note", "inputs"].includes(column.name)) cell.title = column.text(row);
      if (column.name === "status") cell.title = row.note;
      if (column.name === "pipeline") {
        cell.title = [column.text(row), row.inputs, __("started %1, took %2", textOf("started", row), textOf("took", row)), row.key].filter(Boolean).join("\n");
      }
      cell.dataset.column = column.name;
      line.append(cell);
    }
    if (host.isLive) line.append(actions.cellOf(row));
    return line;
  }

  // The outcome of a click: words, the call that does the same, and of an opened run its live view, or its picture.
  function say({ title, words = "", call = "", isError = false, svg = "", marks = {}, states = {}, place = "", extra = null, both = null, page = null, map = "" }) {
    endBoth();
    panel.replaceChildren();
    panel.hidden = false;
    panel.classList.toggle("is-error", isError);
    const shut = makeButton("al-close", "×", "", () => {
      panel.hidden = true;
    }, { "aria-label": __("Close") });
    panel.append(make("div", "ah-panel-head", [make("strong", "", title), shut]));
    if (words) panel.append(make("pre", "ah-words", words));
    if (extra) panel.append(extra);
    if (place) panel.append(make("div", "", "", { "data-attractor-place": place })); // the live view stands in there
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
    if (page) {
      const rows = make("div", "");
      panel.append(rows);
      endBoth = showRowsView({ ...host, send: (message) => host.send({ ...message, map }) }, rows, page);
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
    const isAnyLive = host.get("counts")?.under_way || (host.get("rows") || []).some((row) => row.is_live);
    if (host.isLive && isSeen && isDue && isAnyLive) look();
  }, LOOK_MS / 4);
  const stops = [
    switchOffWhenLost(host, root, ".ah-do, .ah-tagging :is(button, input)"),
    host.on("counts", showRows),
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
  return make("tr", "", [make("td", "al-dim", words, { colSpan: HISTORY_COLUMNS.length + 2 })]);
}

// Rows of the list of runs: their columns, how they are found and sorted. Values only.
export const SHOWN_ROWS = 100; // at a time

const UNKNOWN = "–";
const text = (value) => (value === null || value === undefined || value === "" ? UNKNOWN : String(value));

const HISTORY_COLUMNS = [
  { name: "index", title: "#", isNumber: true, value: (row) => row.index, text: (row) => String(row.index) },
  { name: "status", title: __("status"), value: (row) => row.status, text: (row) => `${row.mark} ${row.status}` },
  { name: "pipeline", title: __("pipeline"), value: (row) => row.pipeline, text: (row) => text(row.pipeline) },
  { name: "inputs", title: __("inputs"), value: (row) => row.inputs, text: (row) => row.inputs || "" },
  { name: "note", title: __("note"), value: (row) => row.note, text: (row) => row.note },
  { name: "started", title: __("started"), value: (row) => row.start_time, text: (row) => shownTime(row.start_time) },
  { name: "took", title: __("took"), isNumber: true, value: (row) => row.duration, text: (row) => text(row.took) },
  { name: "stages", title: __("stages"), isNumber: true, value: (row) => row.stages, text: sizeOfRun },
  { name: "tokens", title: __("tokens"), isNumber: true, value: (row) => row.tokens, text: (row) => counted(row.tokens) },
  { name: "cost", title: __("cost"), isNumber: true, value: (row) => row.cost, text: (row) => row.price },
  { name: "tags", title: __("tags"), value: (row) => row.tags.join(" "), text: (row) => row.tags.join(", ") },
  { name: "key", title: __("run directory"), value: (row) => row.key, text: (row) => row.key },
];

// A run has stages, a map and an evaluation have rows.
export const isMapRow = ({ kind }) => kind !== "run";
function sizeOfRun(row) {
  return isMapRow(row) && row.stages !== null ? _n("%1 row", "%1 rows", row.stages) : text(row.stages);
}

const shownTime = (iso) => (iso ? iso.replace("T", " ").replace("Z", "") : UNKNOWN);
const counted = (value) => (value === null || value === undefined ? UNKNOWN : value ? value.toLocaleString("en") : "");

// Every word must occur somewhere in the row, or be the value of its status in Python.
function matchesRow(row, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const all = [...HISTORY_COLUMNS.map((column) => column.text(row)), ...(row.values || [])].join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
}

// What is unknown comes last, whichever way.
function compareRows({ column, isDown }) {
  const { value } = HISTORY_COLUMNS.find(({ name }) => name === column);
  const isNothing = (found) => found === null || found === undefined || found === "";
  return (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (isNothing(a) || isNothing(b)) return isNothing(a) - isNothing(b) || one.index - other.index;
    const way = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
    return (isDown ? -way : way) || one.index - other.index;
  };
}

// Two runs of the list, chosen to be compared: a check box for each, the first is A, the second B.
// `onChange` is called when something else is chosen.
function makeHistoryChoice({ send, onChange }) {
  let chosen = []; // keys, A first
  let isMap = false; // of what is chosen: a map is compared with a map
  const words = make("span", "ah-choice-words", "", { role: "status" });
  const compare = makeButton("al-button", __("Compare"), "", () => {
    if (chosen.length === 2) send({ kind: "compare", key: chosen[0], other: chosen[1] });
  });
  const element = make("span", "ah-choice", [words, compare]);
  const heading = make("th", "ah-chosen", [make("span", "al-unseen", __("compare"))], { scope: "col" });

  function show() {
    const [a, b] = chosen;
    compare.disabled = chosen.length !== 2;
    compare.title = b ? `diff(A, B): ${a} and ${b}` : __("Choose two runs with their check boxes");
    words.textContent = b ? __("A and B are chosen") : a ? __("A is chosen; choose B") : "";
  }

  function toggle(row) {
    const { key } = row;
    if (!chosen.length) isMap = isMapRow(row);
    chosen = chosen.includes(key) ? chosen.filter((each) => each !== key) : [...chosen, key].slice(0, 2);
    show();
    onChange();
  }

  show();
  return {
    element,
    heading,
    // The rows that there are: what is gone is not chosen any more.
    show(rows) {
      const left = rows ? chosen.filter((key) => rows.some((row) => row.key === key)) : chosen;
      if (left.length !== chosen.length) chosen = left;
      show();
    },
    cellOf(row) {
      const place = chosen.indexOf(row.key);
      const box = make("input", "ah-check", "", { type: "checkbox", checked: place >= 0 });
      const isFull = chosen.length === 2 && place < 0;
      const isOther = chosen.length > 0 && isMapRow(row) !== isMap;
      box.disabled = !row.is_comparable || isFull || isOther;
      box.title = whyNot(row, isFull, isOther) || (isMapRow(row) ? __("Compare it with another map") : __("Compare it with another run"));
      box.setAttribute("aria-label", spokenChoice(row, place));
      box.dataset.focus = `choose ${row.key}`;
      box.addEventListener("change", () => toggle(row));
      const cell = make("td", "ah-chosen", [box]);
      if (place >= 0) cell.append(make("span", `ah-side is-${"ab"[place]}`, "AB"[place]));
      return cell;
    },
  };
}

function whyNot(row, isFull, isOther) {
  if (!row.is_comparable) return __("It cannot be compared");
  if (isFull) return __("Two are chosen: deselect one first");
  return isOther ? __("A map is compared with a map, a run with a run") : "";
}

function spokenChoice(row, place) {
  const name = `${row.pipeline || __("run")} ${row.key}`;
  return place < 0 ? __("Choose %1 to be compared", name) : __("Choose %1 to be compared: it is %2", name, "AB"[place]);
}

// What can be done with a run of the list, as buttons; deleting takes two clicks.
// `wanted` are the names of those that are offered; all of them if it is left out.
function makeHistoryActions({ send, say, wanted }) {
  let sure = null;
  let timer = 0;

  function forget() {
    clearTimeout(timer);
    if (sure) {
      sure.button.textContent = __("Delete");
      sure.button.classList.remove("is-sure");
    }
    sure = null;
  }

  function remove(row, button) {
    if (sure && sure.key === row.key) {
      forget();
      send({ kind: "delete", key: row.key });
      return;
    }
    forget();
    sure = { key: row.key, button };
    button.textContent = __("Sure?");
    button.classList.add("is-sure");
    timer = setTimeout(forget, SURE_MS);
  }

  function askForTag(row) {
    const field = make("input", "ah-tag-field", "", { "aria-label": __("A new tag for %1", row.key), placeholder: __("a new tag"), maxLength: 60 });
    const give = () => {
      if (field.value.trim()) send({ kind: "tag", key: row.key, tag: field.value });
    };
    // No form: in a notebook's page the host has its own idea of what Enter does in one.
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      give();
    });
    const form = make("div", "ah-tagging", [field, makeButton("al-button", __("Add"), "", give)]);
    for (const tag of row.tags) {
      const gone = makeButton("al-button", `${tag} ×`, "", () => send({ kind: "untag", key: row.key, tag }));
      gone.setAttribute("aria-label", __("Remove the tag %1", tag));
      form.append(gone);
    }
    say({ title: __("Tags of %1", row.key), extra: form, call: `runs()[${row.index}].tag("…")` });
    field.focus();
  }

  return {
    cellOf(row) {
      const cell = make("td", "ah-actions");
      const ask = (kind) => () => send({ kind, key: row.key });
      const why = row.is_live ? __("It is running") : __("Delete it permanently: click twice");
      const button = makeAction(row, __("Delete"), why, row.is_deletable, (self) => remove(row, self));
      if (sure && sure.key === row.key) {
        sure.button = button;
        button.textContent = __("Sure?");
        button.classList.add("is-sure");
      }
      const offered = {
        Open: makeAction(row, __("Open"), __("Show it"), row.is_readable, ask("open")),
        Resume: makeAction(row, __("Resume"), __("Resume the run where it stopped"), row.is_resumable, ask("resume")),
        Tag: makeAction(row, __("Tag"), __("Add or remove tags"), row.is_readable, () => askForTag(row)),
        Delete: button,
      };
      for (const [name, action] of Object.entries(offered)) if (!wanted || wanted.includes(name)) cell.append(action);
      return cell;
    },
    close: () => clearTimeout(timer),
  };
}

function makeAction(row, word, title, isAllowed, act) {
  const button = makeButton("al-button ah-do", word, title, () => act(button), { disabled: !isAllowed, "data-focus": `${word} ${row.key}` });
  button.setAttribute("aria-label", `${word} ${row.pipeline || __("run")} ${row.key}`);
  return button;
}
