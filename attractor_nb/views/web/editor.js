// The editor of a pipeline's text: the graph to choose from, a form for what was chosen, the text with its changed lines,
// the findings. Python makes every change; what stands here is always the whole state that it sent last.

import { switchOffWhenLost } from "./controls.js";
import { makeDrawing } from "./drawing.js";
import { makeEditorForm } from "./editor_form.js";
import { makeFindingTable } from "./finding_table.js";
import { asWidget } from "./host.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { showElsewhere, standIn } from "./place.js";
import { makeDiff, makeSourcePane } from "./source_pane.js";

const EDITOR_SILENCE_MS = 4000;
const EDITOR_STILL = "Nothing can be changed here: there is no kernel. In a notebook pipeline.edit() makes changes.";
const EDITOR_GONE = "The kernel does not answer; the last change may not have been made. Run the cell again.";

export default asWidget(showElsewhere, standEditor);

function standEditor(host) {
  return standIn(host.get("place"), (el) => showEditor(host, el));
}

export function showEditor(host, el) {
  const root = make("div", "attractor-ui ax-editor");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "Editor of a pipeline");
  keepKeys(root);
  const bar = make("div", "ax-bar");
  const said = make("p", "ax-said");
  said.setAttribute("aria-live", "polite");
  const stage = make("div", "ax-stage");
  const source = makeSourcePane("DOT text");
  const findings = makeFindingTable({
    onFix: host.isLive ? (finding) => ask({ kind: "fix", number: finding.number, version: state.version }) : undefined,
    onFixAll: host.isLive ? () => ask({ kind: "fix_all" }) : undefined,
    onGo: (line) => source.reveal(line, state.first_line),
  });
  const form = makeEditorForm({
    onSet: (name, value) => ask({ kind: "set", target: chosen, name, value }),
    onCheck: (name, text) => host.send({ kind: "check", target: chosen, name, text }),
    onRename: (node, id) => ask({ kind: "rename", node, id }),
    onRemove: () => ask({ kind: "remove", target: chosen }),
    onClose: () => choose(null),
  });
  const difference = make("details", "ax-difference");
  root.append(bar, stage, said, findings.element, source.element, difference);
  el.append(root);

  let state = host.get("state");
  let drawing = null;
  let drawn = "";
  let chosen = null; // { node } or { edge }, or {} for the graph
  let silence = 0;

  const tools = makeTools();
  bar.append(...tools.elements);

  function makeTools() {
    if (!host.isLive) return { elements: [make("span", "al-dim", EDITOR_STILL)], show() {} };
    const undo = makeButton("al-button", "Undo", "Take the last change back", () => ask({ kind: "undo" }));
    const redo = makeButton("al-button", "Redo", "Make it again", () => ask({ kind: "redo" }));
    const id = make("input", "ae-input ax-id");
    id.placeholder = "new id";
    id.setAttribute("aria-label", "Id of a new node");
    const add = makeButton("al-button", "Add node", "", () => {
      if (!id.value.trim()) return id.focus();
      ask({ kind: "add_node", id: id.value.trim(), after: chosen && chosen.node ? chosen.node : "" });
      id.value = "";
    });
    id.addEventListener("keydown", (event) => event.key === "Enter" && add.click());
    const from = makeEnds("Edge from");
    const to = makeEnds("Edge to");
    const connect = makeButton("al-button", "Add edge", "", () => ask({ kind: "add_edge", source: from.value, target: to.value }));
    const graph = makeButton("al-button", "Graph", "Attributes of the graph", () => choose({}));
    const save = makeButton("al-button", "Save", "Write the text to its file", () => ask({ kind: "save" }));
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
        save.title = state.file ? `Write the text to ${state.file}` : "";
        for (const select of [from, to]) fillEnds(select);
      },
      point(node) {
        from.value = node;
      },
    };
  }

  function makeEnds(label) {
    const select = make("select", "ae-input ax-end");
    select.setAttribute("aria-label", label);
    return select;
  }

  function fillEnds(select) {
    const before = select.value;
    select.replaceChildren(...state.nodes.map((id) => make("option", "", id)));
    if (state.nodes.includes(before)) select.value = before;
  }

  function ask(message) {
    clearTimeout(silence);
    silence = setTimeout(() => say(EDITOR_GONE, true), EDITOR_SILENCE_MS);
    host.send(message);
  }

  function say(words, isError) {
    said.textContent = words;
    said.classList.toggle("is-error", Boolean(isError));
  }

  function choose(target) {
    chosen = target;
    showChosen();
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
    const before = drawing;
    drawing = makeDrawing(state.svg, {}, {
      onNode: (id) => choose({ node: id }),
      onEdge: (index) => choose({ edge: Number(index) }),
    });
    if (before) {
      before.close();
      before.element.replaceWith(drawing.element); // the form keeps the keyboard
    } else stage.append(drawing.element, form.element);
  }

  function show() {
    draw();
    showChosen();
    tools.show();
    findings.show(state.findings);
    source.show(state.source, state.changed, state.findings, state.first_line);
    difference.hidden = !state.diff;
    difference.replaceChildren(make("summary", "", "All changes"), makeDiff(state.diff));
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
  }

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) {
      event.stopPropagation();
      choose(null);
    }
  });
  show();
  const stops = [
    switchOffWhenLost(host, root),
    host.on("state", (value) => {
      clearTimeout(silence);
      state = value;
      say("", false);
      show();
    }),
    host.listen(hear),
    host.onLost(() => say(EDITOR_GONE, true)),
  ];
  return () => {
    for (const stop of stops) stop();
    clearTimeout(silence);
    form.hide();
    if (drawing) drawing.close();
  };
}
