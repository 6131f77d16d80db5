// The text of a document that another page has open, and shows us in a frame: JupyterLab's. They speak by messages of
// their own origin; each tells the other what the text is, and whoever has the text makes the changes.
//
//   from the other page   { kind: "attractor-text", text, name, can_undo, can_redo, can_change }, { kind: "attractor-cursor", line, column }
//   to the other page     { kind: "attractor-ready" }, "-change" { before, after }, "-select" { place }, "-undo", "-redo", "-save", "-open" { run, name }

import { showDocument } from "./page_document.js";
import { make } from "./parts.js";
import { __ } from "./wording.js";

const ALONE = __("A graph is shown here beside a text that JupyterLab has open.");

function framedText() {
  let told = null;
  let listener = null;
  const tell = (message) => window.parent.postMessage(message, location.origin);

  function hear({ source, origin, data }) {
    if (source !== window.parent || origin !== location.origin || !data) return;
    if (data.kind === "attractor-text" && typeof data.text === "string") {
      told = data;
      listener?.onText();
    } else if (data.kind === "attractor-cursor") listener?.onCursor({ line: Number(data.line), column: Number(data.column) });
  }

  window.addEventListener("message", hear);
  return {
    get value() {
      return told?.text ?? "";
    },
    get canUndo() {
      return Boolean(told?.can_undo);
    },
    get canRedo() {
      return Boolean(told?.can_redo);
    },
    get canChange() {
      return told?.can_change !== false;
    },
    get name() {
      return String(told?.name ?? "");
    },
    canSave: false,
    listen(given) {
      listener = given;
    },
    ready: () => tell({ kind: "attractor-ready" }),
    // Whether it is made is said by the text that comes next.
    change(before, after) {
      if (told?.text !== before) return false;
      told = { ...told, text: after, can_undo: true };
      tell({ kind: "attractor-change", before, after });
      return true;
    },
    select: ({ line, column, end_line, end_column }) => tell({ kind: "attractor-select", place: { line, column, end_line, end_column } }),
    undo: () => tell({ kind: "attractor-undo" }),
    redo: () => tell({ kind: "attractor-redo" }),
    save: () => tell({ kind: "attractor-save" }),
    openRun: (run, name) => tell({ kind: "attractor-open", run, name }),
    close: () => window.removeEventListener("message", hear),
  };
}

// The screen of such a document. Nothing is shown before the text is told.
export function showFramedDocument(server, el) {
  document.title = __("Pipeline · attractor_nb");
  document.body.classList.add("ap-narrow");
  const waiting = make("p", "al-dim ad-note", window.parent === window ? ALONE : "");
  el.append(waiting);
  const keeper = framedText();
  let view = null;
  keeper.listen({
    onText() {
      waiting.remove();
      view = showDocument(server, el, keeper);
    },
    onCursor() {},
  });
  if (window.parent !== window) keeper.ready();
  return {
    lose: () => view?.lose(),
    find: () => view?.find(),
    close() {
      view?.close();
      keeper.close();
      waiting.remove();
      document.body.classList.remove("ap-narrow");
    },
  };
}
