// What is told beside the cursor by a key, in a box that takes the focus; and that an answer is awaited.

import { make, whileDot } from "./editor_text.js";

const SLOW_MS = 1000;

export function makeTelling({ state, view }, words) {
  const { StateEffect, StateField } = state;
  const { EditorView, keymap, showTooltip } = view;
  const sources = []; // functions of `(editor, position)`: an element or null, or a promise of one
  const setTold = StateEffect.define();

  const told = StateField.define({
    create: () => null,
    update(value, { effects, docChanged, selection }) {
      for (const effect of effects) if (effect.is(setTold)) return effect.value;
      return docChanged || selection ? null : value;
    },
    provide: (field) => showTooltip.from(field),
  });

  const show = (editor, value) => editor.dispatch({ effects: setTold.of(value) });
  const shownIn = (editor) => editor.state.field(told, false) ?? null;

  // A line beside the cursor, until the text or the cursor changes.
  function say(editor, text) {
    const note = make("div", "cm-attractor-meaning", text);
    note.setAttribute("role", "status");
    const value = { pos: editor.state.selection.main.head, above: true, create: () => ({ dom: note }) };
    show(editor, value);
    return value;
  }

  // The answer; while it takes longer, a line beside the cursor says so.
  async function awaited(editor, answer) {
    const isStill = stillIn(editor);
    let note = null;
    const timer = setTimeout(() => {
      if (isStill() && !shownIn(editor)) note = say(editor, words.__("The server of attractor_nb is being asked…"));
    }, SLOW_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      if (note && shownIn(editor) === note) show(editor, null);
    }
  }

  async function tellHere(editor) {
    const isStill = stillIn(editor);
    const { head } = editor.state.selection.main;
    const found = (await awaited(editor, Promise.all(sources.map((source) => source(editor, head))))).filter(Boolean);
    await new Promise((done) => setTimeout(done)); // the notebook takes the focus once more for the key that was pressed
    if (!isStill()) return;
    if (!found.length) {
      say(editor, words.__("Nothing is known about this place."));
      return;
    }
    const box = make("div", "cm-attractor-told");
    box.tabIndex = -1;
    box.setAttribute("role", "dialog");
    box.setAttribute("aria-label", words.__("About this place"));
    box.dataset.lmSuppressShortcuts = "true"; // JupyterLab's Escape leaves the cell
    box.append(...found);
    show(editor, { pos: head, above: true, create: () => ({ dom: box }) });
    (box.querySelector("button") ?? box).focus({ preventScroll: true });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      show(editor, null);
      editor.focus();
    });
    box.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !box.contains(relatedTarget)) show(editor, null);
    });
  }

  const keys = keymap.of([{ key: "Shift-F1", run: (editor) => (tellHere(editor), true) }]);
  const all = [told, keys];
  const theme = EditorView.baseTheme({ ".cm-attractor-told:focus": { outline: "2px solid var(--jp-brand-color1, #1976d2)" } });
  return { add: (source) => sources.push(source), awaited, say, stillIn, extensionOf: (model) => whileDot({ state, view }, model, all, theme) };
}

// Whether text, cursor and focus are as they were: what was asked for before is then still wanted.
function stillIn(editor) {
  const { doc, selection } = editor.state;
  const { activeElement } = document;
  const hasFocus = () => [activeElement, document.body].includes(document.activeElement);
  return () => editor.state.doc === doc && editor.state.selection.eq(selection) && hasFocus();
}
