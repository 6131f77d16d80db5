// Where a widget shows its view. Most stand in for a piece of a static output that is marked with their key: what is saved
// is the static output, and a view that is gone leaves no trace in the notebook. A widget without a key fills its own output.

import { asWidget } from "./host.js";
import { atMostEvery, make } from "./parts.js";

const REPLACED = "attractor-replaced";
const PLACE_GONE_MS = 300; // an output that is drawn anew is away for a moment
const NOTED_MS = 200;
const DARK_INK = 384; // half of the brightest colour
const PLACES = "[data-attractor-place]";
const DRESS = "jp-RenderedHTMLCommon"; // how Jupyter styles the HTML of outputs; a view has its own styles

// What a view that stands in somewhere shows in an output of its own: nothing.
export const showElsewhere = () => () => {};

// The widget of a view `show(host, el, shared)`; `share(host)` makes what all views of one model have in common.
export const asPlacedWidget = (show, share = () => null) =>
  asWidget(
    (host, el, shared) => (host.get("place") ? showElsewhere() : showHere(el, (own) => show(host, own, shared))),
    (host) => {
      const shared = share(host);
      const place = host.get("place");
      return place ? standIn(place, (el) => show(host, el, shared)) : shared;
    },
  );

// A view in an output of its own may be cut off from the page (marimo shows it in a shadow tree), and with it from the
// page's theme: the colour of its text tells light from dark.
function showHere(el, show) {
  const own = make("div", "attractor-own");
  el.append(own);
  const dot = document.createElement("canvas").getContext("2d"); // reads a colour in any notation
  const follow = () => {
    dot.fillStyle = getComputedStyle(own).color || "black"; // outside of the page it has none
    dot.fillRect(0, 0, 1, 1);
    const [red, green, blue] = dot.getImageData(0, 0, 1, 1).data;
    own.dataset.jpThemeLight = String(red + green + blue < DARK_INK);
  };
  const arriving = new ResizeObserver(follow);
  arriving.observe(own);
  const themes = new MutationObserver(follow);
  for (const element of [document.documentElement, document.body]) themes.observe(element, { attributes: true });
  const end = show(own);
  return () => {
    arriving.disconnect();
    themes.disconnect();
    end();
    own.remove();
  };
}

const LOST_BAR = ".al-lost[data-is-gone]:not([hidden])";
export const isStoodIn = (place) => Boolean(place.querySelector(":scope > .attractor-stand-in")) && !lostBarOf(place);

// The bar of a view that stands there and says that its kernel is gone; null where there is none.
export const lostBarOf = (place) => place.querySelector(`:scope > .attractor-stand-in > .attractor-live > .al-stage > ${LOST_BAR}`);

// `show(el)` fills an element and returns what ends it. Where the output is drawn anew, what was shown there moves into
// the new one as it is: with what is open, chosen and scrolled. Returns a function that ends all.
export function standIn(key, show) {
  const shown = new Map(); // by place: what stands there
  const seen = new WeakMap(); // by place that nothing stands in yet: since when
  let timer = 0;
  const places = () => document.querySelectorAll(`[data-attractor-place="${CSS.escape(key)}"]`);
  const look = () => {
    const left = [...shown].filter(([place]) => !place.isConnected);
    let isAnyNew = false;
    for (const place of places()) {
      if (shown.has(place)) continue;
      if (!left.length && shown.size && isNew(place)) {
        isAnyNew = true;
        continue;
      }
      const [old, standing] = left.shift() || [null, makeStanding(show, end)];
      if (old) shown.delete(old);
      shown.set(place, standing);
      standing.moveTo(place);
    }
    clearTimeout(timer);
    timer = left.length || isAnyNew ? setTimeout(lookAgain, PLACE_GONE_MS) : 0;
  };
  // Beside one that is there: it may be the same output, drawn anew before the old one has gone.
  const isNew = (place) => {
    if (!seen.has(place)) seen.set(place, performance.now());
    return performance.now() - seen.get(place) < PLACE_GONE_MS - 1;
  };
  const lookAgain = () => {
    forget();
    look();
  };
  const forget = () => {
    for (const [place, standing] of shown) {
      if (place.isConnected) continue;
      standing.end();
      shown.delete(place);
    }
  };
  const observer = new MutationObserver((records) => {
    const isOther = (node) => node.nodeType === Node.ELEMENT_NODE && (node.matches(PLACES) || node.querySelector(PLACES));
    if (records.some((record) => [...record.addedNodes, ...record.removedNodes].some(isOther))) look();
  });
  function end() {
    observer.disconnect();
    clearTimeout(timer);
    for (const standing of shown.values()) standing.end();
    shown.clear();
  }
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return end;
}

// What stands in a place. Moved to another one it keeps where it was scrolled to, and who had the focus.
function makeStanding(show, onReplaced) {
  const el = document.createElement("div");
  el.className = "attractor-stand-in";
  el.addEventListener(REPLACED, onReplaced); // a view of the same run by another kernel: it takes the place
  const scrolled = new Map();
  let focused = null;
  let still = [];
  let undressed = null;
  // To ask where something is scrolled to lays out what has changed: in each frame it would take longer than drawing.
  const moved = new Set();
  const note = atMostEvery(NOTED_MS, () => {
    for (const target of moved) if (target.isConnected) scrolled.set(target, [target.scrollLeft, target.scrollTop]);
    moved.clear();
  });
  const hearScroll = ({ target }) => {
    moved.add(target);
    note();
  };
  el.addEventListener("scroll", hearScroll, true);
  el.addEventListener("focusin", ({ target }) => (focused = target));
  // It is also said when an output is drawn anew; then the focus is put back before this looks.
  el.addEventListener("focusout", ({ target }) =>
    setTimeout(() => {
      if (el.isConnected && focused === target && document.activeElement !== target) focused = null;
    }));
  const endView = show(el);
  const uncover = () => {
    for (const child of still) child.toggleAttribute("hidden", false);
    if (undressed && !undressed.querySelector(".attractor-stand-in")) undressed.classList.add(DRESS);
  };
  return {
    moveTo(place) {
      const hadFocus = focused;
      uncover();
      for (const other of place.querySelectorAll(":scope > .attractor-stand-in")) if (other !== el) other.dispatchEvent(new Event(REPLACED));
      still = [...place.children];
      for (const child of still) child.toggleAttribute("hidden", true); // the property is none of an SVG
      place.append(el);
      undressed = place.closest(`.${DRESS}`) || (undressed && undressed.contains(place) ? undressed : null);
      if (undressed) undressed.classList.remove(DRESS);
      for (const [element, [left, top]] of scrolled) {
        if (el.contains(element)) Object.assign(element, { scrollLeft: left, scrollTop: top });
        else scrolled.delete(element);
      }
      if (hadFocus && el.contains(hadFocus) && document.activeElement === document.body) hadFocus.focus({ preventScroll: true });
    },
    end() {
      endView();
      el.remove();
      uncover();
    },
  };
}
