// DOT as CodeMirror reads it, line by line: colours only. What a text means, and what is wrong with it, is decided in Python.
//
// Tokens have the names of CodeMirror's tags, so the colours are those of the theme: of its tags those that can be read well
// in JupyterLab's own themes (brackets, atoms, tags and definitions of these stand too near to the ground). Conditions and stylesheets inside
// strings are languages of their own; in every other string `$variables` stand out.

import { ATTRIBUTES, CONDITIONS, KEYWORDS } from "./words.js";

const ATTRIBUTE_NAMES = new Set(Object.keys(ATTRIBUTES));
const KEYWORD_NAMES = new Set(KEYWORDS);
const INNER = { ...Object.fromEntries(CONDITIONS.map((name) => [name, conditionToken])), model_stylesheet: stylesheetToken };
const FIRST_LINES = 200; // in which the text shows by how much it is indented

const NAME = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(ms|s|m|h|d)?(?!\w)/;
const VARIABLE = /^\$(\$|\{[^}"\n]*\}|[A-Za-z_]\w*)/;

export function dotLanguage({ LanguageSupport, StreamLanguage, foldService, indentUnit }, { Prec }) {
  const language = StreamLanguage.define(dotParser);
  const unit = indentUnit.computeN(["doc"], ({ doc }) => unitOf(doc));
  return new LanguageSupport(language, [foldService.of(foldedFrom), Prec.high(unit)]);
}

// By how much the text is indented, as a list: two spaces or four or a tab, as the first block has it. Empty where nothing
// is indented yet: then JupyterLab's own setting counts.
function unitOf(doc) {
  let outer = null;
  for (const line of doc.iterLines(1, Math.min(doc.lines, FIRST_LINES) + 1)) {
    if (!line.trim()) continue;
    const indent = /^[ \t]*/.exec(line)[0];
    const unit = outer !== null && indent.startsWith(outer) ? indent.slice(outer.length) : "";
    if (/^(\t+| +)$/.test(unit)) return [unit];
    outer = /[{[]\s*$/.test(line) ? indent : null;
  }
  return [];
}

export const dotParser = {
  name: "attractor",
  startState: () => ({ isFirst: true, depth: 0, comment: false, string: null, name: "", isValue: false, quote: "" }),
  copyState: (state) => ({ ...state }),
  token,
  blankLine(state) {
    state.isFirst = false;
  },
  // A line of a string or of a comment stays where it is put: the spaces of a prompt are a part of it.
  indent: (state, textAfter, { unit }) =>
    state.comment || state.string !== null ? null : unit * Math.max(0, state.depth - /^\s*[}\]]/.test(textAfter)),
  languageData: {
    commentTokens: { line: "//", block: { open: "/*", close: "*/" } },
    closeBrackets: { brackets: ["(", "[", "{", '"'] },
    indentOnInput: /^\s*[}\]]$/,
  },
};

function token(stream, state) {
  if (state.isFirst && stream.sol()) {
    state.isFirst = false;
    if (stream.match(/^\s*%%\w+/)) {
      state.isMagic = true;
      return "operator"; // as JupyterLab shows %%time
    }
    state.isMagic = false;
  }
  if (state.isMagic && !stream.sol()) return magicToken(stream);
  state.isMagic = false;
  if (state.comment) return commentToken(stream, state);
  if (state.string !== null) return stringToken(stream, state);
  if (stream.eatSpace()) return null;
  if (stream.match("//") || (stream.peek() === "#" && /^\s*$/.test(stream.string.slice(0, stream.start)))) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) {
    state.comment = true;
    return commentToken(stream, state);
  }
  if (stream.eat('"')) {
    state.string = state.isValue ? state.name : "";
    state.isValue = false;
    state.quote = "";
    return "string";
  }
  if (stream.match("->") || stream.match("--")) return "operator";
  return state.isValue ? valueToken(stream, state) : nameToken(stream, state);
}

