// Visits and attempts of a stage: which there were, how each ended; a click shows another.

import { make, makeButton, seconds } from "./parts.js";
import { __ } from "./wording.js";

export function makeTries(plain, ask) {
  const box = make("div", "al-parts");
  const visits = plain.visits || [];
  const attempts = plain.attempts || [];
  if (visits.length) box.append(listOf(__("Visits"), visits.map((one) => visitLine(one, plain, ask))));
  if (attempts.length) box.append(listOf(__("Attempts of this visit"), attempts.map((one) => attemptLine(one, plain, ask))));
  if (!visits.length && !attempts.length) box.append(make("p", "al-dim", __("The run did not reach this node.")));
  return box;
}

function listOf(name, lines) {
  const part = make("div", "");
  part.append(make("div", "al-text-name", name));
  const list = make("ul", "al-tries");
  list.append(...lines);
  part.append(list);
  return part;
}

function visitLine(one, plain, ask) {
  const extra = [one.branch && __("in %1", one.branch), one.is_cached && __("cached"), one.is_set_aside && __("set aside by a rewind")];
  if (one.attempts > 1) extra.push(__("%1 attempts", one.attempts));
  const isShown = one.number === plain.visit && one.branch === plain.branch;
  return lineOf(__("visit %1", one.number), one.status, extra, isShown, () => ask({ visit: one.number, branch: one.branch }));
}

function attemptLine(one, plain, ask) {
  const tokens = (one.usage?.input_tokens || 0) + (one.usage?.output_tokens || 0);
  const extra = [
    one.seconds !== null && one.seconds !== undefined && seconds(one.seconds),
    tokens && __("%1 tokens", tokens.toLocaleString("en")),
    one.usage?.cached_tokens && __("%1 of them cached", one.usage.cached_tokens.toLocaleString("en")),
    one.usage?.cost_usd && `$${one.usage.cost_usd.toPrecision(2)}`,
    one.reason,
  ];
  const { visit, branch } = plain;
  return lineOf(__("attempt %1", one.number), one.status, extra, one.number === plain.attempt, () =>
    ask({ visit, branch, attempt: one.number }));
}

function lineOf(name, status, extra, isShown, onClick) {
  const item = make("li", `is-${status.replace(" ", "-")}`);
  const button = makeButton("al-try", name, "", onClick);
  if (isShown) button.setAttribute("aria-current", "true");
  item.append(button, make("span", "al-try-status", status.replace("_", " ")), make("span", "al-dim", extra.filter(Boolean).join(", ")));
  return item;
}
