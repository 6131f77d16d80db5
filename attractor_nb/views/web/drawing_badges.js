// Small signs on nodes and edges that are not part of their state: breakpoints, pins, what changed.

import { makeSvg } from "./parts.js";

const RADIUS = 6.5;
const GAP = 15;
const PLACES_ON_LINES = [0.25, 0.75, 0.4, 0.6, 0.15];
const PATHS = {
  breakpoint: "M-3.2 -3.6H-0.9V3.6H-3.2ZM0.9 -3.6H3.2V3.6H0.9Z",
  here: "M-2.6 -3.8L3.8 0L-2.6 3.8Z",
  pinned: "M-2.4 -3.8H2.4L1.6 -0.4L3 1.4H-3L-1.6 -0.4ZM-0.4 1.4H0.4V4.4H-0.4Z",
  mocked: "M-3.6 -2.6H3.6V2.6H-3.6ZM-2.2 -1.2V1.2H2.2V-1.2Z",
  changed: "M0 -3.8L3.8 3H-3.8Z",
  added: "M-0.8 -3.8H0.8V-0.8H3.8V0.8H0.8V3.8H-0.8V0.8H-3.8V-0.8H-0.8Z",
  removed: "M-3.8 -0.8H3.8V0.8H-3.8Z",
  error: "M-0.9 -4H0.9V1H-0.9ZM-0.9 2.2H0.9V4H-0.9Z",
};
const OTHER = "M-2.4 -2.4H2.4V2.4H-2.4Z";

// Puts badges `[{ kind, words }]` into a group, each at its place, instead of those that are there.
export function showBadges(group, badges, places) {
  for (const old of group.querySelectorAll(":scope > .ad-badge")) old.remove();
  badges.forEach(({ kind, words }, number) => {
    const name = Object.hasOwn(PATHS, kind) ? kind : "other";
    const place = { class: `ad-badge ad-badge-${name}`, transform: `translate(${places[number].join(" ")})` };
    const sign = makeSvg("path", { d: PATHS[name] ?? OTHER });
    group.append(makeSvg("g", place, makeSvg("title", {}, words || kind), makeSvg("circle", { r: RADIUS }), sign));
  });
}

// The sign of a badge by itself, for a list.
export function badgeIcon(kind) {
  const frame = { class: `ad-badge ad-badge-${kind}`, viewBox: "-5 -5 10 10", "aria-hidden": "true" };
  return makeSvg("svg", frame, makeSvg("path", { d: PATHS[kind] }));
}

// Inside the outline: at the left of the small line, or where there is none in the corners, but for that of the state.
export function nodeBadgePlaces(element, count) {
  const mark = element.querySelector(".mark, .finding");
  const detail = element.querySelector(".detail");
  const found = /translate\(\s*(-?[\d.]+)[\s,]+(-?[\d.]+)/.exec((mark && mark.getAttribute("transform")) || "");
  const [x, y] = found ? [Number(found[1]), Number(found[2])] : [0, 0];
  const corners = y < -GAP / 4 ? [[-x, y], [x, y + GAP], [-x, y + GAP]] : []; // a round end and a diamond have none
  if (!detail) return Array.from({ length: count }, (_, number) => corners[number] || [-x - number * GAP, y]);
  return Array.from({ length: count }, (_, number) => [x + number * GAP, Number(detail.getAttribute("y")) - 3]);
}

// On the line of the edge, where the number of its passes does not stand. In the frame of its label.
export function edgeBadgePlaces(label, line, count) {
  const passes = label.querySelector(".passes");
  const taken = passes ? [Number(passes.getAttribute("x")), Number(passes.getAttribute("y"))] : [Infinity, Infinity];
  const [, left, top] = /translate\(\s*(-?[\d.]+)[\s,]+(-?[\d.]+)/.exec(label.getAttribute("transform")).map(Number);
  const length = line.getTotalLength();
  const at = (part) => {
    const { x, y } = line.getPointAtLength(length * part);
    return [x - left, y - top];
  };
  const places = PLACES_ON_LINES.map(at);
  const isClear = ([x, y]) => Math.abs(x - taken[0]) > 2 * GAP || Math.abs(y - taken[1]) > GAP;
  const ordered = [...places.filter(isClear), ...places];
  return Array.from({ length: count }, (_, number) => ordered[number % ordered.length]);
}
