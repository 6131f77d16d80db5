// Findings where they are, while one types: a wavy line, a mark in the gutter, a line of how many, and a Fix in the tooltip.

import { bodyOf } from "./cells.js";
import { changeText, make, rangeOf, whileDot } from "./editor_text.js";
import { RULES } from "./words.js";

const SEVERITIES = ["error", "warning", "info"];
const SLOW_MS = 2000;
const START_MS = 5000; // a server that is started may take longer
const AGAIN_MS = 15_000; // a server that does not answer is asked again

export function makeSquiggles({ state, view }, server, { delay, refuse, telling, words }) {
  const { RangeSet, StateEffect, StateField } = state;
  const { Decoration, EditorView, GutterMarker, ViewPlugin, gutter, hoverTooltip, keymap, showPanel } = view;
  const setFindings = StateEffect.define();

  const findings = StateField.define({
    create: () => ({ found: [], doc: null, notice: "" }), // `doc` is the text that they were found in
    update(value, transaction) {
      for (const effect of transaction.effects) if (effect.is(setFindings)) return effect.value;
      if (!transaction.docChanged || !value.found.length) return value;
      const moved = (position, side) => transaction.changes.mapPos(position, side);
      return { ...value, found: value.found.map((each) => ({ ...each, from: moved(each.from, 1), to: moved(each.to, -1) })) };
    },
  });

  const lines = EditorView.decorations.compute([findings], (editorState) =>
    Decoration.set(
      shownIn(editorState)
        .filter(({ from, to }) => from < to)
        .map(({ from, to, severity }) => Decoration.mark({ class: `cm-attractor-${severity}` }).range(from, to)),
      true,
    ),
  );

  function shownIn(editorState) {
    return editorState.field(findings).found;
  }

  const mark = Object.fromEntries(SEVERITIES.map((severity) => [severity, new (markOf(GutterMarker, severity, words))()]));
  const marks = gutter({
    class: "cm-attractor-gutter",
    markers: ({ state: editorState }) => {
      const worst = new Map();
      for (const { from, severity } of shownIn(editorState)) {
        const line = editorState.doc.lineAt(from).from;
        const rank = SEVERITIES.indexOf(severity);
        worst.set(line, Math.min(rank, worst.get(line) ?? rank));
      }
      return RangeSet.of([...worst].toSorted(([one], [other]) => one - other).map(([line, rank]) => mark[SEVERITIES[rank]].range(line)));
    },
    initialSpacer: () => mark.error,
  });

  const panel = showPanel.compute([findings], (editorState) => {
    const { found, notice } = editorState.field(findings);
    return found.length || notice ? (editor) => ({ dom: panelOf(editor, found, notice) }) : null;
  });

  function panelOf(editor, found, notice) {
    const row = make("div", "cm-attractor-panel");
    row.setAttribute("role", "status");
    row.dataset.lmSuppressShortcuts = "true"; // JupyterLab's Shift-Tab asks the kernel, and would not lead on from here
    if (notice) row.append(make("span", "", notice));
    if (!found.length) return row;
    const next = make("button", "", counted(found, words));
    next.type = "button";
    next.title = words.__("Go to the next finding (F8)");
    next.addEventListener("click", () => goToNext(editor));
    const worst = SEVERITIES.map((severity) => found.find((each) => each.severity === severity)).find(Boolean);
    row.prepend(next);
    if (!notice) row.append(make("span", "", worst.message));
    return row;
  }

  function goToNext(editor) {
    const found = [...shownIn(editor.state)].toSorted((one, other) => one.from - other.from);
    if (!found.length) return false;
    const { head } = editor.state.selection.main;
    const { from, message } = found.find((each) => each.from > head) ?? found[0];
    editor.dispatch({ selection: { anchor: from }, scrollIntoView: true, effects: EditorView.announce.of(message) });
    editor.focus();
    return true;
  }

  // The server knows a finding by its number in a text: in another text than it was found in, it is looked for anew.
  async function fix(editor, wanted) {
    const { doc } = editor.state;
    let { number } = wanted;
    if (editor.state.field(findings).doc !== doc) {
      const now = await telling.awaited(editor, server.findingsOf(bodyOf(doc.toString()).text));
      number = now?.find(({ rule, message }) => rule === wanted.rule && message === wanted.message)?.number;
    }
    if (number === undefined || editor.state.doc !== doc) return;
    await changeText(editor, server, { fix: number }, { refuse, telling, userEvent: "input.fix", words });
  }

  function fixHere(editor) {
    const { head } = editor.state.selection.main;
    const found = shownIn(editor.state).find((each) => each.can_fix && each.from <= head && head <= each.to);
    if (found) fix(editor, found);
    return Boolean(found);
  }

  const foundAt = (editor, position) => shownIn(editor.state).filter(({ from, to }) => from <= position && position <= to);
  const boxOf = (editor, found) => tooltipOf(found, (each) => fix(editor, each), words);
  const tooltip = hoverTooltip((editor, position) => {
    const found = foundAt(editor, position);
    return found.length ? { pos: Math.min(...found.map(({ from }) => from)), above: true, create: () => ({ dom: boxOf(editor, found) }) } : null;
  });
  telling.add((editor, position) => {
    const found = foundAt(editor, position);
    return found.length ? boxOf(editor, found) : null;
  });

  const asking = ViewPlugin.define((editor) => {
    let timer = 0;
    let isAsking = false;
    let isLate = false; // the text has changed while the answer is awaited
    let isGone = false;

    // One question at a time: a slow server is not asked about each pause.
    async function ask() {
      if (isAsking) {
        isLate = true;
        return;
      }
      isAsking = true;
      const asked = editor.state.doc;
      const { offset, text } = bodyOf(asked.toString());
      const isNew = server.state === "unasked";
      const waiting = isNew ? words.__("Checking: the server of attractor_nb is being started") : words.__("Checking: the server of attractor_nb is slow");
      const slow = setTimeout(() => tell({ ...editor.state.field(findings), notice: waiting }), isNew ? START_MS : SLOW_MS);
      const found = await server.findingsOf(text);
      clearTimeout(slow);
      isAsking = false;
      if (isGone) return;
      if (isLate) {
        isLate = false;
        ask();
      }
      if (editor.state.doc !== asked) return;
      const isLost = !found && server.state === "lost";
      tell({
        found: (found ?? []).map((each) => ({ ...each, ...rangeOf(asked, offset, each) })),
        doc: asked,
        notice: isLost ? words.__("No findings: the server of attractor_nb does not answer") : "",
      });
      if (isLost) askSoon(AGAIN_MS);
    }

    function tell(now) {
      if (isGone) return;
      const before = editor.state.field(findings);
      if (now.found.length || before.found.length || now.notice !== before.notice) editor.dispatch({ effects: setFindings.of(now) });
    }

    function askSoon(milliseconds = delay) {
      clearTimeout(timer);
      timer = setTimeout(ask, milliseconds);
    }

    askSoon();
    return {
      update: ({ docChanged }) => docChanged && askSoon(),
      destroy() {
        isGone = true;
        clearTimeout(timer);
      },
    };
  });

  const keys = keymap.of([
    { key: "F8", run: goToNext },
    { key: "Mod-.", run: fixHere },
  ]);
  const all = [findings, lines, marks, panel, tooltip, asking, keys];
  const theme = EditorView.baseTheme(LOOK);

  // The extension of one editor: what is shown while its text is DOT.
  return (model) => whileDot({ state, view }, model, all, theme);
}

