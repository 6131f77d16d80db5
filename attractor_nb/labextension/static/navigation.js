// What a word means, where a node is declared, and another id for one.

import { bodyOf } from "./cells.js";
import { changeText, make, nodeAt, rangeOf, stringAt, whileDot, wordAt } from "./editor_text.js";
import { ATTRIBUTES, CONDITIONS, CONTEXT_KEYS, SHAPES, WITH_VARIABLES } from "./words.js";

const MOST_EDGES = 8;
const MOST_NODES = 8;
const VARIABLE = /\$(?:\{([^${}\n]+)\}|([A-Za-z_]\w*))/g;

export function makeNavigation({ state, view }, server, { askForText, refuse, telling, words }) {
  const { EditorView, hoverTooltip, keymap } = view;

  // What is known of a place, as `{ from, to, dom }` or null. In a string that has a language of its own, or variables,
  // words mean what they mean there.
  async function knownAt(editor, position) {
    const { doc } = editor.state;
    const { offset, text } = bodyOf(doc.toString());
    const string = position < offset ? null : stringAt(text, position - offset);
    const facts = () => server.factsOf(text);
    const variable = string && WITH_VARIABLES.includes(string.name) ? variableAt(doc, position) : null;
    if (variable) return { ...variable, dom: keyBox(variable.name, await facts(), words) };
    const word = wordAt(doc, position);
    if (!word || (string && WITH_VARIABLES.includes(string.name))) return null;
    const meaning = meaningOf(word, string);
    if (meaning) return { ...word, dom: meaningBox(word.text, meaning, words) };
    if (string && CONDITIONS.includes(string.name)) {
      const isKey = !/=\s*$/.test(word.before) && !word.before.endsWith("'");
      return isKey ? { ...word, dom: keyBox(word.text, await facts(), words) } : null;
    }
    if (string?.name === "model_stylesheet") return selectorBox(word, await facts(), words);
    const node = (await facts())?.nodes.find((each) => each.node === word.text);
    return node ? { ...word, dom: nodeBox(node, words) } : null;
  }

  const hover = hoverTooltip(async (editor, position) => {
    const known = await knownAt(editor, position);
    return known && { pos: known.from, end: known.to, above: true, create: () => ({ dom: known.dom }) };
  });
  telling.add(async (editor, position) => (await knownAt(editor, position))?.dom ?? null);

  async function goToNode(editor, position) {
    const asked = editor.state.doc;
    const isStill = telling.stillIn(editor);
    const node = await telling.awaited(editor, nodeAt(editor, position, server));
    if (!node?.line || !isStill()) return;
    const { from } = rangeOf(asked, bodyOf(asked.toString()).offset, node);
    editor.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    editor.focus();
  }

  async function rename(editor, position) {
    const asked = editor.state.doc;
    const isStill = telling.stillIn(editor);
    const node = await telling.awaited(editor, nodeAt(editor, position, server));
    if (!node || !isStill()) return;
    const to = await askForText(words.__("New id for %1", node.node), node.node);
    if (!to || to === node.node || editor.state.doc !== asked) return;
    await changeText(editor, server, { rename: { node: node.node, to } }, { refuse, telling, userEvent: "input.rename", words });
  }

  const atCursor = (act) => (editor) => {
    act(editor, editor.state.selection.main.head);
    return true;
  };
  const keys = keymap.of([
    { key: "F12", run: atCursor(goToNode) },
    { key: "F2", run: atCursor(rename) },
  ]);
  const clicks = EditorView.domEventHandlers({
    mousedown(event, editor) {
      if (!(event.ctrlKey || event.metaKey) || event.button !== 0) return false;
      const position = editor.posAtCoords({ x: event.clientX, y: event.clientY });
      if (position === null || !wordAt(editor.state.doc, position)) return false;
      goToNode(editor, position);
      return true;
    },
  });

  const all = [hover, keys, clicks];
  const theme = EditorView.baseTheme(LOOK);
  return (model) => whileDot({ state, view }, model, all, theme);
}

// The rows of the table of attributes, or a shape's meaning as one; null for any other word.
function meaningOf({ text, before, after }, string) {
  const isProperty = string?.name === "model_stylesheet" && /^\s*[=:]/.test(after);
  if (isProperty || (!string && /^\s*=/.test(after))) {
    const names = isProperty ? [text, `llm_${text}`, `llm.${text}`] : [text]; // a stylesheet leaves the beginning out
    const name = names.find((each) => Object.hasOwn(ATTRIBUTES, each));
    if (name) return ATTRIBUTES[name];
  }
  const isShape = string ? string.name === "shape" : /shape\s*=\s*$/.test(before);
  if (isShape && Object.hasOwn(SHAPES, text)) return [{ of: "", value: "", default: "", meaning: SHAPES[text] }];
  return null;
}

