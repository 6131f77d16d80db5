// The findings below a cell with their fixes: a click shows what would change and offers the new text to the cell.

import { switchOffWhenLost } from "./controls.js";
import { makeFindingTable } from "./finding_table.js";
import { make, makeButton } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { makeDiff } from "./source_pane.js";
import { __ } from "./wording.js";

const FINDINGS_SILENCE_MS = 4000;
const FINDINGS_GONE = __("The kernel does not answer. Run the cell again.");

export default asPlacedWidget((host, el) => showFindings(host, el));

const FINDINGS_ASK = ".af-table button:not(.af-go), .aq-row button";

// `place` is an element of the cell whose text the findings are of.
export function showFindings(host, el, place = el) {
  const table = makeFindingTable(
    host.isLive
      ? {
          onFix: (finding) => ask({ kind: "fix", number: finding.number, version: state.version }),
          onFixAll: () => ask({ kind: "fix_all" }),
        }
      : {},
  );
  const offer = make("section", "aq-offer", "", { "aria-label": __("The new text") });
  const said = make("p", "aq-said", "", { "aria-live": "polite" });
  const root = make("div", "attractor-ui aq-findings", [table.element, offer, said]);
  el.append(root);
  let state = host.get("state");
  let silence = 0;

  function ask(message) {
    clearTimeout(silence);
    silence = setTimeout(() => say(FINDINGS_GONE), FINDINGS_SILENCE_MS);
    host.send(message);
  }

  const say = (words) => {
    said.textContent = words;
  };

  function makeOffer() {
    const buttons = make("div", "aq-row");
    const cell = cellAround(place);
    if (cell && state.is_cell && state.can_offer) {
      buttons.append(
        makeButton("al-button", __("Put it into the cell"), "", () => {
          const problem = cell.replaceBody(state.before, state.source);
          say(problem || __("The cell has the new text. Run it again."));
        }),
      );
    }
    if (state.can_offer) {
      const text = make("textarea", "aq-text", "", { readOnly: true, value: state.source, rows: Math.min(14, state.source.split("\n").length) });
      text.setAttribute("aria-label", __("The whole new text"));
      const whole = make("details", "aq-whole");
      whole.append(make("summary", "", __("The whole new text")), text);
      buttons.append(makeButton("al-button", __("Copy"), __("Copy the new text"), () => copy(text, whole)));
      buttons.append(makeButton("al-button", __("Undo"), __("Undo the last fix"), () => ask({ kind: "undo" })));
      offer.replaceChildren(makeDiff(state.diff), buttons, whole);
    } else {
      buttons.append(makeButton("al-button", __("Undo"), __("Undo the last fix"), () => ask({ kind: "undo" })));
      const words = __("The text contains a secret and is not shown here: pipeline.fixed() returns the fixed pipeline.");
      offer.replaceChildren(makeDiff(state.diff), buttons, make("p", "al-dim", words));
    }
  }

  async function copy(text, whole) {
    try {
      await navigator.clipboard.writeText(text.value);
      say(__("Copied."));
    } catch {
      whole.open = true;
      text.focus();
      text.select();
      say(__("The text is selected: copy it with the keyboard."));
    }
  }

  function show() {
    table.show(state.findings, state.more_findings);
    offer.hidden = !state.diff;
    if (state.diff) makeOffer();
    if (!state.findings.length) say(__("No findings are left."));
  }

  show();
  const stops = [
    switchOffWhenLost(host, root, FINDINGS_ASK),
    host.onLost(() => say(FINDINGS_GONE)),
    host.on("state", (value) => {
      clearTimeout(silence);
      state = value;
      say("");
      show();
    }),
    host.listen((message) => {
      clearTimeout(silence);
      if (message.kind === "said") say(message.words);
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    clearTimeout(silence);
    root.remove();
  };
}

// The text of the notebook's cell that an output stands in. JupyterLab and Notebook 7 show it in CodeMirror, whose view
// hangs at its element; where it does not, there is no cell to put a text into, and the reader copies it.
// The cell around an element: `replaceBody(before, after)` puts another text in place of all below the cell's first line,
// and returns what keeps it from that, or "".
function cellAround(element) {
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
