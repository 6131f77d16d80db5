// A run as something to scrub through: the drawing, the context and the inspector follow a slider over its
// events. Everything is in the value `replay`; nobody is asked, but for a stage's texts where they are not there.

import { makeBeneath } from "./beneath.js";
import { isFlat, makeDrawing, spokenState } from "./drawing.js";
import { asWidget } from "./host.js";
import { makeIcon } from "./icons.js";
import { makeInspector } from "./inspector.js";
import { make, makeButton, makeView, seconds } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { CHILD_SEPARATOR, flattened } from "./run_states.js";
import { stageWord } from "./state_words.js";
import { __, _n } from "./wording.js";

const ASK_AFTER_MS = 120; // who drags the slider asks for nothing on the way
const NOT_YET = __("The run had not visited this node yet.");
const REPLAY_GONE = __("The kernel is gone: the texts of this visit cannot be loaded. Run.load(…) has them.");
const NOT_HERE = __("The texts of this visit are not part of this page.");
const ENDED_RUNS = new Set(["success", "fail", "interrupted"]);
const MODES = [
  { name: "1×", title: __("As it happened"), seconds: (gap) => gap },
  { name: "4×", title: __("Four times as fast"), seconds: (gap) => gap / 4 },
  { name: __("short waits"), title: __("Show each event briefly, however long it took"), seconds: (gap) => Math.min(0.8, 0.12 + gap) },
];
const FASTEST_MS = 16;
const KEPT_EVERY = 32;
const NO_MOMENT = { nodes: {}, edges: {}, contexts: { "": {} }, run: "ready" };
const SHOWN_KEYS = 300;
const LONG = 60; // characters that have room in a line of a narrow table
const MOST_TICKS = 600; // more than that are narrower than a pixel
const RANKS = ["skipped", "success", "partial_success", "retry", "fail"];

export default asWidget(showElsewhere, standInReplay);

// A kernel packs the frames: those of a long run are megabytes of text.
function standInReplay(host) {
  let end = () => {};
  let isOver = false;
  unpacked(host.get("packed")).then((replay) => {
    const opened = { ...host, get: (name) => (name === "replay" ? replay : host.get(name)) };
    if (!isOver) end = standIn(host.get("place"), (el) => showReplay(opened, el));
  });
  return () => {
    isOver = true;
    end();
  };
}

const unpacked = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();

