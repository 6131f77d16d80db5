// The plane of a drawing, from which strips are taken where folded groups no longer need them.

const CLEAR = 10; // around whatever stays
const PLACE = /translate\(\s*(-?[\d.]+)[\s,]+(-?[\d.]+)/;
const PAIR = /(-?\d*\.?\d+)[ ,](-?\d*\.?\d+)/g;
const PORTS = 0.35; // of the width of a box, on either side of its middle: where edges leave and arrive
const NEARLY = 0.05; // of the width of a drawing: so far from its middle something may stand that is moved there
const NUMBER = 11; // from a box to the middle of a number beside a line that it alone has there
const HEAD = { length: 7, half: 3.2 };

// Where an element stands, by its transform.
export function drawnAt(element) {
  const found = PLACE.exec(element.getAttribute("transform") || "");
  return found ? [Number(found[1]), Number(found[2])] : [0, 0];
}

// Moves a text by its attributes, away from where it was drawn.
export function shiftOf(element, dx, dy) {
  element.setAttribute("transform", dx || dy ? `translate(${dx} ${dy})` : "");
}

export const movedPath = (path, { x, y }) =>
  path.replace(PAIR, (_, a, b) => `${x(Number(a)).toFixed(1)} ${y(Number(b)).toFixed(1)}`);

const isInside = ({ x, y, width, height }, a, b) => x < a && a < x + width && y < b && b < y + height;

// The arrow head of a line that ends at the border of an area, which covers the rest of it.
export function cutLine(line, area) {
  const length = line.getTotalLength();
  const isCovered = (at) => {
    const { x, y } = line.getPointAtLength(at);
    return isInside(area, x, y);
  };
  let at = 0;
  while (at < length && !isCovered(at)) at += 2;
  const tip = line.getPointAtLength(Math.max(0, at - 1));
  const base = line.getPointAtLength(Math.max(0, at - 1 - HEAD.length));
  const far = Math.hypot(tip.x - base.x, tip.y - base.y) || 1;
  return headAt(tip.x, tip.y, (tip.x - base.x) / far, (tip.y - base.y) / far);
}

// An arrow head by its tip and where it points.
function headAt(x, y, dx, dy) {
  const [bx, by] = [x - dx * HEAD.length, y - dy * HEAD.length];
  const corner = (side) => `${(bx - dy * side * HEAD.half).toFixed(1)} ${(by + dx * side * HEAD.half).toFixed(1)}`;
  return `M${x.toFixed(1)} ${y.toFixed(1)}L${corner(1)}L${corner(-1)}Z`;
}

const middle = ({ x, width }) => x + width / 2;

// Where an edge meets an area: straight below its other end where that is near, further out the further that is.
function port(area, place) {
  const [reach, aside] = [PORTS * area.width, place - middle(area)];
  const isNear = Math.abs(aside) <= reach / 2;
  return middle(area) + (isNear ? aside : Math.sign(aside) * (reach - (reach * reach) / (4 * Math.abs(aside))));
}

// A curve down from one area to another below it; null where there is no room for one.
function curveDown(from, to, isFromNarrow = from.width < to.width) {
  const [top, bottom] = [from.y + from.height, to.y];
  if (bottom - top < 2 * HEAD.length) return null;
  const a = isFromNarrow ? middle(from) : port(from, middle(to));
  const b = isFromNarrow ? port(to, middle(from)) : middle(to);
  const end = bottom - HEAD.length;
  const half = (top + end) / 2;
  const points = Array.from({ length: 17 }, (_, step) => {
    const t = step / 16;
    const s = 1 - t;
    const across = a * s * s * (s + 3 * t) + b * t * t * (t + 3 * s);
    return [across, top * s * s * s + 3 * half * s * t * (s + t) + end * t * t * t];
  });
  const path = `M${a} ${top}C${a} ${half} ${b} ${half} ${b} ${end}`;
  return { path, points, middle: [(a + b) / 2, half], ends: [[a, top + NUMBER], [b, bottom - NUMBER]], head: headAt(b, bottom, 0, 1) };
}

// The size of an outline around its middle, whether or not it is shown: the numbers of its path say it.
export function outlineSize(path) {
  let [width, height] = [0, 0];
  for (const [, command, body] of path.matchAll(/([MLQCHV])([^A-Z]*)/g)) {
    const values = (body.match(/-?[\d.]+/g) || []).map((value) => 2 * Math.abs(Number(value)));
    values.forEach((value, place) => {
      if (command === "V" || (command !== "H" && place % 2)) height = Math.max(height, value);
      else width = Math.max(width, value);
    });
  }
  return { width, height };
}

// A function that leaves out spans of an axis.
function without(spans) {
  const sorted = spans.filter(([low, high]) => high > low).toSorted((a, b) => a[0] - b[0]);
  return (value) => sorted.reduce((rest, [low, high]) => rest - Math.max(0, Math.min(value, high) - low), value);
}

// What of some spans is not covered by others.
function uncovered(spans, others) {
  let left = spans;
  for (const [from, to] of others) {
    left = left.flatMap(([low, high]) =>
      to <= low || from >= high ? [[low, high]] : [[low, Math.min(high, from)], [Math.max(low, to), high]].filter(([a, b]) => b - a > 1),
    );
  }
  const merged = [];
  for (const [low, high] of left.toSorted((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1];
    if (last && low <= last[1]) last[1] = Math.max(last[1], high);
    else merged.push([low, high]);
  }
  return merged;
}

// The edges as they were drawn; `links` have the elements of each.
function readLines(links, frameOf) {
  return links.flatMap(({ from, to, shapes }) => {
    const group = shapes.find((shape) => shape.querySelector(".line"));
    const label = shapes.find((shape) => shape.classList.contains("edge-label")) || null;
    const lines = [...group.querySelectorAll(".line, .ad-reach")];
    const head = group.querySelector(".head");
    const [path, tip] = [lines[0].getAttribute("d"), head.getAttribute("d")];
    const hasWords = label !== null && label.querySelector("rect") !== null;
    return [{ from, to, group, label, lines, head, path, tip, hasWords, place: label && drawnAt(label), frame: frameOf(group) }];
  });
}

export function makeSpace(svg, nodes, links) {
  const box = svg.viewBox ? svg.viewBox.baseVal : null;
  const [width, height] = [box ? box.width : 0, box ? box.height : 0];
  const page = svg.querySelector(":scope > .page");
  const stays = new Map(); // of each node of the drawing itself: its place and size as it was drawn
  const frameOf = (element) => element.parentNode.closest("[data-child]") || svg;
  const edges = readLines(links, frameOf);

  function placeOfNode(id) {
    if (!stays.has(id)) {
      const { element } = nodes.get(id);
      const [x, y] = drawnAt(element);
      stays.set(id, { x, y, ...outlineSize(element.querySelector(".outline").getAttribute("d")) });
    }
    return stays.get(id);
  }

  function curve(edge, source, target, map) {
    const areaOf = (id) => {
      const { width: w, height: h } = placeOfNode(id);
      const [x, y] = map.placeOf(id);
      return { x: x - w / 2, y: y - h / 2, width: w, height: h };
    };
    const isFan = map.centred.has(edge.from) !== map.centred.has(edge.to); // its lines meet it side by side
    const ends = [source || areaOf(edge.from), target || areaOf(edge.to)];
    const found = isFan ? curveDown(...ends, map.centred.has(edge.to)) : curveDown(...ends);
    if (!found) return null;
    const others = map.visible.filter((id) => id !== edge.from && id !== edge.to).map(areaOf);
    const isFree = others.every((area) => !found.points.some(([x, y]) => isInside(area, x, y)));
    if (isFan) found.middle = found.ends[map.centred.has(edge.from) ? 1 : 0];
    return isFree ? found : null;
  }

  // What stands alone in its row in the middle of the drawing: it can stay in the middle of what is left of it.
  function aloneInTheMiddle(shown, areas) {
    const isBeside = (a, b) => Math.abs(a.y - b.y) < (a.height + b.height) / 2;
    const rows = areas.map((area) => ({ y: area.y + area.height / 2, height: area.height }));
    return new Set(
      shown.filter((id) => {
        const place = placeOfNode(id);
        const others = [...shown.filter((other) => other !== id).map(placeOfNode), ...rows];
        return Math.abs(place.x - width / 2) < NEARLY * width && !others.some((other) => isBeside(place, other));
      }),
    );
  }

  // Whether every edge that is seen and meets something in the middle can be drawn anew.
  function canBeCentred(map, areas, isHidden) {
    const boxOf = (id) => {
      if (!isHidden(id)) return null;
      const { x, y } = placeOfNode(id);
      return map.areaOf(areas.find((area) => isInside(area, x, y)));
    };
    return edges
      .filter(({ from, to }) => map.centred.has(from) || map.centred.has(to))
      .every((edge) => edge.frame === svg && !edge.hasWords && curve(edge, boxOf(edge.from), boxOf(edge.to), map));
  }

  return {
    edges,
    movedHead({ tip }, { x, y }) {
      const [, a, b] = /M(-?[\d.]+)[ ,](-?[\d.]+)/.exec(tip).map(Number);
      const [dx, dy] = [x(a) - a, y(b) - b];
      return tip.replace(PAIR, (_, c, d) => `${(Number(c) + dx).toFixed(1)} ${(Number(d) + dy).toFixed(1)}`);
    },
    // A new course for an edge that was squeezed, where nothing stands in its way. Areas stand for folded ends.
    curve,
    // How everything moves when areas need no more than a core. `isHidden(id)` says what lies in them.
    squeeze(areas, core, isHidden) {
      const shown = areas.length
        ? [...nodes.keys()].filter((id) => !isHidden(id) && frameOf(nodes.get(id).element) === svg)
        : [];
      const visible = shown.map((id) => ({ id, ...placeOfNode(id) }));
      const children = [...svg.querySelectorAll(":scope > .child")].map((child) => {
        const [x, y] = child.dataset.place ? child.dataset.place.split(" ").map(Number) : drawnAt(child);
        child.dataset.place = `${x} ${y}`;
        const rect = child.querySelector("rect");
        return { left: x, top: y, width: Number(rect.getAttribute("width")), height: Number(rect.getAttribute("height")) };
      });
      const isFolded = ({ left, top }) => areas.some((area) => area.x === left && area.y === top);
      const open = children.filter((child) => !isFolded(child));
      const spans = (low, size, at, centred) => [
        ...visible.filter(({ id }) => !centred.has(id)).map((node) => [node[at] - node[size] / 2 - CLEAR, node[at] + node[size] / 2 + CLEAR]),
        ...open.map((child) => [child[low] - CLEAR, child[low] + child[size] + CLEAR]),
        ...areas.map((area) => {
          const centre = area[at] + area[size] / 2;
          const least = Math.min(area[size], core[size] + 2 * area.inset) / 2;
          return [centre - least, centre + least];
        }),
      ];
      const taken = (low, size, at, centred) =>
        uncovered(areas.map((area) => [area[at], area[at] + area[size]]), spans(low, size, at, centred));
      const y = without(taken("top", "height", "y", new Set()));
      function planned(centred) {
        const narrowed = taken("left", "width", "x", centred);
        const x = without(narrowed);
        const placeOf = (id) => {
          const place = placeOfNode(id);
          return [centred.has(id) ? x(width) / 2 : x(place.x), y(place.y)];
        };
        const areaOf = (area) => ({
          x: x(area.x),
          y: y(area.y),
          width: x(area.x + area.width) - x(area.x),
          height: y(area.y + area.height) - y(area.y),
        });
        return { x, y, narrowed, centred, placeOf, areaOf, visible: shown };
      }
      let plan = planned(areas.length && !children.length ? aloneInTheMiddle(shown, areas) : new Set());
      if (plan.centred.size && !canBeCentred(plan, areas, isHidden)) plan = planned(new Set());
      const { x, narrowed } = plan;
      for (const [id, { element }] of nodes) {
        if (frameOf(element) !== svg) continue;
        if (!areas.length && !stays.has(id)) continue;
        element.setAttribute("transform", `translate(${plan.placeOf(id).join(" ")})`);
      }
      const size = { width: x(width), height: y(height) };
      svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
      if (page) {
        page.setAttribute("width", size.width - 2 * Number(page.getAttribute("x")));
        page.setAttribute("height", size.height - 2 * Number(page.getAttribute("y")));
      }
      const isNarrowed = (path) => {
        const xs = [...path.matchAll(PAIR)].map(([, a]) => Number(a));
        return narrowed.some(([low, high]) => Math.min(...xs) < high && Math.max(...xs) > low);
      };
      return { ...plan, ...size, isNarrowed };
    },
  };
}
