// The rows of a map, an evaluation or a comparison: found, sorted, walked through by keys, opened beside the table.
// Only the rows in sight are in the page. Rows come from a source, which has all of them or asks for them part by part:
//
//   source.ask(query, offset, limit)   an answer, or a promise of one: { columns, looks, choices, rows, found, total, offset }
//   source.isWhole                     whether all rows are here
//
// A row is [place, look, key, link, …cells]; a cell is a text, or [text, order, look, pieces].

import { make, makeButton } from "./parts.js";
import { __, _n } from "./wording.js";

const ROW_AROUND = 20; // rows that are kept above and below those in sight
const FEW_ROWS = 60; // are all shown, also where not all of them are in sight
const FOUND_MS = 200; // between the last key in the filter and the question, where somebody is asked
const BESIDE_MS = 150; // between the last step of a walk and the opening of the row
const MOST_PRINTED = 1_000_000;
const LINE_PART = 300; // characters of a value that its line may show
const CHAR_PX = 7.2; // of each character that a column asks for
const PADDING_PX = 22;
const LONG_PX = 150; // a column that asks for more is a long one
const LEAST_LONG_PX = 96; // of a long column beside an open row, which has its texts whole
const CELLS = 4; // where the cells of a row begin

export const textOfCell = (cell) => (Array.isArray(cell) ? cell[0] : cell);

// All rows of a page, as values that are in it.
export function wholeSource(values) {
  const texts = values.rows.map((row) => [values.looks[row[1]][1], ...row.slice(CELLS).map(textOfCell)].join(" ").toLowerCase());
  let known = "";
  let found = [];

  function find({ words, status, way, sort, descending }) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = way ? new Set(values.ways?.[way] || []) : null;
    const isFound = (row, number) =>
      (!status || values.looks[row[1]][1] === status) && (!chosen || chosen.has(row[0])) && wanted.every((word) => texts[number].includes(word));
    const rows = values.rows.filter(isFound);
    return sort < 0 ? rows : sortedByCell(rows, CELLS + sort, descending);
  }

  return {
    isWhole: true,
    ask(query, offset, limit) {
      const asked = JSON.stringify(query);
      if (asked !== known) found = find(query);
      known = asked;
      return { ...values, rows: found.slice(offset, offset + limit), found: found.length, total: values.rows.length, offset };
    },
  };
}

function sortedByCell(rows, at, isDown) {
  const orderOf = (row) => (Array.isArray(row[at]) ? row[at][1] : null);
  const isNumber = rows.every((row) => orderOf(row) !== null || !textOfCell(row[at]));
  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = isNumber ? (a, b) => (orderOf(a) ?? 0) - (orderOf(b) ?? 0) : (a, b) => collator.compare(textOfCell(a[at]), textOfCell(b[at]));
  return rows.toSorted((a, b) => (isDown ? -compare(a, b) : compare(a, b)));
}

