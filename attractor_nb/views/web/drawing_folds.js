// Groups of a drawing that fold to one box: panels, lanes of branches, child runs. The box says how its nodes stand.
// Nothing is laid out anew: what a group no longer needs is taken out of the whole drawing, as strips across it in
// which nothing else stands, so everything keeps its place beside its neighbours and no kernel is asked.

import { cutLine, makeSpace, movedPath, drawnAt, shiftOf } from "./drawing_space.js";
import { makeSvg } from "./parts.js";
import { CHILD_SEPARATOR } from "./run_states.js";
import { stageWord } from "./state_words.js";
import { __ } from "./wording.js";

const CORE = { width: 132, height: 50 }; // of a folded group, where its neighbours allow that
const PASSES = 32; // px of the longest number of passes
const HANDLE = 14;
const INSET = 8; // of the box of the branches that a picture does not draw: it stands as far from the others as they do
const BESIDE = 6; // px from a line to what stands beside it
const SIGN_FOLD = "M-3.2 0H3.2";
const MORE = "more"; // the class of the lane of branches that a picture does not draw
const WORST_STATES = ["fail", "waiting", "retrying", "running"];
const ORDER = [...WORST_STATES, "partial_success", "success", "cached", "skipped", "pending"];

const numbersOf = (rect) => ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name)) || 0);

// The groups of a drawing: their frames (a frame is the drawing, or that of a child run), places and elements.
function readGroups(svg, nodes) {
  const groups = [];
  const titles = new Map();
  for (const element of svg.querySelectorAll(".panel, .lane")) {
    const frame = element.closest("[data-child]") || svg;
    const child = element.parentNode.closest(".child");
    const isOfChild = child !== null && child === element.parentNode;
    const [x, y, width, height] = numbersOf(element.querySelector("rect"));
    const [left, top] = isOfChild ? drawnAt(child) : [0, 0];
    const own = isOfChild ? [child.querySelector(".panel-title")] : titlesOf(frame, titles);
    const title = element.classList.contains("panel") ? own.shift() : null;
    const path = isOfChild ? child.querySelector("[data-child]").dataset.child + CHILD_SEPARATOR : "";
    const name = title && title.textContent ? title.textContent : element.querySelector("title").textContent;
    const inset = element.classList.contains(MORE) ? INSET : 0;
    const area = { x: x + left, y: y + top, width, height, inset };
    const around = isOfChild ? child.parentNode.closest("[data-child]") || svg : frame;
    const isIn = isOfChild
      ? (id) => id.startsWith(path)
      : (id, part) => (part.closest("[data-child]") || svg) === around && holds(area, drawnAt(part));
    const members = [...nodes].filter(([id, parts]) => isIn(id, parts.element)).map(([id]) => id);
    if (!members.length) continue;
    groups.push({ element, child: isOfChild ? child : null, title, name, area, frame: around, members, box: null });
  }
  return groups;
}

function titlesOf(frame, known) {
  if (!known.has(frame)) {
    const own = (title) => !title.parentNode.classList.contains("child");
    const inFrame = (title) => (title.parentNode.closest("[data-child]") || frame) === frame;
    known.set(frame, [...frame.querySelectorAll(".panel-title")].filter((title) => own(title) && inFrame(title)));
  }
  return known.get(frame);
}

const holds = ({ x, y, width, height }, [a, b]) => x <= a && a <= x + width && y <= b && b <= y + height;
const isWithin = (inner, outer) =>
  inner !== outer && inner.members.length <= outer.members.length && inner.members.every((id) => outer.members.includes(id));

