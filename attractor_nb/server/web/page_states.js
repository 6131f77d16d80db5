// What has changed between two answers about a run, as the delta that a live view is told. Values only.

import { flattened } from "./run_states.js";

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export function changesOf(before, next) {
  const [old, fresh] = [flattened(before), flattened(next)];
  const changed = { nodes: {}, edges: {} };
  for (const part of ["nodes", "edges"]) {
    for (const [id, state] of Object.entries(fresh[part])) {
      if (!isSame(state, old[part][id])) changed[part][id] = state;
    }
  }
  return changed;
}

// Whether something is not there any more: the run was taken back, and a delta could not say it.
export function isPoorer(before, next) {
  const [old, fresh] = [flattened(before), flattened(next)];
  return ["nodes", "edges"].some((part) => Object.keys(old[part]).some((id) => !(id in fresh[part])));
}