function meaningBox(name, rows, words) {
  const box = make("div", "cm-attractor-meaning");
  for (const row of rows) {
    const facts = [row.of && words.__("of %1", row.of), row.value, row.default && words.__("default %1", row.default)].filter(Boolean).join(" · ");
    box.append(make("div", "name", facts ? `${name} (${facts})` : name), make("div", "", row.meaning.replaceAll("`", "")));
  }
  return box;
}

function variableAt(doc, position) {
  const line = doc.lineAt(position);
  for (const { 0: whole, 1: braced, 2: plain, index } of line.text.matchAll(VARIABLE)) {
    const from = line.from + index;
    const to = from + whole.length;
    if (from <= position && position <= to) return { from, to, name: (braced ?? plain).replace(/:.*/, "").trim() };
  }
  return null;
}

// What a key of the context holds: an input, what a stage leaves, what the engine sets. Without facts what is always so.
function keyBox(written, facts, words) {
  const name = written.replace(/^context\./, "");
  const input = facts?.inputs.find((each) => each.name === name);
  const [, stage, kind] = /^(\w+)\.(response|run_id)$/.exec(name) ?? [];
  const node = facts?.nodes.find((each) => each.node === stage);
  const box = make("div", "cm-attractor-meaning");
  const tell = (fact, ...meanings) => box.append(make("div", "name", `${name} (${fact})`), ...meanings.filter(Boolean).map((text) => make("div", "", text)));
  if (name === "goal" && facts?.goal) tell(words.__("variable"), words.__("the goal of the graph: %1", facts.goal));
  else if (input) {
    const needed = input.is_required ? words.__("required") : words.__("default %1", String(input.default));
    tell([words.__("input"), input.type, needed].filter(Boolean).join(" · "), input.description);
  } else if (node) {
    tell(words.__("variable"), kind === "response" ? words.__("the complete response of the stage %1", stage) : words.__("the id of the run that the stage %1 began", stage));
    box.append(nodeBox(node, words));
  } else if (Object.hasOwn(CONTEXT_KEYS, name)) tell(words.__("variable"), CONTEXT_KEYS[name]);
  else tell(words.__("variable"), words.__("a value of the context: a parameter of the run, or set by a stage"));
  return box;
}

// Which nodes a rule of the stylesheet selects.
function selectorBox(word, facts, words) {
  const sign = /[.#]$/.exec(word.before)?.[0] ?? "";
  const isSelected = {
    "#": ({ node }) => node === word.text,
    ".": ({ classes }) => classes.includes(word.text),
    "": ({ shape }) => shape === word.text,
  }[sign];
  if (!facts || !/^\s*\{/.test(word.after)) return null;
  const selected = facts.nodes.filter(isSelected).map(({ node }) => node);
  const box = make("div", "cm-attractor-meaning");
  box.append(make("div", "name", words.__("%1 (rule of the stylesheet)", sign + word.text)));
  box.append(make("div", "", selected.length ? words.__("selects %1", listed(selected, MOST_NODES, words)) : words.__("selects no node")));
  if (sign === "#" && selected.length) box.append(nodeBox(facts.nodes.find(isSelected), words));
  return { ...word, dom: box };
}

// The first of some texts, and how many more there are.
function listed(texts, most, words) {
  const more = texts.length - most;
  return [...texts.slice(0, most), ...(more > 0 ? [words.__("and %1 more", more)] : [])].join(", ");
}

function nodeBox(node, words) {
  const box = make("div", "cm-attractor-meaning");
  const name = node.label === node.node ? node.node : `${node.node}: ${node.label}`;
  box.append(make("div", "name", `${name} (${node.type})`));
  const tell = (title, ends) => {
    const told = ends.map(({ node: other, label, condition }) => [other, label || condition].filter(Boolean).join(" "));
    if (told.length) box.append(make("div", "", `${title} ${listed(told, MOST_EDGES, words)}`));
  };
  tell(words.__("from"), node.incoming);
  tell(words.__("to"), node.outgoing);
  return box;
}

const LOOK = {
  ".cm-attractor-meaning": {
    maxWidth: "60ch",
    padding: "6px 10px",
    fontFamily: "var(--jp-ui-font-family)",
    fontSize: "var(--jp-ui-font-size1)",
    color: "var(--jp-ui-font-color1)",
  },
  ".cm-attractor-meaning .name": { fontFamily: "var(--jp-code-font-family)", fontWeight: "600" },
};
