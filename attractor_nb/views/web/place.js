// A view that has no output of its own: it stands in for a piece of a static output that is marked with its key. What is
// saved is the static output, and a view that is gone leaves no trace in the notebook.

const PLACE_LOOK_MS = 300;

// What such a view shows in an output of its own: nothing.
export const showElsewhere = () => () => {};

// `show(el)` fills an element and returns what ends it. Returns a function that ends all.
export function standIn(key, show) {
  const shown = new Map();
  let timer = 0;
  const look = () => {
    timer = 0;
    for (const [place, end] of shown) {
      if (place.isConnected) continue;
      end();
      shown.delete(place);
    }
    for (const place of document.querySelectorAll(`[data-attractor-place="${CSS.escape(key)}"]`)) {
      if (!shown.has(place)) shown.set(place, take(place, show));
    }
  };
  const observer = new MutationObserver(() => {
    if (!timer) timer = setTimeout(look, PLACE_LOOK_MS);
  });
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return () => {
    observer.disconnect();
    clearTimeout(timer);
    for (const end of shown.values()) end();
    shown.clear();
  };
}

function take(place, show) {
  const still = [...place.children];
  const el = document.createElement("div");
  const end = show(el, place);
  for (const child of still) child.toggleAttribute("hidden", true); // the property is none of an SVG
  place.append(el);
  return () => {
    end();
    el.remove();
    for (const child of still) child.toggleAttribute("hidden", false);
  };
}
