// A new run: its text with the drawing and the findings, its inputs, the commands to be read, and its beginning.
// The server reads the text; the page asks it again a moment after each change.

import { makeDrawing } from "./drawing.js";
import { makeFindingTable } from "./finding_table.js";
import { keepDraft, keptDraft } from "./page_draft.js";
import { makeLauncher, tooLong } from "./page_launch.js";
import { Silence } from "./page_server.js";
import { makeSourceField } from "./page_source.js";
import { make } from "./parts.js";
import { __, _n } from "./wording.js";

const JUDGE_MS = 300; // between a change and the question what it means, and longer where the server takes long
const JUDGE_FACTOR = 2;
const GRAVEST_FIRST = ["error", "warning", "info"];
const NOTHING_YET = __("The drawing follows the text.");
const STALE = __("The text cannot be parsed now: this drawing shows the last text that could.");

export function showNew(server, el, { go, way }) {
  document.title = __("New run · attractor_nb");
  const root = make("form", "an-form", "", { noValidate: true, "aria-label": __("New run") });
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));

  const source = makeSourceField(root, { onChange: textChanged, onSaid: (words) => say(words) });
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const findings = makeFindingTable({ onFix: fix, onGo: (_, finding) => source.selectFinding(finding) });
  const verdict = make("p", "an-verdict", "", { "aria-live": "polite" });
  const found = make("section", "an-findings", [verdict, findings.element], { "aria-label": __("What lint says") });
  const sketch = makeSketch({ onNode: source.selectNode });
  const draft = keptDraft();
  const launcher = makeLauncher(server, {
    draft,
    textOf: () => source.value,
    obstacleOf: obstacle,
    look: lookUntilCurrent,
    onChange: save,
    onBegin: save,
    onBegun: go,
  });
  const { inputs, options } = launcher;
  const both = make("div", "an-both", [make("div", "an-written", [source.element, trouble, found]), sketch.element]);
  root.append(make("h1", "ap-title", __("New run")), both, launcher.commands.element, launcher.more, launcher.bar);
  el.append(root);

  let checked = null; // { text, answer, problem } of the text that was looked at last
  let looking = null;
  let timer = 0;
  let wait = JUDGE_MS;
  let isClosed = false;

  function say(words) {
    trouble.textContent = words;
  }

  function save() {
    Object.assign(draft, { text: source.value, inputs: inputs.plain() }, options.draft());
    return keepDraft(draft);
  }

  function textChanged() {
    launcher.commands.forget();
    clearTimeout(timer);
    timer = setTimeout(look, wait);
    say("");
    launcher.changed();
  }

  const isCurrent = () => checked !== null && checked.text === source.value;

  // One question at a time, about the text as it is then.
  function look() {
    clearTimeout(timer);
    if (isClosed || isCurrent()) return looking || Promise.resolve();
    looking ||= lookAt(source.value).finally(() => {
      looking = null;
      if (!isClosed && checked && !isCurrent()) timer = setTimeout(look, wait);
    });
    return looking;
  }

  async function lookUntilCurrent(isAnew) {
    if (isAnew) checked = null;
    if (!isCurrent()) await look();
    if (!isCurrent()) await look(); // what was looked at may have been the text before
  }

  async function lookAt(text) {
    const begun = performance.now();
    let answer = null;
    let problem = text.trim() ? tooLong(JSON.stringify({ source: text })) : "";
    try {
      if (text.trim() && !problem) answer = await server.post("validate", { source: text, with_drawing: true });
    } catch (error) {
      if (error instanceof Silence) return; // the page says it, and asks again when somebody answers
      problem = error.message;
    }
    wait = Math.max(JUDGE_MS, JUDGE_FACTOR * (performance.now() - begun));
    if (isClosed) return;
    checked = { text, answer, problem };
    showChecked();
  }

  function showChecked() {
    const { text, answer, problem } = checked;
    const listed = answer?.diagnostics || [];
    const severityOf = (finding) => GRAVEST_FIRST.indexOf(finding.severity);
    findings.show(listed.toSorted((one, other) => severityOf(one) - severityOf(other)), answer?.more_diagnostics);
    verdict.textContent = answer ? verdictOf(answer) : "";
    say(problem);
    sketch.show(answer?.svg || "", !text.trim());
    source.setInvalid(Boolean(problem) || errorCount() > 0);
    launcher.show(answer);
  }

  const errorCount = () => (checked?.answer?.diagnostics || []).filter((finding) => finding.severity === "error").length;

  async function fix({ number }) {
    if (!isCurrent()) return;
    const { text } = checked;
    try {
      const answer = await server.post("validate", { source: text, fix: number });
      if (!isClosed && source.value === text) source.replace(answer.source);
      look();
    } catch (problem) {
      if (!(problem instanceof Silence)) say([problem.message, problem.hint].filter(Boolean).join(": "));
    }
  }

  // What of the text keeps it from running: words, and where to go.
  function obstacle() {
    if (!source.value.trim()) return { words: __("There is no text yet."), go: source.focus };
    if (!isCurrent()) return { words: __("The text is being checked."), go: source.focus };
    if (checked.problem) return { words: __("The server does not accept the text."), go: source.focus };
    if (errorCount()) {
      const first = checked.answer.diagnostics.find((finding) => finding.severity === "error");
      const goToIt = () => (first.line ? source.selectFinding(first) : source.focus());
      return { words: _n("The text has %1 error.", "The text has %1 errors.", errorCount()), go: goToIt };
    }
    return null;
  }

  const keys = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    launcher.run();
  };
  document.addEventListener("keydown", keys);
  root.addEventListener("submit", (event) => event.preventDefault());
  // Anywhere in a finding is its place.
  findings.element.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !event.target.closest("button") && !getSelection().toString()) row.querySelector(".af-go")?.click();
  });

  source.value = draft.text;
  inputs.show(draft.inputs);
  options.show(draft);
  options.setName("");
  launcher.showState();
  look();
  source.focus();
  return {
    find: look,
    close() {
      save();
      isClosed = true;
      launcher.close();
      clearTimeout(timer);
      document.removeEventListener("keydown", keys);
      sketch.close();
      root.remove();
    },
  };
}

function verdictOf({ nodes, diagnostics, more_diagnostics: more }) {
  const count = diagnostics.length + (more || 0);
  const size = nodes ? _n("%1 node", "%1 nodes", nodes) : __("It cannot be read");
  return count ? `${size}, ${_n("%1 finding", "%1 findings", count)}` : __("%1, no findings", size);
}

// The drawing beside a text that is being written: of the last text that could be read.
// `onNode(id)` is called for a click on a node.
function makeSketch({ onNode }) {
  const words = make("p", "al-dim an-still", NOTHING_YET);
  const place = make("div", "an-place");
  const element = make("section", "an-sketch", [words, place], { "aria-label": __("Drawing of the text") });
  let drawing = null;
  let drawn = "";

  function clear() {
    if (drawing) drawing.close();
    drawing = null;
    place.replaceChildren();
  }

  function drawAnew(svg) {
    clear();
    if (!svg) return;
    drawing = makeDrawing(svg, {}, { onNode });
    place.append(drawing.element);
  }

  return {
    element,
    // A text of SVG; of a text that cannot be read, and of none, an empty one.
    show(svg, isBlank) {
      if (svg !== drawn && (svg || isBlank)) {
        drawn = svg;
        if (!svg || !drawing?.update(svg)) drawAnew(svg);
      }
      words.textContent = svg ? "" : drawn ? STALE : NOTHING_YET;
      element.classList.toggle("is-stale", !svg && Boolean(drawn));
    },
    close: clear,
  };
}
