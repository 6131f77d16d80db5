// Two runs of the list, chosen to be compared: a check box for each, the first is A, the second B.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

// `onChange` is called when something else is chosen.
export function makeHistoryChoice({ send, onChange }) {
  let chosen = []; // keys, A first
  let kind = ""; // of what is chosen: a map is compared with a map
  const element = make("span", "ah-choice");
  const words = make("span", "ah-choice-words");
  words.setAttribute("role", "status");
  const compare = makeButton("al-button", __("Compare"), "", () => {
    if (chosen.length === 2) send({ kind: "compare", key: chosen[0], other: chosen[1] });
  });
  element.append(words, compare);
  const heading = make("th", "ah-chosen");
  heading.scope = "col";
  heading.append(make("span", "al-unseen", __("compare")));

  function show() {
    const [a, b] = chosen;
    compare.disabled = chosen.length !== 2;
    compare.title = b ? `diff(A, B): ${a} and ${b}` : __("Choose two runs with their check boxes");
    words.textContent = b ? __("A and B are chosen") : a ? __("A is chosen; choose B") : "";
  }

  function toggle(row) {
    const { key } = row;
    if (!chosen.length) kind = row.kind;
    chosen = chosen.includes(key) ? chosen.filter((each) => each !== key) : [...chosen, key].slice(0, 2);
    show();
    onChange();
  }

  show();
  return {
    element,
    heading,
    // The rows that there are: what is gone is not chosen any more.
    show(rows) {
      const left = chosen.filter((key) => rows.some((row) => row.key === key));
      if (left.length !== chosen.length) chosen = left;
      show();
    },
    cellOf(row) {
      const cell = make("td", "ah-chosen");
      const place = chosen.indexOf(row.key);
      const box = make("input", "ah-check");
      box.type = "checkbox";
      box.checked = place >= 0;
      const isFull = chosen.length === 2 && place < 0;
      const isOther = chosen.length > 0 && row.kind !== kind;
      box.disabled = !row.is_comparable || isFull || isOther;
      box.title = whyNot(row, isFull, isOther) || (row.kind === "map" ? __("Compare it with another map") : __("Compare it with another run"));
      box.setAttribute("aria-label", spokenChoice(row, place));
      box.dataset.focus = `choose ${row.key}`;
      box.addEventListener("change", () => toggle(row));
      cell.append(box);
      if (place >= 0) cell.append(make("span", `ah-side is-${"ab"[place]}`, "AB"[place]));
      return cell;
    },
  };
}

function whyNot(row, isFull, isOther) {
  if (!row.is_comparable) return __("It cannot be compared");
  if (isFull) return __("Two are chosen: deselect one first");
  return isOther ? __("A map is compared with a map, a run with a run") : "";
}

function spokenChoice(row, place) {
  const name = `${row.pipeline || __("run")} ${row.key}`;
  return place < 0 ? __("Choose %1 to be compared", name) : __("Choose %1 to be compared: it is %2", name, "AB"[place]);
}
