// The editor of a pipeline's text: the graph to choose from, a form for what was chosen, the text with its changed lines,
// the findings. Python makes every change; what stands here is always the whole state that it sent last.

import { makeConnecting } from "./connecting.js";
import { switchOffWhenLost } from "./controls.js";
import { makeDrawing } from "./drawing.js";
import { makeEditorForm } from "./editor_form.js";
import { makeFindingTable } from "./finding_table.js";
import { asWidget } from "./host.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { makeDiff, makeSourcePane } from "./source_pane.js";
import { __ } from "./wording.js";

const EDITOR_SILENCE_MS = 4000;
const EDITOR_STILL = __("Nothing can be changed here: there is no kernel. In a notebook pipeline.edit() makes changes.");
const EDITOR_GONE = __("The kernel does not answer; the last change may not have been made. Run the cell again.");
const SERVER_GONE = __("The server does not answer; the last change may not have been made.");
const STALE_DRAWING = __("The text cannot be parsed now: this drawing shows the last text that could.");

export default asWidget(showElsewhere, standEditor);

function standEditor(host) {
  return standIn(host.get("place"), (el) => showEditor(host, el));
}

// Where the text stands beside the view (`host.get("is_beside")`), it is not shown here once more. `onChosen(target)` is
// called when something was chosen here, and a message of kind "point" says what was chosen there; `onDraw(drawing)` is
// called for each new drawing; `tools` are elements for the bar.
export function showEditor(host, el, { tools: moreTools = [], onChosen = () => {}, onDraw = () => {} } = {}) {
  const isBeside = Boolean(host.get("is_beside"));
  const gone = host.who === "server" ? SERVER_GONE : EDITOR_GONE;
  const root = make("div", "attractor-ui ax-editor");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", __("Editor of a pipeline"));
  keepKeys(root);
  const bar = make("div", "ax-bar");
  const said = make("p", "ax-said");
  said.setAttribute("aria-live", "polite");
  const stage = make("div", "ax-stage");
  const source = makeSourcePane("DOT text");
  const findings = makeFindingTable({
    onFix: host.isLive ? (finding) => ask({ kind: "fix", number: finding.number, version: state.version }) : undefined,
    onFixAll: host.isLive ? () => ask({ kind: "fix_all" }) : undefined,
    onGo: (line, finding) => (isBeside ? host.send({ kind: "go", finding }) : source.reveal(line, state.first_line)),
  });
  const form = makeEditorForm({
    onSet: (name, value) => ask({ kind: "set", target: chosen, name, value }),
    onCheck: (name, text) => host.send({ kind: "check", target: chosen, name, text }),
    onRename: (node, id) => ask({ kind: "rename", node, id }),
    onRemove: () => ask({ kind: "remove", target: chosen }),
    onClose: () => choose(null),
  });
  const difference = make("details", "ax-difference");
  root.append(bar, stage, said, findings.element);
  if (!isBeside) root.append(source.element, difference);
  el.append(root);

  let state = host.get("state");
  let drawing = null;
  let drawn = "";
  let chosen = null; // { node } or { edge }, or {} for the graph
  let silence = 0;

  const tools = makeTools();
  bar.append(...tools.elements, ...moreTools);

  function makeTools() {
    if (!host.isLive) return { elements: [make("span", "al-dim", host.get("still") || EDITOR_STILL)], show() {} };
    const undo = makeButton("al-button", __("Undo"), __("Undo the last change"), () => ask({ kind: "undo" }));
    const redo = makeButton("al-button", __("Redo"), __("Make the undone change again"), () => ask({ kind: "redo" }));
    const id = make("input", "ae-input ax-id");
    id.placeholder = __("new id");
    id.setAttribute("aria-label", __("Id of a new node"));
    const add = makeButton("al-button", __("Add node"), "", () => {
      if (!id.value.trim()) return id.focus();
      ask({ kind: "add_node", id: id.value.trim(), after: chosen && chosen.node ? chosen.node : "" });
      id.value = "";
    });
    id.addEventListener("keydown", (event) => event.key === "Enter" && add.click());
    const from = makeEnds(__("Edge from"));
    const to = makeEnds(__("Edge to"));
    const connect = makeButton("al-button", __("Add edge"), "", () => ask({ kind: "add_edge", source: from.value, target: to.value }));
    const graph = makeButton("al-button", __("Graph"), __("Attributes of the graph"), () => choose({}));
    const save = makeButton("al-button", __("Save"), __("Write the text to its file"), () => ask({ kind: "save" }));
    const nodes = make("span", "ax-group");
    nodes.append(id, add);
    const edges = make("span", "ax-group");
    edges.append(from, make("span", "al-dim", "→"), to, connect);
    return {
      elements: [undo, redo, graph, nodes, edges, save],
      show() {
        undo.disabled = !state.can_undo;
        redo.disabled = !state.can_redo;
        save.hidden = !state.file;
        save.title = state.file ? __("Write the text to %1", state.file) : "";
        for (const select of [from, to]) fillEnds(select);
      },
      point(node) {
        from.value = node;
      },
    };
  }

  function fillEnds(select) {
    const before = select.value;
    if (state.nodes.join() === [...select.options].map(({ value }) => value).join()) return;
    select.replaceChildren(...state.nodes.map((id) => make("option", "", id)));
    if (state.nodes.includes(before)) select.value = before;
  }

  function ask(message) {
    clearTimeout(silence);
    silence = setTimeout(() => say(gone, true), EDITOR_SILENCE_MS);
    host.send(message);
  }

  function say(words, isError) {
    said.textContent = words;
    said.classList.toggle("is-error", Boolean(isError));
  }

  // `isTold`: it was chosen in the text.
  function choose(target, isTold = false) {
    chosen = target;
    showChosen();
    if (!isTold) onChosen(target);
    if (target === null || !host.isLive) return form.hide();
    if (target.node) tools.point(target.node);
    ask({ kind: "form", target });
  }

  function showChosen() {
    if (!drawing) return;
    drawing.select(chosen && chosen.node ? chosen.node : null);
    drawing.selectEdge(chosen && chosen.edge !== undefined ? chosen.edge : null);
  }

  function draw() {
    if (drawn === state.svg) return;
    drawn = state.svg;
    if (drawing && drawing.update(drawn)) return;
    const before = drawing;
    const focused = before && before.element.contains(document.activeElement) ? before.idOf(document.activeElement) : undefined;
    drawing = makeDrawing(state.svg, {}, {
      onNode: (id) => choose({ node: id }),
      onEdge: (index) => choose({ edge: Number(index) }),
      look: before ? before.look : null,
    });
    if (host.isLive) {
      makeConnecting(drawing, {
        onConnect: (from, to) => ask({ kind: "add_edge", source: from, target: to }),
        onSaid: (words) => say(words, false),
      });
    }
    if (before) {
      before.close();
      before.element.replaceWith(drawing.element); // the form keeps the keyboard
      if (focused !== undefined) keepFocus(focused);
    } else stage.append(drawing.element, form.element);
    onDraw(drawing);
  }

  // The keyboard stays at the node where it was, or at the drawing.
  function keepFocus(id) {
    if (id !== null && drawing.ids.includes(id)) drawing.focus(id);
    else drawing.element.querySelector(".ad-frame").focus({ preventScroll: true });
  }

  // What the cursor stands in is marked; the form follows it while it is open.
  function point(target) {
    if (chosen !== null) {
      if (target !== null && JSON.stringify(target) !== JSON.stringify(chosen)) choose(target, true);
      return;
    }
    drawing.select(target && target.node !== undefined ? target.node : null);
    drawing.selectEdge(target && target.edge !== undefined ? target.edge : null);
  }

  function show() {
    draw();
    showChosen();
    tools.show();
    findings.show(state.findings, state.more_findings);
    root.classList.toggle("is-stale", Boolean(state.is_stale));
    if (isBeside) return;
    source.show(state.source, state.changed, state.findings, state.first_line);
    difference.hidden = !state.diff;
    difference.replaceChildren(make("summary", "", __("All changes")), makeDiff(state.diff));
  }

  function hear(message) {
    clearTimeout(silence);
    if (message.kind === "form") {
      if (message.is_new) form.open(message.form);
      else if (chosen !== null) form.refresh(message.form);
      chosen = message.form.edge !== null ? { edge: message.form.edge } : message.form.node ? { node: message.form.node } : {};
      showChosen();
    } else if (message.kind === "gone") {
      chosen = null;
      form.hide();
    } else if (message.kind === "checked") form.say(message.name, message.words);
    else if (message.kind === "said") say(message.words, message.is_error);
    else if (message.kind === "point") point(message.target);
  }

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) {
      event.stopPropagation();
      choose(null);
    } else if (host.isLive && !event.target.closest("input, textarea, select")) pressed(event);
  });

  function pressed(event) {
    const isCommand = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (key === "delete" && !isCommand) {
      const node = drawing.element.contains(event.target) ? drawing.idOf(event.target) : null;
      const target = chosen && (chosen.edge !== undefined || chosen.node) ? chosen : node === null ? null : { node };
      if (target === null) return;
      ask({ kind: "remove", target });
    } else if (isCommand && (key === "y" || (key === "z" && event.shiftKey))) ask({ kind: "redo" });
    else if (isCommand && key === "z") ask({ kind: "undo" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  show();
  const stops = [
    switchOffWhenLost(host, root),
    host.on("state", (value) => {
      clearTimeout(silence);
      state = value;
      say(state.is_stale ? STALE_DRAWING : "", false);
      show();
    }),
    host.listen(hear),
    host.onLost(() => say(gone, true)),
  ];
  return () => {
    for (const stop of stops) stop();
    clearTimeout(silence);
    form.hide();
    if (drawing) drawing.close();
  };
}

function makeEnds(label) {
  const select = make("select", "ae-input ax-end");
  select.setAttribute("aria-label", label);
  return select;
}