// `nodes` are those of the drawing by id, `links` its edges with their `shapes`; `onFold(count)` hears of each change.
export function makeFolds(svg, nodes, links, marks, { viewport, stateOf, onFold }) {
  const groups = readGroups(svg, nodes);
  const folded = new Set();
  const space = makeSpace(svg, nodes, links);
  const boxOf = new Map(); // of each node that is hidden: its group

  for (const group of groups) addHandle(group);

  function addHandle(group) {
    const { x, y, width } = group.area;
    const place = group.child ? [width - HANDLE, 11] : [x + width - HANDLE, y];
    const handle = makeSvg(
      "g",
      { class: "ad-fold", transform: `translate(${place.join(" ")})`, "aria-hidden": "true" },
      makeSvg("rect", { x: -HANDLE / 2, y: -HANDLE / 2, width: HANDLE, height: HANDLE, rx: 4 }),
      makeSvg("path", { d: SIGN_FOLD }),
    );
    const words = makeSvg("title", {});
    words.textContent = __("Fold %1", group.name);
    handle.append(words);
    (group.child || group.frame).append(handle);
    group.handle = handle;
    for (const element of [handle, group.title]) {
      if (element) element.addEventListener("click", (event) => (event.stopPropagation(), fold(group)));
    }
    if (group.title) group.title.classList.add("ad-foldable");
  }

  function makeBox(group) {
    const words = makeSvg("text", { class: "label" });
    const sum = makeSvg("text", { class: "detail" });
    const sign = makeSvg("path", {});
    const mark = makeSvg("g", { class: "mark" }, makeSvg("circle", { r: 7 }), sign);
    const outline = makeSvg("rect", { class: "outline", rx: 8 });
    const title = makeSvg("title", {});
    const box = makeSvg("g", { role: "button", tabindex: "0", "aria-expanded": "false" }, title, outline, words, sum, mark);
    box.addEventListener("click", () => unfold(group));
    box.addEventListener("keydown", (event) => boxKey(event, group));
    return Object.assign(group, { box, words, sum, sign, mark, outline, tip: title });
  }

  function boxKey(event, group) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const around = event.key === "f" ? outer(group) : null;
    if (around) fold(around);
    else if (event.key === "Enter" || event.key === " ") unfold(group, true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const outer = (group) => smallest(groups.filter((other) => isWithin(group, other) && !folded.has(other)));
  const smallest = (found) => found.toSorted((a, b) => a.members.length - b.members.length)[0] || null;

  function fold(group, isQuiet = false) {
    if (!group || folded.has(group)) return;
    folded.add(group);
    if (!group.box) makeBox(group);
    arrange(group);
    if (!isQuiet) group.box.focus({ preventScroll: true });
  }

  function unfold(group, hasFocus = false) {
    folded.delete(group);
    arrange(group);
    if (hasFocus) nodes.get(group.members.find((id) => !boxOf.has(id)) || group.members[0]).element.focus({ preventScroll: true });
  }

  // What is folded within something folded is not seen; of the others each has its box.
  function arrange(cause) {
    const before = screenPlace(cause);
    const shown = [...folded].filter((group) => ![...folded].some((other) => isWithin(group, other)));
    boxOf.clear();
    for (const group of shown) for (const id of group.members) boxOf.set(id, group);
    const hidden = (group) => shown.some((other) => other === group || isWithin(group, other));
    for (const [id, { element }] of nodes) element.classList.toggle("is-folded", boxOf.has(id));
    for (const group of groups) {
      const isHidden = hidden(group);
      for (const element of [group.element, group.title, group.handle]) {
        if (element) element.classList.toggle("is-folded", isHidden);
      }
      if (group.child) group.child.querySelector("[data-child]").classList.toggle("is-folded", isHidden);
      if (group.box && !shown.includes(group)) group.box.remove();
    }
    const map = space.squeeze(shown.filter((group) => group.frame === svg).map(({ area }) => area), CORE, (id) => boxOf.has(id));
    moveGroups(shown, map);
    moveEdges(map);
    viewport.setSize(map.width, map.height);
    for (const group of shown) showSum(group);
    if (before) viewport.keepAt(cause.box && cause.box.isConnected ? cause.box : cause.element, before);
    onFold(folded.size);
  }

  function moveGroups(shown, map) {
    for (const group of groups) {
      const [fx, fy] = group.frame === svg ? [map.x, map.y] : [(x) => x, (y) => y];
      const { x, y, width, height } = group.area;
      const area = { x: fx(x), y: fy(y), width: fx(x + width) - fx(x), height: fy(y + height) - fy(y) };
      if (group.child) {
        group.child.setAttribute("transform", `translate(${area.x} ${area.y})`);
      } else {
        for (const [name, value] of Object.entries(area)) group.element.querySelector("rect").setAttribute(name, value);
        group.handle.setAttribute("transform", `translate(${area.x + area.width - HANDLE} ${area.y})`);
        if (group.title) shiftOf(group.title, area.x - x, area.y - y);
      }
      const { inset } = group.area;
      const box = { x: area.x + inset, y: area.y + inset, width: area.width - 2 * inset, height: area.height - 2 * inset };
      if (shown.includes(group)) placeBox(group, box);
    }
  }

  // An edge within a folded group is not seen; of several from a group to the same place one is.
  function moveEdges(map) {
    const seen = new Set();
    for (const edge of space.edges) {
      const [source, target] = [boxOf.get(edge.from), boxOf.get(edge.to)];
      const ends = `${source ? groups.indexOf(source) : edge.from} ${target ? groups.indexOf(target) : edge.to}`;
      const isHidden = (source && source === target) || ((source || target) && seen.has(ends));
      seen.add(ends);
      for (const element of [edge.group, edge.label]) if (element) element.classList.toggle("is-folded", Boolean(isHidden));
      if (isHidden) continue;
      if (edge.frame !== svg) drawEdge(edge, edge.path, edge.place, target ? null : edge.tip, target);
      else moveEdge(edge, source, target, map);
    }
  }

  function moveEdge(edge, source, target, map) {
    const place = edge.place && [map.x(edge.place[0]), map.y(edge.place[1])];
    const isBent = source || target || map.centred.has(edge.from) || map.centred.has(edge.to) || map.isNarrowed(edge.path);
    const curve = isBent && !edge.hasWords && space.curve(edge, source && source.now, target && target.now, map);
    if (curve) drawEdge(edge, curve.path, besides(edge.label, curve.middle), curve.head);
    else drawEdge(edge, movedPath(edge.path, map), place, target ? null : space.movedHead(edge, map), target);
    const isCovered = edge.label && [source, target].some((group) => group && holds(group.area, edge.place));
    if (edge.label && !curve) edge.label.classList.toggle("is-folded", Boolean(isCovered));
  }

  function showSum(group) {
    const statuses = group.members.map((id) => stateOf(id).status);
    const status = summed(statuses);
    const kind = group.element.classList.contains("lane") ? "lane" : "panel";
    group.box.setAttribute("class", `node ad-group of-${kind} state-${status}`);
    group.sign.setAttribute("d", marks[status] || "");
    const text = inWords(statuses);
    const room = Math.floor((group.now.width - 12) / 6.6);
    const cut = (words) => (words.length > room ? `${words.slice(0, Math.max(1, room - 1)).trimEnd()}…` : words);
    group.words.textContent = cut(group.name);
    const whole = __("%1, %2 nodes folded: %3", group.name, statuses.length, text);
    group.sum.textContent = inWords(statuses, (words) => words.length <= room);
    group.tip.textContent = __("%1\nEnter, or a click, opens it", whole);
    group.box.setAttribute("aria-label", whole);
  }

  return {
    get count() {
      return groups.length;
    },
    get foldedCount() {
      return folded.size;
    },
    // The group that a hidden node is in: its box, and where that leads.
    boxOf: (id) => (boxOf.has(id) ? boxOf.get(id).box : null),
    membersOf: (box) => ([...folded].find((group) => group.box === box) || { members: [] }).members,
    // Folds the innermost group of a node; whether there is one.
    foldAround(id) {
      const group = smallest(groups.filter(({ members }) => members.includes(id)));
      fold(group);
      return group !== null;
    },
    // Opens whatever hides a node.
    reveal(id) {
      for (const group of folded) if (group.members.includes(id)) unfold(group);
    },
    toggleAll() {
      const isOpen = folded.size === 0;
      const wanted = isOpen ? groups.filter((group) => group.frame === svg && !groups.some((other) => isWithin(group, other))) : [...folded];
      for (const group of wanted) {
        if (isOpen) fold(group, true);
        else unfold(group);
      }
    },
    // Branches that a picture does not draw are one box here, too, until that is opened.
    begin() {
      for (const group of groups) if (group.element.classList.contains(MORE)) fold(group, true);
    },
    changed(id) {
      if (boxOf.has(id)) showSum(boxOf.get(id));
    },
  };
}

function drawEdge({ lines, label, head }, path, place, tip, target) {
  for (const line of lines) line.setAttribute("d", path);
  if (label) label.setAttribute("transform", `translate(${place.join(" ")})`);
  head.setAttribute("d", tip || cutLine(lines[0], target.now));
}

// Where a group with nothing but a number of passes goes, so that the number stands beside a line.
function besides(label, [x, y]) {
  const passes = label && label.querySelector(".passes");
  if (!passes) return [x, y];
  const [isBefore, isAfter] = ["before", "after"].map((name) => passes.classList.contains(name));
  const aside = isBefore ? -BESIDE : BESIDE + (isAfter ? 0 : PASSES / 2); // the others stand around their place
  return [x + aside - Number(passes.getAttribute("x")), y + 3.5 - Number(passes.getAttribute("y"))];
}

function placeBox(group, area) {
  group.now = area;
  const [x, y] = [area.x + area.width / 2, area.y + area.height / 2];
  group.box.setAttribute("transform", `translate(${x} ${y})`);
  for (const [name, value] of Object.entries({ x: -area.width / 2, y: -area.height / 2, width: area.width, height: area.height })) {
    group.outline.setAttribute(name, value);
  }
  group.mark.setAttribute("transform", `translate(${11 - area.width / 2} ${11 - area.height / 2})`);
  group.words.setAttribute("y", -1);
  group.sum.setAttribute("y", 14);
  group.frame.append(group.box);
}

function screenPlace(group) {
  const element = group.box && group.box.isConnected ? group.box : group.element;
  const box = element.getBoundingClientRect();
  return box.width ? [box.left, box.top] : null;
}

// How the nodes of a folded group stand as one: what needs a person first, then what goes on, then what is done.
// views/drawings/branch_stacks.py says the same of a picture.
function summed(statuses) {
  const found = new Set(statuses);
  const worst = WORST_STATES.find((status) => found.has(status));
  if (worst) return worst;
  if ([...found].every((status) => status === "pending" || status === "skipped")) return "pending";
  if (found.has("pending")) return "running";
  return found.has("partial_success") ? "partial_success" : "success";
}

// How many stand how, what matters first; those that find no room are others.
function inWords(statuses, fits = () => true) {
  const stand = ORDER.map((status) => [statuses.filter((other) => other === status).length, stageWord(status)]).filter(([count]) => count);
  for (let shown = stand.length; shown > 0; shown -= 1) {
    const others = stand.slice(shown).reduce((sum, [count]) => sum + count, 0);
    const rest = others ? [[others, others === 1 ? "other" : "others"]] : [];
    const words = [...stand.slice(0, shown), ...rest].map((one) => one.join(" ")).join(", ");
    if (fits(words)) return words;
  }
  return stand[0].join(" ");
}
