// A graph beside its text: the editor of cells, whose changes are made by the server in the text that somebody else keeps.
//
// `keeper` is where the text is:
//   value, canUndo, canRedo      the text now, and whether it can be taken back or made again
//   name, canSave                of its file; whether Save is offered here
//   listen({ onText, onCursor }) call when the text is another one, and with the cursor's place { line, column }
//   change(before, after)        puts the smallest change in, if the text is still `before`; whether it was
//   select(place)                selects what stands at { line, column, end_line, end_column }
//   undo(), redo(), save()
//   openRun(id, name)            shows a run as a whole

import { showEditor } from "./editor.js";
import { makeGates } from "./page_gates.js";
import { makePageHost } from "./page_host.js";
import { makeLauncher } from "./page_launch.js";
import { makeResuming } from "./page_resuming.js";
import { runPath, Silence } from "./page_server.js";
import { makeStream } from "./page_stream.js";
import { make, makeButton, optionsOf } from "./parts.js";
import { flattened } from "./run_states.js";
import { makeStatusLine } from "./status_line.js";
import { __, _n } from "./wording.js";

const SLOW_MS = 2000;
const SLOW = __("The server is slow: the drawing is of an earlier text.");
const CHANGED_MEANWHILE = __("The text has just changed. Nothing was done: do it again.");
const BEGINNING = `digraph pipeline {
    start [shape=Mdiamond]
    plan  [prompt="Plan the change"]
    done  [shape=Msquare]
    start -> plan -> done
}
`;
const FORMATS = { svg: __("SVG picture"), png: __("PNG picture"), mermaid: __("Mermaid text") };
const ENDINGS = { svg: "svg", png: "png", mermaid: "mmd" };
const SOON_MS = 80;
const RUN_QUIET_MS = 4000;
const TICKS_MS = 200;
const OTHER_TEXT = __("The text has changed since: the states are those of the run, by the names of its nodes.");

