// The live graph. The picture is drawn once; after that only classes and a few short texts change.
//
// The trait `states` is the truth when a view is made, and again whenever Python sets it whole.
// Between that, messages of kind "delta" carry what changed. All text goes through textContent.

const ACTIVE = new Set(["running", "waiting", "retrying"]);
const WORDS = {
  ready: "ready", running: "running", waiting: "waiting", retrying: "retrying",
  success: "completed", fail: "failed", interrupted: "stopped",
};
const TAIL_CHARS = 4000;
const TICK_MS = 200;
const SLOW_REPLY_MS = 1500;
const CHILD_SEPARATOR = ">"; // `review>draft` is the node `draft` of the child run of `review`

// What the parts of a change say, with those of child runs under the paths of their nodes.
function flattened(change, prefix = "") {
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

// The path of an element: those of the child runs that it is drawn in, and its own id.
function pathOf(element, id) {
  const child = element.closest("[data-child]");
  return child ? child.dataset.child + CHILD_SEPARATOR + id : id;
}

export default () => {
  const truth = { nodes: {}, edges: {}, line: {}, tail: {} };
  const views = new Set();
  let skew = 0; // seconds that the browser's clock is ahead of the kernel's

  const takeWhole = (states) => {
    const flat = flattened(states);
    truth.nodes = flat.nodes;
    truth.edges = flat.edges;
    truth.line = { ...(states.line || {}) };
    truth.tail = { ...(states.tail || {}) };
  };

  const takeDelta = (delta) => {
    const flat = flattened(delta);
    Object.assign(truth.nodes, flat.nodes);
    Object.assign(truth.edges, flat.edges);
    if (delta.line) {
      truth.line = delta.line;
      if (delta.line.at) skew = Date.now() / 1000 - delta.line.at;
    }
    if (delta.tail) {
      const before = delta.tail.node === truth.tail.node ? truth.tail.text || "" : "";
      truth.tail = { node: delta.tail.node, text: (before + delta.tail.text).slice(-TAIL_CHARS) };
    }
    return { ...delta, ...flat };
  };

  return {
    initialize({ model }) {
      takeWhole(model.get("states"));
      model.on("change:states", () => {
        takeWhole(model.get("states"));
        for (const view of views) view.showAll();
      });
      model.on("msg:custom", (message) => {
        if (message.kind === "delta") {
          const change = takeDelta(message);
          for (const view of views) view.show(change);
        } else if (message.kind === "stage") {
          for (const view of views) view.showStage(message);
        }
      });
      // From now on deltas are heard; what was sent before comes once more, whole.
      model.send({ kind: "ready" });
    },
    render({ model, el }) {
      const view = makeView(model, el, truth, () => Date.now() / 1000 - skew);
      views.add(view);
      return () => {
        views.delete(view);
        view.close();
      };
    },
  };
};

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function importDrawing(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const root = parsed.documentElement;
  if (root.nodeName !== "svg") return make("p", "", "The drawing could not be read.");
  for (const foreign of parsed.querySelectorAll("script, foreignObject, image, a")) foreign.remove();
  return document.importNode(root, true);
}

const seconds = (value) => (value < 60 ? `${Math.max(0, value).toFixed(1)} s` : clock(value));
const whole = (value) => (value < 60 ? `${Math.max(0, Math.round(value))} s` : clock(value));

function clock(value) {
  const rest = Math.max(0, Math.floor(value));
  const hours = Math.floor(rest / 3600);
  const minutes = Math.floor((rest % 3600) / 60);
  const two = (part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest % 60)}` : `${minutes}:${two(rest % 60)}`;
}

function makeView(model, el, truth, now) {
  const root = make("div", "attractor-live");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", `Run of ${model.get("caption") || "a pipeline"}`);
  // Keys pressed here are ours, not JupyterLab's shortcuts (Lumino honours this attribute).
  root.dataset.lmSuppressShortcuts = "true";

  const stage = make("div", "al-stage");
  const canvas = make("div", "al-canvas");
  const drawing = importDrawing(model.get("svg"));
  drawing.setAttribute("role", "group");
  canvas.append(drawing);
  // The inspector stands beside the picture where both fit, else below: the picture keeps its size.
  canvas.style.setProperty("--al-width", `${parseFloat(drawing.getAttribute("width")) || 340}px`);
  const inspector = makeInspector(() => select(null));
  stage.append(canvas, inspector.element);

  const line = makeStatusLine(() => model.send({ kind: "stop" }));
  const tail = make("div", "al-tail");
  tail.setAttribute("aria-hidden", "true"); // it moves too fast to be read aloud; the inspector has it
  const tailName = make("span", "al-tail-name");
  const tailText = make("pre", "al-tail-text");
  tail.append(tailName, tailText);
  root.append(stage, line.element);
  if (model.get("has_output")) root.append(tail);
  el.append(root);

  const nodes = new Map();
  for (const element of drawing.querySelectorAll("[data-node]")) {
    const id = pathOf(element, element.dataset.node);
    const detail = element.querySelector(".detail");
    nodes.set(id, {
      element,
      mark: element.querySelector(".mark path"),
      counts: element.querySelector(".counts"),
      detail,
      detailText: detail ? detail.textContent : "",
      name: (element.querySelector(".label") || element).textContent,
    });
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "button");
    element.addEventListener("click", () => select(id));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        select(id);
      }
    });
  }
  const edges = new Map();
  for (const element of drawing.querySelectorAll("[data-edge]")) {
    const index = pathOf(element, element.dataset.edge);
    edges.set(index, [...(edges.get(index) || []), element]);
  }
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selected !== null) {
      event.stopPropagation();
      select(null);
    }
  });

  let selected = null;
  const marks = model.get("marks");

  function showNode(id) {
    const parts = nodes.get(id);
    if (!parts) return;
    const state = truth.nodes[id] || { status: "pending" };
    const kept = [...parts.element.classList].filter((name) => !name.startsWith("state-"));
    parts.element.setAttribute("class", [...kept, `state-${state.status}`].join(" "));
    if (parts.mark) parts.mark.setAttribute("d", marks[state.status] || "");
    if (parts.detail) parts.detail.textContent = short(state) || parts.detailText;
    parts.element.setAttribute("aria-label", `${parts.name}: ${spoken(state)}`);
    showCounts(parts, state);
  }

  function short(state) {
    const words = state.status === "fail" && state.reason ? state.reason : state.note || "";
    return words.length > 28 ? `${words.slice(0, 27)}…` : words;
  }

  const spoken = (state) => [state.status.replace("_", " "), state.reason, state.note].filter(Boolean).join(", ");

  function showCounts(parts, state) {
    if (!parts.counts) return;
    const texts = state.progress ? [state.progress] : [];
    if (state.attempt > 1) texts.push(`×${state.attempt}`);
    if (state.visits > 1) texts.push(`↻${state.visits}`);
    if (ACTIVE.has(state.status)) {
      if (state.until) texts.push(whole(state.until - now()));
      else if (state.status === "running" && state.since) texts.push(whole(now() - state.since));
    }
    const text = texts.join(" ");
    if (parts.counts.textContent !== text) parts.counts.textContent = text;
  }

  function showEdge(index) {
    const passes = truth.edges[index] || 0;
    for (const element of edges.get(index) || []) {
      element.classList.toggle("taken", passes > 0);
      const count = element.querySelector(".passes");
      if (count) count.textContent = passes > 1 ? `×${passes}` : "";
    }
  }

  function showTail() {
    tail.classList.toggle("is-empty", !truth.tail.text);
    tailName.textContent = truth.tail.node || "";
    tailText.textContent = truth.tail.text || "";
    tailText.scrollTop = tailText.scrollHeight;
  }

  function showLine() {
    line.show(truth.line, now());
    drawing.classList.toggle("ended", Boolean(truth.line.is_ended));
  }

  function select(id) {
    if (selected !== null && nodes.has(selected)) nodes.get(selected).element.classList.remove("selected");
    const before = selected;
    selected = id === selected ? null : id;
    if (selected === null) {
      inspector.hide();
      if (before !== null && nodes.has(before)) nodes.get(before).element.focus({ preventScroll: true });
      return;
    }
    nodes.get(selected).element.classList.add("selected");
    inspector.open(selected, nodes.get(selected).name, spoken(truth.nodes[selected] || { status: "pending" }));
    model.send({ kind: "inspect", node: selected });
  }

  function showAll() {
    for (const id of nodes.keys()) showNode(id);
    for (const index of edges.keys()) showEdge(index);
    showLine();
    showTail();
  }

  showAll();
  const ticker = setInterval(() => {
    if (truth.line.is_ended || !root.isConnected) return;
    line.tick(truth.line, now());
    for (const [id, state] of Object.entries(truth.nodes)) {
      if (ACTIVE.has(state.status) && nodes.has(id)) showCounts(nodes.get(id), state);
    }
  }, TICK_MS);

  return {
    showAll,
    show(delta) {
      for (const id of Object.keys(delta.nodes || {})) showNode(id);
      for (const index of Object.keys(delta.edges || {})) showEdge(index);
      if (delta.line) showLine();
      if (delta.tail) showTail();
      if (selected !== null && delta.nodes && selected in delta.nodes) {
        inspector.setState(spoken(delta.nodes[selected]));
        if (!ACTIVE.has(delta.nodes[selected].status)) model.send({ kind: "inspect", node: selected });
      }
    },
    showStage(message) {
      if (message.node === selected) inspector.fill(message);
    },
    close() {
      clearInterval(ticker);
      inspector.hide();
    },
  };
}

function makeStatusLine(stop) {
  const element = make("div", "al-line");
  const dot = make("span", "al-dot");
  dot.setAttribute("aria-hidden", "true");
  const said = make("span", "al-said");
  said.setAttribute("role", "status");
  const word = make("span", "al-word");
  const node = make("span", "al-node");
  const attempt = make("span", "al-attempt");
  said.append(word, node, attempt);
  const time = make("span", "al-number");
  const tokens = make("span", "al-number");
  const price = make("span", "al-number");
  const gap = make("span", "al-gap");
  const button = make("button", "al-stop", "Stop");
  button.type = "button";
  button.title = "Stop the run; it can be resumed";
  button.addEventListener("click", () => {
    button.disabled = true;
    button.textContent = "Stopping…";
    stop();
  });
  element.append(dot, said, time, tokens, price, gap, button);

  const tick = (line, now) => {
    const elapsed = line.is_ended || !line.at ? line.elapsed || 0 : (line.elapsed || 0) + now - line.at;
    time.textContent = seconds(elapsed);
  };
  return {
    element,
    tick,
    show(line, now) {
      element.dataset.status = line.status || "ready";
      word.textContent = WORDS[line.status] || "ready";
      node.textContent = line.node || "";
      attempt.textContent = line.attempt > 1
        ? `attempt ${line.attempt}${line.attempts ? `/${line.attempts}` : ""}`
        : "";
      tick(line, now);
      tokens.textContent = line.tokens ? `${line.tokens.toLocaleString("en")} tokens` : "";
      price.textContent = [line.price, line.cached].filter(Boolean).join("   ");
      button.hidden = Boolean(line.is_ended);
    },
  };
}

function makeInspector(close) {
  const element = make("aside", "al-inspector");
  element.hidden = true;
  element.setAttribute("aria-label", "Stage");
  const head = make("div", "al-inspector-head");
  const title = make("h4", "al-inspector-title");
  const shut = make("button", "al-close", "×");
  shut.type = "button";
  shut.setAttribute("aria-label", "Close");
  shut.addEventListener("click", close);
  head.append(title, shut);
  const state = make("div", "al-inspector-state");
  const body = make("div", "al-inspector-body");
  element.append(head, state, body);
  let timer = 0;
  return {
    element,
    open(id, name, words) {
      title.textContent = name === id ? id : `${name} (${id})`;
      state.textContent = words;
      body.replaceChildren();
      element.hidden = false;
      clearTimeout(timer);
      timer = setTimeout(() => {
        body.replaceChildren(make("p", "al-dim", "The kernel is busy. The texts follow when the cell has ended."));
      }, SLOW_REPLY_MS);
    },
    setState(words) {
      state.textContent = words;
    },
    fill(message) {
      clearTimeout(timer);
      const parts = [];
      for (const { title: name, text } of message.parts) {
        const box = make("details", "al-part");
        box.open = true;
        box.append(make("summary", "", name), make("pre", "", text));
        parts.push(box);
      }
      if (!parts.length) parts.push(make("p", "al-dim", "Nothing recorded yet."));
      body.replaceChildren(...parts);
    },
    hide() {
      clearTimeout(timer);
      element.hidden = true;
    },
  };
}
