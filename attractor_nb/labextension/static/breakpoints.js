// Breakpoints of the pipeline in a cell: ids of nodes in the cell's metadata, marked where the nodes are declared. The next
// run that is begun from here gets them.

import { bodyOf } from "./cells.js";
import { make, rangeOf, whileDot } from "./editor_text.js";

const KEY = "attractor_nb";
const SETTLED_MS = 300;

export const breakpointsOf = (cell) => cell.getMetadata(KEY)?.breakpoints ?? [];

// True when the node has one afterwards.
export function toggleBreakpoint(cell, node) {
  const { breakpoints = [], ...rest } = cell.getMetadata(KEY) ?? {};
  const isNew = !breakpoints.includes(node);
  const left = isNew ? [...breakpoints, node] : breakpoints.filter((each) => each !== node);
  const kept = left.length ? { ...rest, breakpoints: left } : rest;
  if (Object.keys(kept).length) cell.setMetadata(KEY, kept);
  else cell.deleteMetadata(KEY);
  return isNew;
}

export function makeBreakpoints({ state, view }, server, words) {
  const { RangeSet, StateEffect, StateField } = state;
  const { EditorView, GutterMarker, ViewPlugin, gutter } = view;
  const setPlaces = StateEffect.define();

  const places = StateField.define({
    create: () => [],
    update(value, transaction) {
      for (const effect of transaction.effects) if (effect.is(setPlaces)) return effect.value;
      if (!transaction.docChanged || !value.length) return value;
      return value.map(({ node, from }) => ({ node, from: transaction.changes.mapPos(from, 1) }));
    },
  });

  class Mark extends GutterMarker {
    constructor(node) {
      super();
      this.node = node;
    }
    eq(other) {
      return this.node === other.node;
    }
    toDOM() {
      const dot = make("span", "cm-attractor-breakpoint");
      dot.title = words.__("A run stops before %1 (F9)", this.node);
      return dot;
    }
  }

  const marks = gutter({
    class: "cm-attractor-breakpoints",
    markers: ({ state: now }) => {
      const lines = new Map(now.field(places).map(({ node, from }) => [now.doc.lineAt(from).from, node]));
      return RangeSet.of([...lines].toSorted(([one], [other]) => one - other).map(([line, node]) => new Mark(node).range(line)));
    },
  });

  // Asks where the nodes are, if there is any breakpoint: when the cell's metadata change, and some time after its text.
  const following = (cell) =>
    ViewPlugin.define((editor) => {
      let timer = 0;
      let isGone = false;

      async function place() {
        const wanted = breakpointsOf(cell);
        const asked = editor.state.doc;
        const { offset, text } = bodyOf(asked.toString());
        const nodes = wanted.length ? await server.outlineOf(text) : [];
        if (isGone || !nodes || editor.state.doc !== asked) return;
        const found = nodes.filter(({ node, line }) => line && wanted.includes(node));
        if (!found.length && !editor.state.field(places).length) return;
        editor.dispatch({ effects: setPlaces.of(found.map((each) => ({ node: each.node, from: rangeOf(asked, offset, each).from }))) });
      }

      const placeSoon = () => {
        clearTimeout(timer);
        timer = setTimeout(place, SETTLED_MS);
      };
      const onMetadata = (_, { key }) => key === KEY && place();
      cell.metadataChanged.connect(onMetadata);
      timer = setTimeout(place, 0);
      return {
        update: ({ docChanged }) => docChanged && breakpointsOf(cell).length && placeSoon(),
        destroy() {
          isGone = true;
          clearTimeout(timer);
          cell.metadataChanged.disconnect(onMetadata);
        },
      };
    });

  const theme = EditorView.baseTheme(LOOK);
  // A file has no metadata, and no run is begun from it here.
  return (model) =>
    model.getMetadata ? whileDot({ state, view }, model, [places, marks, following(model)], theme) : [];
}

// Two bars, as on the drawing: a disc is an error's mark.
const LOOK = {
  ".cm-attractor-breakpoint": {
    display: "inline-block",
    boxSizing: "border-box",
    width: "9px",
    height: "11px",
    margin: "0 2px",
    border: "0 solid var(--jp-error-color1, #c53b00)",
    borderWidth: "0 3px",
  },
};
