// The editor of a pipeline's text: the graph to choose from, a form for what was chosen, the text with its changed lines,
// the findings. Python makes every change; what stands here is always the whole state that it sent last.

import { switchOffWhenLost } from "./controls.js";
import { makeDrawing } from "./drawing.js";
import { makeFindingTable } from "./finding_table.js";
import { make, makeButton, makeSvg, makeView, onCommandEnter } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { CHILD_SEPARATOR } from "./run_states.js";
import { makeDiff, makeSourcePane } from "./source_pane.js";
import { __ } from "./wording.js";

const EDITOR_SILENCE_MS = 4000;
const EDITOR_STILL = __("Nothing can be changed here: there is no kernel. In a notebook pipeline.edit() makes changes.");
const EDITOR_GONE = __("The kernel does not answer; the last change may not have been made. Run the cell again.");
const SERVER_GONE = __("The server does not answer; the last change may not have been made.");
const STALE_DRAWING = __("The text cannot be parsed now: this drawing shows the last text that could.");
const PULL_PX = 6; // less is a click
const CHECK_MS = 250;
const UNSET = "";

export default asPlacedWidget((host, el) => showEditor(host, el));

// Where the text stands beside the view (`host.get("is_beside")`), it is not shown here once more. `onChosen(target)` is
// called when something was chosen here, and a message of kind "point" says what was chosen there; `onDraw(drawing)` is
// called for each new drawing; `tools` are elements for the bar.
export function showEditor(host, el, { tools: moreTools = [], onChosen = () => {}, onDraw = () => {} } = {}) {
  const isBeside = Boolean(host.get("is_beside"));
  const gone = host.who === "server" ? SERVER_GONE : EDITOR_GONE;
  const root = makeView("ax-editor", __("Editor of a pipeline"));
  const bar = make("div", "ax-bar");
  const said = make("p", "ax-said", "", { "aria-live": "polite" });
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
    const nodes = make("span", "ax-group", [id, add]);
    const edges = make("span", "ax-group", [from, make("span", "al-dim", "→"), to, connect]);
    return {
      elements: isBeside ? [undo, redo, graph, save, makeAdding(nodes, edges)] : [undo, redo, graph, nodes, edges, save],
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

  // Beside the text there is room for one line of tools: what adds something has a line of its own, which a button opens.
  function makeAdding(nodes, edges) {
    const line = make("div", "ax-bar", [nodes, edges], { hidden: true });
    bar.after(line);
    const button = makeButton("al-button", __("Add…"), __("Add a node or an edge"), () => {
      line.hidden = !line.hidden;
      button.setAttribute("aria-expanded", String(!line.hidden));
      if (!line.hidden) nodes.querySelector("input").focus();
    }, { "aria-expanded": "false" });
    return button;
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
  return make("select", "ae-input ax-end", "", { "aria-label": label });
}

// A new edge in a drawing: dragged from one node to another, or by keys: c on the one, Enter on the other.
// `onConnect(from, to)` is called with ids of nodes, `onSaid(words)` with what the keys do next.
function makeConnecting(drawing, { onConnect, onSaid }) {
  const { element } = drawing;
  const line = makeSvg("line", {});
  const overlay = makeSvg("svg", { class: "ad-pull", "aria-hidden": "true" }, line);
  let from = null; // the node that is dragged from: { id, x, y, isMoved }
  let marked = null;
  let begun = null; // the node that keys began at

  // Nodes of child runs are of another text.
  const nodeAt = (target) => {
    const id = target instanceof Element ? drawing.idOf(target) : null;
    return id !== null && !id.includes(CHILD_SEPARATOR) ? id : null;
  };

  function mark(target) {
    if (marked) marked.classList.remove("is-target");
    marked = target;
    if (marked) marked.classList.add("is-target");
  }

  function press(event) {
    const id = nodeAt(event.target);
    if (event.button !== 0 || event.pointerType === "touch" || id === null) return;
    from = { id, x: event.clientX, y: event.clientY, isMoved: false };
    event.stopPropagation(); // a drag that begins at a node does not move the drawing
  }

  function pull(event) {
    if (!from) return;
    if (!from.isMoved) {
      if (Math.hypot(event.clientX - from.x, event.clientY - from.y) < PULL_PX) return;
      from.isMoved = true;
      element.setPointerCapture(event.pointerId);
      element.append(overlay);
    }
    const { left, top } = element.getBoundingClientRect();
    for (const [name, value] of Object.entries({ x1: from.x - left, y1: from.y - top, x2: event.clientX - left, y2: event.clientY - top })) {
      line.setAttribute(name, String(value));
    }
    const over = document.elementFromPoint(event.clientX, event.clientY);
    const id = over && element.contains(over) ? nodeAt(over) : null;
    mark(id !== null && id !== from.id ? over.closest("[data-node]") : null);
  }

  function drop(event) {
    if (!from) return;
    const { id, isMoved } = from;
    const target = event.type === "pointerup" && marked ? nodeAt(marked) : null;
    from = null;
    mark(null);
    overlay.remove();
    if (!isMoved) return;
    element.addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => element.removeEventListener("click", swallow, true));
    if (target !== null) onConnect(id, target);
  }

  function stop() {
    begun = null;
    onSaid("");
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = nodeAt(event.target);
    if (event.key === "c" && id !== null) {
      begun = id;
      onSaid(__("An edge from %1: go to another node and press Enter. Escape cancels it.", id));
    } else if (begun !== null && event.key === "Escape") stop();
    else if (begun !== null && event.key === "Enter" && id !== null) {
      const source = begun;
      stop();
      onConnect(source, id);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  element.addEventListener("pointerdown", press, true);
  for (const [name, listener] of Object.entries({ pointermove: pull, pointerup: drop, pointercancel: drop })) {
    element.addEventListener(name, listener);
  }
  element.addEventListener("keydown", key, true);
  drawing.describe(__("To add an edge, drag from node to node, or press c and then Enter. Delete removes what is selected."));
}

function swallow(event) {
  event.stopPropagation();
  event.preventDefault();
}

// The form of one thing of the graph: a field for each attribute that its handler has. A value is given to the text when
// its field is left, or with Ctrl+Enter; while it is typed it is only checked.
// `onSet(name, value)`: null removes; `onCheck(name, text)` asks what is wrong with a value.
function makeEditorForm({ onSet, onCheck, onRename, onRemove, onClose }) {
  const element = make("section", "ae-form", "", { "aria-label": __("Attributes"), hidden: true });
  let fields = new Map();
  let timer = 0;

  function makeField(field) {
    const name = make("span", "ae-name", field.name, { title: field.meaning });
    const input = makeInput(field);
    input.dataset.name = field.name;
    input.disabled = field.is_locked;
    const words = make("span", "ae-words", field.is_locked ? __("It holds a secret: change it in Python.") : "", { "aria-live": "polite" });
    const note = field.value === null && field.inherited !== null ? __("%1, inherited", field.type) : field.type;
    const box = make("label", field.is_long ? "ae-field is-long" : "ae-field", [name, make("span", "ae-type", note), input, words]);
    const before = input.value;
    const give = () => {
      if (input.value !== (fields.get(field.name) || { before }).before) {
        fields.get(field.name).before = input.value;
        onSet(field.name, input.value === UNSET ? null : input.value);
      }
    };
    input.addEventListener("change", give);
    onCommandEnter(input, give);
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => onCheck(field.name, input.value), CHECK_MS);
    });
    fields.set(field.name, { input, words, before });
    return box;
  }

  function makeMore(names) {
    const input = make("select", "ae-input ae-more", "", { "aria-label": __("Another attribute") });
    input.append(make("option", "", __("Another attribute …"), { value: UNSET }), ...names.map((field) => make("option", "", field.name)));
    input.addEventListener("change", () => {
      const field = names.find(({ name }) => name === input.value);
      if (!field) return;
      const box = makeField(field);
      input.before(box);
      box.querySelector(".ae-input").focus();
      input.querySelector("option:checked").remove();
      input.value = UNSET;
    });
    return input;
  }

  function makeHead(form) {
    const head = make("div", "ae-head", [make("h4", "ae-title", form.title), make("span", "ae-kind", form.kind)]);
    if (form.node) {
      const rename = make("input", "ae-input ae-id", "", { value: form.node, "aria-label": __("Id of the node") });
      rename.addEventListener("change", () => onRename(form.node, rename.value.trim()));
      head.append(make("label", "ae-naming", [make("span", "ae-name", __("id")), rename]));
    }
    const shut = makeButton("al-close", "×", "", onClose, { "aria-label": __("Close") });
    if (form.node || form.edge !== null) head.append(makeButton("al-button ae-remove", __("Remove"), "", onRemove));
    head.append(shut);
    return head;
  }

  return {
    element,
    open(form) {
      fields = new Map();
      const body = make("div", "ae-body", form.fields.map(makeField));
      if (form.more.length) body.append(makeMore(form.more));
      element.replaceChildren(makeHead(form), body);
      element.hidden = false;
    },
    // What the text has now, for all fields but the one that is being typed in.
    refresh(form) {
      const focused = document.activeElement;
      const name = element.contains(focused) ? focused.dataset.name : undefined;
      const scroll = element.scrollTop;
      this.open(form);
      element.scrollTop = scroll;
      if (name && fields.has(name)) fields.get(name).input.focus();
    },
    say(name, words) {
      const field = fields.get(name);
      if (!field) return;
      field.words.textContent = words;
      if (words) field.input.setAttribute("aria-invalid", "true");
      else field.input.removeAttribute("aria-invalid");
    },
    hide() {
      clearTimeout(timer);
      element.hidden = true;
    },
  };
}

function makeInput(field) {
  if (field.type === "boolean" || field.choices.length) return makeChoice(field);
  const input = make(field.is_long ? "textarea" : "input", "ae-input");
  if (field.is_long) input.rows = Math.min(8, Math.max(2, (field.value || "").split("\n").length));
  else input.type = "text";
  input.value = field.value ?? "";
  input.placeholder = field.inherited ?? field.default ?? "";
  input.spellcheck = field.is_prose;
  return input;
}

function wordsOfUnset({ inherited, default: usual }) {
  if (inherited) return __("%1 (inherited)", inherited);
  return usual ? __("%1 (default)", usual) : __("not set");
}

function makeChoice(field) {
  const known = field.type === "boolean" ? ["true", "false"] : field.choices;
  const unset = make("option", "", wordsOfUnset(field), { value: UNSET });
  const values = field.value === null || known.includes(field.value) ? known : [field.value, ...known];
  const input = make("select", "ae-input", [unset, ...values.map((value) => make("option", "", value))]);
  for (const option of [...input.options].slice(1)) option.value = option.textContent;
  input.value = field.value ?? UNSET;
  return input;
}
