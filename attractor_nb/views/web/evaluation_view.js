// An evaluation in a notebook: its scores, its rows, and beneath them the run of the row that was clicked.

import { makeBeneath } from "./beneath.js";
import { switchOffWhenLost } from "./controls.js";
import { make, makeButton, makeTable, makeView } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { __ } from "./wording.js";

const ROW_SIGNS = { error: "✕", warn: "?", ok: "✓" };
const EVALUATION_SILENCE_MS = 1500;

export default asPlacedWidget(showEvaluation);

export function showEvaluation(host, el) {
  const root = makeView("av-evaluation", __("Evaluation"));
  const { columns, rows: scores, notes } = host.get("scores");
  const rows = host.get("rows");
  const lines = scores.map((cells) => make("tr", "", cells.map((cell) => make("td", "", cell))));
  const said = make("p", "av-said", "", { role: "status", hidden: true });
  const beneath = makeBeneath(host);
  let silence = 0;

  function say(words, isProblem = false) {
    clearTimeout(silence);
    said.textContent = words;
    said.hidden = !words;
    said.classList.toggle("is-problem", isProblem);
  }

  function open(row, repeat) {
    const now = host.get("opened") || {};
    const isShown = now.row === row && (repeat === undefined || now.repeat === repeat);
    say("");
    if (!isShown) silence = setTimeout(() => say(__("The kernel is busy. The run follows when it is free.")), EVALUATION_SILENCE_MS);
    host.send(isShown ? { kind: "close" } : { kind: "open", row, ...(repeat === undefined ? {} : { repeat }) });
  }

  const has = (name) => rows.some((row) => row[name]);
  const shown = [["output", __("output")], ["expected", __("expected")], ["reason", __("reason")]].filter(([name]) => has(name));
  const made = new Map(); // by row: its element and button
  for (const row of rows) {
    const button = makeButton("al-link av-open", row.id, __("Show its run beneath the table"), () => open(row.id), { "aria-expanded": "false" });
    const line = make("tr", `av-row is-${row.state}`, [make("td", "av-sign", ROW_SIGNS[row.state]), make("td", "av-id", [button])]);
    if (has("runs")) line.append(make("td", "av-sign", [...row.runs].map((sign, repeat) => makeSign(row, sign, repeat))));
    for (const [name] of shown) line.append(make("td", "", row[name]));
    line.addEventListener("click", ({ target }) => {
      if (!target.closest("button") && !getSelection().toString()) button.click(); // which may be off
    });
    made.set(row.id, { line, button });
  }

  function makeSign(row, sign, repeat) {
    const words = __("Show run %1 of row %2", repeat + 1, row.id);
    return makeButton("al-link av-open", sign, words, () => open(row.id, repeat), { "aria-label": words });
  }

  function mark() {
    say("");
    const now = host.get("opened") || {};
    for (const [id, { line, button }] of made) {
      line.classList.toggle("is-open", id === now.row);
      button.setAttribute("aria-expanded", String(id === now.row));
    }
  }

  const names = ["", __("row"), ...(has("runs") ? [__("runs")] : []), ...shown.map(([, title]) => title)];
  const table = makeTable("av-table", names, [...made.values()].map(({ line }) => line), { "aria-label": __("Rows") });
  const left = host.get("count") - rows.length;
  root.append(make("div", "av-headline", host.get("headline")), makeTable("av-table av-scores", columns, lines, { "aria-label": __("Scores") }));
  root.append(...notes.map((words) => make("p", "av-note", words)), make("div", "av-frame", [table]));
  if (left > 0) root.append(make("p", "av-note", __("and %1 more rows; evaluation.run(id) opens any", left.toLocaleString("en"))));
  root.append(said, beneath.element);
  el.append(root);
  mark();
  const stops = [
    switchOffWhenLost(host, root, ".av-open"),
    host.on("opened", mark),
    host.listen((message) => message.kind === "said" && say(message.problem, true)),
    host.onLost(() => say(__("The kernel is gone. Run the cell again; the runs are in their directories."), true)),
  ];
  return () => {
    clearTimeout(silence);
    for (const stop of stops) stop();
    beneath.close();
  };
}
