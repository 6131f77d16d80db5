// How a new run runs: what answers its prompts, its name, its bounds. Each field has its refusal below it.

import { make } from "./parts.js";
import { __ } from "./wording.js";

export const BACKENDS = {
  simulated: __("simulated: answers are made up"),
  local: __("local: the model installed here"),
  llm: __("llm: providers, by the server's keys"),
  claude: "claude: Claude Code",
  codex: "codex: Codex",
  gemini: "gemini: Gemini CLI",
};
const LIMITS = {
  max_steps: [__("Stages at most"), "1000"],
  max_duration: [__("Time at most"), "30m"],
  max_tokens_total: [__("Tokens at most"), __("no bound")],
  max_budget_usd: [__("Cost at most, in USD"), __("no bound")],
};

// `onChange()` is called for each change.
export function makeOptions({ onChange }) {
  const element = make("fieldset", "an-options");
  const fields = new Map();
  const backend = make("select", "ap-field");
  for (const [name, words] of Object.entries(BACKENDS)) {
    const option = make("option", "", words);
    option.value = name === "simulated" ? "" : name;
    backend.append(option);
  }
  const name = make("input", "ap-field");
  name.maxLength = 500;
  const grid = make("div", "an-grid");
  grid.append(makeField("backend", __("Prompts are answered by"), backend), makeField("name", __("Name of the run"), name));
  const bounds = make("details", "an-bounds");
  bounds.append(make("summary", "", __("Bounds")));
  const inside = make("div", "an-grid");
  for (const [id, [label, hint]] of Object.entries(LIMITS)) {
    const input = make("input", "ap-field");
    input.inputMode = id === "max_duration" ? "text" : "decimal";
    input.placeholder = hint;
    inside.append(makeField(id, label, input));
  }
  bounds.append(inside);
  element.append(make("legend", "", __("How it runs")), grid, bounds);

  function makeField(id, label, field) {
    const box = make("label", "an-field");
    const wrong = make("span", "an-wrong");
    wrong.id = `an-${id}-wrong`;
    wrong.setAttribute("role", "alert");
    field.setAttribute("aria-describedby", wrong.id);
    field.addEventListener("input", () => {
      setWrong(id, "");
      onChange();
    });
    box.append(make("span", "an-label", label), field, wrong);
    fields.set(id, { field, wrong });
    return box;
  }

  function setWrong(id, words) {
    const { field, wrong } = fields.get(id);
    wrong.textContent = words;
    field.setAttribute("aria-invalid", String(Boolean(words)));
  }

  const limits = () => Object.keys(LIMITS).filter((id) => fields.get(id).field.value.trim());
  const textOf = (id) => fields.get(id).field.value.trim();

  return {
    element,
    show(draft) {
      backend.value = draft.backend in BACKENDS ? draft.backend : "";
      name.value = draft.name;
      for (const id of Object.keys(LIMITS)) fields.get(id).field.value = String(draft.limits[id] ?? "");
      bounds.open = limits().length > 0;
    },
    setName(words) {
      name.placeholder = words || __("as the text says");
    },
    draft: () => ({ backend: backend.value, name: name.value, limits: Object.fromEntries(limits().map((id) => [id, textOf(id)])) }),
    // As the server takes it: what is no number goes as it is, and the server says so.
    plain() {
      const valueOf = (id) => (id !== "max_duration" && /^\d+(\.\d+)?$/.test(textOf(id)) ? Number(textOf(id)) : textOf(id));
      return {
        ...(backend.value ? { backend: backend.value } : {}),
        ...(name.value.trim() ? { name: name.value.trim() } : {}),
        ...Object.fromEntries(limits().map((id) => [id, valueOf(id)])),
      };
    },
    // Says at a field what is wrong with it; whether there is that field.
    refuse(id, words) {
      if (!fields.has(id)) return false;
      if (id in LIMITS) bounds.open = true;
      setWrong(id, words);
      fields.get(id).field.focus();
      return true;
    },
    clear() {
      for (const id of fields.keys()) setWrong(id, "");
    },
  };
}
