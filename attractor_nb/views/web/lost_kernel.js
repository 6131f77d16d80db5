// A view whose kernel is gone, or is not heard: it says so, says where the rest is, and asks nobody any more.

import { make } from "./parts.js";

const SILENCE_SECONDS = 16; // a kernel says every 5 seconds that it lives

// `onChange(reason)` is called with why nothing can be asked now, or with an empty text.
export function makeLostKernel(host, onChange) {
  const element = make("div", "al-lost");
  element.setAttribute("role", "alert");
  element.hidden = true;
  const directory = host.get("directory");
  const call = directory ? `Run.load(${JSON.stringify(directory)})` : "Run.load(…)";
  let heardAt = performance.now();
  let reason = "";

  function say(text) {
    if (text === reason) return;
    reason = text;
    element.hidden = !text;
    element.replaceChildren();
    if (text) {
      element.append(make("span", "", `${text} What is shown is the last that was heard. `));
      element.append(make("code", "", call), make("span", "", " shows the rest."));
    }
    onChange(text);
  }

  const stops = [
    host.listen(() => {
      heardAt = performance.now();
      say("");
    }),
    host.onLost(() => say("The kernel is gone.")),
  ];
  return {
    element,
    get reason() {
      return reason;
    },
    get isLost() {
      return Boolean(reason);
    },
    // Called again and again while the run is not over.
    check() {
      const silent = (performance.now() - heardAt) / 1000;
      if (!reason && host.get("has_beats") && silent > SILENCE_SECONDS) say("Nothing is heard from the kernel.");
    },
    close: () => stops.forEach((stop) => stop()),
  };
}
