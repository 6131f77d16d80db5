// A run on the drawing of the text that it was begun from: its states, its line, its questions.
//
// What is shown is what the server says; the stream of events says when to ask again.

import { makeGates } from "./page_gates.js";
import { makeResuming } from "./page_resuming.js";
import { Silence, runPath } from "./page_server.js";
import { makeStream } from "./page_stream.js";
import { make, makeButton } from "./parts.js";
import { flattened } from "./run_states.js";
import { makeStatusLine } from "./status_line.js";
import { __ } from "./wording.js";

const SOON_MS = 80;
const RUN_QUIET_MS = 4000;
const TICKS_MS = 200;
const OTHER_TEXT = __("The text has changed since: the states are those of the run, by the names of its nodes.");

// `text` is what it was begun from; `onOpen(id, name)` shows it as a whole, `onClose()` takes it off the drawing.
export function followOnDrawing(server, id, el, { text, name, onOpen, onClose }) {
  const line = makeStatusLine(stop, () => onOpen(id, name));
  const bar = make("div", "ad-run-bar");
  bar.append(
    line.element,
    makeButton("al-button", __("Open the run"), __("Its inspector and timeline"), () => onOpen(id, name)),
    makeButton("al-button", __("Hide"), __("Take its states off the drawing; it continues"), onClose),
  );
  const said = make("p", "al-dim ad-note");
  said.setAttribute("role", "status");
  const trouble = make("p", "ap-said");
  trouble.setAttribute("role", "alert");
  const acting = make("div", "ap-acting");
  const questions = make("section", "ap-questions");
  questions.setAttribute("aria-label", __("Questions of the run"));
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