function markOf(GutterMarker, severity, words) {
  const name = { error: words.__("error"), warning: words.__("warning"), info: words.__("note") }[severity];
  return class extends GutterMarker {
    toDOM() {
      const dot = make("span", `cm-attractor-mark is-${severity}`);
      dot.title = name;
      dot.setAttribute("role", "img");
      dot.setAttribute("aria-label", name);
      return dot;
    }
  };
}

function counted(found, words) {
  const number = (severity) => found.filter((each) => each.severity === severity).length;
  return [
    [number("error"), words._n("%1 error", "%1 errors", number("error"))],
    [number("warning"), words._n("%1 warning", "%1 warnings", number("warning"))],
    [number("info"), words._n("%1 note", "%1 notes", number("info"))],
  ]
    .filter(([count]) => count)
    .map(([, text]) => text)
    .join(", ");
}

function tooltipOf(found, onFix, words) {
  const box = make("div", "cm-attractor-tooltip");
  for (const each of found) {
    const row = make("div", `is-${each.severity}`);
    row.append(make("div", "", each.message));
    if (Object.hasOwn(RULES, each.rule)) row.append(make("div", "rule", `${each.rule}: ${RULES[each.rule]}`));
    if (each.can_fix) {
      const button = make("button", "", words.__("Fix: %1", each.fix));
      button.type = "button";
      button.title = words.__("Ctrl-.");
      button.addEventListener("click", () => onFix(each));
      row.append(button);
    } else if (each.fix) row.append(make("div", "hint", each.fix));
    box.append(row);
  }
  return box;
}

