// What can be changed where a run stands: values of the context, the prompt of the stage, the outcome of one
// that has just ended.

import { make, makeButton } from "./parts.js";

const OUTCOMES = ["success", "partial_success", "fail", "skipped", "retry"];

// `ask(request)` sends a request of the debugger.
export function makeContextEditor(ask) {
  const element = make("details", "db-editor");
  const title = make("summary", "", "Change");
  const outcome = make("form", "db-outcome");
  const prompt = make("form", "db-prompt");
  const values = make("form", "db-values");
  element.append(title, outcome, prompt, values);
  element.hidden = true;

  let branch = null;

  const field = (label, value, tag = "input") => {
    const input = make(tag, "db-field");
    input.value = value;
    input.setAttribute("aria-label", label);
    return input;
  };

  const onSubmit = (form, act) =>
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      act();
    });

  function submitButton(text, tip) {
    const button = makeButton("al-button", text, tip, () => {});
    button.type = "submit";
    return button;
  }

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
    status.setAttribute("aria-label", "Outcome");
    for (const name of OUTCOMES) {
      const option = make("option", "", name);
      option.value = name;
      option.selected = name === stop.status;
      status.append(option);
    }
    const label = field("Preferred label", "");
    label.placeholder = "preferred label";
    const reason = field("Reason", "");
    reason.placeholder = "reason of a failure";
    outcome.replaceChildren(make("span", "db-name", "Outcome"), status, label, reason, submitButton("Set", "Before an edge is chosen"));
    submitOutcome = () =>
      ask({ call: "set_outcome", status: status.value, label: label.value, reason: reason.value, branch });
  }

  function showPrompt(look, stop) {
    prompt.hidden = look.prompt === null || stop.moment !== "before";
    if (prompt.hidden) return;
    const text = field(`Prompt of ${stop.node}`, look.prompt, "textarea");
    text.rows = Math.min(8, Math.max(2, look.prompt.split("\n").length));
    prompt.replaceChildren(make("span", "db-name", "Prompt"), text, submitButton("Set", "For this run only"));
    if (look.sent) prompt.append(make("p", "db-sent", `Sent as: ${look.sent}`));
    submitPrompt = () => ask({ call: "set_prompt", node: stop.node, text: text.value });
  }

  function showValues(look) {
    const table = make("table", "db-table");
    const caption = make("caption", "", "Context");
    table.append(caption);
    for (const { key, text, is_fixed: isFixed } of look.context) {
      const row = make("tr", "");
      const name = make("th", "", key);
      name.scope = "row";
      const cell = make("td", "");
      if (isFixed) cell.append(make("span", "db-fixed", text));
      else {
        const value = field(`Value of ${key}`, text);
        value.addEventListener("change", () => ask({ call: "set_context", key, text: value.value, branch }));
        cell.append(value);
      }
      row.append(name, cell);
      table.append(row);
    }
    const key = field("New key", "");
    key.placeholder = "key";
    const value = field("New value", "");
    value.placeholder = "value, as JSON or text";
    values.replaceChildren(table, key, value, submitButton("Add", "Put a value into the context"));
    if (look.more) values.append(make("p", "al-dim", `${look.more} more values: run.debugger.context()`));
    submitValue = () => {
      if (key.value) ask({ call: "set_context", key: key.value, text: value.value, branch });
    };
  }

  return {
    element,
    show(look, stop) {
      branch = stop.path + stop.branch;
      title.textContent = stop.moment === "after" ? "Change outcome and context" : "Change prompt and context";
      showOutcome(stop);
      showPrompt(look, stop);
      showValues(look);
      element.hidden = false;
    },
    hide() {
      element.hidden = true;
    },
  };
}
