// Resuming a run, or a fork of it: asked of the server, and where its commands must be trusted, of the person.

import { make, makeButton, optionsOf } from "./parts.js";
import { Refusal, runPath } from "./page_server.js";
import { __ } from "./wording.js";

// `onDone(id)` is called with the run that is resumed; what stands against it is said in `el`.
export function makeResuming(server, el, { onDone }) {
  function clear() {
    el.replaceChildren();
  }

  async function ask(id, act, body) {
    clear();
    try {
      const accepted = await server.post(runPath(id, `/${act}`), body);
      onDone(accepted.id);
      return true;
    } catch (problem) {
      if (problem instanceof Refusal) showRefusal(id, act, body, problem);
      return false;
    }
  }

  function showRefusal(id, act, body, problem) {
    const hash = problem.problem.surface_hash;
    const shut = makeButton("al-close", "×", "", clear, { "aria-label": __("Close") });
    const head = make("div", "ap-refusal-head");
    head.append(make("strong", "", hash ? __("It runs commands. Read them first.") : __("It cannot be resumed.")), shut);
    const box = make("section", "ap-refusal", [head, make("pre", "ap-words", problem.message)], { role: "alert" });
    if (hash) {
      box.append(makeButton("al-button", __("Trust these commands and resume"), "", () => ask(id, act, { ...body, trust: hash })));
    } else if (problem.hint) {
      box.append(make("p", "al-dim", problem.hint));
    }
    el.replaceChildren(box);
    box.scrollIntoView({ block: "nearest" });
  }

  // From where a fork begins: one of the stages that the run has visited.
  function askWhere(id, stages) {
    const label = make("label", "ap-label", __("A run of its own, from just before:"));
    const choice = make("select", "ap-field", optionsOf(stages.map(({ node, name }) => [node, name === node ? node : `${name} (${node})`])));
    label.append(" ", choice);
    const row = make("div", "ap-row");
    row.append(
      label,
      makeButton("al-button", __("Fork"), "", () => ask(id, "fork", { node: choice.value })),
      makeButton("al-button", __("Not now"), "", clear),
    );
    el.replaceChildren(make("section", "ap-refusal", [row]));
    choice.focus();
  }

  return { begin: (id) => ask(id, "resume", {}), act: ask, askWhere, clear };
}
