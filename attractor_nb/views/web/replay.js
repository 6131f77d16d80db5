// A run as something to scrub through: the drawing, the context and the inspector follow a slider over its
// events. Everything is in the value `replay`; nobody is asked, but for a stage's texts where they are not there.

import { makeBeneath } from "./beneath.js";
import { makeDrawing, spokenState } from "./drawing.js";
import { asWidget } from "./host.js";
import { makeInspector } from "./inspector.js";
import { keepKeys, make } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { makePlayer } from "./replay_player.js";
import { makeContextTable } from "./replay_context.js";
import { makeMoments, contextOf } from "./replay_frames.js";
import { makeScrubber } from "./replay_scrubber.js";
import { __ } from "./wording.js";

const ASK_AFTER_MS = 120; // who drags the slider asks for nothing on the way
const NOT_YET = __("The run had not visited this node yet.");
const REPLAY_GONE = __("The kernel is gone: the texts of this visit cannot be loaded. Run.load(…) has them.");
const NOT_HERE = __("The texts of this visit are not part of this page.");
const ENDED_RUNS = new Set(["success", "fail", "interrupted"]);

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
  const root = make("div", "attractor-ui attractor-replay");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", __("Replay of %1", host.get("caption") || __("a run")));
  keepKeys(root);

  let moments = makeMoments(host.get("replay"));
  let count = 0;
  let shown = { nodes: {}, edges: {} };
  let selected = null;
  let selectedVisit = 0;
  let asking = 0;
  let isLost = false;

  const clock = () => (host.get("replay").started || 0) + timeOf(count);
  const timeOf = (n) => (n ? moments.frames[n - 1].at : 0);

  const stage = make("div", "ar-stage");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select, now: clock });
  const inspector = makeInspector({ onClose: () => select(null), onAsk: ask, onAct: act, opensItems: host.isLive });
  stage.append(drawing.element, inspector.element);
  const scrubber = makeScrubber({ onSeek: (n) => seek(n), onStage: stepStage, onPlay: (n) => player.toggle(n) });
  const player = makePlayer({ timeOf, advance: (n) => show(n), onChange: (mode) => scrubber.setPlaying(mode) });
  const context = makeContextTable();
  const beneath = makeBeneath(host);
  root.append(stage, scrubber.element, context.element, beneath.element);
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
    followSelected();
  }

  // What differs between the moment on the screen and another one is drawn anew, and nothing else.
  function change(part, now, put) {
    const was = shown[part];
    if (was === now) return;
    for (const id in now) if (now[id] !== was[id]) put(id, now[id]);
    for (const id in was) if (!(id in now)) put(id, undefined);
  }

  function select(id) {
    const before = selected;
    selected = id === selected ? null : id;
    drawing.select(selected);
    clearTimeout(asking);
    if (selected === null) {
      inspector.hide();
      if (before !== null) drawing.focus(before);
      return;
    }
    selectedVisit = -1;
    followSelected();
    inspector.element.scrollIntoView({ block: "nearest" });
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
