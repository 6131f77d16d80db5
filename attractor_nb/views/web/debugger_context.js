// What can be changed where a run stands: values of the context, the prompt of the stage, the outcome of one
// that has just ended.

import { make, makeButton } from "./parts.js";
import { makeText } from "./texts.js";
import { __ } from "./wording.js";

const OUTCOMES = ["success", "partial_success", "fail", "skipped", "retry"];

// `ask(request)` sends a request of the debugger.
export function makeContextEditor(ask) {
  const element = make("details", "db-editor");
  const title = make("summary", "", __("Change"));
  const outcome = make("form", "db-outcome");
  const prompt = make("form", "db-prompt");
  const values = make("form", "db-values");
  element.append(title, outcome, prompt, values);
  element.hidden = true;

  let branch = null;
  let about = ""; // what the fields are of
  let rows = new Map(); // by key, the row of a value
  let shownPrompt = null;

  // A text of any number of lines: an input would make one line of them. Ctrl+Enter is done with it.
  const field = (label, value, most = 6) => {
    const input = make("textarea", "db-field");
    input.rows = 1;
    input.setAttribute("aria-label", label);
    input.addEventListener("input", () => fit(input, most));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.stopPropagation();
      if (input.closest("table")) input.dispatchEvent(new Event("change"));
      else input.form.requestSubmit();
    });
    put(input, value, most);
    return input;
  };
  const fit = (input, most) => {
    input.rows = Math.min(most, Math.max(1, input.value.split("\n").length));
  };
  // Gives a field its value, unless somebody is writing in it, or has written and not sent it.
  function put(input, value, most = 6) {
    if (input.value !== (input.shown ?? "")) return;
    input.value = value;
    input.shown = input.value;
    fit(input, most);
  }
  const sent = (input) => {
    input.shown = input.value;
    return input.value;
  };

  const onSubmit = (form, act) =>
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!form.querySelector("button[aria-disabled=true]")) act();
    });

  let submitOutcome = () => {};
  let submitPrompt = () => {};
  let submitValue = () => {};
  onSubmit(outcome, () => submitOutcome());
  onSubmit(prompt, () => submitPrompt());
  onSubmit(values, () => submitValue());

  function showOutcome(stop) {
    outcome.hidden = stop.moment !== "after";
    if (outcome.hidden) return;
    const status = make("select", "db-field");
    status.setAttribute("aria-label", __("Outcome"));
    for (const name of OUTCOMES) {
      const option = make("option", "", name);
      option.value = name;
      option.selected = name === stop.status;
      status.append(option);
    }
    const label = field(__("Preferred label"), "");
    label.placeholder = __("preferred label");
    const reason = field(__("Reason"), "");
    reason.placeholder = __("reason of a failure");
    outcome.replaceChildren(make("span", "db-name", __("Outcome")), status, label, reason, submitButton(__("Set"), __("Before an edge is chosen")));
    submitOutcome = () =>
      ask({ call: "set_outcome", status: status.value, label: label.value, reason: reason.value, branch });
  }

  function showPrompt(look, stop) {
    prompt.hidden = look.prompt === null || stop.moment !== "before";
    if (prompt.hidden) return;
    if (!shownPrompt) {
      const text = field(__("Prompt of %1", stop.node), look.prompt, 8);
      shownPrompt = { text, note: make("div", "db-sent"), sent: null, modes: new Map() };
      prompt.replaceChildren(make("span", "db-name", __("Prompt")), text, submitButton(__("Set"), __("For this run only (Ctrl+Enter)")), shownPrompt.note);
    }
    const { text, note } = shownPrompt;
    put(text, look.prompt, 8);
    if (shownPrompt.sent !== look.sent) {
      const options = { name: __("Sent as"), shown: look.sent_shown, modes: shownPrompt.modes };
      note.replaceChildren(...(look.sent ? [makeText(look.sent, 0, options)] : []));
      shownPrompt.sent = look.sent;
    }
    submitPrompt = () => ask({ call: "set_prompt", node: stop.node, text: sent(text) });
  }

  const table = make("table", "db-table");
  const body = make("tbody");
  table.append(make("caption", "", __("Context")), body);
  const newKey = make("input", "db-field");
  newKey.setAttribute("aria-label", __("New key"));
  newKey.placeholder = __("key");
  const newValue = field(__("New value"), "");
  newValue.placeholder = __("value, as JSON or text");
  const more = make("p", "al-dim");
  values.append(table, newKey, newValue, submitButton(__("Add"), __("Put a value into the context (Ctrl+Enter)")), more);
  submitValue = () => {
    if (!newKey.value.trim()) return;
    ask({ call: "set_context", key: newKey.value.trim(), text: newValue.value, branch });
    newKey.value = newValue.value = "";
    newValue.rows = 1;
  };

  function makeRow(key, isFixed) {
    const line = make("tr", "");
    const name = make("th", "", key);
    name.scope = "row";
    const cell = make("td", "");
    const value = isFixed ? make("span", "db-fixed") : field(__("Value of %1", key), "");
    if (!isFixed) {
      value.addEventListener("change", () => {
        if (value.value !== value.shown) ask({ call: "set_context", key, text: sent(value), branch });
      });
    }
    cell.append(value);
    line.append(name, cell);
    return { line, value, isFixed };
  }

  // A row that is there stays, so that who is in it can go on.
  function showValues(look) {
    const before = rows;
    rows = new Map();
    for (const { key, is_fixed: isFixed } of look.context) {
      const known = before.get(key);
      rows.set(key, known && known.isFixed === isFixed ? known : makeRow(key, isFixed));
    }
    const wanted = [...rows.values()].map(({ line }) => line);
    for (const gone of [...body.children].filter((line) => !wanted.includes(line))) gone.remove();
    for (const [number, { key, text }] of look.context.entries()) {
      const { line, value, isFixed } = rows.get(key);
      if (isFixed) value.textContent = text || __("(empty)");
      else put(value, text);
      if (body.children[number] !== line) body.insertBefore(line, body.children[number] || null);
    }
    more.textContent = look.more ? __("%1 more values: run.debugger.context()", look.more) : "";
  }

  return {
    element,
    show(look, stop) {
      const place = `${stop.number} ${stop.node} ${stop.moment} ${stop.path}${stop.branch}`;
      if (place !== about) shownPrompt = null; // it is another one's
      if (branch !== stop.path + stop.branch) rows.clear();
      about = place;
      branch = stop.path + stop.branch;
      title.textContent = stop.moment === "after" ? __("Change outcome and context") : __("Change prompt and context");
      if (outcome.dataset.place !== place) showOutcome(stop);
      outcome.dataset.place = place;
      showPrompt(look, stop);
      showValues(look);
      element.hidden = false;
    },
    // While nothing stands nothing can be sent; what was written stays.
    setOff(isOff) {
      for (const button of element.querySelectorAll("button")) button.setAttribute("aria-disabled", String(isOff));
    },
  };
}

function submitButton(text, tip) {
  const button = makeButton("al-button", text, tip, () => {});
  button.type = "submit";
  return button;
}
