// What can be done with a run of the list, as buttons; deleting takes two clicks.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const SURE_MS = 4000; // how long a delete waits for its second click

// `wanted` are the names of those that are offered; all of them if it is left out.
export function makeHistoryActions({ send, say, wanted }) {
  let sure = null;
  let timer = 0;

  function forget() {
    clearTimeout(timer);
    if (sure) {
      sure.button.textContent = __("Delete");
      sure.button.classList.remove("is-sure");
    }
    sure = null;
  }

  function remove(row, button) {
    if (sure && sure.key === row.key) {
      forget();
      send({ kind: "delete", key: row.key });
      return;
    }
    forget();
    sure = { key: row.key, button };
    button.textContent = __("Sure?");
    button.classList.add("is-sure");
    timer = setTimeout(forget, SURE_MS);
  }

  function askForTag(row) {
    const form = make("div", "ah-tagging");
    const field = make("input", "ah-tag-field");
    field.setAttribute("aria-label", __("A new tag for %1", row.key));
    field.placeholder = __("a new tag");
    field.maxLength = 60;
    const give = () => {
      if (field.value.trim()) send({ kind: "tag", key: row.key, tag: field.value });
    };
    // No form: in a notebook's page the host has its own idea of what Enter does in one.
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      give();
    });
    form.append(field, makeButton("al-button", __("Add"), "", give));
    for (const tag of row.tags) {
      const gone = makeButton("al-button", `${tag} ×`, "", () => send({ kind: "untag", key: row.key, tag }));
      gone.setAttribute("aria-label", __("Remove the tag %1", tag));
      form.append(gone);
    }
    say({ title: __("Tags of %1", row.key), extra: form, call: `runs()[${row.index}].tag("…")` });
    field.focus();
  }

  return {
    cellOf(row) {
      const cell = make("td", "ah-actions");
      const ask = (kind) => () => send({ kind, key: row.key });
      const why = row.is_live ? __("It is running") : __("Delete it permanently: click twice");
      const button = makeAction(row, __("Delete"), why, row.is_deletable, (self) => remove(row, self));
      if (sure && sure.key === row.key) {
        sure.button = button;
        button.textContent = __("Sure?");
        button.classList.add("is-sure");
      }
      const offered = {
        Open: makeAction(row, __("Open"), __("Show it"), row.is_readable, ask("open")),
        Resume: makeAction(row, __("Resume"), __("Resume the run where it stopped"), row.is_resumable, ask("resume")),
        Tag: makeAction(row, __("Tag"), __("Add or remove tags"), row.is_readable, () => askForTag(row)),
        Delete: button,
      };
      for (const [name, action] of Object.entries(offered)) if (!wanted || wanted.includes(name)) cell.append(action);
      return cell;
    },
    close: () => clearTimeout(timer),
  };
}

function makeAction(row, word, title, isAllowed, act) {
  const button = makeButton("al-button ah-do", word, title, () => act(button));
  button.disabled = !isAllowed;
  button.dataset.focus = `${word} ${row.key}`;
  button.setAttribute("aria-label", `${word} ${row.pipeline || __("run")} ${row.key}`);
  return button;
}
