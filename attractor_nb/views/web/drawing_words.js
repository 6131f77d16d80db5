// What is written in a node under its label: counts first, then news, all inside the outline, where no edge comes.
// It does for a live view what views/drawings/drawing.py does for a picture, with the widths of the fonts that are there.

import { outlineSize } from "./drawing_space.js";
import { wholeSeconds } from "./parts.js";

export const AGAIN = "m2.6-1.6a3.1 3.1 0 1 0 .5 2.3m-.3-4.6v2.4h-2.4"; // the sign before a number of visits
const SIGN_WIDTH = 10;
const SPACE = 8; // between counts and news
const LEAST_NEWS = 20;
const FONT_PX = 10;
const BADGE_ROOM = 15;
const MARGINS = { "type-tool": 32, "type-wait-human": 24 }; // of outlines that lean; of the others it is:
const MARGIN = 14;
const THOUSAND = 1000;

export const shortCount = (count) => (count < THOUSAND ? String(count) : `${Math.floor(count / THOUSAND)}k`);

// `now()` gives the kernel's seconds, for a node in which something goes on.
export function countsOf(state, isActive, now) {
  const others = [];
  if (state.attempt > 1) others.push(`×${shortCount(state.attempt)}`);
  if (state.progress) others.push(state.progress);
  if (now && isActive) {
    if (state.until) others.push(wholeSeconds(state.until - now()));
    else if (state.status === "running" && state.since) others.push(wholeSeconds(now() - state.since));
  }
  return { visits: state.visits > 1 ? shortCount(state.visits) : "", others };
}

let pen = null;
function widthOf(text, weight, element) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.family = getComputedStyle(element).fontFamily || "sans-serif";
  }
  pen.font = `${weight} ${FONT_PX}px ${pen.family}`;
  return pen.measureText(text).width;
}

// The line of one node; null where it has none. `show(counts, news, badgeCount)` writes it.
export function makeSmallLine(element) {
  const [sign, counts, detail] = [".again", ".counts", ".detail"].map((name) => element.querySelector(name));
  if (!counts) return null;
  const kind = detail ? detail.textContent : "";
  const y = Number(counts.getAttribute("y"));
  const beside = Number(counts.getAttribute("x")) > SPACE && !detail ? Number(counts.getAttribute("x")) : 0;
  let room = 0;
  let shown = "";

  // Measured once, when the node first has something to say.
  function measure() {
    if (room) return room;
    const box = outlineSize(element.querySelector(".outline").getAttribute("d"));
    const name = Object.keys(MARGINS).find((type) => element.classList.contains(type));
    if (element.classList.contains("type-conditional")) room = box.width * (1 - (2 * (y + 2)) / box.height);
    else room = beside ? box.width - 2 * beside - 12 : box.width - (name ? MARGINS[name] : MARGIN);
    return room;
  }

  function cut(text, width) {
    if (widthOf(text, 400, counts) <= width) return text;
    let [low, high] = [0, Math.min(text.length, Math.ceil(width / 2))];
    while (low < high) {
      const half = (low + high + 1) >> 1;
      if (widthOf(`${text.slice(0, half)}…`, 400, counts) <= width) low = half;
      else high = half - 1;
    }
    return low ? `${text.slice(0, low).trimEnd()}…` : "";
  }

  // Counts from `left` on, the sign before the visits, then the news.
  function write(text, lead, left, width, said, saidAt) {
    if (sign) sign.setAttribute("d", lead ? `M${left + SIGN_WIDTH / 2} ${y - 3.6}${AGAIN}` : "");
    if (counts.textContent !== text) counts.textContent = text;
    counts.setAttribute("x", left + lead + (width - lead) / 2);
    if (!detail) return;
    if (detail.textContent !== said) detail.textContent = said;
    detail.setAttribute("x", saidAt);
  }

  return {
    show({ visits, others }, news, badgeCount) {
      const words = detail ? news || kind : "";
      const wanted = [visits, ...others, words, badgeCount].join("\n");
      if (wanted === shown) return;
      shown = wanted;
      if (!visits && !others.length && !badgeCount && words === kind) {
        write("", 0, beside, 0, kind, 0); // as it was drawn
        return;
      }
      const taken = detail ? badgeCount * BADGE_ROOM : 0;
      const most = measure() - taken;
      const parts = beside && badgeCount ? [] : [visits, ...others].filter(Boolean); // at a round end there is one place
      const lead = visits && parts.length ? SIGN_WIDTH : 0;
      const width = () => (parts.length ? lead + widthOf(parts.join(" "), 600, counts) : 0);
      while (parts.length > 1 && width() > most) parts.pop();
      const counted = width();
      const space = counted ? SPACE : 0;
      const rest = most - counted - space;
      const said = detail && rest >= LEAST_NEWS ? cut(words, rest) : "";
      const saidWidth = said ? widthOf(said, 400, counts) : 0;
      const left = beside + taken / 2 - (counted + (said ? space + saidWidth : 0)) / 2;
      write(parts.join(" "), lead, left, counted, said, left + counted + space + saidWidth / 2);
    },
  };
}
