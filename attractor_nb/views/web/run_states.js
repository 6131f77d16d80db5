// The states of a run: the truth that views show, whole at first and then changed by deltas.
//
// The value `states` is the truth when a view is made, and again whenever it is set whole. Between that,
// messages of kind "delta" carry what changed.

export const CHILD_SEPARATOR = ">"; // `review>draft` is the node `draft` of the child run of `review`
const TAIL_CHARS = 2000; // of each node's latest words
const TAILS = 8; // as many nodes' words are kept

// What the parts of a change say, with those of child runs under the paths of their nodes.
export function flattened(change, prefix = "") {
  const flat = { nodes: {}, edges: {} };
  for (const part of ["nodes", "edges"]) {
    for (const [id, state] of Object.entries(change[part] || {})) flat[part][prefix + id] = state;
  }
  for (const [id, below] of Object.entries(change.children || {})) {
    const inner = flattened(below, prefix + id + CHILD_SEPARATOR);
    Object.assign(flat.nodes, inner.nodes);
    Object.assign(flat.edges, inner.edges);
  }
  return flat;
}

// Two changes in a row as one.
const joined = (first, then) =>
  first ? { ...first, ...then, nodes: { ...first.nodes, ...then.nodes }, edges: { ...first.edges, ...then.edges } } : then;

// What is shown of a run, for all views of it. `views` get show(change), showAll(),
// showStage(message), and showDebug(message) where they have it.
export function shareStates(host) {
  const truth = { nodes: {}, edges: {}, line: {}, tails: {}, debugger: null, others: [], answer: {} };
  const views = new Set();
  let skew = 0; // seconds that the browser's clock is ahead of the kernel's

  const takeWhole = (states) => {
    const flat = flattened(states);
    truth.nodes = flat.nodes;
    truth.edges = flat.edges;
    truth.line = { ...states.line };
    truth.tails = { ...states.tails };
    for (const part of ["debugger", "others", "answer"]) truth[part] = states[part] || truth[part];
  };

  const takeDelta = (delta) => {
    const flat = flattened(delta);
    Object.assign(truth.nodes, flat.nodes);
    Object.assign(truth.edges, flat.edges);
    if (delta.line) {
      truth.line = delta.line;
      if (delta.line.at) skew = Date.now() / 1000 - delta.line.at;
    }
    for (const part of ["debugger", "others", "answer"]) truth[part] = delta[part] || truth[part];
    for (const [id, text] of Object.entries(delta.tails || {})) {
      const whole = ((truth.tails[id] || "") + text).slice(-TAIL_CHARS);
      delete truth.tails[id]; // who spoke last stands at the end
      truth.tails[id] = whole;
    }
    for (const id of Object.keys(truth.tails).slice(0, -TAILS)) delete truth.tails[id];
    return { ...delta, ...flat };
  };

  // At most one change a frame is drawn: what comes meanwhile is drawn together, so that a slow browser does not fall
  // behind. A page that is hidden has no frames, and draws all of it when it is seen again.
  let isDrawn = false;
  let waiting = null;
  const show = (change) => {
    isDrawn = true;
    waiting = null;
    for (const view of views) view.show(change);
    requestAnimationFrame(() => {
      isDrawn = false;
      if (waiting) show(waiting);
    });
  };

  takeWhole(host.get("states"));
  host.on("states", (states) => {
    takeWhole(states);
    waiting = null;
    for (const view of views) view.showAll();
  });
  host.listen((message) => {
    if (message.kind === "delta") {
      const change = joined(waiting, takeDelta(message));
      if (isDrawn) waiting = change;
      else show(change);
    } else if (message.kind === "debug") {
      for (const view of views) if (view.showDebug) view.showDebug(message);
    } else if (["stage", "edge", "file", "acted"].includes(message.kind)) {
      for (const view of views) view.showStage(message);
    }
  });
  // From now on deltas are heard; what was sent before comes once more, whole.
  host.send({ kind: "ready" });
  return { truth, views, now: () => Date.now() / 1000 - skew };
}
