// A text with line numbers. Lines that were changed have a bar and a plus, lines with findings their letter.

import { make } from "./parts.js";

export function makeSourcePane(label) {
  const element = make("div", "sp-pane", "", { tabIndex: 0, role: "region", "aria-label": label });
  let rows = [];
  return {
    element,
    // `changed` are numbers of lines from 1 on, `findings` have `line` and `letter`; `first` is the first line's number.
    show(text, changed = [], findings = [], first = 1) {
      const touched = new Set(changed);
      const letters = new Map(findings.map(({ line, letter }) => [line, letter]));
      const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
      rows = lines.map((line, index) => {
        const row = make("div", touched.has(index + 1) ? "sp-line is-changed" : "sp-line");
        const sign = touched.has(index + 1) ? "+" : letters.get(index + first) || "";
        row.append(make("span", "sp-number", String(index + first)), make("span", "sp-sign", sign));
        row.append(make("code", "sp-text", line));
        return row;
      });
      element.replaceChildren(...rows);
    },
    reveal(line, first = 1) {
      const row = rows[line - first];
      if (!row) return;
      for (const other of rows) other.classList.toggle("is-here", other === row);
      element.scrollTop = row.offsetTop - element.offsetTop - element.clientHeight / 2;
    },
  };
}

// A unified diff, with its signs as words for those who see no colours.
export function makeDiff(text) {
  const element = make("pre", "sp-diff");
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const isHead = line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@");
    const kind = isHead ? "sp-head" : { "+": "sp-added", "-": "sp-removed" }[line[0]] || "";
    element.append(make("span", kind, `${line}\n`));
  }
  return element;
}
