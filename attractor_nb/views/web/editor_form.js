// The form of one thing of the graph: a field for each attribute that its handler has. A value is given to the text when
// its field is left, or with Ctrl+Enter; while it is typed it is only checked.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const CHECK_MS = 250;
const UNSET = "";

// `onSet(name, value)`: null removes; `onCheck(name, text)` asks what is wrong with a value.
export function makeEditorForm({ onSet, onCheck, onRename, onRemove, onClose }) {
  const element = make("section", "ae-form");
  element.setAttribute("aria-label", __("Attributes"));
  element.hidden = true;
  let fields = new Map();
  let timer = 0;

  function makeField(field) {
    const box = make("label", field.is_long ? "ae-field is-long" : "ae-field");
    const name = make("span", "ae-name", field.name);
    name.title = field.meaning;
    const input = makeInput(field);
    input.dataset.name = field.name;
    input.disabled = field.is_locked;
    const words = make("span", "ae-words", field.is_locked ? __("It holds a secret: change it in Python.") : "");
    words.setAttribute("aria-live", "polite");
    const note = field.value === null && field.inherited !== null ? __("%1, inherited", field.type) : field.type;
    box.append(name, make("span", "ae-type", note), input, words);
    const before = input.value;
    const give = () => {
      if (input.value !== (fields.get(field.name) || { before }).before) {
        fields.get(field.name).before = input.value;
        onSet(field.name, input.value === UNSET ? null : input.value);
      }
    };
    input.addEventListener("change", give);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        give();
      }
    });
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => onCheck(field.name, input.value), CHECK_MS);
    });
    fields.set(field.name, { input, words, before });
    return box;
  }

  function makeMore(names) {
    const input = make("select", "ae-input ae-more");
    input.setAttribute("aria-label", __("Another attribute"));
    const first = make("option", "", __("Another attribute …"));
    first.value = UNSET;
    input.append(first, ...names.map((field) => make("option", "", field.name)));
    input.addEventListener("change", () => {
      const field = names.find(({ name }) => name === input.value);
      if (!field) return;
      const box = makeField(field);
      input.before(box);
      box.querySelector(".ae-input").focus();
      input.querySelector("option:checked").remove();
      input.value = UNSET;
    });
    return input;
  }

  function makeHead(form) {
    const head = make("div", "ae-head");
    head.append(make("h4", "ae-title", form.title), make("span", "ae-kind", form.kind));
    if (form.node) {
      const rename = make("input", "ae-input ae-id");
      rename.value = form.node;
      rename.setAttribute("aria-label", __("Id of the node"));
      rename.addEventListener("change", () => onRename(form.node, rename.value.trim()));
      head.append(rename);
    }
    const shut = makeButton("al-close", "×", "", onClose);
    shut.setAttribute("aria-label", __("Close"));
    if (form.node || form.edge !== null) head.append(makeButton("al-button ae-remove", __("Remove"), "", onRemove));
    head.append(shut);
    return head;
  }

  return {
    element,
    open(form) {
      fields = new Map();
      const body = make("div", "ae-body");
      body.append(...form.fields.map(makeField));
      if (form.more.length) body.append(makeMore(form.more));
      element.replaceChildren(makeHead(form), body);
      element.hidden = false;
    },
    // What the text has now, for all fields but the one that is being typed in.
    refresh(form) {
      const focused = document.activeElement;
      const name = element.contains(focused) ? focused.dataset.name : undefined;
      const scroll = element.scrollTop;
      this.open(form);
      element.scrollTop = scroll;
      if (name && fields.has(name)) fields.get(name).input.focus();
    },
    say(name, words) {
      const field = fields.get(name);
      if (!field) return;
      field.words.textContent = words;
      if (words) field.input.setAttribute("aria-invalid", "true");
      else field.input.removeAttribute("aria-invalid");
    },
    hide() {
      clearTimeout(timer);
      element.hidden = true;
    },
  };
}

function makeInput(field) {
  if (field.type === "boolean" || field.choices.length) return makeChoice(field);
  const input = make(field.is_long ? "textarea" : "input", "ae-input");
  if (field.is_long) input.rows = Math.min(8, Math.max(2, (field.value || "").split("\n").length));
  else input.type = "text";
  input.value = field.value ?? "";
  input.placeholder = field.inherited ?? field.default ?? "";
  input.spellcheck = field.is_prose;
  return input;
}

function makeChoice(field) {
  const input = make("select", "ae-input");
  const known = field.type === "boolean" ? ["true", "false"] : field.choices;
  const unset = make("option", "", `– ${field.inherited ?? field.default ?? "not set"}`);
  unset.value = UNSET;
  const values = field.value === null || known.includes(field.value) ? known : [field.value, ...known];
  input.append(unset, ...values.map((value) => make("option", "", value)));
  for (const option of [...input.options].slice(1)) option.value = option.textContent;
  input.value = field.value ?? UNSET;
  return input;
}