// The magic's own line: the variable that gets the pipeline, options and their values.
function magicToken(stream) {
  if (stream.eatSpace()) return null;
  if (stream.match(/^--[\w-]+/)) return "attributeName";
  if (stream.match(/^(["']).*?\1/) || stream.match(/^\S*=\S*/)) return "string";
  const isFirstWord = /^\s*%%\w+\s+$/.test(stream.string.slice(0, stream.start));
  stream.match(/^\S+/);
  return isFirstWord ? "variableName.special" : "string";
}

function commentToken(stream, state) {
  if (stream.skipTo("*/")) {
    stream.match("*/");
    state.comment = false;
  } else {
    stream.skipToEnd();
  }
  return "comment";
}

function nameToken(stream, state) {
  const found = stream.match(NAME);
  if (!found) return punctuationToken(stream, state);
  const [name] = found;
  state.name = name;
  if (KEYWORD_NAMES.has(name)) return "keyword";
  if (!/^\s*=/.test(stream.string.slice(stream.pos))) return "variableName";
  return ATTRIBUTE_NAMES.has(name) ? "attributeName" : "propertyName";
}

function punctuationToken(stream, state) {
  const character = stream.next();
  if (character === "=") {
    state.isValue = true;
    return "operator";
  }
  if (character === "{" || character === "[") state.depth += 1;
  else if (character === "}" || character === "]") state.depth = Math.max(0, state.depth - 1);
  return "punctuation";
}

function valueToken(stream, state) {
  state.isValue = false;
  if (stream.match(NUMBER)) return "number";
  if (stream.match(/^(true|false)(?!\w)/)) return "bool";
  if (stream.match(/^[^\s,;[\]{}"]+/)) return "labelName";
  return nameToken(stream, state);
}

function stringToken(stream, state) {
  if (stream.eat('"')) {
    state.string = null;
    return "string";
  }
  const inner = INNER[state.string];
  if (inner) return inner(stream, state);
  if (stream.match(/^\\./)) return "string.special";
  if (stream.match(VARIABLE)) return "variableName.special";
  stream.eat("$");
  stream.match(/^[^"\\$]+/);
  return "string";
}

// The strings inside of these two are written `\"text\"` or 'text'; `state.quote` is what closes the one that is open.
function innerString(stream, state) {
  if (stream.match(state.quote)) state.quote = "";
  else if (!stream.match(/^\\[^"]/) && !stream.match(/^[^"'\\]+/)) stream.next();
  return "string.special";
}

function opensInnerString(stream, state) {
  const found = stream.match(/^(\\"|')/);
  if (found) state.quote = found[0];
  return Boolean(found);
}

function conditionToken(stream, state) {
  if (state.quote) return innerString(stream, state);
  if (opensInnerString(stream, state)) return "string.special";
  if (stream.eatSpace()) return null;
  if (stream.match("&&") || stream.match("!=") || stream.match("=")) return "operator";
  if (stream.match(NAME)) return /[=]\s*$/.test(stream.string.slice(0, stream.start)) ? "labelName" : "propertyName";
  if (stream.match(/^[^\s"\\&!=]+/)) return "labelName";
  stream.next();
  return "invalid";
}

function stylesheetToken(stream, state) {
  if (state.quote) return innerString(stream, state);
  if (opensInnerString(stream, state)) return "string.special";
  if (stream.eatSpace()) return null;
  if (stream.match(/^\/\*.*?\*\//)) return "comment";
  if (stream.match(/^[{}]/)) return "punctuation";
  if (stream.match(/^[;:=]/)) return "punctuation";
  if (stream.match(/^[.#][\w-]+/) || stream.eat("*")) return "variableName.special";
  const found = stream.match(/^[^\s{};:"'=,*\\]+/);
  if (!found) {
    stream.next();
    return "invalid";
  }
  if (/[:=]\s*$/.test(stream.string.slice(0, stream.start))) return "labelName";
  return /^\s*[:=]/.test(stream.string.slice(stream.pos)) ? "propertyName" : "variableName.special";
}

// A block folds from the end of the line that opens it to before the line that closes it. Brackets in strings and comments
// are left out by looking at the tokens' own rule: a quotation mark opens a string until the next one that is not escaped.
function foldedFrom(state, lineStart, lineEnd) {
  const line = state.doc.sliceString(lineStart, lineEnd);
  if (!/[{[]\s*$/.test(line)) return null;
  const rest = state.doc.sliceString(lineEnd, Math.min(state.doc.length, lineEnd + 200_000));
  const piece = /"(?:[^"\\]|\\[\s\S])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[{}[\]]/g;
  let depth = 1;
  for (const { 0: text, index } of rest.matchAll(piece)) {
    if (text === "{" || text === "[") depth += 1;
    else if (text === "}" || text === "]") depth -= 1;
    if (depth === 0) return rest.lastIndexOf("\n", index) > 0 ? { from: lineEnd, to: lineEnd + index } : null;
  }
  return null;
}