export function showDocument(server, el, keeper) {
  const note = make("p", "ad-note al-dim", "", { role: "status" });
  const begin = makeButton("al-button", __("Begin with three stages"), __("Put a small pipeline into the file"), () => keeper.change(keeper.value, BEGINNING));
  begin.hidden = true;
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const slow = make("p", "ad-note al-dim", "", { role: "status" });
  const stage = make("div", "ad-stage");
  const launch = make("section", "ad-launch", "", { "aria-label": __("Run this pipeline"), hidden: true });
  const runs = make("div", "ad-run");
  const root = make("div", "ad-document", [trouble, slow, note, begin, stage, runs, launch]);
  el.append(root);

  let host = null;
  let endView = () => {};
  let known = null; // the text that the state is of
  let state = null;
  let places = [];
  let cursor = null; // where it was put while the text was not known yet
  let round = 0; // of states: a fix is of one of them
  let looking = null;
  let isClosed = false;
  let validated = null; // { text, answer }
  let following = null;
  let drawing = null;

  const run = makeButton("al-button ad-run-open", __("Run…"), __("Inputs, backend, and Run"), () => openLaunch(launch.hidden));
  run.setAttribute("aria-expanded", "false");
  const lint = makeButton("al-button", __("Lint"), __("Show or hide lint findings"), () => {
    const isHidden = root.classList.toggle("has-no-lint");
    lint.setAttribute("aria-pressed", String(!isHidden));
  }, { "aria-pressed": "true" });
  const exporting = makeExport(server, { textOf: () => keeper.value, nameOf: () => keeper.name, onSaid: sayTrouble });

  const launcher = makeLauncher(server, {
    draft: { key: "" },
    textOf: () => keeper.value,
    obstacleOf: obstacle,
    look: validate,
    onChange() {},
    onBegun: follow,
  });
  launch.append(launcher.commands.element, launcher.more, launcher.bar);

  function sayTrouble(words) {
    trouble.textContent = words;
  }

  function sayProblem(problem) {
    if (!(problem instanceof Silence)) sayTrouble([problem.message, problem.hint].filter(Boolean).join(" · "));
  }

  // An answer; while it takes long, a line says so.
  async function awaited(answer) {
    const timer = setTimeout(() => (slow.textContent = SLOW), SLOW_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      slow.textContent = "";
    }
  }

  // One question at a time, about the text as it is then.
  function look() {
    if (isClosed || keeper.value === known) return looking || Promise.resolve();
    looking ||= lookAt(keeper.value).finally(() => {
      looking = null;
      if (!isClosed && known !== null && keeper.value !== known) look();
    });
    return looking;
  }

  async function lookAt(text) {
    try {
      const answer = text.trim() ? await awaited(server.post("edit", { source: text })) : { state: null, places: [], diagnostics: [] };
      if (isClosed) return;
      sayTrouble("");
      known = text;
      show(answer, !text.trim());
    } catch (problem) {
      if (isClosed) return;
      if (!(problem instanceof Silence)) known = text; // of this text there is nothing else to hear
      sayProblem(problem);
    }
  }

  // What the server said of the text that is known.
  function show(answer, isBlank = false) {
    round += 1;
    if (answer.state) {
      places = answer.places;
      state = { ...answer.state, is_stale: false };
    } else {
      places = [];
      const findings = answer.diagnostics.map((finding) => ({ ...finding, can_fix: false }));
      if (state) state = { ...state, findings, is_stale: !isBlank };
      note.textContent = state ? "" : isBlank ? __("There is no text yet.") : __("The text cannot be read: %1", answer.diagnostics[0]?.message || "");
    }
    begin.hidden = !isBlank || state !== null || !keeper.canChange;
    if (!state) return;
    note.textContent = "";
    state = { ...state, version: round, can_undo: keeper.canUndo, can_redo: keeper.canRedo, file: keeper.canSave ? keeper.name : "" };
    if (host) host.set("state", state);
    else makeView();
    pointAtCursor();
    if (validated && validated.text !== known) {
      launcher.commands.forget();
      if (!launch.hidden) validate(false);
    }
    launcher.showState();
    if (following) following.textChanged(known);
  }

  function makeView() {
    const still = __("It is only shown here: the server was started without --edit.");
    host = { ...makePageHost({ state, is_beside: true, still }, hear), isLive: keeper.canChange };
    const tools = [run, lint, exporting.element];
    endView = showEditor(host, stage, { tools, onChosen: choose, onDraw: drawn });
  }

  function drawn(next) {
    drawing = next;
    if (following) following.show(next);
  }

  function choose(target) {
    cursor = null;
    const place = target && placeOfTarget(target);
    if (place) keeper.select(place);
  }

  const placeOfTarget = ({ node, edge }) => places.find((place) => (edge !== undefined ? place.edge === edge : node !== undefined && place.node === node));

  // The smallest thing of the text that the cursor stands in.
  function pointAtCursor() {
    if (!host || !cursor || keeper.value !== known) return;
    const { line, column } = cursor;
    cursor = null;
    const isBefore = (one, other) => one[0] < other[0] || (one[0] === other[0] && one[1] <= other[1]);
    const holds = ({ whole }) => isBefore([whole.line, whole.column], [line, column]) && isBefore([line, column], [whole.end_line, whole.end_column]);
    const sizeOfPlace = ({ whole }) => (whole.end_line - whole.line) * 10_000 + whole.end_column - whole.column;
    const [found] = places.filter(holds).toSorted((one, other) => sizeOfPlace(one) - sizeOfPlace(other));
    const target = found ? (found.edge !== undefined ? { edge: found.edge } : { node: found.node }) : null;
    host.tell({ kind: "point", target });
  }

  function hear(message) {
    if (message.kind === "undo") keeper.undo();
    else if (message.kind === "redo") keeper.redo();
    else if (message.kind === "save") keeper.save();
    else if (message.kind === "go") keeper.select(message.finding);
    else edit(message);
  }

  const refuse = (words) => host.tell({ kind: "said", words, is_error: true });

  // Has the server make a change of the text that is shown, and puts it where the text is.
  async function edit(message) {
    const before = known;
    if (keeper.value !== before || (message.kind === "fix" && message.version !== round)) {
      refuse(CHANGED_MEANWHILE);
      return;
    }
    try {
      const asked = message.kind === "fix" ? { ...message, version: 0 } : message;
      const answer = await awaited(server.post("edit", { source: before, message: asked }));
      if (isClosed) return;
      if (answer.source) {
        known = answer.source;
        if (keeper.value !== before || !keeper.change(before, answer.source)) {
          known = before;
          refuse(CHANGED_MEANWHILE);
          look();
          return;
        }
        show(answer);
      } else if (answer.diagnostics.length) refuse(answer.diagnostics[0].message);
      for (const reply of answer.replies) host.tell(reply);
    } catch (problem) {
      if (problem instanceof Silence || isClosed) return;
      refuse([problem.message, problem.hint].filter(Boolean).join(" · "));
    }
  }

  function openLaunch(isWanted) {
    launch.hidden = !isWanted;
    run.setAttribute("aria-expanded", String(isWanted));
    if (!isWanted) return;
    launcher.showState();
    validate(false);
    launch.scrollIntoView({ block: "nearest" });
    launch.querySelector("input, select, textarea, button")?.focus({ preventScroll: true });
  }

  // What it would run with: inputs and commands.
  async function validate(isAnew) {
    const text = keeper.value;
    if (!text.trim() || (!isAnew && validated?.text === text)) return;
    try {
      const answer = await server.post("validate", { source: text });
      if (isClosed) return;
      validated = { text, answer };
      if (keeper.value === text) launcher.show(answer);
    } catch (problem) {
      sayProblem(problem);
    }
  }

  const toText = () => keeper.select({ line: 1, column: 1, end_line: 1, end_column: 1 });

  function obstacle() {
    if (!keeper.value.trim()) return { words: __("There is no text yet."), go: toText };
    if (!validated || validated.text !== keeper.value) return { words: __("The text is being checked."), go: toText };
    const errors = validated.answer.diagnostics.filter((finding) => finding.severity === "error");
    if (!errors.length) return null;
    return { words: _n("The text has %1 error.", "The text has %1 errors.", errors.length), go: () => keeper.select(errors[0]) };
  }

  // A run that was begun here is shown on the drawing.
  function follow(id, text) {
    openLaunch(false);
    if (following) following.close();
    runs.replaceChildren();
    following = followOnDrawing(server, id, runs, {
      text,
      name: keeper.name || id,
      onOpen: keeper.openRun,
      onClose() {
        following.close();
        following = null;
        runs.replaceChildren();
      },
    });
    if (drawing) following.show(drawing);
    following.textChanged(known);
    run.focus({ preventScroll: true });
  }

  const keys = (event) => {
    if (event.defaultPrevented) return; // a field of the form has taken it
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key === "Enter") {
      if (launch.hidden) openLaunch(true);
      else launcher.run();
    } else if (isCommand && event.key.toLowerCase() === "s") keeper.save();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", keys);
  keeper.listen({
    onText() {
      if (host && keeper.value === known) host.set("state", (state = { ...state, can_undo: keeper.canUndo, can_redo: keeper.canRedo }));
      else look();
    },
    onCursor(place) {
      cursor = place;
      pointAtCursor();
    },
  });
  look();

  return {
    look,
    lose: () => host && host.lose(),
    find() {
      if (host) host.tell({ kind: "beat" });
      if (known === null || keeper.value !== known) look();
      if (following) following.refresh();
    },
    close() {
      isClosed = true;
      launcher.close();
      if (following) following.close();
      document.removeEventListener("keydown", keys);
      endView();
      root.remove();
    },
  };
}

