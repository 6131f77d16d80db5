// Why a stage was reached and left as it was, and what became of an edge each time.

import { makeIcon } from "./icons.js";
import { make } from "./parts.js";
import { makeWords } from "./texts.js";
import { __ } from "./wording.js";

export function makeReasons(plain) {
  const parts = [];
  const facts = make("dl", "al-facts");
  const add = (name, words, className) => {
    if (words) facts.append(make("dt", "", name), make("dd", className || "", words));
  };
  add(__("Came here"), plain.why_here);
  const way = plain.why_next;
  add(__("Went on"), way ? way.words : "");
  add(__("But"), way ? way.mismatch : "", "al-problem");
  parts.push(facts);
  if (!way) parts.push(makeWords(__("The run has not left this node yet.")));
  if (way?.rules?.length) {
    const list = make("ol", "al-rules");
    for (const { name, words, decides } of way.rules) {
      const item = make("li", decides ? "is-deciding" : "");
      item.append(make("span", "al-rule", name), `: ${words}${decides ? " (this decided)" : ""}`);
      list.append(item);
    }
    parts.push(make("div", "al-text-name", __("Rules, in their order")), list);
  }
  if (way?.candidates?.length) parts.push(makeCandidates(way.candidates));
  return parts;
}

export function makeCandidates(candidates) {
  const table = tableWith(["", __("Edge to"), __("Condition"), __("Saw"), __("Weight"), __("Verdict")]);
  for (const one of candidates) {
    const row = make("tr", one.is_taken ? "is-taken" : "");
    row.append(
      signOf(one),
      make("td", "al-key", one.target),
      make("td", "al-key", one.condition || "–"),
      clauses(one.values),
      make("td", "al-number", String(one.weight)),
      make("td", "", one.words),
    );
    table.append(row);
  }
  return table;
}

export function makeVerdicts(edge) {
  const facts = make("dl", "al-facts");
  const add = (name, words) => {
    if (words) facts.append(make("dt", "", name), make("dd", "", words));
  };
  add(__("Condition"), edge.condition || __("none"));
  add(__("Label"), edge.label);
  add(__("Weight"), String(edge.weight));
  if (edge.is_default) add(__("Marked"), "default=true");
  if (edge.is_restart) add(__("Marked"), "loop_restart=true");
  if (!edge.verdicts.length) return [facts, makeWords(__("%1 was not left yet.", edge.source))];
  const table = tableWith(["", __("Visit of %1", edge.source), __("Saw"), __("Verdict"), __("Went to")]);
  for (const one of edge.verdicts) {
    const row = make("tr", one.is_taken ? "is-taken" : "");
    row.append(
      signOf(one),
      make("td", "", one.branch ? `${one.visit} (${one.branch})` : String(one.visit)),
      clauses(one.values),
      make("td", "", one.words),
      make("td", "al-key", one.went_to || __("(the end)")),
    );
    table.append(row);
  }
  return [facts, table];
}

function signOf(one) {
  const sign = make("td", "al-sign");
  sign.append(makeIcon(one.is_taken ? "taken" : one.holds === false ? "refused" : "none"));
  sign.title = one.is_taken ? __("taken") : one.holds === false ? __("its condition does not hold") : __("not taken");
  return sign;
}

function clauses(values) {
  const cell = make("td", "al-key");
  if (!values.length) cell.textContent = "–";
  for (const { clause, value, holds } of values) {
    const key = clause.split(/!?=/)[0].replace(/^context\./, "");
    const saw = `${key} = ${value === "" ? "nothing" : value} ${holds ? "✓" : "✕"}`;
    const line = make("div", holds ? "" : "is-false", saw);
    line.title = `${clause}: ${holds ? "holds" : "does not hold"}`;
    cell.append(line);
  }
  return cell;
}

function tableWith(names) {
  const table = make("table", "al-table");
  const head = make("tr", "");
  for (const name of names) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  table.append(head);
  return table;
}
