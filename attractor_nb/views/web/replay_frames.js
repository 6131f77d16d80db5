// The frames of a run as moments: what nodes, edges and context were behind each of its events.
//
// A frame says what its event changed. Every so often the sum is kept, so that any moment is a few steps away.

import { flattened } from "./run_states.js";

const KEPT_EVERY = 32;
const NO_MOMENT = { nodes: {}, edges: {}, contexts: { "": {} }, run: "ready" };

// `replay` is what Python's `replay_of` gives. `at(0)` is the moment before the first event.
export function makeMoments({ frames = [], base = {} } = {}) {
  const kept = [{ ...NO_MOMENT, contexts: { "": base } }];
  let moment = kept[0];
  frames.forEach((frame, index) => {
    moment = momentAfter(moment, frame);
    if ((index + 1) % KEPT_EVERY === 0) kept.push(moment);
  });
  let latest = { count: 0, moment: kept[0] };
  return {
    frames,
    count: frames.length,
    at(count) {
      const place = Math.floor(count / KEPT_EVERY);
      const isNear = latest.count <= count && latest.count >= place * KEPT_EVERY;
      let found = isNear ? latest.moment : kept[place];
      for (let n = isNear ? latest.count : place * KEPT_EVERY; n < count; n += 1) found = momentAfter(found, frames[n]);
      latest = { count, moment: found };
      return found;
    },
    // The places at which a stage began, for steps from stage to stage; and those of the ends of stages.
    begins: frames.filter((frame) => frame.type === "StageStarted").map((frame) => frame.n),
    ends: frames.filter((frame) => frame.status),
  };
}

function momentAfter(before, frame) {
  const { nodes, edges } = flattened(frame.delta || {});
  return {
    nodes: Object.keys(nodes).length ? { ...before.nodes, ...nodes } : before.nodes,
    edges: Object.keys(edges).length ? { ...before.edges, ...edges } : before.edges,
    contexts: contextsAfter(before.contexts, frame),
    run: (frame.delta && frame.delta.run) || before.run,
  };
}

// Each branch has a context of its own, which begins as a copy of the one around it.
function contextsAfter(contexts, frame) {
  const branch = frame.branch || "";
  if (frame.begins) return { ...contexts, [branch]: contextOf(contexts, branch) };
  if (!frame.context && !frame.dropped) return contexts;
  const values = { ...contextOf(contexts, branch), ...frame.context };
  for (const key of frame.dropped || []) delete values[key];
  return { ...contexts, [branch]: values };
}

export function contextOf(contexts, branch) {
  let place = branch;
  while (!(place in contexts)) place = place.split("/").slice(0, -2).join("/");
  return contexts[place];
}
