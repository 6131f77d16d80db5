// What was begun by a click in a view: the live views of those runs, beneath it. Each has a place of its own, where its
// widgets stand in (place.js).

import { make } from "./parts.js";

export function makeBeneath(host) {
  const element = make("div", "an-beneath");
  const shown = new Map();

  function show() {
    const wanted = host.get("beneath") || [];
    for (const { place, title } of wanted) {
      if (shown.has(place)) continue;
      const drawing = make("div", "", "", { "data-attractor-place": place });
      const box = make("section", "an-run", [make("h4", "an-title", title), drawing], { "aria-label": title });
      shown.set(place, box);
      element.append(box);
    }
    for (const [place, box] of shown) {
      if (wanted.some((one) => one.place === place)) continue;
      box.remove();
      shown.delete(place);
    }
    element.hidden = !shown.size;
  }

  show();
  const stop = host.on("beneath", show);
  return { element, close: stop };
}
