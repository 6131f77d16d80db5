// What the extension's parts share: elements, places in a text, and the changes of one.

import { DOT_MIME, bodyOf } from "./cells.js";

const WORD = /[A-Za-z_][\w.]*/g;
const PIECE = /"(?:[^"\\]|\\[\s\S])*"?|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(?<=^|\n)[ \t]*#[^\n]*|([A-Za-z_][\w.]*)\s*=|[A-Za-z_][\w.]*|[^"/A-Za-z_\n]+|[/\n]/g;

const NOTHING = [];

// An extension of CodeMirror that an editor has while its text is DOT. It comes and goes with the transaction by which the
// editor itself takes the language: one of its own would have the page measured once more for each cell and extension. Its
// theme, one for all editors, and that of tooltips are always there: when one comes, CodeMirror writes the sheet of all
// editors anew, and the browser styles the whole page.
export function whileDot({ state: { Compartment, EditorState }, view: { showTooltip } }, model, extension, theme) {
  const place = new Compartment();
  const wanted = () => (model.mimeType === DOT_MIME ? extension : NOTHING);
  const following = EditorState.transactionExtender.of(({ startState }) => {
    const now = wanted();
    return place.get(startState) === now ? null : { effects: place.reconfigure(now) };
  });
  return [showTooltip.of(null), theme, place.of(wanted()), following];
}

export function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Where a finding is in the editor's text: Python counts code points, the editor code units. What has no place is put at
// the text's first line; what is empty gets the character at its place, or the one before it at a line's end.
export function rangeOf(doc, offset, { line, column, end_line: endLine, end_column: endColumn }) {
  const above = doc.lineAt(Math.min(offset, doc.length)).number - 1;
  const position = (number, place) => {
    const { from, text } = doc.line(Math.min(Math.max(1, number + above), doc.lines));
    return from + [...text].slice(0, Math.max(0, place - 1)).join("").length;
  };
  if (!line) {
    const first = doc.lineAt(Math.min(offset, doc.length));
    return { from: first.from, to: first.to };
  }
  const from = position(line, column);
  const to = position(endLine, endColumn);
  if (to > from) return { from, to };
  const here = doc.lineAt(from);
  return from < here.to ? { from, to: from + 1 } : { from: Math.max(here.from, from - 1), to: from };
}

// The word at a position, and what stands around it.
export function wordAt(doc, position) {
  const line = doc.lineAt(position);
  for (const { 0: text, index } of line.text.matchAll(WORD)) {
    const from = line.from + index;
    if (from <= position && position <= from + text.length) {
      return { text, from, to: from + text.length, before: line.text.slice(0, index), after: line.text.slice(index + text.length) };
    }
  }
  return null;
}

// The attribute in whose string a position of a text is, as `{ name }`; null outside of strings. Comments are left out.
export function stringAt(text, position) {
  let name = "";
  for (const { 0: piece, 1: word, index } of text.matchAll(PIECE)) {
    if (index > position) return null;
    if (piece[0] === '"') {
      if (index < position && position < index + piece.length) return { name };
      name = "";
    } else if (/^\w/.test(piece)) name = word ?? "";
  }
  return null;
}

// The node that the word at a position names, with its place and edges; null when it names none, or nobody answers.
export async function nodeAt(editor, position, server) {
  const word = wordAt(editor.state.doc, position);
  if (!word) return null;
  const node = (await server.outlineOf(bodyOf(editor.state.doc.toString()).text))?.find((each) => each.node === word.text);
  return node ? { ...word, ...node } : null;
}

// The node that is meant by a position: the one that is named there, or else the one that is declared on its line.
export async function nodeNear(editor, position, server) {
  const { doc } = editor.state;
  const named = await nodeAt(editor, position, server);
  if (named) return named;
  const { offset, text } = bodyOf(doc.toString());
  const line = doc.lineAt(position).from;
  const isHere = (node) => node.line && doc.lineAt(rangeOf(doc, offset, node).from).from === line;
  return (await server.outlineOf(text))?.find(isHere) ?? null;
}

// Has the server change the text: `{ fix }` or `{ rename }`. The text as it was asked about must still be there when the
// answer comes, else nothing is changed. One undo takes it back.
export async function changeText(editor, server, change, { refuse, telling, userEvent, words }) {
  const asked = editor.state.doc;
  const { offset, text } = bodyOf(asked.toString());
  const isStill = telling.stillIn(editor);
  const after = await telling.awaited(editor, server.changed(text, change));
  const isWanted = isStill();
  if (!after) telling.say(editor, words.__("Nothing was changed: the server of attractor_nb does not answer"));
  else if (after.problem) await refuse(words.__("The text was not changed"), after.problem);
  else if (after.text && editor.state.doc === asked) editor.dispatch({ changes: smallestChanges(text, after.text, offset), userEvent });
  if (isWanted) editor.focus();
}

// The changes that make `after` of `before`: line by line where both have as many lines, else one.
export function smallestChanges(before, after, offset) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  if (old.length !== now.length) return [smallestChange(before, after, offset)];
  const changes = [];
  let start = offset;
  old.forEach((line, number) => {
    if (line !== now[number]) changes.push(smallestChange(line, now[number], start));
    start += line.length + 1;
  });
  return changes;
}

// One change: what both texts begin and end with stays.
function smallestChange(before, after, offset) {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { from: offset + start, to: offset + before.length - end, insert: after.slice(start, after.length - end) };
}
