// The questions that wait, as cards, and the way of an answer to the server: of one run, or of all.

import { showGates } from "./gates_view.js";
import { makePageHost } from "./page_host.js";
import { Refusal, runPath } from "./page_server.js";
import { make } from "./parts.js";
import { __, _n } from "./wording.js";

const FINAL = new Set(["already-answered", "no-such-question", "no-such-pipeline"]);

// `onAnswered()` is called when an answer was taken, or came too late; `onResume(id)` resumes a run.
export function makeGates(server, el, { hasGates = false, none = "", about = () => "", onAnswered, onResume }) {
  const asked = new Map();
  const values = { gates: [], answers: [], refusals: {}, shows_all: true, has_gates: hasGates, none };
  const host = makePageHost(values, handIn);
  const end = showGates(host, el);
  const rest = make("p", "al-dim");
  el.append(rest);

  async function handIn({ kind, gate, choice, text, form }) {
    const question = asked.get(gate);
    if (!question) return;
    if (kind === "resume") {
      await onResume(question.pipeline);
      host.set("refusals", { [gate]: { message: "", fields: {}, is_final: false } }); // what stands against it is said elsewhere
      return;
    }
    const body = { choice, text, answered_by: "page", ...(Object.keys(form).length ? { form } : {}) };
    try {
      await server.post(runPath(question.pipeline, `/questions/${encodeURIComponent(question.id)}/answer`), body);
    } catch (problem) {
      host.set("refusals", { [gate]: refusalOf(problem) });
      if (!(problem instanceof Refusal && FINAL.has(problem.kind))) return;
    }
    onAnswered();
  }

  return {
    // Those that wait now, as the server lists them, and the number of those that it does not list.
    show(questions, more = 0) {
      rest.textContent = more ? _n("%1 more question waits", "%1 more questions wait", more) : "";
      rest.hidden = !more;
      asked.clear();
      for (const question of questions) asked.set(keyOf(question), question);
      host.set("refusals", {});
      host.set("gates", [...asked].map(([key, question]) => cardOf(key, question, about(question))));
    },
    showAnswers: (answers) => host.set("answers", answers),
    close: end,
  };
}

// One that was left open is another card than the same one when it is asked again.
const keyOf = ({ pipeline, id, since, is_answerable: isAnswerable }) => [pipeline, id, since, isAnswerable].join(" ");

// The question as gate_card.js knows it.
const cardOf = (key, question, about) => ({
  key,
  stage: question.stage,
  title: question.text,
  about,
  detail: question.detail,
  kind: question.type,
  choices: question.options,
  form: question.form,
  materials: question.materials,
  since: question.since,
  deadline: question.deadline,
  how: question.is_answerable ? "" : spokenHow(question.how),
  can_resume: isLeft(question),
  resume: "",
});

// Nobody works on its run, and a request resumes it.
const isLeft = ({ is_answerable: isAnswerable, how }) => !isAnswerable && how.startsWith("POST ");

const spokenHow = (how) => (how.startsWith("POST ") ? __("This run is not active. Resume it, and the question is asked again.") : __("Here it cannot be answered: %1.", how));

function refusalOf(problem) {
  if (!(problem instanceof Refusal)) return { message: __("The server does not answer; the answer was not given."), fields: {}, is_final: false };
  const fields = problem.problem.fields || {};
  const isOfFields = Object.keys(fields).some((name) => name !== "");
  const message = isOfFields ? "" : [problem.message, problem.hint].filter(Boolean).join(" · ");
  return { message, fields, is_final: FINAL.has(problem.kind) };
}
