// Which node lies next in a direction: along an edge first, then among those that share an end with it.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const WIDEST_COSINE = 0.3;

export const arrowOf = (key) => ARROWS[key] || null;

// `links` are { from, to } by edge; `placeOf` gives the middle of a node on the screen.
export function makeWalk(links, placeOf) {
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
