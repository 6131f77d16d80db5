// A run in time: its timeline and its graph beside each other. A bar chosen in one is shown in the other; the
// graph can be tinted by what each node took.

import { makeDrawing } from "./drawing.js";
import { importDrawing, make, makeButton, makeView } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { __ } from "./wording.js";

const TINT_COLOUR = "var(--al-retrying)";
const TIMELINE_HINT = __("Hover over a bar for its details; click it to select its stage.");

export default asPlacedWidget(showTimeline);

export function showTimeline(host, el) {
  const root = makeView("at-timeline", __("Timeline of %1", host.get("caption") || __("a run")));

  const lanes = make("div", "at-lanes");
  const words = make("pre", "at-words", TIMELINE_HINT, { role: "status" });
  const drawing = makeDrawing(host.get("graph"), host.get("marks"), { onNode: (id) => selectNode(id) });
  const heats = makeHeats();
  root.append(lanes, words, heats, drawing.element);
  el.append(root);

  let bars = new Map(); // number of the bar: its element
  let selected = null; // a node
  let chosen = null; // a bar's number

  function showLanes() {
    const picture = importDrawing(host.get("svg"));
    picture.setAttribute("role", "group");
    const stop = document.activeElement?.closest(".at-lanes [data-bar]"); // whoever walks the bars stays where they are
    const at = stop && lanes.contains(stop) ? Number(stop.dataset.bar) : null;
    lanes.replaceChildren(picture);
    bars = new Map();
    for (const element of picture.querySelectorAll("[data-bar]")) {
      const number = Number(element.dataset.bar);
      const bar = barOf(number);
      bars.set(number, element);
      element.setAttribute("tabindex", bars.size === 1 ? "0" : "-1");
      element.setAttribute("role", "button");
      if (bar) element.setAttribute("aria-label", bar.words.replaceAll("\n", ", "));
      element.addEventListener("mouseenter", () => tell(number));
      element.addEventListener("mouseleave", () => tell(chosen));
      element.addEventListener("focus", () => tell(number));
      element.addEventListener("click", () => choose(number));
      element.addEventListener("keydown", (event) => keyOnBar(event, number));
    }
    mark();
    if (at !== null) focusBar(at);
  }

  const barOf = (number) => (host.get("timeline").bars || [])[number];

  function keyOnBar(event, number) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) focusBar(number + step);
    else if (event.key === "Enter" || event.key === " ") choose(number);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function focusBar(number) {
    if (!bars.has(number)) return;
    for (const element of bars.values()) element.setAttribute("tabindex", "-1");
    bars.get(number).setAttribute("tabindex", "0");
    bars.get(number).focus();
  }

  function tell(number) {
    const bar = number === null ? null : barOf(number);
    words.textContent = bar ? bar.words : TIMELINE_HINT;
  }

  function choose(number) {
    chosen = chosen === number ? null : number;
    selected = chosen === null ? null : barOf(chosen).node;
    tell(chosen);
    mark();
  }

  function selectNode(id) {
    chosen = null;
    selected = selected === id ? null : id;
    const first = (host.get("timeline").bars || []).findIndex((bar) => bar.node === selected);
    if (selected !== null && first >= 0) chosen = first;
    tell(chosen);
    mark();
  }

  function mark() {
    for (const [number, element] of bars) {
      element.classList.toggle("selected", selected !== null && barOf(number)?.node === selected);
      element.setAttribute("aria-pressed", String(number === chosen));
    }
    drawing.select(selected);
  }

  function makeHeats() {
    const group = make("div", "at-heats");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", __("Tint the graph"));
    group.append(make("span", "al-dim", __("Tint the graph by")));
    for (const by of Object.keys(host.get("heats") || {})) {
      group.append(makeButton("al-button", by, __("Tint the graph by %1", by), () => tintBy(by), { "data-by": by, "aria-pressed": "false" }));
    }
    return group;
  }

  let tinted = "";
  function tintBy(by) {
    tinted = tinted === by ? "" : by;
    showTints();
  }

  function showTints() {
    const heat = tinted ? (host.get("heats") || {})[tinted] || {} : {};
    for (const button of heats.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.by === tinted));
    for (const id of drawing.ids) {
      const { level = 0, words: number = "" } = heat[id] || {};
      const colour = level ? `color-mix(in srgb, ${TINT_COLOUR} ${10 * level}%, transparent)` : null;
      drawing.tint(id, colour, number);
    }
  }

  function showStates() {
    for (const [id, state] of Object.entries(host.get("states") || {})) drawing.setNode(id, state);
  }

  const stops = [
    host.on("svg", showLanes),
    host.on("states", showStates),
    host.on("heats", showTints),
    host.onLost(() => {
      if (host.get("timeline").is_live) words.textContent = __("The kernel is gone: this is the last known state. Run.load(…) has the rest.");
    }),
  ];
  showLanes();
  showStates();
  return () => {
    for (const stop of stops) stop();
    drawing.close();
  };
}
