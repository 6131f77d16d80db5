// A form to be filled in at a gate: one row for each field, what is wrong said at the field.
//
// It only carries values; whether they will do is judged in Python. All text goes through textContent.

import { make } from "./parts.js";
import { __ } from "./wording.js";

export function makeGateForm(form) {
  const element = make("div", "ag-form", "", { role: "group", "aria-label": __("Form %1", form.name) });
  // Not counted: every widget has a module of its own, and a label must name the field beside it.
  const own = Math.random().toString(36).slice(2);
  const rows = form.fields.map((field, index) => makeGateField(field, `ag-${own}-${index}`));
  const together = make("p", "ag-problem", "", { role: "alert" });
  element.append(...rows.map((row) => row.element), together);
  return {
    element,
    values() {
      const values = {};
      for (const row of rows) {
        const value = row.value();
        if (value !== undefined) values[row.name] = value;
      }
      return values;
    },
    show(problems) {
      for (const row of rows) row.show(problems[row.name] || "");
      const others = Object.keys(problems).filter((name) => !rows.some((row) => row.name === name));
      together.textContent = others.map((name) => (name ? `${name}: ${problems[name]}` : problems[name])).join("; ");
      const first = rows.find((row) => problems[row.name]);
      if (first) first.focus();
    },
  };
}

function makeGateField(field, id) {
  const label = make("label", "ag-label", field.title || field.name, { htmlFor: id });
  if (field.is_required) {
    label.append(make("span", "ag-needed", " *", { title: __("needed") }));
  }
  const input = makeGateInput(field);
  input.id = id;
  input.setAttribute("aria-required", String(field.is_required));
  const hint = make("span", "ag-hint", [field.words, hintOf(field)].filter(Boolean).join(" · "));
  hint.id = `${id}-hint`;
  const problem = make("span", "ag-problem");
  problem.id = `${id}-problem`;
  problem.setAttribute("role", "alert");
  input.setAttribute("aria-describedby", `${hint.id} ${problem.id}`);
  const element = make("div", "ag-field", [label, input, hint, problem]);
  return {
    element,
    name: field.name,
    value: () => valueOf(field, input),
    focus: () => input.focus(),
    show(words) {
      problem.textContent = words;
      element.classList.toggle("is-wrong", Boolean(words));
      if (words) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

const hasBlank = (field) => field.is_nullable || field.is_required;

function hintOf(field) {
  const kinds = { whole: __("a whole number"), number: __("a number"), texts: __("one on each line") };
  return [kinds[field.kind], field.limits].filter(Boolean).join(", ");
}

function makeGateInput(field) {
  if (field.kind === "yes_no" && !hasBlank(field)) {
    return make("input", "ag-box", "", { type: "checkbox", checked: field.default === true });
  }
  if (field.kind === "choice" || field.kind === "yes_no") {
    const select = make("select", "ag-input");
    const choices = field.kind === "choice" ? field.choices : [true, false];
    const words = field.kind === "choice" ? choices.map(String) : [__("yes"), __("no")];
    if (hasBlank(field)) select.append(make("option", "", "–"));
    for (const word of words) select.append(make("option", "", word));
    const at = choices.indexOf(field.default);
    select.selectedIndex = at < 0 ? 0 : at + (hasBlank(field) ? 1 : 0);
    return select;
  }
  if (field.kind === "text" || field.kind === "texts") {
    const area = make("textarea", "ag-input", "", { rows: field.kind === "texts" ? 3 : 1 });
    area.value = field.kind === "texts" ? (field.default || []).join("\n") : (field.default ?? "");
    return area;
  }
  const line = make("input", "ag-input", "", { type: "text", inputMode: field.kind === "whole" ? "numeric" : "decimal" });
  line.value = field.default ?? "";
  return line;
}

// What was entered; undefined leaves the field out, so that its default or "needed" holds.
function valueOf(field, input) {
  if (input.type === "checkbox") return input.checked;
  const empty = field.is_nullable && field.default !== null ? null : undefined;
  if (input.tagName === "SELECT") {
    const at = input.selectedIndex - (hasBlank(field) ? 1 : 0);
    if (at < 0) return empty;
    return field.kind === "choice" ? field.choices[at] : at === 0;
  }
  const text = input.value;
  if (field.kind === "texts") {
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    return lines.length || !field.is_required ? lines : undefined;
  }
  if (!text.trim()) return empty;
  if (field.kind === "text") return text;
  const value = Number(text.trim());
  const isExact = field.kind === "whole" ? Number.isSafeInteger(value) : Number.isFinite(value);
  return isExact ? value : text.trim(); // Python says what is wrong with it
}
