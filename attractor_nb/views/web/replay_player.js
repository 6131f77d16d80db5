// Plays frames in their own time, faster, or with every wait made short.

import { __ } from "./wording.js";

const MODES = [
  { name: "1×", title: __("As it happened"), seconds: (gap) => gap },
  { name: "4×", title: __("Four times as fast"), seconds: (gap) => gap / 4 },
  { name: __("short waits"), title: __("Show each event briefly, however long it took"), seconds: (gap) => Math.min(0.8, 0.12 + gap) },
];
const FASTEST_MS = 16;

// `timeOf(n)` is when frame n was, in seconds; `advance(n)` shows it; `onChange(isPlaying)` is told of both.
export function makePlayer({ timeOf, advance, onChange }) {
  let mode = MODES.at(-1);
  let timer = 0;
  let at = 0;
  let count = 0;

  // Frames that follow at once are shown together.
  const step = () => {
    let wait = 0;
    do {
      at += 1;
      wait = at < count ? mode.seconds(timeOf(at + 1) - timeOf(at)) * 1000 : Infinity;
    } while (wait < FASTEST_MS);
    advance(at);
    if (at >= count) pause();
    else timer = setTimeout(step, wait);
  };

  const play = (from) => {
    at = from >= count ? 0 : from;
    if (!count) return;
    if (at !== from) advance(at);
    onChange(true);
    timer = setTimeout(step, FASTEST_MS);
  };

  const pause = () => {
    if (!timer) return;
    clearTimeout(timer);
    timer = 0;
    onChange(false);
  };

  return {
    modes: MODES,
    setMode: (chosen) => (mode = chosen),
    setCount: (value) => (count = value),
    pause,
    toggle(from) {
      if (timer) pause();
      else play(from);
    },
  };
}
