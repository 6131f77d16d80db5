// The drawing of a graph as something to look around in: nodes and edges with their states, moved, zoomed,
// searched and walked by keys. Drawn once; after that only classes and a few short texts change.

import { edgeBadgePlaces, nodeBadgePlaces, showBadges } from "./drawing_badges.js";
import { makeFolds } from "./drawing_folds.js";
import { outlineSize } from "./drawing_space.js";
import { makeDrawingTools, makeMinimap } from "./drawing_tools.js";
import { importDrawing, keepKeys, make, makeSvg, wholeSeconds } from "./parts.js";
import { CHILD_SEPARATOR } from "./run_states.js";
import { stageWord } from "./state_words.js";
import { makeViewport } from "./viewport.js";
import { __ } from "./wording.js";

const ACTIVE_STATES = new Set(["running", "waiting", "retrying"]);
const LIVELY = 20; // with more nodes under way than that nothing moves: each frame would draw them all
const MOST_PASSES = 9999; // of more there is only room for the thousands
const PENDING = { status: "pending" };
const HELP =
  __("Arrow keys move it, plus and minus zoom, 0 shows the whole drawing, slash finds a node. Tab goes to its nodes; there f folds a group.");
const PIECES = /(?=<g class="(?:node|edge|edge-label|panel|lane|child)[ "])/;
const WHOLE_NODE = /^<g class="node [^>]* data-node="[^>]*>[^]*<\/g>\n?$/;
const openingOf = (piece) => piece.slice(0, piece.indexOf(">"));
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const FLAT = 2.2; // a drawing that is so many times as wide as high keeps the whole line for itself
const WIDEST_COSINE = 0.3;

export const isFlat = ({ width, height }) => width > FLAT * height;
export const isActive = (state) => ACTIVE_STATES.has(state.status);
export const spokenState = (state) =>
  [stageWord(state.status), state.reason, state.note].filter(Boolean).join(", ");

const spokenBadges = (badges) => badges.map(({ kind, words }) => words || kind).join(", ");

// The path of an element: those of the child runs that it is drawn in, and its own id.
function pathOf(element, id) {
  const child = element.closest("[data-child]");
  return child ? child.dataset.child + CHILD_SEPARATOR + id : id;
}

