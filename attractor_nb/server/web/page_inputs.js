// The inputs of a new run: names with values, each a text or JSON as it was typed. What the pipeline declares has a
// row of its own, and then nothing else will do.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const KINDS = { text: __("text"), json: "JSON" };
const JSON_TYPES = ["integer", "number", "boolean", "array", "object"];

// `onChange()` is called for each change.
export function makeInputs({ onChange }) {
  const element = make("fieldset", "an-inputs");
  const rows = make("div", "an-rows");
  const said = make("p", "ap-said");
  said.setAttribute("role", "alert");
  const add = makeButton("al-button", __("Add an input"), __("A value that the run's context begins with"), () => {
    addRow({ name: "", kind: "text", value: "" }).name.focus();
    onChange();
  });
  const hint = make("p", "al-dim", __("Values that the context begins with, by name."));
  element.append(make("legend", "", __("Inputs")), hint, rows, said, add);
  const kept = new Set();
  let declared = [];

  const declaredAs = (row) => declared.find((input) => input.name === row.name.value.trim());

  function addRow(given) {
    const line = make("div", "an-input");
    const name = make("input", "ap-field an-name");
    name.placeholder = __("name");
    name.spellcheck = false;
    name.setAttribute("aria-label", __("Name of the input"));
    name.value = String(given.name ?? "");
    const kind = make("select", "ap-field an-kind");
    kind.setAttribute("aria-label", __("How the value is read"));
    for (const [value, words] of Object.entries(KINDS)) {
      const option = make("option", "", words);
      option.value = value;
      kind.append(option);
    }
    kind.value = given.kind in KINDS ? given.kind : "text";
    const value = make("textarea", "ap-field an-value");
    value.rows = 1;
    value.spellcheck = false;
    value.value = String(given.value ?? "");
    const about = make("span", "an-about al-dim");
    const words = make("span", "an-wrong");
    words.setAttribute("aria-live", "polite");
    const row = { line, name, kind, value, about, words };
    const drop = makeButton("al-close", "×", "", () => {
      kept.delete(row);
      line.remove();
      add.focus();
      check();
      onChange();
    });
    line.append(name, kind, value, drop, about, words);
    for (const field of [name, kind, value]) {
      field.addEventListener("input", () => {
        said.textContent = "";
        check();
        onChange();
      });
    }
    row.drop = drop;
    kept.add(row);
    rows.append(line);
    check();
    return row;
  }

  // Nothing is sent of a row without name and value, and of a declared input that has a default.
  const isBlank = (row) => !row.value.value.trim() && (declaredAs(row) ? !declaredAs(row).is_required : !row.name.value.trim());

  function wrongOf(row, names) {
    const name = row.name.value.trim();
    if (isBlank(row)) return "";
    if (declaredAs(row)?.is_required && !row.value.value.trim()) return __("It needs a value.");
    if (declared.length && !declaredAs(row)) return __("The pipeline has no such input.");
    if (!name) return __("It has no name.");
    if (names.filter((other) => other === name).length > 1) return __("The name occurs twice.");
    if (row.kind.value !== "json") return "";
    try {
      JSON.parse(row.value.value);
      return "";
    } catch {
      return __("This is not JSON: put a text in quotation marks.");
    }
  }

  function check() {
    const names = [...kept].map((row) => row.name.value.trim());
    for (const row of kept) {
      const about = row.name.value.trim() || __("the input");
      row.value.setAttribute("aria-label", __("Value of %1", about));
      row.value.rows = Math.min(6, row.value.value.split("\n").length);
      row.drop.setAttribute("aria-label", __("Remove %1", about));
      showDeclared(row, declaredAs(row));
      row.words.textContent = wrongOf(row, names);
      for (const field of [row.name, row.value]) field.setAttribute("aria-invalid", String(Boolean(row.words.textContent)));
    }
  }

  function showDeclared(row, input) {
    row.name.readOnly = row.drop.hidden = Boolean(input);
    row.value.required = Boolean(input?.is_required);
    row.value.placeholder = !input || input.is_required ? "" : textOf(input.default);
    row.about.textContent = input?.description || "";
  }

  const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  return {
    element,
    // What the pipeline declares: `name`, `is_required`, `default`, `type`, `description`.
    declare(inputs) {
      const before = declared.map((input) => input.name);
      declared = inputs;
      const names = declared.map((input) => input.name);
      for (const row of kept) {
        const name = row.name.value.trim();
        const isLeft = before.includes(name) && !names.includes(name);
        if (row.value.value.trim() || !(isLeft || (declared.length && !name))) continue;
        kept.delete(row);
        row.line.remove();
      }
      const there = [...kept].map((row) => row.name.value.trim());
      for (const { name, type } of declared.filter((input) => !there.includes(input.name))) {
        addRow({ name, kind: JSON_TYPES.includes(type) ? "json" : "text" });
      }
      add.hidden = declared.length > 0;
      hint.textContent = declared.length ? __("What the pipeline asks for.") : __("Values that the context begins with, by name.");
      check();
    },
    show(inputs) {
      kept.clear();
      rows.replaceChildren();
      for (const input of inputs) if (input && typeof input === "object") addRow(input);
    },
    plain: () => [...kept].map((row) => ({ name: row.name.value, kind: row.kind.value, value: row.value.value })),
    // The first invalid input, as an element; null if all are valid.
    wrong: () => [...kept].find((row) => row.words.textContent)?.name || null,
    // A text of JSON, in which numbers stay as they were typed.
    toJson() {
      const given = [...kept].filter((row) => !isBlank(row));
      const parts = given.map((row) => {
        const value = row.kind.value === "json" ? row.value.value.trim() : JSON.stringify(row.value.value);
        return `${JSON.stringify(row.name.value.trim())}: ${value}`;
      });
      return `{${parts.join(", ")}}`;
    },
    say: (words) => {
      said.textContent = words;
    },
  };
}
