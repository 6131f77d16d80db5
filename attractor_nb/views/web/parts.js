// What all views share: elements, times, and the drawing as elements. All text goes through textContent.

import { __ } from "./wording.js";

// An element with its text, or a list of what is in it. `attributes` are written where it is called, never data: properties
// of the element by their names, and attributes.
export function make(tag, className, content, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (Array.isArray(content)) element.append(...content);
  else if (content !== undefined) element.textContent = content;
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  return element;
}

export function makeButton(className, text, title, onClick, attributes = {}) {
  const button = make("button", className, text, { type: "button", ...attributes });
  if (title) button.title = title;
  button.addEventListener("click", onClick);
  return button;
}

// An element of a drawing.
export function makeSvg(tag, attributes, ...content) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

// A table with a heading above each column; each row is an element.
export function makeTable(className, names, rows, attributes) {
  const headings = names.map((name) => make("th", "", name, { scope: "col" }));
  return make("table", className, [make("thead", "", [make("tr", "", headings)]), make("tbody", "", rows)], attributes);
}

// Facts by name: [name, words, class of the words]; those without words are left out.
export function makeFacts(facts) {
  const known = facts.filter(([, words]) => words);
  return make("dl", "al-facts", known.flatMap(([name, words, className]) => [make("dt", "", name), make("dd", className, words)]));
}

// The options of a choice, from its values and words.
export const optionsOf = (entries) => entries.map(([value, words]) => make("option", "", words, { value }));

// Ctrl+Enter in a field, or Command+Enter.
export function onCommandEnter(field, act) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
}

// HTML of our writer as elements, as below.
export function importHtml(text) {
  const parsed = new DOMParser().parseFromString(text.replaceAll(' style="', ' data-style="'), "text/html");
  for (const foreign of parsed.querySelectorAll("script, style, link, meta, base, iframe, object, embed, form")) foreign.remove();
  const made = [...parsed.body.childNodes].map((node) => document.importNode(node, true));
  for (const element of make("div", "", made).querySelectorAll("[data-style]")) element.style.cssText = element.dataset.style;
  return made;
}

// A drawing of ours as elements; whatever could act is taken out, though our writer makes none. A strict page refuses
// styles that stand in a text; set by a script they are let through. In texts our writer escapes the quotation mark.
//
// A pattern is looked for by its id in the whole page: the same drawing elsewhere, perhaps hidden, would give its own. So
// ids have a number behind them, which the drawing says (`dataset.number`); a piece of it is given the same one.
let drawingCount = 0;
export function importDrawing(text, number = (drawingCount += 1)) {
  const parsed = new DOMParser().parseFromString(text.replaceAll(' style="', ' data-style="'), "image/svg+xml");
  const root = parsed.documentElement;
  if (root.nodeName !== "svg") return make("p", "", __("The drawing could not be read."));
  for (const foreign of parsed.querySelectorAll("script, foreignObject, image, a")) foreign.remove();
  const drawing = document.importNode(root, true);
  drawing.dataset.number = number;
  const numbered = (value) => value.replace(/url\(#([^)]+)\)/g, `url(#$1-${number})`);
  for (const element of drawing.querySelectorAll("[id]")) element.id += `-${number}`;
  for (const element of drawing.querySelectorAll('[fill^="url(#"]')) element.setAttribute("fill", numbered(element.getAttribute("fill")));
  for (const element of [drawing, ...drawing.querySelectorAll("[data-style]")]) {
    if (element.dataset.style) element.style.cssText = numbered(element.dataset.style);
  }
  return drawing;
}

export const seconds = (value) => (value < 60 ? `${Math.max(0, value).toFixed(1)} s` : clock(value));
export const wholeSeconds = (value) => (value < 60 ? `${Math.max(0, Math.round(value))} s` : clock(value));

export function clock(value) {
  const rest = Math.max(0, Math.floor(value));
  const hours = Math.floor(rest / 3600);
  const minutes = Math.floor((rest % 3600) / 60);
  const two = (part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest % 60)}` : `${minutes}:${two(rest % 60)}`;
}

// Keys pressed here are ours, not Jupyter's shortcuts: Lumino honours this attribute. Notebook 7 asks for what has
// the focus before it looks further up, so that gets it too.
export function keepKeys(element) {
  element.dataset.lmSuppressShortcuts = "true";
  element.addEventListener("focusin", (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true"));
  // JupyterLab takes the line break from whatever is in a cell when it has seen the key; it must not see that one comes.
  element.addEventListener("beforeinput", (event) => event.inputType === "insertLineBreak" && event.stopPropagation(), true);
}

// The element of a whole view.
export function makeView(className, label) {
  const view = make("div", `attractor-ui ${className}`, "", { role: "region", "aria-label": label });
  keepKeys(view);
  return view;
}

// A function that does something at once, and again only after a while, with what it was given last.
export function atMostEvery(milliseconds, act) {
  let timer = 0;
  let given = null;
  const go = () => {
    timer = given ? setTimeout(go, milliseconds) : 0;
    const last = given;
    given = null;
    if (last) act(...last);
  };
  return (...values) => {
    given = values;
    if (!timer) go();
  };
}

// A key of a request: whoever sends the same again begins no second run.
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
