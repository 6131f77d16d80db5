// The field of a DOT text: typed, pasted, dropped or read from a file, with the numbers of its lines.

import { make, makeButton } from "./parts.js";
import { sizeOf } from "./texts.js";
import { __ } from "./wording.js";

export const MOST_BYTES = 1024 * 1024; // what the server takes of a request
const MOST_TYPED = 2000; // characters; a browser takes seconds to put some hundred lines in as if they were typed
const LINE_PX = 19;
const COLUMN_PX = 7;
const EXAMPLE = `digraph review {
  start [shape=Mdiamond]
  plan  [prompt="Plan the change"]
  done  [shape=Msquare]
  start -> plan -> done
}`;

// `onChange()` is called for each change of the text, `onSaid(words)` with what keeps a file from being read.
export function makeSourceField(dropZone, { onChange, onSaid }) {
  const label = make("label", "an-label", __("DOT text"));
  const area = make("textarea", "an-text", "", { id: "an-text" });
  area.wrap = "off";
  area.spellcheck = false;
  area.autocapitalize = "off";
  area.placeholder = EXAMPLE;
  area.setAttribute("aria-describedby", "an-drop");
  label.htmlFor = area.id;
  const picked = make("input", "al-unseen", "", { type: "file", accept: ".dot,.gv,.txt,text/vnd.graphviz,text/plain", tabIndex: -1 });
  picked.setAttribute("aria-label", __("A file to read"));
  const choose = makeButton("al-button", __("Choose a file…"), "", () => picked.click());
  const hint = make("span", "al-dim an-drop", __("or drop one here"), { id: "an-drop" });
  const undo = makeButton("al-button", __("Undo"), __("Take the text that was there before"), () => {
    replace(before);
    undo.hidden = true;
  }, { hidden: true });
  const head = make("div", "an-head", [label, hint, undo, choose, picked]);
  const numbers = make("div", "an-numbers", "", { "aria-hidden": "true" });
  const element = make("section", "an-source", [head, make("div", "an-body", [numbers, area])], { "aria-label": __("The pipeline's text") });

  let count = 0;
  let before = ""; // what stood there before a long text was put in

  function showNumbers() {
    const now = area.value.split("\n").length;
    if (now !== count) numbers.textContent = Array.from({ length: now }, (_, index) => index + 1).join("\n");
    count = now;
    numbers.scrollTop = area.scrollTop;
  }

  async function read(file) {
    if (!file) return;
    if (file.size > MOST_BYTES) {
      onSaid(__("%1 has %2; the server accepts %3.", file.name, sizeOf(file.size), sizeOf(MOST_BYTES)));
      return;
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      onSaid("");
      put(text);
    } catch {
      onSaid(__("%1 is not text in UTF-8.", file.name));
    }
  }

  // A whole text in place of the one that is there, which can be had back.
  function put(text) {
    before = area.value;
    replace(text);
    undo.hidden = !before.trim() || before === area.value;
  }

  // Only what differs is put in, and a short piece as if it were typed: the browser's own undo takes it back.
  function replace(text) {
    const next = text.replace(/\r\n?/g, "\n");
    const now = area.value;
    if (now === next) return;
    const most = Math.min(now.length, next.length);
    let start = 0;
    while (start < most && now[start] === next[start]) start += 1;
    let tail = 0;
    while (tail < most - start && now.at(-1 - tail) === next.at(-1 - tail)) tail += 1;
    const middle = next.slice(start, next.length - tail);
    area.focus();
    area.setSelectionRange(start, now.length - tail);
    const isShort = Math.max(middle.length, now.length - tail - start) <= MOST_TYPED;
    if (isShort) document.execCommand(middle ? "insertText" : "delete", false, middle);
    if (area.value !== next) area.value = next;
    area.setSelectionRange(start, start + middle.length);
    changed();
  }

  function select(start, end) {
    const above = area.value.slice(0, start).split("\n");
    area.focus({ preventScroll: true });
    area.setSelectionRange(start, end);
    area.scrollTop = Math.max(0, (above.length - 1) * LINE_PX - area.clientHeight / 2);
    area.scrollLeft = Math.max(0, above.at(-1).length * COLUMN_PX - area.clientWidth / 2);
    element.scrollIntoView({ block: "nearest" });
  }

  function changed() {
    showNumbers();
    onChange();
  }

  area.addEventListener("input", () => {
    undo.hidden = true;
    changed();
  });
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= MOST_TYPED) return;
    event.preventDefault();
    const { value, selectionStart: start, selectionEnd: end } = area;
    put(value.slice(0, start) + text + value.slice(end));
  });
  area.addEventListener("scroll", () => {
    numbers.scrollTop = area.scrollTop;
  });
  picked.addEventListener("change", () => {
    read(picked.files[0]);
    picked.value = "";
  });
  for (const kind of ["dragenter", "dragover"]) {
    dropZone.addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      element.classList.add("is-over");
    });
  }
  dropZone.addEventListener("dragleave", (event) => {
    if (!dropZone.contains(event.relatedTarget)) element.classList.remove("is-over");
  });
  dropZone.addEventListener("drop", (event) => {
    element.classList.remove("is-over");
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });

  return {
    element,
    replace,
    get value() {
      return area.value;
    },
    set value(text) {
      area.value = text;
      showNumbers();
    },
    focus: () => area.focus(),
    // By the browser's own memory of what was typed; the keyboard stays where it is.
    takeBack: (command) => quietly(() => {
      area.focus({ preventScroll: true });
      document.execCommand(command);
    }),
    // Does something that takes the keyboard, and gives it back.
    quietly,
    setReadOnly(isReadOnly) {
      area.readOnly = isReadOnly;
      choose.hidden = hint.hidden = isReadOnly;
    },
    // Where the cursor is, as the server counts: { line, column } from 1 on.
    get cursor() {
      const above = area.value.slice(0, area.selectionStart).split("\n");
      return { line: above.length, column: [...above.at(-1)].length + 1 };
    },
    setInvalid: (isInvalid) => area.setAttribute("aria-invalid", String(isInvalid)),
    // Selects what a finding is about.
    selectFinding({ line, column, end_line: endLine, end_column: endColumn }) {
      const lines = area.value.split("\n");
      select(offsetOf(lines, line, column), offsetOf(lines, endLine, endColumn));
    },
    // Selects where a node is declared, as far as a search can tell, else where it is named first.
    selectNode(id) {
      const name = id.replace(/[^\w]/g, "\\$&");
      const found = new RegExp(`(?<![\\w$])${name}(?=\\s*\\[)`).exec(area.value) || new RegExp(`(?<![\\w$])${name}(?!\\w)`).exec(area.value);
      if (found) select(found.index, found.index + id.length);
    },
  };
}

function quietly(act) {
  const before = document.activeElement;
  act();
  if (before && before !== document.body && before.isConnected) before.focus({ preventScroll: true });
}

// The server counts characters, a field of a browser pairs of bytes.
function offsetOf(lines, line, column) {
  const above = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return above + [...(lines[line - 1] || "")].slice(0, column - 1).join("").length;
}