const wave = (colour) => ({ textDecoration: `underline wavy ${colour}`, textDecorationSkipInk: "none", textUnderlineOffset: "3px" });
// The theme's colour, nearer to that of its text: its orange alone cannot be seen on white.
const clear = (colour) => `color-mix(in srgb, ${colour} 70%, var(--jp-ui-font-color0, #000))`;
const ERROR = clear("var(--jp-error-color1, #d32f2f)");
const WARNING = clear("var(--jp-warn-color1, #b26a00)");
const INFO = clear("var(--jp-info-color1, #0288d1)");
const LOOK = {
  ".cm-attractor-error": wave(ERROR),
  ".cm-attractor-warning": wave(WARNING),
  ".cm-attractor-info": { textDecoration: `underline dotted ${INFO}`, textUnderlineOffset: "3px" },
  ".cm-attractor-gutter": { width: "12px" },
  ".cm-attractor-mark": { display: "inline-block", width: "8px", height: "8px", margin: "0 2px" },
  ".cm-attractor-mark.is-error": { background: ERROR, borderRadius: "50%" },
  ".cm-attractor-mark.is-warning": { background: WARNING, clipPath: "polygon(50% 0, 100% 100%, 0 100%)" },
  ".cm-attractor-mark.is-info": { background: INFO },
  ".cm-attractor-panel": {
    display: "flex",
    gap: "8px",
    padding: "2px 8px",
    fontFamily: "var(--jp-ui-font-family)",
    fontSize: "var(--jp-ui-font-size1)",
    color: "var(--jp-ui-font-color1)",
    background: "var(--jp-layout-color1)",
  },
  ".cm-attractor-panel button, .cm-attractor-tooltip button": {
    font: "inherit",
    color: "var(--jp-content-link-color, #1976d2)",
    background: "none",
    border: "0",
    padding: "0",
    cursor: "pointer",
    whiteSpace: "nowrap",
  },
  ".cm-attractor-panel span": { overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", opacity: "0.85" },
  ".cm-attractor-tooltip": {
    maxWidth: "60ch",
    padding: "6px 10px",
    fontFamily: "var(--jp-ui-font-family)",
    fontSize: "var(--jp-ui-font-size1)",
    color: "var(--jp-ui-font-color1)",
  },
  ".cm-attractor-tooltip > div": { padding: "2px 0 2px 8px", borderLeft: "3px solid transparent" },
  ".cm-attractor-tooltip > .is-error": { borderColor: ERROR },
  ".cm-attractor-tooltip > .is-warning": { borderColor: WARNING },
  ".cm-attractor-tooltip > .is-info": { borderColor: INFO },
  ".cm-attractor-tooltip .hint, .cm-attractor-tooltip .rule": { color: "var(--jp-ui-font-color2)" },
};
