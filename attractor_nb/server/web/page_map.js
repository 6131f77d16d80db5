// One map: the parts of its exported page as the server makes them, looked at again and again, and how it differs from another.

import { makeMapTable, makeSorting } from "./map_page.js";
import { makeComparison } from "./page_past.js";
import { poll } from "./page_polling.js";
import { importDrawing, importHtml, make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const MAP_ROWS = 200; // that are shown first, and more for each click
const MOST_MAP_ROWS = 1000; // that the server sends at a time
const FIND_MS = 200; // between the last key and the question
const mapPath = (id, rest = "") => `maps/${encodeURIComponent(id)}${rest}`;

export function showMap(server, id, el, { way }) {
  const title = make("h1", "ap-title", id, { tabIndex: -1 });
  const line = make("p", "ap-facts");
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const facts = make("div", "ap-map-facts");
  const drawing = make("div", "am-drawing");
  const field = make("input", "am-filter", "", { type: "search", placeholder: __("Filter"), "aria-label": __("Filter the rows by any text") });
  const choices = make("span", "ap-map-choices");
  const count = make("span", "am-count", "", { role: "status" });
  const place = make("div", "ap-map-rows");
  const notes = make("div");
  const more = makeButton("al-button", __("Show more rows"), "", () => {
    wanted.limit = Math.min(wanted.limit + MAP_ROWS, MOST_MAP_ROWS);
    polling.look();
  });
  const past = make("section", "ap-time");
  const parts = [make("div", "am-top", [facts, drawing]), make("div", "am-find", [field, choices, count]), place, more, notes];
  const shown = make("div", "ap-map-shown", parts, { hidden: true });
  const root = make("article", "ap-map", [make("div", "ap-run-words", [title, line]), trouble, shown, past]);
  el.append(root);
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));

  const wanted = { limit: MAP_ROWS, words: "", status: "", with_page: true };
  const order = { index: -1, isDown: false };
  const known = new Map(); // the text of each part, so that what has not changed stays as it is
  let timer = 0;

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find({ words: field.value.trim() }), FIND_MS);
  });

  function find(change) {
    Object.assign(wanted, change, { limit: MAP_ROWS });
    polling.look();
  }

  function renew(name, text, show) {
    if (known.get(name) === text) return;
    known.set(name, text);
    show(text);
  }

  function showState(found) {
    const { page } = found;
    trouble.textContent = "";
    shown.hidden = false;
    title.textContent = found.pipeline || id;
    document.title = `${title.textContent}: ${found.status} · attractor_nb`;
    line.replaceChildren(make("span", "ap-id", id), make("span", "", page.line));
    renew("facts", page.facts, (text) => facts.replaceChildren(...importHtml(text)));
    renew("drawing", page.drawing, (text) => drawing.replaceChildren(...(text ? [importDrawing(text)] : [])));
    renew("table", page.table, showTable);
    renew("notes", JSON.stringify(page.notes), () => notes.replaceChildren(...page.notes.map((note) => make("p", "al-dim am-note", note))));
    renew("choices", JSON.stringify([page.choices, found.total, wanted.status]), () => showChoices(page.choices, found.total));
    const isPart = found.rows.length < found.total;
    count.textContent = isPart ? __("%1 of %2 rows", found.rows.length, found.total) : __("%1 rows", found.total);
    more.hidden = found.rows.length >= found.found || wanted.limit >= MOST_MAP_ROWS;
  }

  // Values that are unfolded, and the focus, stay where they are.
  function showTable(text) {
    const keyOf = (part) => `${part.closest("tr").cells[0].textContent} ${part.closest("td")?.dataset.label}`;
    const open = new Set([...place.querySelectorAll("details[open]")].map(keyOf));
    const focused = place.contains(document.activeElement) ? document.activeElement.textContent : null;
    place.replaceChildren(...importHtml(text));
    makeSorting(place.querySelector("table"), order);
    for (const fold of place.querySelectorAll("details")) fold.open = open.has(keyOf(fold));
    if (focused) [...place.querySelectorAll("button, a, summary")].find((part) => part.textContent === focused)?.focus();
  }

  function showChoices(present, total) {
    const makeChoice = (status, words) => {
      const attributes = { "aria-pressed": String(wanted.status === status), "data-status": status };
      return makeButton("am-choice", words, "", () => find({ status }), attributes);
    };
    const made = present.map(({ status, words }) => makeChoice(status, words));
    const focused = choices.contains(document.activeElement) ? document.activeElement.dataset.status : null;
    choices.replaceChildren(...(present.length > 1 ? [makeChoice("", `${__("all")} ${total}`), ...made] : []));
    if (focused !== null) choices.querySelector(`[data-status="${focused}"]`)?.focus();
  }

  const comparison = makeComparison(server, id, past, {
    kind: "map",
    title: __("Compare with another map"),
    label: __("The map to compare with"),
    none: __("There is no other map."),
    said: (other) => __("A is this map, B is %1.", other),
    async begin(other) {
      const found = await server.get(mapPath(id, "/comparison"), { other, limit: MAP_ROWS, with_page: true });
      return (at) => {
        const body = make("div", "", importHtml(found.page));
        at.append(...found.headlines.map((words) => make("p", "ap-map-line", words)), body);
        makeMapTable(body);
        return () => at.replaceChildren();
      };
    },
  });
  const polling = poll(() => server.get(mapPath(id), wanted), {
    onLook: showState,
    onRefused(problem) {
      trouble.textContent = [problem.message, problem.hint].filter(Boolean).join(" · ");
    },
  });
  title.focus({ preventScroll: true });

  return {
    find: polling.look,
    close() {
      clearTimeout(timer);
      polling.close();
      comparison.close();
      root.remove();
    },
  };
}