export function showReplay(host, el) {
  const root = makeView("attractor-replay", __("Replay of %1", host.get("caption") || __("a run")));

  let moments = makeMoments(host.get("replay"));
  let count = 0;
  let shown = { nodes: {}, edges: {} };
  let selected = null;
  let selectedVisit = 0;
  let asking = 0;
  let isLost = false;
  let isAtFailure = false;
  let isOpenedForIt = false;

  const clock = () => (host.get("replay").started || 0) + timeOf(count);
  const timeOf = (n) => (n ? moments.frames[n - 1].at : 0);

  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, now: clock });
  const inspector = makeInspector({ onClose: () => select(null), onAsk: ask, onAct: act, opensItems: host.isLive });
  const scrubber = makeScrubber({ onSeek: (n) => seek(n), onStage: stepStage, onPlay: (n) => player.toggle(n) });
  const player = makePlayer({ timeOf, advance: (n) => show(n), onChange: (mode) => scrubber.setPlaying(mode) });
  const context = makeContextTable();
  const beneath = makeBeneath(host);
  const side = make("div", "ar-side", [scrubber.element, inspector.element, context.element]);
  const stage = make("div", "ar-stage", [drawing.element, side]);
  stage.classList.toggle("is-flat", isFlat(drawing.size));
  stage.style.setProperty("--ar-width", `${drawing.size.width}px`);
  root.append(stage, beneath.element);
  scrubber.addModes(player.modes, player.setMode);
  el.append(root);

  function seek(n) {
    player.pause();
    show(Math.max(0, Math.min(moments.count, n)));
  }

  // To where the stage before or after began.
  function stepStage(direction) {
    const places = direction > 0 ? moments.begins : moments.begins.toReversed();
    const next = places.find((n) => (n - count) * direction > 0);
    seek(next === undefined ? (direction > 0 ? moments.count : 0) : next);
  }

  function show(n) {
    count = n;
    const moment = moments.at(n);
    change("nodes", moment.nodes, (id, state) => drawing.setNode(id, state));
    change("edges", moment.edges, (index, passes) => drawing.setEdge(index, passes || 0));
    shown = moment;
    drawing.setEnded(ENDED_RUNS.has(moment.run) && n === moments.count);
    drawing.tick();
    const frame = n ? moments.frames[n - 1] : null;
    if (frame && frame.node) drawing.follow(frame.node);
    const branch = (frame && frame.branch) || "";
    context.show(contextOf(moment.contexts, branch), frame, branch);
    scrubber.show(n, frame);
    followFailure();
    followSelected();
  }

  // At the end of a failed run its failed stage opens, unless another one is open; on the way back it closes.
  function followFailure() {
    const { failed = "" } = host.get("replay");
    const wasAtFailure = isAtFailure;
    isAtFailure = Boolean(failed) && count === moments.count;
    if (isAtFailure && !wasAtFailure && selected === null) {
      const id = drawing.ids.includes(failed) ? failed : failed.split(CHILD_SEPARATOR)[0];
      if (!drawing.ids.includes(id)) return;
      choose(id);
      isOpenedForIt = true;
    } else if (!isAtFailure && isOpenedForIt) {
      choose(null);
      inspector.hide();
    }
  }

  // What differs between the moment on the screen and another one is drawn anew, and nothing else.
  function change(part, now, put) {
    const was = shown[part];
    if (was === now) return;
    for (const id in now) if (now[id] !== was[id]) put(id, now[id]);
    for (const id in was) if (!(id in now)) put(id, undefined);
  }

  function choose(id) {
    selected = id;
    selectedVisit = -1;
    isOpenedForIt = false;
    drawing.select(id);
    clearTimeout(asking);
  }

  function select(id) {
    const before = selected;
    choose(id === selected ? null : id);
    if (selected === null) {
      inspector.hide();
      if (before !== null) drawing.focus(before);
      return;
    }
    followSelected();
    inspector.element.scrollIntoView({ block: "nearest" });
    const isSheet = getComputedStyle(inspector.element).position === "sticky"; // in a narrow place it lies over the drawing
    if (isSheet) drawing.uncover(selected, scrubber.element, inspector.element);
  }

  // What a page without a kernel has of a visit; the list of its node's visits is there once.
  function textsOf(visit) {
    const texts = (host.get("stages") || {})[`${selected}@${visit}`];
    return texts && { ...texts, visits: (host.get("visits") || {})[selected] };
  }

  // The inspector shows the visit that the node is in at this moment, or was in last.
  function followSelected() {
    if (selected === null) return;
    const state = drawing.stateOf(selected);
    const visit = state.visits || 0;
    if (visit === selectedVisit) return;
    inspector.open(selected, drawing.nameOf(selected), spokenState(state));
    selectedVisit = visit;
    clearTimeout(asking);
    const texts = textsOf(visit);
    if (texts) inspector.show(texts);
    else if (visit && isLost) inspector.show({ node: selected, problems: [REPLAY_GONE] });
    else if (visit && host.isLive) asking = setTimeout(() => ask({ node: selected, visit }), ASK_AFTER_MS);
    else inspector.show({ node: selected, problems: [visit ? NOT_HERE : NOT_YET] });
  }

  // A request of the inspector is for another visit or file than the one that is shown.
  function ask(request) {
    const { visit, file } = request;
    const texts = textsOf(visit);
    if (texts && file === undefined) inspector.show(texts);
    else if (isLost) inspector.show({ node: selected, problems: [REPLAY_GONE] });
    else if (host.isLive) host.send({ kind: "inspect", node: selected, visit: selectedVisit, ...request });
  }

  function act(request) {
    if (host.isLive) host.send({ kind: "act", ...request });
  }

  function setFrames() {
    const wasAtEnd = count === moments.count;
    moments = makeMoments(host.get("replay"));
    scrubber.setFrames(moments.frames, drawing.nameOf, moments.ends);
    player.setCount(moments.count);
    show(wasAtEnd ? moments.count : Math.min(count, moments.count));
  }

  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || selected === null) return;
    event.stopPropagation();
    select(null);
  });
  const stops = [
    host.on("replay", setFrames),
    host.onLost(() => (isLost = true)),
    host.listen((message) => {
      isLost = false;
      if (message.node !== undefined && message.node === selected) inspector.show(message);
    }),
  ];
  count = moments.count;
  setFrames();
  return () => {
    for (const stop of stops) stop();
    clearTimeout(asking);
    beneath.close();
    player.pause();
    inspector.hide();
    drawing.close();
  };
}