// A drawing to take along: as SVG, as PNG, as Mermaid. The server draws it, the browser keeps it as a file.
// `onSaid(words)` is called with what keeps it from being drawn; with an empty text when it was.
function makeExport(server, { textOf, nameOf, onSaid }) {
  const formats = optionsOf([["", __("Export…")], ...Object.entries(FORMATS)]);
  const element = make("select", "ae-input ad-export", formats, { "aria-label": __("Export the drawing") });

  async function save(format) {
    try {
      const theme = document.body.dataset.jpThemeLight === "false" ? "dark" : "light";
      const picture = await server.post("picture", { source: textOf(), format, theme });
      const bytes = picture.encoding === "base64" ? Uint8Array.from(atob(picture.content), (one) => one.charCodeAt(0)) : picture.content;
      keepAsFile(new Blob([bytes], { type: picture.media_type }), `${baseName(nameOf() || picture.name)}.${ENDINGS[format]}`);
      onSaid("");
    } catch (problem) {
      onSaid([problem.message, problem.hint].filter(Boolean).join(" · "));
    }
  }

  element.addEventListener("change", () => {
    const format = element.value;
    element.value = "";
    if (format) save(format);
  });
  return { element };
}

const baseName = (path) => path.split("/").pop().replace(/\.(dot|gv)$/, "");

