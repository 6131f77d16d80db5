// Small signs on nodes and edges that are not part of their state: breakpoints, pins, what changed.

const SVG = "http://www.w3.org/2000/svg";
const RADIUS = 7;
const GAP = 16;
const PATHS = {
  breakpoint: "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0",
  here: "M-2.6 -3.8L3.8 0L-2.6 3.8Z",
  pinned: "M-2.4 -3.8H2.4L1.6 -0.4L3 1.4H-3L-1.6 -0.4ZM-0.4 1.4H0.4V4.4H-0.4Z",
  mocked: "M-3.6 -2.6H3.6V2.6H-3.6ZM-2.2 -1.2V1.2H2.2V-1.2Z",
  changed: "M0 -3.8L3.8 3H-3.8Z",
  added: "M-0.8 -3.8H0.8V-0.8H3.8V0.8H0.8V3.8H-0.8V0.8H-3.8V-0.8H-0.8Z",
  removed: "M-3.8 -0.8H3.8V0.8H-3.8Z",
  error: "M-0.9 -4H0.9V1H-0.9ZM-0.9 2.2H0.9V4H-0.9Z",
};
const OTHER = "M-2.4 -2.4H2.4V2.4H-2.4Z";

// Puts badges `[{ kind, words }]` into a group, from a place on to the right, instead of those that are there.
export function showBadges(group, badges, x, y) {
  for (const old of [...group.children]) if (old.classList.contains("ad-badge")) old.remove();
  badges.forEach(({ kind, words }, number) => {
    const badge = document.createElementNS(SVG, "g");
    badge.setAttribute("class", `ad-badge ad-badge-${Object.hasOwn(PATHS, kind) ? kind : "other"}`);
    badge.setAttribute("transform", `translate(${x + number * GAP} ${y})`);
    const title = document.createElementNS(SVG, "title");
    title.textContent = words || kind;
    const circle = document.createElementNS(SVG, "circle");
    circle.setAttribute("r", RADIUS);
    const sign = document.createElementNS(SVG, "path");
    sign.setAttribute("d", Object.hasOwn(PATHS, kind) ? PATHS[kind] : OTHER);
    badge.append(title, circle, sign);
    group.append(badge);
  });
}

// Where the badges of a node begin: beside the mark of its state, which is at the top left.
export function badgePlace(element) {
  const mark = element.querySelector(".mark");
  const found = /translate\(\s*(-?[\d.]+)[\s,]+(-?[\d.]+)/.exec((mark && mark.getAttribute("transform")) || "");
  return found ? [Number(found[1]) + GAP + 2, Number(found[2]) - 4] : [0, 0];
}
