// What a word means, where a node is declared, and another id for one.

import { bodyOf } from "./cells.js";
import { changeText, make, nodeAt, rangeOf, whileDot, wordAt } from "./editor_text.js";
import { ATTRIBUTES, SHAPES } from "./words.js";

const MOST_EDGES = 8;

export function makeNavigation({ state, view }, server, { askForText, refuse, words }) {
  const { EditorView, hoverTooltip, keymap } = view;

  const hover = hoverTooltip(async (editor, position) => {
    const word = wordAt(editor.state.doc, position);
    if (!word) return null;
    const meaning = meaningOf(word);
    const shown = meaning ? meaningBox(word.text, meaning) : nodeBox(await nodeAt(editor, position, server), words);
    return shown && { pos: word.from, end: word.to, above: true, create: () => ({ dom: shown }) };
  });

  async function goToNode(editor, position) {
    const asked = editor.state.doc;
    const node = await nodeAt(editor, position, server);
    if (!node?.line || editor.state.doc !== asked) return;
    const { from } = rangeOf(asked, bodyOf(asked.toString()).offset, node);
    editor.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    editor.focus();
  }

  async function rename(editor, position) {
    const asked = editor.state.doc;
    const node = await nodeAt(editor, position, server);
    if (!node) return;
    const to = await askForText(words.__("New id for %1", node.node), node.node);
    if (!to || to === node.node || editor.state.doc !== asked) return;
    await changeText(editor, server, { rename: { node: node.node, to } }, { refuse, userEvent: "input.rename", words });
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

  const all = [hover, keys, clicks, EditorView.baseTheme(LOOK)];
  return (model) => whileDot({ state, view }, model, all);
}

// The rows of the table of attributes, or a shape's meaning as one; null for any other word.
function meaningOf({ text, before, after }) {
  if (/^\s*[=:]/.test(after) && Object.hasOwn(ATTRIBUTES, text)) return ATTRIBUTES[text];
  if (/shape\s*=\s*"?$/.test(before) && Object.hasOwn(SHAPES, text)) return [{ of: "", value: "", default: "", meaning: SHAPES[text] }];
  return null;
}

function meaningBox(name, rows) {
  const box = make("div", "cm-attractor-meaning");
  for (const row of rows) {
    const facts = [row.of && `of ${row.of}`, row.value, row.default && `default ${row.default}`].filter(Boolean).join(" · ");
    box.append(make("div", "name", facts ? `${name} (${facts})` : name), make("div", "", row.meaning.replaceAll("`", "")));
  }
  return box;
}

function nodeBox(node, words) {
  if (!node) return null;
  const box = make("div", "cm-attractor-meaning");
  const name = node.label === node.node ? node.node : `${node.node}: ${node.label}`;
  box.append(make("div", "name", `${name} (${node.type})`));
  const listed = (title, ends) => {
    if (!ends.length) return;
    const told = ends.slice(0, MOST_EDGES).map(({ node: other, label, condition }) => [other, label || condition].filter(Boolean).join(" "));
    if (ends.length > MOST_EDGES) told.push(words.__("and %1 more", ends.length - MOST_EDGES));
    box.append(make("div", "", `${title} ${told.join(", ")}`));
  };
  listed(words.__("from"), node.incoming);
  listed(words.__("to"), node.outgoing);
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