function keepAsFile(blob, name) {
  const link = make("a", "", "", { href: URL.createObjectURL(blob) });
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A run on the drawing of the text that it was begun from: its states, its line, its questions.
//
// What is shown is what the server says; the stream of events says when to ask again.
// `text` is what it was begun from; `onOpen(id, name)` shows it as a whole, `onClose()` takes it off the drawing.
function followOnDrawing(server, id, el, { text, name, onOpen, onClose }) {
  const line = makeStatusLine(stop, () => onOpen(id, name));
  const bar = make("div", "ad-run-bar");
  bar.append(
    line.element,
    makeButton("al-button", __("Open the run"), __("Its inspector and timeline"), () => onOpen(id, name)),
    makeButton("al-button", __("Hide"), __("Take its states off the drawing; the run is not stopped"), onClose),
  );
  const said = make("p", "al-dim ad-note", "", { role: "status" });
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const acting = make("div", "ap-acting");
  const questions = make("section", "ap-questions", "", { "aria-label": __("Questions of the run") });
  el.append(bar, said, trouble, acting, questions);
  const resuming = makeResuming(server, acting, { onDone: () => refresh() });
  const gates = makeGates(server, questions, { onAnswered: () => refresh(), onResume: resuming.begin });

  let drawing = null;
  let marks = {};
  let status = null;
  let isOtherText = false;
  let timer = 0;
  let isAsking = false;
  let isMissed = false;
  let isClosed = false;

  const stream = makeStream(server, id, {
    onEvent: () => soon(),
    async onPause() {
      await refresh();
      return Boolean(status?.is_live);
    },
  });

  async function stop() {
    try {
      await server.post(runPath(id, "/cancel"));
    } catch (problem) {
      sayProblem(problem);
    }
  }

  function sayProblem(problem) {
    if (!isClosed && !(problem instanceof Silence)) trouble.textContent = [problem.message, problem.hint].filter(Boolean).join(" · ");
  }

  function paint() {
    if (!drawing || !status) return;
    const { nodes, edges } = flattened(status.states);
    drawing.setMarks(marks);
    for (const node of drawing.ids) drawing.setNode(node, nodes[node]);
    for (const edge of drawing.edgeIds) drawing.setEdge(edge, isOtherText ? 0 : edges[edge] || 0);
    drawing.setEnded(status.line.is_ended && !isOtherText);
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(refresh, SOON_MS);
  }

  async function refresh() {
    clearTimeout(timer);
    if (isAsking || isClosed) {
      isMissed = true;
      return;
    }
    isAsking = true;
    isMissed = false;
    try {
      const [next, asked] = await Promise.all([server.get(runPath(id)), server.get(runPath(id, "/questions"))]);
      if (isClosed) return;
      status = next;
      line.show(status.line, Date.now() / 1000);
      gates.show(asked.questions);
      questions.hidden = !asked.questions.length;
      paint();
      trouble.textContent = "";
    } catch (problem) {
      sayProblem(problem);
    } finally {
      isAsking = false;
      if (isMissed) soon();
      else if (!isClosed) timer = setTimeout(refresh, RUN_QUIET_MS);
    }
  }

  async function begin() {
    try {
      ({ marks } = await server.get(runPath(id, "/drawing")));
    } catch (problem) {
      sayProblem(problem);
    }
    await refresh();
    if (!isClosed) stream.open();
  }

  const ticker = setInterval(() => {
    if (!status || status.line.is_ended) return;
    line.tick(status.line, Date.now() / 1000);
    if (drawing) drawing.tick();
  }, TICKS_MS);
  begin();

  return {
    refresh,
    // The drawing that there is now.
    show(next) {
      drawing = next;
      paint();
    },
    textChanged(now) {
      isOtherText = now !== text;
      said.textContent = isOtherText ? OTHER_TEXT : "";
      paint();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(ticker);
      stream.close();
      gates.close();
      if (!drawing) return;
      for (const node of drawing.ids) drawing.setNode(node);
      for (const edge of drawing.edgeIds) drawing.setEdge(edge, 0);
      drawing.setEnded(false);
    },
  };
}
