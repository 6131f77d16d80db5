// A page of rows whose parts come from somebody: a kernel, or a server. A row opens its run beside the table.

import { asWidget } from "./host.js";
import { importDrawing, importHtml, keepKeys, make, newKey } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { makeRowTable, makeWays } from "./row_table.js";
import { __ } from "./wording.js";

export default asWidget(showElsewhere, standInWhenReady);

// It stands in for the static output as soon as the kernel has the rows: not before the map has ended.
function standInWhenReady(host) {
  let end = () => {};
  const ask = () => host.get("is_ready") && host.send({ kind: "page" });
  const stops = [
    host.on("is_ready", ask),
    host.listen(({ kind, page }) => {
      if (kind !== "page") return;
      end();
      end = standIn(host.get("place"), (el) => showRowsView(host, el, page));
    }),
  ];
  ask();
  return () => {
    end();
    for (const stop of stops) stop();
  };
}

// The parts around the table and the table itself; `show(page)` shows a newer state of them.
export function makeRowsParts(el, source, options) {
  const summary = make("div", "am-summary-place");
  const drawing = make("div", "am-drawing");
  const words = make("div");
  const place = make("div", "am-rows-place");
  const notes = make("div");
  const top = make("div", "am-top", [summary, make("div", "am-graph", [drawing, words])]);
  el.append(top, place, notes);
  const table = makeRowTable(source, place, options);
  const known = new Map(); // the text of each part, so that what has not changed stays as it is

  function renew(name, value, show) {
    const text = JSON.stringify(value);
    if (known.get(name) === text) return;
    known.set(name, text);
    show(value);
  }

  const linesOf = (lines, className) => lines.map((each) => make("p", className, each));

  return {
    table,
    show(page) {
      renew("summary", page.summary, (text) => summary.replaceChildren(...importHtml(text)));
      renew("drawing", [page.drawing, page.ways], () => {
        drawing.replaceChildren(...(page.drawing ? [importDrawing(page.drawing)] : []));
        makeWays(drawing, page.ways, table);
      });
      renew("words", page.words, (lines) => words.replaceChildren(...linesOf(lines, "am-note")));
      renew("notes", page.notes, (lines) => notes.replaceChildren(...linesOf(lines, "al-dim am-note")));
    },
  };
}

// A page that a kernel sends, with the live view of the row that is open.
export function showRowsView(host, el, page) {
  const root = make("div", "attractor-ui am-view", [make("p", "am-view-line", page.line)], { role: "region", "aria-label": page.title });
  keepKeys(root);
  el.append(root);
  const waiting = new Map(); // by number of the question: who gets the answer
  const opening = new Map(); // by place: what is said until the run is there
  let number = 0;

  const source = {
    isWhole: false,
    ask(query, offset, limit) {
      number += 1;
      const own = number;
      return new Promise((resolve) => {
        waiting.set(own, resolve);
        host.send({ kind: "rows", number: own, query, offset, limit });
      });
    },
  };
  const stop = host.listen((message) => {
    if (message.kind === "rows") {
      waiting.get(message.number)?.(message.table);
      waiting.delete(message.number);
    } else if (message.kind === "row" && opening.has(message.place)) {
      opening.get(message.place).textContent = message.problem || "";
    }
  });

  function openRun(key, at) {
    const place = newKey();
    const said = make("p", "al-dim", __("The run is being opened."), { role: "status" });
    at.append(said, make("div", "", "", { "data-attractor-place": place }));
    opening.set(place, said);
    host.send({ kind: "row", key, place });
    return () => {
      opening.delete(place);
      at.replaceChildren();
    };
  }

  const parts = makeRowsParts(root, source, { openRun: host.isLive ? openRun : null });
  parts.show(page);
  return () => {
    stop();
    parts.table.close();
    root.remove();
  };
}
