// Runs whose live views are gone, though a kernel is there: a button at each brings one back, as alive as it can be. It is
// above the kept picture, and in the bar of a view that says that its kernel is gone.

import { asWidget } from "./host.js";
import { make, makeButton } from "./parts.js";
import { isStoodIn, lostBarOf, showElsewhere } from "./place.js";
import { __ } from "./wording.js";

const RUNS = "[data-attractor-run]";
const LOOK_AFTER_MS = 500; // views that are there stand in first

export default asWidget(showElsewhere, offerToReopen);

export function offerToReopen(host) {
  const offers = new Map(); // by place: the button with what is said
  let timer = 0;
  let isEnded = false;

  function look() {
    timer = 0;
    for (const [place, offer] of offers) {
      if (place.isConnected && offer.isConnected && !isStoodIn(place)) continue;
      offer.remove();
      offers.delete(place);
    }
    for (const place of document.querySelectorAll(RUNS)) {
      if (offers.has(place) || isStoodIn(place) || place.closest(".attractor-stand-in")) continue;
      host.send({ kind: "look" }); // of a notebook that was closed nothing else says that nobody answers
      if (isEnded) return;
      const offer = makeOffer(place.dataset.attractorRun, place.dataset.attractorPlace);
      offers.set(place, offer);
      const bar = lostBarOf(place);
      if (bar) bar.append(offer);
      else place.before(offer);
    }
  }

  function makeOffer(run, key) {
    const button = makeButton("al-button", __("Open this run"), __("Load %1 and show it here", run), () => {
      button.disabled = true;
      host.send({ kind: "open", run, place: key });
    });
    return make("div", "attractor-ui al-reopen", [button, make("span", "al-reopen-said", "", { role: "status" })], { "data-key": key });
  }

  const later = () => {
    if (!timer) timer = setTimeout(look, LOOK_AFTER_MS);
  };
  const observer = new MutationObserver(later);
  observer.observe(document.body, { childList: true, subtree: true });
  later();
  const stops = [
    host.listen(({ kind, place, problem }) => {
      if (kind !== "open") return;
      for (const offer of offers.values()) {
        if (offer.dataset.key !== place) continue;
        offer.querySelector("button").disabled = false;
        offer.querySelector(".al-reopen-said").textContent = problem || "";
      }
    }),
    host.onLost(end),
  ];
  function end() {
    isEnded = true;
    observer.disconnect();
    clearTimeout(timer);
    for (const stop of stops) stop();
    for (const offer of offers.values()) offer.remove();
    offers.clear();
  }
  return end;
}
