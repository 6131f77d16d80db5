// Texts as trees (views/texts/prose.py) drawn as elements: Markdown, code, JSON to fold, diffs with their words marked.
//
// A node is a text, or [tag.class, attributes?, ...nodes]. Only what stands here becomes an element or an attribute;
// anything else is shown as the text that it is. Nothing is loaded, and no link is followed unasked.

import { make } from "./parts.js";

const PROSE_TAGS = new Set(
  ("p h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td pre code em strong s del ins br hr a span div " +
    "details summary").split(" "));
const CLASS_NAME = /^[a-z][a-z0-9-]*$/;
const LINK_ADDRESS = /^(https?|mailto):/i;
const DEEPEST_NODE = 120;

// The nodes of a tree in a box that scrolls, by keys too.
export function makeProse(nodes, label = "") {
  const box = make("div", "attractor-prose pr-shown", "", { tabIndex: 0 });
  if (label) box.setAttribute("aria-label", label);
  appendNodes(box, nodes, 0);
  return box;
}

// The nodes of a tree within a line or a cell.
export function makeInline(nodes) {
  const box = make("span", "attractor-prose pr-shown pr-inline");
  appendNodes(box, nodes, 0);
  return box;
}

function appendNodes(parent, nodes, depth) {
  for (const node of nodes) parent.append(Array.isArray(node) ? makeNode(node, depth) : String(node));
}

function makeNode([head, ...inside], depth) {
  const [tag, name = ""] = String(head).split(".");
  if (depth > DEEPEST_NODE || (tag && !PROSE_TAGS.has(tag))) return document.createTextNode(wordsOf(inside));
  const element = make(tag || "span", CLASS_NAME.test(name) ? `pr-${name}` : "");
  const given = inside.length && isAttributes(inside[0]) ? inside.shift() : {};
  if (tag === "a" && LINK_ADDRESS.test(given.href)) {
    element.href = element.title = given.href;
    element.target = "_blank";
    element.rel = "noopener noreferrer";
  }
  if (tag === "ol" && /^\d{1,9}$/.test(given.start)) element.start = Number(given.start);
  if (tag === "details") element.open = given.open !== undefined;
  appendNodes(element, inside, depth + 1);
  return element;
}

const isAttributes = (part) => part !== null && typeof part === "object" && !Array.isArray(part);

function wordsOf(nodes) {
  return nodes.flat(Infinity).filter((part) => typeof part === "string").join(" ");
}
