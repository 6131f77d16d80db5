// A field in the inspector of a model stage that can still be told something. `onTell(request)` sends the message;
// what comes of it comes back through `answer`. What was begun stays with its stage.

import { make, makeButton } from "./parts.js";
import { makeCallLine } from "./stage_actions.js";
import { __ } from "./wording.js";

const SLOW_ANSWER_MS = 1500;
const MAX_MESSAGE_CHARACTERS = 20000; // model/instruction.py

export function makeStageMessage(onTell) {
  const element = make("form", "as-message");
  element.hidden = true;
  const label = make("label", "as-label", __("Tell this stage something"));
  const field = make("textarea", "as-text");
  field.rows = 2;
  field.maxLength = MAX_MESSAGE_CHARACTERS;
  label.append(field);
  const go = makeButton("al-button as-tell", __("Tell"), "", () => send());
  const row = make("div", "as-buttons");
  row.append(go);
  const said = make("div", "");
  element.append(label, row, said);

  const typed = new Map(); // by stage
  let place = null; // {node, visit, branch}
  let sent = null; // the request that was not answered yet
  let timer = 0;

  const setBusy = (isBusy) => go.setAttribute("aria-disabled", String(isBusy || !field.value.trim()));

  function say(words, { isProblem = false, call = "" } = {}) {
    const line = make("p", isProblem ? "as-problem" : "as-said", words);
    line.setAttribute("role", isProblem ? "alert" : "status");
    said.replaceChildren(line, ...(call ? [makeCallLine(call)] : []));
  }

  function send() {
    if (sent || !place || !field.value.trim()) return;
    const key = crypto.randomUUID?.() || `${Date.now()} ${Math.random()}`; // a page that is not served safely has none
    sent = { ...place, call: "tell", text: field.value, key };
    setBusy(true);
    timer = setTimeout(() => say(__("This takes longer. The answer follows here.")), SLOW_ANSWER_MS);
    onTell(sent);
  }

  element.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", () => {
    typed.set(place.node, field.value);
    setBusy(Boolean(sent));
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    send();
  });

  return {
    element,
    // The stage that is shown; whether it can be told something.
    show(canBeTold, about) {
      const isSame = place && about && place.node === about.node;
      if (!isSame) {
        clearTimeout(timer);
        sent = null;
        said.replaceChildren();
        field.value = about ? typed.get(about.node) || "" : "";
      }
      place = about ? { node: about.node, visit: about.visit ?? null, branch: about.branch || "" } : null;
      const isOpen = Boolean(canBeTold && place);
      element.hidden = !isOpen && !said.childElementCount; // what was said of the last message stays to be read
      label.hidden = row.hidden = !isOpen;
      setBusy(Boolean(sent));
    },
    // What came of a message.
    answer(message) {
      if (!place || !sent || message.node !== place.node) return;
      clearTimeout(timer);
      sent = null;
      if (message.problem) {
        say(message.problem, { isProblem: true });
      } else {
        typed.delete(place.node);
        field.value = "";
        say(message.said.words, message.said);
      }
      setBusy(false);
    },
    close: () => clearTimeout(timer),
  };
}
