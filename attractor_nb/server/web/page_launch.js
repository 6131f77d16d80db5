// How a text becomes a run: its inputs and options, the commands that are to be read first, and its beginning.

import { makeCommands } from "./page_commands.js";
import { newKey } from "./page_draft.js";
import { makeInputs } from "./page_inputs.js";
import { makeOptions } from "./page_options.js";
import { Refusal } from "./page_server.js";
import { make, makeButton } from "./parts.js";
import { sizeOf } from "./texts.js";
import { __ } from "./wording.js";

const MOST_SENT_BYTES = 1024 * 1024; // what the server takes of a request
const bytesOf = (text) => new TextEncoder().encode(text).length;
export const tooLong = (text) => (bytesOf(text) > MOST_SENT_BYTES ? __("It has %1; the server accepts %2.", sizeOf(bytesOf(text)), sizeOf(MOST_SENT_BYTES)) : "");

// Where a refusal is shown: at the inputs, or at a field by its name; empty for neither.
function placeOfWrong(kind, wrong, words) {
  if (wrong) return wrong.place.split("/")[0];
  if (kind === "context-value" || /^(parameter|inputs of) /.test(words)) return "params";
  return kind === "option" ? (/\b(max_\w+)\b/.exec(words)?.[1] ?? "backend") : "";
}

// `draft` keeps the key of the request; `textOf()` is the text; `obstacleOf()` says what of it keeps it from running, as
// { words, go }, or null; `look(isAnew)` has it looked at; `onChange()` is called for each change, `onBegin()` before the
// request, and `onBegun(id, text)` for the run that has begun.
export function makeLauncher(server, { draft, textOf, obstacleOf, look, onChange, onBegin = () => {}, onBegun }) {
  const commands = makeCommands({ onTick: showState });
  const inputs = makeInputs({ onChange: changed });
  const options = makeOptions({ onChange: changed });
  const begin = makeButton("al-button an-begin", __("Run"), "Ctrl-Enter", run);
  const state = make("p", "an-state");
  state.setAttribute("aria-live", "polite");
  const bar = make("div", "an-bar");
  const refused = make("p", "ap-said");
  refused.setAttribute("role", "alert");
  bar.append(begin, state, refused);
  const more = make("div", "an-more");
  more.append(inputs.element, options.element);
  let isBeginning = false;
  let isClosed = false;

  function changed() {
    draft.key = ""; // it is another request now
    refused.textContent = "";
    onChange();
    showState();
  }

  // What keeps it from running: words, and where to go.
  function obstacle() {
    const ofText = obstacleOf();
    if (ofText) return ofText;
    const wrong = inputs.wrong();
    if (wrong) return { words: __("An input is not valid."), go: () => wrong.focus() };
    const left = commands.left();
    const words = left === 1 ? __("A command is not ticked yet.") : __("%1 commands are not ticked yet.", left);
    return left ? { words, go: () => commands.next().focus() } : null;
  }

  function showState() {
    const against = obstacle();
    begin.disabled = isBeginning || against !== null;
    state.textContent = isBeginning ? __("It begins.") : against ? against.words : __("Ctrl-Enter runs it.");
  }

  function body() {
    const plain = { source: textOf(), ...options.plain(), ...(commands.hash ? { trust: commands.hash } : {}) };
    return `${JSON.stringify(plain).slice(0, -1)}, "params": ${inputs.toJson()}}`; // numbers stay as they were typed
  }

  async function run() {
    if (isBeginning) return;
    isBeginning = true; // a second click comes while the text is being looked at
    await look(false);
    await send();
    isBeginning = false;
    if (!isClosed) showState();
  }

  async function send() {
    const against = obstacle();
    const text = against ? "" : body();
    if (against || tooLong(text)) {
      if (against) against.go();
      else refused.textContent = tooLong(text);
      return;
    }
    const begun = textOf();
    draft.key ||= newKey();
    onBegin();
    showState();
    refused.textContent = "";
    inputs.say("");
    options.clear();
    try {
      const { id } = await server.postOnce("pipelines", text, draft.key);
      draft.key = ""; // the text is kept: the next run is often nearly the same
      onBegin();
      if (!isClosed) onBegun(id, begun);
    } catch (problem) {
      if (problem instanceof Refusal && !isClosed) showRefusal(problem);
    }
  }

  // A refusal stands where it can be mended.
  function showRefusal(refusal) {
    const { kind, problem } = refusal;
    const words = [refusal.message, refusal.hint].filter(Boolean).join("\n");
    if (kind === "untrusted-source") {
      look(true).then(() => isClosed || commands.refuse(refusal));
      return;
    }
    const [wrong] = kind === "body" ? problem.errors || [] : [];
    const place = placeOfWrong(kind, wrong, refusal.message);
    if (place === "params") inputs.say(words);
    else if (!options.refuse(place, wrong ? wrong.message : words)) refused.textContent = words;
  }

  return {
    commands,
    inputs,
    options,
    more,
    bar,
    run,
    changed,
    showState,
    // What the server says of the text: nobody has read its commands yet.
    show(answer) {
      commands.show(answer?.executes || { hash: "", commands: [] });
      if (answer?.nodes) inputs.declare(answer.inputs);
      options.setName(answer?.name || "");
      showState();
    },
    close() {
      isClosed = true;
    },
  };
}
