// An evaluation on a page of its own: its rows, and the drawing whose edges and stages choose among them. Nobody is asked.

import { makeMapTable } from "./map_page.js";
import { makeButton } from "./parts.js";
import { __ } from "./wording.js";

export function makeEvaluation(root) {
  const table = makeMapTable(root);
  const graph = root.querySelector(".ae-graph");
  if (graph) makeWays(graph, table);
  walkRows(root.querySelector(".am-table"));
}

// The rows behind an edge or a stage are shown by a click on it; a second click, or the button, shows all again.
function makeWays(graph, table) {
  const ways = JSON.parse(graph.dataset.ways);
  const parts = [...graph.querySelectorAll("[data-edge], [data-node]")];
  const clear = makeButton("am-choice ae-chosen", "", __("Show all rows"), () => choose(null));
  clear.hidden = true;
  table.bar.querySelector(".am-count").before(clear);
  let chosen = null;

  for (const part of parts) {
    const places = ways.edges[part.dataset.edge] ?? ways.stages[part.dataset.node];
    if (!places) continue;
    part.classList.add("is-choice");
    if (part.matches(".node, .edge")) {
      part.setAttribute("tabindex", "0");
      part.setAttribute("role", "button");
    }
    const toggle = () => choose(isSame(part, chosen) ? null : part, places);
    part.addEventListener("click", toggle);
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      toggle();
    });
  }

  function choose(part, places) {
    chosen = part;
    for (const each of parts) each.classList.toggle("selected", isSame(each, part));
    clear.hidden = !part;
    clear.textContent = part ? `${nameOf(part)} ✕` : "";
    table.keep(part && new Set(places));
  }

  const isSame = (a, b) => Boolean(a && b) && a.dataset.edge === b.dataset.edge && a.dataset.node === b.dataset.node;
  const nameOf = (part) => part.dataset.node ?? graph.querySelector(`.edge[data-edge="${part.dataset.edge}"] title`).textContent.split("\n")[0];
}

// The keys j and k move through the rows that are shown; Enter opens the long values of the row, and closes them.
function walkRows(table) {
  let current = null;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    else if (event.key === "Enter" && current && event.target === current) open();
    else return;
    event.preventDefault();
  });

  function move(step) {
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const next = rows[rows.indexOf(current) + step] ?? (rows.includes(current) ? current : rows[0]);
    if (!next) return;
    current?.classList.remove("is-current");
    current = next;
    current.classList.add("is-current");
    current.tabIndex = -1;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest" });
  }

  function open() {
    const values = [...current.querySelectorAll("details")];
    const isOpen = values.some((value) => !value.open);
    for (const value of values) value.open = isOpen;
  }
}