// `openRun(key, place, row)` shows the run of a row in an element and returns what ends it; `keys` is who hears j and k.
export function makeRowTable(source, el, { openRun = null, keys = null } = {}) {
  const field = make("input", "am-filter", "", { type: "search", placeholder: __("Filter"), "aria-label": __("Filter the rows by any text") });
  const choices = make("span", "am-choices");
  const chosenWay = makeButton("am-choice am-chosen", "", __("Show all rows"), () => choose(""));
  const inOrder = makeButton("am-choice am-in-order", __("failures first"), __("The order of the page"), () => change({ sort: -1, descending: false }));
  const count = make("span", "am-count", "", { role: "status" });
  const bar = make("div", "am-find", [field, choices, chosenWay, inOrder, count]);
  const widths = make("colgroup");
  const head = make("tr", "", "", { "aria-rowindex": 1 });
  const body = make("tbody");
  const table = make("table", "am-table", [widths, make("thead", "", [head]), body], { "aria-label": __("Rows") });
  const frame = make("div", "am-frame is-moving", [table], { tabIndex: 0, role: "group", "aria-label": __("Rows: j and k move, Enter opens") });
  const beside = makeOpenRow({ openRun, onClose: () => frame.focus({ preventScroll: true }) });
  const unprinted = make("p", "am-unprinted");
  const root = make("div", "am-rows", [bar, make("div", "am-halves", [frame, beside.element]), unprinted]);
  el.append(root);

  const query = { words: "", status: "", way: "", sort: -1, descending: false };
  let shown = { columns: [], looks: [], choices: {}, rows: [], found: 0, total: 0, offset: 0 };
  let columns = ""; // those that the head shows
  let drawn = ""; // what the body shows
  let rowHeight = 29;
  let current = null; // place of the row that the keys are at
  let questions = 0;
  let isPrinting = false;
  let timer = 0;
  let walking = 0;

  field.addEventListener("input", () => {
    clearTimeout(timer);
    const find = () => change({ words: field.value.trim() });
    if (source.isWhole) find();
    else timer = setTimeout(find, FOUND_MS);
  });
  frame.addEventListener("scroll", () => showSight(), { passive: true });
  const sizes = new ResizeObserver(() => {
    giveWidths();
    drawn = "";
    showSight();
  });
  sizes.observe(frame);
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-place]");
    if (!line || event.target.closest("a") || getSelection().toString()) return;
    const place = Number(line.dataset.place);
    if (current === place && beside.isOpen()) beside.close();
    else moveTo(place, true);
  });
  const listener = keys || root;
  listener.addEventListener("keydown", hearKey);
  window.addEventListener("beforeprint", print);
  window.addEventListener("afterprint", unprint);

  function change(changes) {
    Object.assign(query, changes);
    frame.scrollTop = 0;
    renew();
  }

  // The rows behind a part of the drawing; a second time, or empty, all of them.
  function choose(way, name = "") {
    query.way = query.way === way ? "" : way;
    chosenWay.textContent = query.way ? `${name} ✕` : "";
    change({});
    root.dispatchEvent(new CustomEvent("am-way", { detail: query.way }));
  }

  function wanted() {
    if (isPrinting) return [0, MOST_PRINTED];
    const above = Math.max(0, frame.scrollTop - head.offsetHeight);
    const first = Math.max(0, Math.floor(above / rowHeight) - ROW_AROUND);
    return [first, Math.ceil(frame.clientHeight / rowHeight) + 2 * ROW_AROUND];
  }

  // Asks for the rows in sight again: something may have changed.
  function renew() {
    const [first, limit] = wanted();
    return ask(first, Math.max(limit, FEW_ROWS));
  }

  function ask(offset, limit) {
    const number = (questions += 1);
    const answer = source.ask({ ...query }, offset, limit);
    if (!(answer instanceof Promise)) return take(answer);
    return answer.then((found) => number === questions && found && take(found), () => {});
  }

  function take(answer) {
    if (!source.isWhole && JSON.stringify(answer) === JSON.stringify(shown)) return;
    shown = answer;
    if (answer.found && !answer.rows.length && answer.offset) { // there are fewer rows than before
      frame.scrollTop = 0;
      renew();
      return;
    }
    showHead();
    drawn = "";
    showSight();
    showBar();
    const row = shown.rows.find(([place]) => place === current);
    if (row && beside.isOpen()) beside.show(row, shown);
  }

  function showBar() {
    const names = Object.entries(shown.choices);
    const focused = choices.contains(document.activeElement) ? document.activeElement.dataset.status : null;
    const made = names.length > 1 || query.status ? ["", ...new Set([...names.map(([name]) => name), ...(query.status ? [query.status] : [])])] : [];
    choices.replaceChildren(...made.map((name) => {
      const total = name ? shown.choices[name] || 0 : shown.total;
      const attributes = { "aria-pressed": String(query.status === name), "data-status": name };
      return makeButton("am-choice", `${name || __("all")} ${total.toLocaleString("en")}`, "", () => change({ status: name }), attributes);
    }));
    if (focused !== null) choices.querySelector(`[data-status="${CSS.escape(focused)}"]`)?.focus();
    chosenWay.hidden = !query.way;
    inOrder.hidden = query.sort < 0;
    const [found, total] = [shown.found.toLocaleString("en"), shown.total.toLocaleString("en")];
    count.textContent = shown.found === shown.total ? _n("%1 row", "%1 rows", shown.total === 1 ? 1 : total) : __("%1 of %2 rows", found, total);
    table.setAttribute("aria-rowcount", String(shown.found + 1));
  }

  function showHead() {
    const made = JSON.stringify([shown.columns, query.sort, query.descending]);
    if (made === columns) return;
    columns = made;
    const focused = head.contains(document.activeElement) ? document.activeElement.closest("th").cellIndex : -1;
    widths.replaceChildren(...shown.columns.map(() => make("col")));
    giveWidths();
    head.replaceChildren(...shown.columns.map(makeHeading));
    if (focused >= 0) head.cells[focused]?.firstChild.focus();
  }

  // Each column has the room that it asks for, and more where there is more; where there is less, long ones share it.
  // Beside an open row, which says what it took, those of time, tokens and cost give way to the others.
  function giveWidths() {
    const roomOf = ([, , width]) => Math.ceil(width * CHAR_PX) + PADDING_PX;
    const least = shown.columns.reduce((sum, column) => sum + Math.min(LONG_PX, roomOf(column)), 0);
    const isShort = root.classList.contains("has-beside") && least > frame.clientWidth;
    table.classList.toggle("is-short", isShort);
    const asked = shown.columns.map((column, index) => (isShort && index && column[1] === "is-number" ? 0 : roomOf(column)));
    const isLong = (width) => width > LONG_PX;
    const short = asked.filter((width) => !isLong(width)).reduce((sum, width) => sum + width, 0);
    const long = asked.filter(isLong).reduce((sum, width) => sum + width, 0);
    const share = long ? Math.max(0, frame.clientWidth - short) / long : 0;
    const stretch = Math.max(1, frame.clientWidth / (short + long));
    const given = asked.map((width) => (stretch > 1 ? width * stretch : isLong(width) ? Math.max(isShort ? LEAST_LONG_PX : LONG_PX, width * share) : width));
    for (const [index, column] of [...widths.children].entries()) Object.assign(column.style, { width: `${given[index]}px`, display: given[index] ? "" : "none" });
    table.style.minWidth = `${given.reduce((sum, width) => sum + width, 0)}px`;
  }

  function makeHeading([title, kind], index) {
    const isSorted = index === query.sort;
    const words = title + (isSorted ? (query.descending ? " ↓" : " ↑") : "");
    const button = makeButton("am-sort", words, __("Sort by %1", title), () => change({ sort: index, descending: isSorted && !query.descending }));
    const order = isSorted ? (query.descending ? "descending" : "ascending") : "none";
    return make("th", kind, [button], { scope: "col", "aria-sort": order });
  }

  // The rows in sight, and the room of the others; rows that are not here are asked for.
  function showSight() {
    const [first, limit] = shown.found <= FEW_ROWS ? [0, FEW_ROWS] : wanted();
    const end = Math.min(shown.found, first + limit);
    const isHere = first >= shown.offset && end <= shown.offset + shown.rows.length;
    const sight = `${first} ${end} ${current}`;
    if (isHere && sight === drawn) return;
    const lines = shown.rows.slice(Math.max(0, first - shown.offset), Math.max(0, end - shown.offset));
    const begin = Math.max(first, shown.offset);
    body.replaceChildren(makeSpace(begin), ...lines.map((row, index) => makeLine(row, begin + index)), makeSpace(shown.found - begin - lines.length));
    measure();
    drawn = isHere ? sight : "";
    if (!isHere && shown.found) ask(first, limit);
  }

  function makeSpace(rows) {
    const cell = make("td", "", "", { colSpan: Math.max(1, shown.columns.length) });
    cell.style.height = `${rows * rowHeight}px`;
    return make("tr", "am-space", [cell], { hidden: rows <= 0, "aria-hidden": "true" });
  }

  function measure() {
    const line = body.querySelector("tr[data-place]");
    const height = line ? line.getBoundingClientRect().height : 0;
    if (!height || isPrinting || Math.abs(height - rowHeight) < 0.01) return;
    rowHeight = height;
    drawn = "";
    queueMicrotask(showSight);
  }

  function makeLine(row, index) {
    const [place, look] = row;
    const [css, status] = shown.looks[look];
    const line = make("tr", css, "", { "data-place": place, "data-status": status, "aria-rowindex": index + 2 });
    if (place === current) line.classList.add("is-current");
    line.append(...row.slice(CELLS).map((cell, column) => makeLineCell(cell, shown.columns[column], column === 0 ? row[3] : "")));
    return line;
  }

  function hearKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, .am-beside")) {
      if (event.key === "Escape" && event.target.closest(".am-beside")) beside.close();
      return;
    }
    const isAtRows = event.target === frame || !root.contains(event.target) || event.target === document.body;
    const step = { j: 1, k: -1, ...(event.target === frame ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (step) walk(step);
    else if (event.key === "Enter" && isAtRows && current !== null && event.target === frame) {
      if (beside.isOpen()) beside.close();
      else moveTo(current, true);
    } else if (event.key === "Escape" && beside.isOpen()) beside.close();
    else return;
    event.preventDefault();
  }

  // To the next row of those that are found.
  async function walk(step) {
    const at = shown.rows.findIndex(([place]) => place === current);
    const index = at < 0 ? 0 : shown.offset + at + step;
    if (index < 0 || index >= shown.found) return;
    if (index < shown.offset || index >= shown.offset + shown.rows.length) await ask(Math.max(0, index - ROW_AROUND), FEW_ROWS);
    const row = shown.rows[index - shown.offset];
    if (!row) return;
    scrollTo(index);
    moveTo(row[0], beside.isOpen());
  }

  function scrollTo(index) {
    const top = index * rowHeight;
    const height = frame.clientHeight - head.offsetHeight;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + rowHeight > frame.scrollTop + height) frame.scrollTop = top + rowHeight - height;
  }

  function moveTo(place, isOpened) {
    current = place;
    drawn = "";
    showSight();
    if (!root.contains(document.activeElement) || frame === document.activeElement || body.contains(document.activeElement)) frame.focus({ preventScroll: true });
    const row = shown.rows.find((each) => each[0] === place);
    if (!isOpened || !row) return;
    const wasOpen = beside.isOpen();
    beside.show(row, shown, false);
    clearTimeout(walking);
    walking = setTimeout(() => beside.show(row, shown), wasOpen ? BESIDE_MS : 0);
    root.classList.add("has-beside");
  }

  // A printed page has all rows that are found; those that are elsewhere are missing, and it says so.
  function print() {
    isPrinting = true;
    if (source.isWhole) renew();
    const left = shown.found - shown.rows.length;
    unprinted.textContent = left > 0 ? __("%1 more rows are not printed; the exported page prints all.", left.toLocaleString("en")) : "";
  }

  function unprint() {
    isPrinting = false;
    unprinted.textContent = "";
    renew();
  }

  renew();
  return {
    root,
    choose,
    renew,
    close() {
      clearTimeout(timer);
      clearTimeout(walking);
      sizes.disconnect();
      beside.close();
      listener.removeEventListener("keydown", hearKey);
      window.removeEventListener("beforeprint", print);
      window.removeEventListener("afterprint", unprint);
      root.remove();
    },
  };
}