// `onNode(id)` and `onEdge(index)` are called for a click or Enter; `now()` gives the kernel's seconds;
// `look` is that of a drawing before this one, which is then seen in the same way.
export function makeDrawing(svgText, marks, { onNode, onEdge, now, look } = {}) {
  const svg = importDrawing(svgText);
  const element = make("div", "ad-drawing");
  const frame = make("div", "ad-frame", "", { tabIndex: 0, role: "group", "aria-label": `${__("Drawing.")} ${HELP}` });
  keepKeys(element);
  svg.setAttribute("role", "group");
  element.style.setProperty("--ad-width", `${parseFloat(svg.getAttribute("width")) || 340}px`);
  element.append(frame);

  const nodes = readNodes(svg);
  const { edges, links } = readEdges(svg);
  const viewport = makeViewport(frame, svg, look, () => tools.isCrowded());
  const walk = makeWalk(links, (id) => middleOf(nodes.has(id) && (folds.boxOf(id) || nodes.get(id).element)));
  const colours = new Map(); // of nodes in the small map, by state
  let placesAsDrawn = null;
  const tools = makeDrawingTools(viewport, nodes, { mark: showFound, look: focusNode, frame, fold: () => folds.toggleAll() });
  element.append(tools.element);
  const map = makeMinimap(viewport, nodes.size, nodePlaces);
  if (map) element.append(map.element);
  const folds = makeFolds(svg, nodes, links.map((link) => ({ ...link, shapes: edges.get(link.index) })), marks, {
    viewport,
    stateOf: (id) => nodes.get(id).state,
    onFold: showFolds,
  });

  let text = svgText;
  let activeCount = 0;
  let selected = null;
  let selectedEdge = null;
  let stop = nodes.keys().next().value; // the one node that Tab reaches; arrows go on from it
  if (stop !== undefined) nodes.get(stop).element.setAttribute("tabindex", "0");

  for (const [id, parts] of nodes) {
    parts.element.addEventListener("click", () => choose(id));
    parts.element.addEventListener("focus", () => makeStop(id));
    parts.element.addEventListener("keydown", (event) => nodeKey(event, id));
  }
  for (const [index, shapes] of edges) {
    for (const shape of shapes) shape.addEventListener("click", () => chooseEdge(index));
  }
  frame.addEventListener("keydown", frameKey);

  const choose = (id) => onNode && onNode(id);
  const chooseEdge = (index) => onEdge && onEdge(index);

  function showFolds(folded) {
    tools.showFolds(folds.count, folded);
    placesAsDrawn = null;
    if (map) map.redraw();
  }

  // Middle, size and colour of every node that is not folded, in the units of the drawing.
  function nodePlaces() {
    if (!placesAsDrawn) {
      const { left, top, width } = svg.getBoundingClientRect();
      const scale = width / viewport.size.width; // before it is in its place, it has a size of its own
      placesAsDrawn = new Map();
      for (const [id, { element: node }] of nodes) {
        const box = node.querySelector(".outline").getBoundingClientRect();
        if (!box.width) continue;
        const [x, y] = [(box.left + box.right) / 2 - left, (box.top + box.bottom) / 2 - top];
        placesAsDrawn.set(id, { x: x / scale, y: y / scale, width: box.width / scale, height: box.height / scale });
      }
    }
    return [...placesAsDrawn].map(([id, place]) => ({ ...place, colour: colourOf(nodes.get(id)) }));
  }

  function colourOf({ element: node, state }) {
    if (!colours.has(state.status)) colours.set(state.status, getComputedStyle(node).getPropertyValue("--stroke").trim());
    return colours.get(state.status);
  }

  function makeStop(id) {
    if (nodes.has(stop)) nodes.get(stop).element.setAttribute("tabindex", "-1");
    stop = id;
    nodes.get(id).element.setAttribute("tabindex", "0");
  }

  function focusNode(id) {
    if (!nodes.has(id)) return;
    const target = folds.boxOf(id) || nodes.get(id).element;
    viewport.reveal(target);
    target.focus({ preventScroll: true });
  }

  function nodeKey(event, id) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = arrowOf(event.key);
    if (event.key === "Enter" || event.key === " ") choose(id);
    else if (event.key === "e") chooseEdgeAfter(id);
    else if (event.key === "f") folds.foldAround(id);
    else if (arrow && !event.shiftKey) {
      const next = walk(id, arrow);
      if (next !== null) focusNode(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The next of the edges that leave a node, for those who have no pointer.
  function chooseEdgeAfter(id) {
    const leaving = links.filter((link) => link.from === id).map((link) => link.index);
    if (leaving.length) chooseEdge(leaving[(leaving.indexOf(selectedEdge) + 1) % leaving.length]);
  }

  function frameKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = arrowOf(event.key);
    const box = event.target.closest(".ad-group");
    if (arrow && box && !event.shiftKey) leaveBox(box, arrow);
    else if (arrow) viewport.panBy(...arrow);
    else if (!tools.key(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  // From a folded group to the nearest node or group in a direction.
  function leaveBox(box, arrow) {
    const next = folds.membersOf(box).map((id) => walk(id, arrow)).find((id) => id !== null && folds.boxOf(id) !== box);
    if (next !== undefined) focusNode(next);
  }

  function showFound(found, current) {
    svg.classList.toggle("is-searched", found !== null);
    for (const [id, { element: node }] of nodes) {
      node.classList.toggle("is-found", found !== null && found.has(id));
      node.classList.toggle("is-found-here", id === current);
    }
    if (current === null) return;
    folds.reveal(current);
    viewport.reveal(nodes.get(current).element);
  }

  function countActive(change) {
    activeCount += change;
    svg.classList.toggle("is-busy", activeCount > LIVELY);
  }

  function setNode(id, state = PENDING) {
    const parts = nodes.get(id);
    if (!parts) return;
    if (isActive(state) !== isActive(parts.state)) countActive(isActive(state) ? 1 : -1);
    parts.state = state;
    const kept = [...parts.element.classList].filter((name) => !name.startsWith("state-"));
    if (state.status === PENDING.status && state.visits) kept.push("state-begun"); // the end of the run cut it off
    parts.element.setAttribute("class", [...kept, `state-${state.status}`].join(" "));
    if (parts.mark) parts.mark.setAttribute("d", marks[state.status] || "");
    showWords(parts);
    folds.changed(id);
    if (map) map.redraw();
  }

  function showWords(parts) {
    const { state } = parts;
    parts.element.setAttribute(
      "aria-label",
      [`${parts.name}: ${spokenState(state)}`, parts.tint, spokenBadges(parts.badges)].filter(Boolean).join(", "),
    );
    showLine(parts);
  }

  function showLine(parts) {
    if (!parts.line) return;
    const { state } = parts;
    const news = state.status === "fail" && state.reason ? state.reason : state.note || "";
    parts.line.show(countsOf(state, now), parts.tint || news, parts.badges.length);
  }

  function setEdge(index, passes) {
    for (const shape of edges.get(String(index)) || []) {
      shape.classList.toggle("taken", passes > 0);
      const count = shape.querySelector(".passes");
      if (!count) continue;
      const number = count.classList.contains("narrow") || passes > MOST_PASSES ? shortCount(passes) : passes;
      count.textContent = passes > 1 ? `×${number}` : "";
    }
  }

  function select(id) {
    if (nodes.has(selected)) nodes.get(selected).element.classList.remove("selected");
    selected = nodes.has(id) ? id : null;
    if (selected !== null) nodes.get(selected).element.classList.add("selected");
  }

  function selectEdge(index) {
    for (const shape of edges.get(selectedEdge) || []) shape.classList.remove("selected");
    selectedEdge = index === null ? null : String(index);
    for (const shape of edges.get(selectedEdge) || []) shape.classList.add("selected");
  }

  function tint(id, colour, words = "") {
    const parts = nodes.get(id);
    if (!parts) return;
    parts.tint = colour ? words : "";
    parts.element.classList.toggle("is-tinted", Boolean(colour));
    if (colour) parts.element.style.setProperty("--fill", colour);
    else parts.element.style.removeProperty("--fill");
    showWords(parts);
  }

  function setBadges(id, badges) {
    const parts = nodes.get(id);
    if (!parts) return;
    parts.badges = badges;
    showBadges(parts.element, badges, nodeBadgePlaces(parts.element, badges.length));
    showWords(parts);
  }

  // Takes over another text of the drawing, where nothing but the texts in nodes has changed; whether that is so.
  function update(next) {
    const changed = changedNodes(text, next, svg.dataset.number);
    if (!changed) return false;
    const all = [...nodes];
    const shapeOf = (group) => group.querySelector(".outline").getAttribute("d");
    for (const [place, group] of changed) if (shapeOf(group) !== shapeOf(all[place][1].element)) return false;
    for (const [place, group] of changed) {
      const [id, parts] = all[place];
      parts.element.replaceChildren(...group.childNodes);
      Object.assign(parts, readNode(parts.element));
      setNode(id, parts.state);
      if (parts.badges.length) setBadges(id, parts.badges);
    }
    text = next;
    return true;
  }

  function setEdgeBadges(index, badges) {
    const shapes = edges.get(String(index)) || [];
    const label = shapes.find((shape) => shape.classList.contains("edge-label"));
    const line = shapes.map((shape) => shape.querySelector(".line")).find(Boolean);
    if (label && line) showBadges(label, badges, edgeBadgePlaces(label, line, badges.length));
  }

  for (const id of nodes.keys()) setNode(id);
  folds.begin();
  tools.showFolds(folds.count, folds.foldedCount);

  return {
    element,
    size: viewport.size, // of the drawing as it is, in px
    get look() {
      return viewport.look;
    },
    ids: [...nodes.keys()],
    edgeIds: [...edges.keys()],
    // The ends of each edge: { index, from, to }.
    links,
    // The node in which an element of the drawing lies; null for none.
    idOf(target) {
      const node = target.closest("[data-node]");
      return node ? pathOf(node, node.dataset.node) : null;
    },
    nameOf: (id) => (nodes.has(id) ? nodes.get(id).name : id),
    stateOf: (id) => (nodes.has(id) ? nodes.get(id).state : PENDING),
    // The paths of the marks of states, of a caller that learns them later.
    setMarks: (given) => Object.assign(marks, given),
    update,
    setNode,
    setEdge,
    setEnded: (isEnded) => svg.classList.toggle("ended", Boolean(isEnded)),
    select,
    selectEdge,
    tint,
    setBadges,
    setEdgeBadges,
    // Moves the keyboard's place to a node, and brings it into the frame.
    focus: focusNode,
    // Brings a node into the frame while the reader has not moved it away, and leaves the keyboard where it is.
    follow: (id) => nodes.has(id) && tools.follow(folds.boxOf(id) || nodes.get(id).element),
    // Moves a node up that something at the lower edge of the window lies over.
    uncover: (id, above, below) => nodes.has(id) && viewport.uncover(nodes.get(id).element, above, below),
    // Says more about the keys, to who hears the drawing.
    describe: (words) => frame.setAttribute("aria-label", `${frame.getAttribute("aria-label")} ${words}`),
    // Puts a button or a switch of the caller's beside those of the drawing.
    addTool: tools.add,
    tick() {
      for (const parts of nodes.values()) if (isActive(parts.state)) showLine(parts);
    },
    close() {
      viewport.close();
      tools.close();
    },
  };
}

function readNodes(svg) {
  const nodes = new Map();
  for (const element of svg.querySelectorAll("[data-node]")) {
    element.setAttribute("tabindex", "-1");
    element.setAttribute("role", "button");
    const parts = { element, state: PENDING, tint: "", badges: [], ...readNode(element) };
    nodes.set(pathOf(element, element.dataset.node), parts);
  }
  return nodes;
}

// What is written in a node, and what will be.
function readNode(element) {
  const label = element.querySelector(".label");
  const title = element.querySelector("title");
  const lines = label ? [...label.children].map((line) => line.textContent) : [];
  return {
    mark: element.querySelector(".mark path"),
    line: makeSmallLine(element),
    name: lines.join(" ") || element.dataset.node,
    // Label, id and the first words of the prompt or command, as the tooltip has them.
    words: [element.dataset.node, lines.join(" "), title ? title.textContent : ""].join("\n"),
  };
}

// The shapes of each edge, and its ends, which the first line of its tooltip names.
function readEdges(svg) {
  const edges = new Map();
  const links = [];
  for (const shape of svg.querySelectorAll("[data-edge]")) {
    const index = pathOf(shape, shape.dataset.edge);
    edges.set(index, [...(edges.get(index) || []), shape]);
    const line = shape.querySelector(".line");
    if (!line) continue;
    shape.append(makeSvg("path", { class: "ad-reach", d: line.getAttribute("d") })); // a line is too thin to be hit
    const title = shape.querySelector("title");
    const [from, to] = (title ? title.textContent : "").split("\n")[0].split(" → ");
    if (from && to) links.push({ index, from: pathOf(shape, from), to: pathOf(shape, to) });
  }
  return { edges, links };
}

function middleOf(element) {
  if (!element) return null;
  const box = (element.querySelector(".outline") || element).getBoundingClientRect();
  return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
}

// What differs between two texts of a drawing, where only nodes do, and they stand where they stood: then these alone are
// written anew. Our writer escapes every text, so a piece begins where one of its groups does and nowhere else.
// The new groups by their number among all nodes; null where more differs. `number` is that of the drawing's ids.
function changedNodes(before, after, number) {
  const [old, now] = [before, after].map((text) => text.split(PIECES));
  if (old.length !== now.length) return null;
  const changed = new Map();
  let place = -1;
  for (const [at, piece] of now.entries()) {
    if (openingOf(piece).includes(" data-node=")) place += 1;
    if (piece === old[at]) continue;
    if (!WHOLE_NODE.test(piece) || openingOf(piece) !== openingOf(old[at])) return null;
    const group = importDrawing(`<svg xmlns="http://www.w3.org/2000/svg">${piece}</svg>`, number).firstElementChild;
    if (!group) return null;
    changed.set(place, group);
  }
  return changed;
}

// Which node lies next in a direction: along an edge first, then among those that share an end with it.
const arrowOf = (key) => ARROWS[key] || null;

// `links` are { from, to } by edge; `placeOf` gives the middle of a node on the screen.
function makeWalk(links, placeOf) {
  const ahead = new Map();
  const behind = new Map();
  const note = (map, key, value) => map.set(key, [...(map.get(key) || []), value]);
  for (const { from, to } of links) {
    note(ahead, from, to);
    note(behind, to, from);
  }
  const of = (map, id) => map.get(id) || [];

  return (id, [x, y]) => {
    const neighbours = [...of(ahead, id), ...of(behind, id)];
    const siblings = [
      ...of(behind, id).flatMap((before) => of(ahead, before)),
      ...of(ahead, id).flatMap((after) => of(behind, after)),
    ];
    const here = placeOf(id);
    for (const group of [neighbours, siblings]) {
      const best = nearest(here, group.filter((other) => other !== id), x, y, placeOf);
      if (best !== null) return best;
    }
    return null;
  };
}

function nearest(here, ids, x, y, placeOf) {
  let [best, least] = [null, Infinity];
  for (const id of ids) {
    const there = placeOf(id);
    if (!there) continue;
    const [across, down] = [there[0] - here[0], there[1] - here[1]];
    const distance = Math.hypot(across, down) || 1;
    const cosine = (across * x + down * y) / distance;
    if (cosine < WIDEST_COSINE) continue;
    const cost = distance / cosine;
    if (cost < least) [best, least] = [id, cost];
  }
  return best;
}

// What is written in a node under its label: counts first, then news, all inside the outline, where no edge comes.
// It does for a live view what views/drawings/drawing.py does for a picture, with the widths of the fonts that are there.
const AGAIN = "m2.6-1.6a3.1 3.1 0 1 0 .5 2.3m-.3-4.6v2.4h-2.4"; // the sign before a number of visits
const SIGN_WIDTH = 12;
const SPACE = 8; // between counts and news
const LEAST_NEWS = 20;
const FONT_PX = 10;
const BADGE_ROOM = 15;
const MARGINS = { "type-tool": 32, "type-wait-human": 24 }; // of outlines that lean; of the others it is:
const MARGIN = 14;
const THOUSAND = 1000;

const shortCount = (count) => (count < THOUSAND ? String(count) : `${Math.floor(count / THOUSAND)}k`);

// `now()` gives the kernel's seconds, for a node in which something goes on.
function countsOf(state, now) {
  const others = [];
  if (state.attempt > 1) others.push(`×${shortCount(state.attempt)}`);
  if (state.progress) others.push(state.progress);
  if (now && isActive(state)) {
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
function makeSmallLine(element) {
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
    if (sign) sign.setAttribute("d", lead ? `M${left + SIGN_WIDTH / 2 - 1} ${y - 3.6}${AGAIN}` : "");
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
