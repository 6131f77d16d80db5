// Rows of the list of runs: their columns, how they are found and sorted. Values only.

import { __ } from "./wording.js";

export const SHOWN_ROWS = 100; // at a time

const UNKNOWN = "–";
const text = (value) => (value === null || value === undefined || value === "" ? UNKNOWN : String(value));

export const HISTORY_COLUMNS = [
  { name: "index", title: "#", isNumber: true, value: (row) => row.index, text: (row) => String(row.index) },
  { name: "status", title: __("status"), value: (row) => row.status, text: (row) => `${row.mark} ${row.status}` },
  { name: "pipeline", title: __("pipeline"), value: (row) => row.pipeline, text: (row) => text(row.pipeline) },
  { name: "note", title: __("note"), value: (row) => row.note, text: (row) => row.note },
  { name: "started", title: __("started"), value: (row) => row.start_time, text: (row) => shownTime(row.start_time) },
  { name: "took", title: __("took"), isNumber: true, value: (row) => row.duration, text: (row) => text(row.took) },
  { name: "stages", title: __("stages"), isNumber: true, value: (row) => row.stages, text: (row) => text(row.stages) },
  { name: "tokens", title: __("tokens"), isNumber: true, value: (row) => row.tokens, text: (row) => counted(row.tokens) },
  { name: "cost", title: __("cost"), isNumber: true, value: (row) => row.cost, text: (row) => row.price },
  { name: "tags", title: __("tags"), value: (row) => row.tags.join(" "), text: (row) => row.tags.join(", ") },
  { name: "key", title: __("run directory"), value: (row) => row.key, text: (row) => row.key },
];

const shownTime = (iso) => (iso ? iso.replace("T", " ").replace("Z", "") : UNKNOWN);
const counted = (value) => (value === null || value === undefined ? UNKNOWN : value ? value.toLocaleString("en") : "");

// Every word must occur somewhere in the row.
export function matchesRow(row, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const all = HISTORY_COLUMNS.map((column) => column.text(row)).join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
}

// What is unknown comes last, whichever way.
export function compareRows({ column, isDown }) {
  const { value } = HISTORY_COLUMNS.find(({ name }) => name === column);
  const isNothing = (found) => found === null || found === undefined || found === "";
  return (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (isNothing(a) || isNothing(b)) return isNothing(a) - isNothing(b) || one.index - other.index;
    const way = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
    return (isDown ? -way : way) || one.index - other.index;
  };
}
