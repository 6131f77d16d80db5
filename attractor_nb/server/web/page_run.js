// One run: its live graph with the inspector, its questions, its time, and what can be done with it.
//
// What is shown is what the server says of the run; the stream of events says when to ask again, and what is
// being written meanwhile, which stands nowhere else.

import { showLiveRun } from "./live_view.js";
import { makeGates } from "./page_gates.js";
import { makePageHost } from "./page_host.js";
import { makePast } from "./page_past.js";
import { makeResuming } from "./page_resuming.js";
import { Refusal, Silence, mapAddress, runPath } from "./page_server.js";
import { makeStream } from "./page_stream.js";
import { make, makeButton } from "./parts.js";
import { flattened, shareStates } from "./run_states.js";
import { runWord } from "./state_words.js";
import { __ } from "./wording.js";

const SOONEST_MS = 80; // between two questions about a live run
const ASK_FACTOR = 4; // and longer where the server takes long to answer
const STILL_MS = 4000; // of a run that is not live: somebody may resume it
const NO_REASONS = new Set(["paused", "cancelled"]); // the word of the status says as much

// What, when it changes, may have changed the questions, too.
const newsOf = ({ questions, states, is_live: isLive, is_here: isHere }) => JSON.stringify([questions, states, isLive, isHere]);
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// `isBeside` says that the run stands beside something else, whose page and keys it leaves alone.
export function showRun(server, id, el, { go, way, isBeside = false }) {
  const title = make("h1", "ap-title", id, { tabIndex: -1 });
  const facts = make("p", "ap-facts");
  const buttons = make("div", "ap-buttons");
  const head = make("div", "ap-run-head", [make("div", "ap-run-words", [title, facts]), buttons]);
  const acting = make("div", "ap-acting");
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const stage = make("div", "ap-stage");
  const questions = make("section", "ap-questions");
  const time = make("section", "ap-time");
  const root = make("article", "ap-run", [head, acting, trouble, stage, time]);
  el.append(root);
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));

  const resuming = makeResuming(server, acting, { onDone: (next) => (next === id ? refresh() : go(next)) });
  const resume = makeButton("al-button ap-resume", __("Resume"), __("Resume the run where it stopped"), () => resuming.begin(id));
  const fork = makeButton("al-button", __("Fork…"), __("A run of its own, from a stage of this one"), () => resuming.askWhere(id, visited()));
  buttons.append(resume, fork);
  resume.hidden = fork.hidden = true;

  let status = null; // what the server said last
  let drawing = null;
  let host = null;
  let endView = () => {};
  let gates = null;
  let panel = null;
  let timer = 0;
  let notBefore = 0;
  let isAsking = false;
  let isDirty = false; // something was heard that was not asked about
  let isClosed = false;

  const stream = makeStream(server, id, {
    onEvent(event) {
      if (event.type === "StageOutput" && host) host.tell({ kind: "delta", tails: { [event.name]: event.text } });
      else soon();
    },
    async onPause() {
      await refresh();
      return Boolean(status?.is_live) && isSeen();
    },
  });

  const visited = () =>
    Object.entries(flattened(status?.states || {}).nodes)
      .filter(([node, state]) => state.visits && !node.includes(">"))
      .map(([node]) => ({ node, name: nameOf(node) }));
  const nameOf = (node) => {
    const label = stage.querySelector(`[data-node="${CSS.escape(node)}"] .label`);
    return label ? [...label.children].map((line) => line.textContent).join(" ") : node;
  };

  async function begin() {
    try {
      [drawing, status] = await Promise.all([server.get(runPath(id, "/drawing")), server.get(runPath(id))]);
    } catch (problem) {
      if (problem.kind === "map" && !isClosed) location.replace(mapAddress(id));
      else sayTrouble(problem);
      return;
    }
    if (isClosed) return;
    trouble.textContent = "";
    if (status.map_id) way.append(" / ", make("a", "", __("Map"), { href: mapAddress(status.map_id) }));
    gates = makeGates(server, questions, { hasGates: drawing.has_gates, about: ({ stage: node }) => node, onAnswered, onResume: resuming.begin });
    panel = makePast(server, id, time, drawing);
    showView();
    showStatus(status);
    lookAtAnswers();
    lookAtResponse();
    if (!isBeside) title.focus({ preventScroll: true });
    later();
  }

  // The live view begins with all that is known; it is made anew when a stopped run is resumed.
  function showView() {
    endView();
    stage.replaceChildren();
    const states = { ...status.states, line: status.line, tails: {} };
    const heard = { has_output: drawing.has_output && status.is_here, has_beats: false }; // what is not logged is told where it happens
    host = makePageHost({ ...drawing, ...heard, states, directory: id }, hear);
    const shared = shareStates(host);
    endView = showLiveRun(host, stage, shared, questions);
  }

  async function hear({ kind, ...request }) {
    if (kind === "stop") {
      try {
        await server.post(runPath(id, "/cancel"));
      } catch (problem) {
        sayTrouble(problem);
        showView();
      }
    } else if (kind === "inspect") {
      const asked = host;
      try {
        asked.tell(await server.get(runPath(id, "/inspection"), request));
      } catch (problem) {
        if (problem instanceof Refusal) asked.tell({ kind: "stage", node: request.node, edge: request.edge, problems: [problem.message] });
      }
    } else if (kind === "act" && request.call === "tell") {
      await tellStage(request);
    } else if (kind === "act" && (request.call === "fork" || request.call === "rewind")) {
      await goBack(request);
    }
  }

  // Rerun a failed stage in this run, or in a fork with another prompt; what stands against it is said above the drawing.
  async function goBack({ call, node, visit, branch, at, prompt }) {
    const asked = host;
    const where = { ...(visit && !at ? { visit } : {}), ...(prompt === undefined ? {} : { prompt }) };
    const [act, body] = call === "fork" ? ["fork", { node: at || node, ...where }] : ["resume", { rewind_to: at || node, ...where }];
    const isBegun = await resuming.act(id, act, body);
    const answer = isBegun ? { said: { words: __("It has begun.") } } : { problem: __("It was refused: see above the drawing.") };
    asked.tell({ kind: "acted", call, node, visit, branch, ...answer });
  }

  async function tellStage({ node, visit, branch, text, key }) {
    const asked = host;
    const answer = { kind: "acted", call: "tell", node, visit, branch };
    try {
      const body = JSON.stringify({ text, node, given_by: "page" });
      const taken = await server.postOnce(runPath(id, "/messages"), body, key);
      asked.tell({ ...answer, said: { words: taken.words } });
    } catch (problem) {
      const why = problem instanceof Refusal ? [problem.message, problem.hint] : [__("The server does not answer.")];
      asked.tell({ ...answer, problem: why.filter(Boolean).join(" · ") });
    }
  }

  function sayTrouble(problem) {
    if (isClosed || problem instanceof Silence) return;
    trouble.textContent = [problem.message, problem.hint].filter(Boolean).join(" · ");
  }

  function showStatus(next) {
    const before = status;
    status = next;
    const word = runWord(next.line.status === "waiting" ? "waiting" : next.status);
    const name = drawing.caption || next.name || id;
    title.textContent = name;
    if (!isBeside) document.title = `${name}: ${word} · attractor_nb`;
    const where = next.is_live && !next.is_here ? __("run by another process") : "";
    const why = next.is_live || next.status === "failed" || NO_REASONS.has(next.reason) ? "" : next.reason;
    facts.replaceChildren(make("span", "ap-id", id));
    const standing = next.line.status ? "" : word; // what the line below does not say
    if (next.inputs) facts.append(make("span", "ap-inputs", next.inputs, { title: __("inputs") }));
    for (const tag of next.tags) facts.append(make("span", "ah-tag", tag));
    const about = [next.mark, next.lineage, where, standing, why];
    for (const part of about.filter(Boolean)) facts.append(make("span", "", part));
    resume.hidden = !next.is_resumable;
    fork.hidden = !Object.keys(next.states.nodes || {}).length;
    const isBegun = next.is_live && !before.is_live;
    if (isBegun) stream.rest(); // it may wait to be taken up, for long
    if (next.is_live && isSeen()) stream.open();
    if (isBegun) showView();
    else if (before !== next) tellChanges(before, next);
    panel.show(next);
  }

  function tellChanges(before, next) {
    if (isPoorer(before.states, next.states)) {
      host.set("states", { ...next.states, line: next.line, tails: {} });
      return;
    }
    host.tell({ kind: "delta", ...changesOf(before.states, next.states), line: next.line });
  }

  async function lookAtAnswers() {
    try {
      const [asked, past] = await Promise.all([
        server.get(runPath(id, "/questions")),
        server.get(runPath(id, "/answers")),
      ]);
      if (isClosed) return;
      gates.show(asked.questions);
      gates.showAnswers(past.answers);
      questions.hidden = !(drawing.has_gates && (asked.questions.length || past.answers.length || status.is_live));
    } catch (problem) {
      sayTrouble(problem);
    }
  }

  // What the stage said that spoke last: the answer of a run that has ended.
  async function lookAtResponse() {
    if (!drawing.has_output || !status.line.is_ended) return;
    const asked = host;
    try {
      const { node, text, shown } = await server.get(runPath(id, "/response"));
      asked.tell({ kind: "delta", answer: { node, text, shown } });
    } catch (problem) {
      sayTrouble(problem);
    }
  }

  function onAnswered() {
    lookAtAnswers();
    refresh();
  }

  // Ask how it stands; what happens meanwhile is asked for once more.
  async function refresh() {
    clearTimeout(timer);
    if (isAsking) {
      isDirty = true;
      return;
    }
    isDirty = false;
    if (!drawing) {
      await begin();
      return;
    }
    isAsking = true;
    const begun = performance.now();
    try {
      const next = await server.get(runPath(id));
      if (isClosed) return;
      const isNews = newsOf(next) !== newsOf(status);
      showStatus(next);
      if (drawing.has_gates && isNews) lookAtAnswers();
      if (isNews) lookAtResponse();
    } catch (problem) {
      sayTrouble(problem);
    } finally {
      isAsking = false;
      notBefore = performance.now() + ASK_FACTOR * (performance.now() - begun);
      const isMissed = isDirty;
      isDirty = false;
      if (isMissed) soon();
      else later();
    }
  }

  function soon() {
    const isDue = isDirty && !isAsking;
    isDirty = true;
    if (isAsking || isDue || isClosed) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, Math.max(SOONEST_MS, notBefore - performance.now()));
  }

  // Nothing was heard for a while: a run that is not live may be resumed, also elsewhere.
  function later() {
    if (isClosed || isDirty) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, STILL_MS);
  }

  // A browser keeps few connections open to a server: a tab that nobody sees holds none of them.
  const isSeen = () => document.visibilityState === "visible";
  const showSeen = () => (isSeen() ? soon() : stream.rest());
  document.addEventListener("visibilitychange", showSeen);

  begin();
  return {
    lose() {
      if (host) host.lose();
    },
    find() {
      if (host) host.tell({ kind: "beat" });
      stream.rest();
      soon();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", showSeen);
      stream.close();
      endView();
      if (gates) gates.close();
      if (panel) panel.close();
      root.remove();
    },
  };
}

// What has changed between two answers about a run, as the delta that a live view is told. Values only.
function changesOf(before, next) {
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
function isPoorer(before, next) {
  const [old, fresh] = [flattened(before), flattened(next)];
  return ["nodes", "edges"].some((part) => Object.keys(old[part]).some((id) => !(id in fresh[part])));
}
