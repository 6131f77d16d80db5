// A view whose kernel, or server, is gone or not heard: it says so, says where the rest is, and asks nobody any more.

import { make } from "./parts.js";
import { __ } from "./wording.js";

const SILENCE_SECONDS = 16; // a kernel says every 5 seconds that it lives

// `onChange(reason)` is called with why nothing can be asked now, or with an empty text.
export function makeLostKernel(host, onChange) {
  const element = make("div", "al-lost");
  element.setAttribute("role", "alert");
  element.hidden = true;
  const directory = host.get("directory");
  const call = directory ? `Run.load(${JSON.stringify(directory)})` : "Run.load(…)";
  const who = host.who || "kernel";
  let heardAt = performance.now();
  let reason = "";

  function say(text) {
    if (text === reason) return;
    reason = text;
    element.hidden = !text;
    element.replaceChildren();
    if (text) {
      element.append(make("span", "", __("%1 This is the last known state. ", text)));
      if (who === "kernel") element.append(make("code", "", call), make("span", "", __(" shows the rest.")));
      else element.append(make("span", "", __("This page keeps trying to reach it.")));
    }
    onChange(text);
  }

  const stops = [
    host.listen(() => {
      heardAt = performance.now();
      say("");
    }),
    host.onLost(() => say(__("The %1 is gone.", who))),
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
      if (!reason && host.get("has_beats") && silent > SILENCE_SECONDS) say(__("The %1 does not respond.", who));
    },
    close: () => stops.forEach((stop) => stop()),
  };
}
