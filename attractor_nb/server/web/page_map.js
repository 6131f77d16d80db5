// One map or evaluation: the parts of its exported page as the server makes them, looked at again and again. A row opens
// its run beside the table. A map can be compared with another one.

import { makeComparison } from "./page_past.js";
import { poll } from "./page_polling.js";
import { showRun } from "./page_run.js";
import { mapPath } from "./page_server.js";
import { importDrawing, importHtml, make } from "./parts.js";
import { makeRowTable, makeWays, wholeSource } from "./row_table.js";
import { __ } from "./wording.js";

const MOST_COMPARED = 1000; // rows that the server sends at a time

export function showMap(server, id, el, { go, way }) {
  const title = make("h1", "ap-title", id, { tabIndex: -1 });
  const line = make("p", "ap-map-line");
  const facts = make("p", "ap-facts");
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const summary = make("div", "ap-map-facts");
  const drawing = make("div", "am-drawing");
  const words = make("div");
  const graph = make("div", "am-graph", [drawing, words]);
  const place = make("div", "ap-map-rows");
  const notes = make("div");
  const past = make("section", "ap-time");
  const shown = make("div", "ap-map-shown", [make("div", "am-top", [summary, graph]), place, notes], { hidden: true });
  const root = make("article", "ap-map", [make("div", "ap-run-words", [title, line, facts]), trouble, shown, past]);
  el.append(root);
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));

  const known = new Map(); // the text of each part, so that what has not changed stays as it is
  let comparison = null;

  const source = {
    isWhole: false,
    async ask(query, offset, limit) {
      const found = await server.get(mapPath(id), { ...query, offset, limit: Math.min(limit, MOST_COMPARED), with_table: true });
      return found.table;
    },
  };
  const table = makeRowTable(source, place, {
    keys: document,
    openRun(key, at) {
      const address = `#run=${encodeURIComponent(key)}`;
      at.append(make("p", "ap-beside-way", [make("a", "", __("Open the run"), { href: address })]));
      const screen = showRun(server, key, at, { go, way: make("span"), isBeside: true });
      return screen.close;
    },
  });

  function renew(name, text, show) {
    if (known.get(name) === text) return;
    known.set(name, text);
    show(text);
  }

  const linesOf = (lines, className) => lines.map((each) => make("p", className, each));

  function showState(found) {
    const { page } = found;
    trouble.textContent = "";
    shown.hidden = false;
    title.textContent = found.pipeline || id;
    document.title = `${title.textContent}: ${found.status} · attractor_nb`;
    line.textContent = page.line;
    facts.replaceChildren(make("span", "ap-id", id), make("span", "", found.kind === "evaluation" ? __("evaluation") : __("map")));
    renew("summary", page.summary, (text) => summary.replaceChildren(...importHtml(text)));
    renew("drawing", JSON.stringify([page.drawing, page.ways]), () => {
      drawing.replaceChildren(...(page.drawing ? [importDrawing(page.drawing)] : []));
      makeWays(drawing, page.ways, table);
    });
    renew("words", JSON.stringify(page.words), () => words.replaceChildren(...linesOf(page.words, "am-note")));
    renew("notes", JSON.stringify(page.notes), () => notes.replaceChildren(...linesOf(page.notes, "al-dim am-note")));
    if (found.kind === "map" && !comparison) comparison = makeMapComparison(server, id, past);
    table.renew();
  }

  const polling = poll(() => server.get(mapPath(id), { limit: 1, with_page: true }), {
    onLook: showState,
    onRefused(problem) {
      trouble.textContent = [problem.message, problem.hint].filter(Boolean).join(" · ");
    },
  });
  title.focus({ preventScroll: true });

  return {
    find: polling.look,
    close() {
      polling.close();
      table.close();
      if (comparison) comparison.close();
      root.remove();
    },
  };
}

const makeMapComparison = (server, id, el) =>
  makeComparison(server, id, el, {
    kind: "map",
    title: __("Compare with another map"),
    label: __("The map to compare with"),
    none: __("There is no other map."),
    said: (other) => __("A is this map, B is %1.", other),
    async begin(other) {
      const found = await server.get(mapPath(id, "/comparison"), { other, limit: MOST_COMPARED, with_page: true });
      return (at) => {
        const { page } = found;
        const left = found.table.total - found.table.rows.length;
        const more = left > 0 ? [make("p", "al-dim am-note", __("and %1 more rows, which are not shown", left.toLocaleString("en")))] : [];
        at.append(...found.headlines.map((words) => make("p", "ap-map-line", words)), ...importHtml(page.summary));
        const table = makeRowTable(wholeSource(found.table), at);
        at.append(...more);
        return () => {
          table.close();
          at.replaceChildren();
        };
      };
    },
  });
