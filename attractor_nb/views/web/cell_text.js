// The text of the notebook's cell that an output stands in. JupyterLab and Notebook 7 show it in CodeMirror, whose view
// hangs at its element; where it does not, there is no cell to put a text into, and the reader copies it.

import { __ } from "./wording.js";

// The cell around an element: `replaceBody(before, after)` puts another text in place of all below the cell's first line,
// and returns what keeps it from that, or "".
export function cellAround(element) {
  const cell = element.closest(".jp-CodeCell");
  const content = cell && cell.querySelector(".jp-InputArea .cm-content");
  const view = content && codeViewOf(content);
  if (!view) return null;
  return {
    replaceBody(before, after) {
      const text = view.state.doc.toString();
      const start = text.indexOf("\n") + 1;
      if (!start || text.slice(start).trimEnd() !== before.trimEnd()) {
        return __("The cell's text has been changed since it was run: run it again first.");
      }
      view.dispatch({ changes: { from: start, to: text.length, insert: after.trimEnd() } });
      return view.state.doc.toString().slice(start) === after.trimEnd() ? "" : __("The cell could not be changed: copy the text.");
    },
  };
}

function codeViewOf(content) {
  const known = content.cmTile || content.cmView;
  const view = known && (known.view || (known.rootView && known.rootView.view) || (known.root && known.root.view));
  return view && view.state && view.dispatch ? view : null;
}