function makeLineCell(cell, [title, kind], link) {
  const text = textOfCell(cell);
  const element = make("td", text ? kind : `${kind} is-empty`, "", { "data-label": title });
  const value = make("span", "am-line");
  fillWithCell(value, cell, LINE_PART);
  if (link) element.append(make("a", "", [value], { href: link }));
  else element.append(value);
  return element;
}

function fillWithCell(element, cell, most = Infinity) {
  const [text, , look, pieces] = Array.isArray(cell) ? cell : [cell, null, "", []];
  if (look) element.classList.add(look);
  if (pieces.length) element.append(...pieces.map(([tag, words]) => make(tag === "del" || tag === "ins" ? tag : "span", "", words)));
  else element.textContent = text.slice(0, most);
}

// The row that is open: all of its values, and its run where somebody can show it.
function makeOpenRow({ openRun, onClose }) {
  const name = make("strong", "am-beside-name");
  const state = make("span", "am-beside-state");
  const shut = makeButton("al-close", "×", "", close, { "aria-label": __("Close the row") });
  const facts = make("dl", "am-values");
  const run = make("div", "am-beside-run");
  const element = make("aside", "am-beside", [make("div", "am-beside-head", [name, state, shut]), facts, run], { hidden: true, "aria-label": __("The row") });
  let shownKey = null;
  let end = () => {};
  let known = "";

  function show(row, { columns, looks }, isWithRun = true) {
    const [, look, key, link, ...cells] = row;
    const [css, status] = looks[look];
    element.hidden = false;
    element.parentElement.parentElement.classList.add("has-beside");
    name.textContent = `${columns[0][0]} ${textOfCell(cells[0])}`;
    state.textContent = status;
    element.dataset.look = css;
    const now = JSON.stringify(row);
    if (now !== known) showValues(columns, cells, link);
    known = now;
    if (!isWithRun || key === shownKey) return;
    endRun();
    shownKey = key;
    if (openRun && key) end = openRun(key, run, row);
  }

  function showValues(columns, cells, link) {
    const made = [];
    cells.forEach((cell, index) => {
      if (!textOfCell(cell) || columns[index][1] === "is-state" || index === 0) return;
      const value = make("dd", columns[index][1]);
      fillWithCell(value, cell);
      made.push(make("dt", "", columns[index][0]), value);
    });
    facts.replaceChildren(...made);
    if (link) facts.append(make("dt", "", __("run")), make("dd", "", [make("a", "", __("Open its page"), { href: link })]));
  }

  function endRun() {
    end();
    end = () => {};
    shownKey = null;
    run.replaceChildren();
  }

  function close() {
    if (element.hidden) return;
    element.hidden = true;
    element.parentElement.parentElement.classList.remove("has-beside");
    endRun();
    known = "";
    onClose();
  }

  return { element, show, close, isOpen: () => !element.hidden };
}

// The rows behind an edge or a stage of a drawing are shown by a click on it; a second click shows all again.
export function makeWays(drawing, names, table) {
  const known = new Set(names);
  const parts = [...drawing.querySelectorAll("[data-edge], [data-node]")];
  const wayOf = (part) => (part.dataset.edge === undefined ? ["stage", part.dataset.node] : ["edge", part.dataset.edge]).join(" ");
  const nameOf = (part) => part.dataset.node ?? drawing.querySelector(`.edge[data-edge="${part.dataset.edge}"] title`)?.textContent.split("\n")[0] ?? "";
  for (const part of parts) {
    if (!known.has(wayOf(part))) continue;
    part.classList.add("is-choice");
    if (part.matches(".node, .edge")) {
      part.setAttribute("tabindex", "0");
      part.setAttribute("role", "button");
    }
    const toggle = () => table.choose(wayOf(part), nameOf(part));
    part.addEventListener("click", toggle);
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      toggle();
    });
  }
  table.root.addEventListener("am-way", ({ detail }) => {
    for (const part of parts) part.classList.toggle("selected", wayOf(part) === detail);
  });
}