// Plays frames in their own time, faster, or with every wait made short.
// `timeOf(n)` is when frame n was, in seconds; `advance(n)` shows it; `onChange(isPlaying)` is told of both.
function makePlayer({ timeOf, advance, onChange }) {
  let mode = MODES.at(-1);
  let timer = 0;
  let at = 0;
  let count = 0;

  // Frames that follow at once are shown together.
  const step = () => {
    let wait = 0;
    do {
      at += 1;
      wait = at < count ? mode.seconds(timeOf(at + 1) - timeOf(at)) * 1000 : Infinity;
    } while (wait < FASTEST_MS);
    advance(at);
    if (at >= count) pause();
    else timer = setTimeout(step, wait);
  };

  const play = (from) => {
    at = from >= count ? 0 : from;
    if (!count) return;
    if (at !== from) advance(at);
    onChange(true);
    timer = setTimeout(step, FASTEST_MS);
  };

  const pause = () => {
    if (!timer) return;
    clearTimeout(timer);
    timer = 0;
    onChange(false);
  };

  return {
    modes: MODES,
    setMode: (chosen) => (mode = chosen),
    setCount: (value) => (count = value),
    pause,
    toggle(from) {
      if (timer) pause();
      else play(from);
    },
  };
}

// The frames of a run as moments: what nodes, edges and context were behind each of its events.
//
// A frame says what its event changed. Every so often the sum is kept, so that any moment is a few steps away.
// `replay` is what Python's `replay_of` gives. `at(0)` is the moment before the first event.
function makeMoments({ frames = [], base = {} } = {}) {
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

function contextOf(contexts, branch) {
  let place = branch;
  while (!(place in contexts)) place = place.split("/").slice(0, -2).join("/");
  return contexts[place];
}

// The context at a moment as a table; what the event at hand has set comes first and is marked.
function makeContextTable() {
  const title = make("summary", "", __("Context"));
  const headings = ["change", "key", "value"].map((name) => make("th", `ar-${name}`, name, { scope: "col" }));
  const top = make("thead", "", [make("tr", "", headings)]);
  const news = make("tbody", "ar-news");
  const rest = make("tbody", "ar-all");
  const element = make("details", "ar-context", [title, make("div", "ar-values", [make("table", "", [top, news, rest])])], { open: true });
  const rows = new Map(); // of `rest`, by key, in its order
  let due = null;

  const makeRow = (key, value, word) => {
    const line = make("tr", word ? "is-changed" : "", [make("td", "ar-change", word), make("td", "ar-key", key), make("td", "ar-value")]);
    setValue(line.lastChild, key, value);
    return line;
  };

  function paint() {
    const { values, frame, branch } = due;
    due = null;
    const changed = (frame && frame.context) || {};
    const dropped = (frame && frame.dropped) || [];
    news.replaceChildren(
      ...dropped.map((key) => makeRow(key, "", "gone")),
      ...Object.keys(changed).map((key) => makeRow(key, values[key], "set")),
    );
    paintRest(values, changed);
    const count = Object.keys(values).length;
    const many = Object.keys(changed).length + dropped.length;
    const of = branch ? __("Context of branch %1", branch) : __("Context");
    const counted = _n("%1 value", "%1 values", count);
    title.textContent = `${of}: ${many ? __("%1, %2 changed here", counted, many) : counted}`;
  }

  // Rows stay where they are; what is other than before is written anew, and nothing else.
  function paintRest(values, changed) {
    const keys = Object.keys(values).filter((key) => !(key in changed)).toSorted().slice(0, SHOWN_KEYS);
    const wanted = new Set(keys);
    for (const [key, row] of rows) {
      if (wanted.has(key)) continue;
      row.line.remove();
      rows.delete(key);
    }
    let after = null;
    for (const key of keys) {
      let row = rows.get(key);
      if (!row) {
        row = { line: makeRow(key, values[key], ""), value: values[key] };
        rows.set(key, row);
        if (after) after.after(row.line);
        else rest.prepend(row.line);
      } else if (row.value !== values[key]) {
        row.value = values[key];
        setValue(row.line.lastChild, key, row.value);
      }
      after = row.line;
    }
  }

  element.addEventListener("toggle", () => due && paint());
  return {
    element,
    show(values, frame, branch) {
      due = { values, frame, branch };
      if (element.open) paint();
    },
  };
}

const spelled = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// What has no room in a line opens by a click, and stays open while it changes.
function setValue(cell, key, value) {
  const text = spelled(value);
  if (text.length <= LONG && !text.includes("\n")) {
    cell.textContent = text;
    return;
  }
  let button = cell.querySelector("button");
  if (!button) {
    button = makeButton("ar-long", "", __("Show all of %1, or one line of it", key), () => open(button.getAttribute("aria-expanded") !== "true"));
    button.setAttribute("aria-expanded", "false");
    cell.replaceChildren(button);
  }
  const open = (isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen && typeof button.shown !== "string" ? JSON.stringify(button.shown, null, 2) : spelled(button.shown);
  };
  button.shown = value;
  open(button.getAttribute("aria-expanded") === "true");
}

// The slider over the events of a run, its buttons, and under it a tick for each stage that ended.
// Of ends that stand in one place the one that matters most.
function ticksOf(ends, count) {
  if (ends.length <= MOST_TICKS) return ends;
  const rank = ({ node, status }) => (node ? RANKS.indexOf(status) : RANKS.length);
  const ticks = new Map();
  for (const frame of ends) {
    const place = Math.floor((frame.n * MOST_TICKS) / count);
    const there = ticks.get(place);
    if (!there || rank(frame) > rank(there)) ticks.set(place, frame);
  }
  return [...ticks.values()];
}

// `onSeek(n)`, `onStage(±1)` and `onPlay(n)` say what was asked for.
function makeScrubber({ onSeek, onStage, onPlay }) {
  const buttons = make("div", "ar-buttons", "", { role: "toolbar", "aria-label": __("Replay") });
  let count = 0;
  let at = 0;

  const button = (text, title, act) => {
    return makeButton("al-button ar-button", text, title, act, { "aria-label": title });
  };
  const player = button("", __("Play (Space)"), () => onPlay(at));
  player.append(makeIcon("play"));
  const modes = make("span", "ar-modes", "", { role: "radiogroup", "aria-label": __("Speed") });
  const place = make("span", "al-number ar-place");
  const time = make("span", "al-number ar-time");
  buttons.append(
    button("«", __("Stage before (Shift+Left)"), () => onStage(-1)),
    button("‹", __("Event before (Left)"), () => onSeek(at - 1)),
    player,
    button("›", __("Next event (Right)"), () => onSeek(at + 1)),
    button("»", __("Next stage (Shift+Right)"), () => onStage(1)),
    modes,
    place,
    time,
  );

  const slider = make("input", "ar-slider", "", { type: "range", min: 0, "aria-label": __("Event") });
  slider.addEventListener("input", () => onSeek(Number(slider.value)));
  const strip = make("div", "ar-strip");
  strip.setAttribute("aria-hidden", "true"); // the slider says the same
  strip.addEventListener("click", (event) => {
    const box = strip.getBoundingClientRect();
    onSeek(Math.round(((event.clientX - box.left) / box.width) * count));
  });
  const track = make("div", "ar-track", [slider, strip]);
  const words = make("p", "ar-words", "", { role: "status" });
  const element = make("div", "ar-scrubber", [words, track, buttons]);

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction && event.shiftKey) onStage(direction);
    else if (direction) onSeek(at + direction);
    else if (event.key === "Home") onSeek(0);
    else if (event.key === "End") onSeek(count);
    else if (event.key === " " && event.target === slider) onPlay(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    addModes(all, choose) {
      all.forEach((mode, index) => {
        const made = makeButton("ar-mode", mode.name, mode.title, () => {
          for (const other of modes.children) other.setAttribute("aria-checked", String(other === made));
          choose(mode);
        }, { role: "radio", "aria-checked": String(index === all.length - 1) });
        modes.append(made);
      });
    },
    setPlaying(isPlaying) {
      player.replaceChildren(makeIcon(isPlaying ? "pause" : "play"));
      player.title = isPlaying ? __("Pause (Space)") : __("Play (Space)");
      player.setAttribute("aria-label", player.title);
    },
    setFrames(frames, nameOf, ends) {
      count = frames.length;
      slider.max = count;
      time.dataset.whole = count ? seconds(frames[count - 1].at) : seconds(0);
      strip.replaceChildren(
        ...ticksOf(ends, count).map((frame) => {
          const tick = make("span", `ar-tick ar-${frame.node ? frame.status : `run-${frame.status}`}`);
          tick.style.left = `${(100 * frame.n) / count}%`;
          tick.title = frame.node ? `${nameOf(frame.node)}: ${stageWord(frame.status)}` : frame.words;
          return tick;
        }),
      );
    },
    show(n, frame) {
      at = n;
      slider.value = n;
      const said = frame ? frame.words : __("Before the first event.");
      slider.setAttribute("aria-valuetext", __("%1 of %2: %3", n, count, said));
      words.textContent = said;
      place.textContent = `${n} / ${count}`;
      const [reached, whole] = [seconds(frame ? frame.at : 0), time.dataset.whole || seconds(0)];
      time.textContent = reached === whole ? whole : `${reached} / ${whole}`;
    },
  };
}
