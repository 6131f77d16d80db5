// Two runs on one drawing: a click on a stage shows what both did there, beside each other. Everything is in
// the values `svg`, `marks`, `states`, `comparison` and `legend`; nobody is asked.

import { isFlat, makeDrawing } from "./drawing.js";
import { make, makeButton, makeView, seconds } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { makeProse } from "./prose.js";
import { makeText } from "./texts.js";
import { runWord, stageWord } from "./state_words.js";
import { __, _n } from "./wording.js";

const SIDES = ["a", "b"];
const TEXT_NAMES = ["prompt", "response"];

export default asPlacedWidget(showCompare);

export function showCompare(host, el) {
  const { steps, a, b } = host.get("comparison");
  const root = makeView("attractor-compared", __("Comparison of two runs"));
  const stage = make("div", "ac-stage");
  const drawing = makeDrawing(host.get("svg"), host.get("marks"), { onNode: select });
  for (const [id, state] of Object.entries(host.get("states"))) drawing.setNode(id, state);
  drawing.setEnded(true);

  const title = make("h4", "ac-title");
  const head = make("div", "ac-head", [title, makeButton("al-close", "×", "", () => select(null), { "aria-label": __("Close") })]);
  const body = make("div", "ac-body");
  const panel = make("aside", "ac-panel", [head, body], { hidden: true, "aria-label": __("Both sides of a stage") });
  stage.append(drawing.element, panel);
  stage.classList.toggle("is-flat", isFlat(drawing.size));
  stage.style.setProperty("--ac-width", `${drawing.size.width}px`);
  root.append(makeRuns(a, b), makeLegend(host.get("legend")), stage);
  el.append(root);

  let selected = null;
  const modes = new Map(); // which texts are wanted raw

  function select(id) {
    const before = selected;
    selected = id === selected ? null : id;
    drawing.select(selected);
    panel.hidden = selected === null;
    if (selected === null) {
      if (before !== null) drawing.focus(before);
      return;
    }
    const name = drawing.nameOf(selected);
    title.textContent = name === selected ? name : `${name} (${selected})`;
    const visits = steps.filter((step) => step.node === selected);
    body.replaceChildren(...(visits.length ? visits.map((step) => makeVisit(step, modes)) : [make("p", "al-dim", __("Neither run visited this node."))]));
  }

  const differing = steps.find((step) => step.differs.length);
  if (differing) {
    select(differing.node);
    drawing.follow(differing.node);
  }

  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || selected === null) return;
    event.stopPropagation();
    select(null);
  });
  return () => drawing.close();
}

function makeLegend(entries) {
  return make("ul", "ac-legend", entries.map(({ name, sign, words }) =>
    make("li", `is-${name}`, [make("span", "ac-stroke", sign, { "aria-hidden": "true" }), make("span", "", words)])));
}

function makeRuns(a, b) {
  const list = make("div", "ac-runs");
  for (const [name, side] of [["A", a], ["B", b]]) {
    const line = make("p", `ac-run is-${name.toLowerCase()}`);
    line.append(make("b", "", name), ` ${runWord(side.shown_status)}, ${_n("%1 stage", "%1 stages", side.stages)}, ${seconds(side.seconds)}`);
    if (side.reason && side.shown_status !== "paused") line.append(`: ${side.reason}`);
    line.append(" ", make("span", "al-dim ac-run-id", __("run %1", side.run)));
    list.append(line);
  }
  return list;
}

// One visit: what differs, then both sides.
function makeVisit(step, modes) {
  const number = (step.a || step.b).visit;
  const where = step.branch ? __("branch %1, visit %2", step.branch, number) : __("visit %1", number);
  const words = step.differs.length ? step.differs.join(", ") : __("the same in both");
  const box = make("section", "ac-visit", [make("h5", "ac-visit-title", `${where}: ${words}`)]);
  for (const { name, shown } of step.changes || []) box.append(makeChange(name, shown));
  const sides = make("div", "ac-sides");
  for (const side of SIDES) sides.append(makeSide(side, step[side], modes));
  box.append(sides);
  return box;
}

function makeSide(side, facts, modes) {
  const column = make("div", `ac-side is-${side}`, [make("h6", "ac-side-title", side.toUpperCase())]);
  if (!facts) {
    column.append(make("p", "al-dim", __("did not visit this node")));
    return column;
  }
  const said = [stageWord(facts.status || "cut_off")];
  if (facts.attempts > 1) said.push(__("%1 attempts", facts.attempts));
  if (facts.seconds) said.push(seconds(facts.seconds));
  if (facts.next) said.push(__("then %1", facts.next));
  column.append(make("p", "ac-facts", said.join(" · ")));
  if (facts.reason) column.append(make("p", "ac-reason", facts.reason));
  for (const name of TEXT_NAMES) if (facts[name]) column.append(makeText(facts[name], 0, { name, shown: facts.shown?.[name], modes }));
  return column;
}

function makeChange(name, shown) {
  const box = make("details", "ac-change", "", { open: true });
  box.append(make("summary", "", __("What differs in the %1", name)), makeProse(shown, __("What differs in the %1", name)));
  return box;
}
