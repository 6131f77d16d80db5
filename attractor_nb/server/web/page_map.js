// One map or evaluation: the parts of its exported page as the server makes them, looked at again and again. A row opens
// its run beside the table. A map can be compared with another one.

import { makeComparison } from "./page_past.js";
import { poll } from "./page_polling.js";
import { showRun } from "./page_run.js";
import { mapPath } from "./page_server.js";
import { importHtml, make } from "./parts.js";
import { makeRowTable, wholeSource } from "./row_table.js";
import { makeRowsParts } from "./rows_view.js";
import { runWord } from "./state_words.js";
import { __ } from "./wording.js";

const MOST_ROWS = 1000; // rows that the server sends at a time

export function showMap(server, id, el, { go, way }) {
  const title = make("h1", "ap-title", id, { tabIndex: -1 });
  const line = make("p", "ap-map-line");
  const facts = make("p", "ap-facts");
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const past = make("section", "ap-time");
  const shown = make("div", "ap-map-shown", "", { hidden: true });
  const root = make("article", "ap-map", [make("div", "ap-run-words", [title, line, facts]), trouble, shown, past]);
  el.append(root);
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));
  let comparison = null;

  const source = {
    isWhole: false,
    async ask(query, offset, limit) {
      const found = await server.get(mapPath(id), { ...query, offset, limit: Math.min(limit, MOST_ROWS), with_table: true });
      return found.table;
    },
  };
  const { table, show } = makeRowsParts(shown, source, {
    keys: document,
    openRun(key, at) {
      const address = `#run=${encodeURIComponent(key)}`;
      at.append(make("p", "ap-beside-way", [make("a", "", __("Open the run"), { href: address })]));
      const screen = showRun(server, key, at, { go, way: make("span"), isBeside: true });
      return screen.close;
    },
  });

  function showState(found) {
    trouble.textContent = "";
    shown.hidden = false;
    title.textContent = found.pipeline || id;
    document.title = `${title.textContent}: ${runWord(found.status)} · attractor_nb`;
    line.textContent = found.page.line;
    facts.replaceChildren(make("span", "ap-id", id), make("span", "", found.kind === "evaluation" ? __("evaluation") : __("map")));
    show(found.page);
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
      const found = await server.get(mapPath(id, "/comparison"), { other, limit: MOST_ROWS, with_page: true });
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
