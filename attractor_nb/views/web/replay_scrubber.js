// The slider over the events of a run, its buttons, and under it a tick for each stage that ended.

import { makeIcon } from "./icons.js";
import { make, makeButton, seconds } from "./parts.js";
import { __ } from "./wording.js";

const MOST_TICKS = 600; // more than that are narrower than a pixel
const RANKS = ["skipped", "success", "partial_success", "retry", "fail"];

// Of ends that stand in one place the one that matters most.
function ticksOf(ends, count) {
  if (ends.length <= MOST_TICKS) return ends;
  const rank = ({ node, status }) => (node ? RANKS.indexOf(status) : RANKS.length);
  const ticks = new Map();
  for (const frame of ends) {
    const place = Math.floor((frame.n * MOST_TICKS) / count);
    const there = ticks.get(place);
    if (!there || rank(frame) > rank(there)) ticks.set(place, frame);
  }
  return [...ticks.values()];
}

// `onSeek(n)`, `onStage(±1)` and `onPlay(n)` say what was asked for.
export function makeScrubber({ onSeek, onStage, onPlay }) {
  const element = make("div", "ar-scrubber");
  const buttons = make("div", "ar-buttons");
  buttons.setAttribute("role", "toolbar");
  buttons.setAttribute("aria-label", __("Replay"));
  let count = 0;
  let at = 0;

  const button = (text, title, act) => {
    const made = makeButton("al-button ar-button", text, title, act);
    made.setAttribute("aria-label", title);
    return made;
  };
  const player = button("", __("Play (Space)"), () => onPlay(at));
  player.append(makeIcon("play"));
  const modes = make("span", "ar-modes");
  modes.setAttribute("role", "radiogroup");
  modes.setAttribute("aria-label", __("Speed"));
  const place = make("span", "al-number ar-place");
  const time = make("span", "al-number ar-time");
  buttons.append(
    button("«", __("Stage before (Shift+Left)"), () => onStage(-1)),
    button("‹", __("Event before (Left)"), () => onSeek(at - 1)),
    player,
    button("›", __("Next event (Right)"), () => onSeek(at + 1)),
    button("»", __("Next stage (Shift+Right)"), () => onStage(1)),
    modes,
    place,
    time,
  );

  const track = make("div", "ar-track");
  const slider = make("input", "ar-slider");
  slider.type = "range";
  slider.min = 0;
  slider.setAttribute("aria-label", __("Event"));
  slider.addEventListener("input", () => onSeek(Number(slider.value)));
  const strip = make("div", "ar-strip");
  strip.setAttribute("aria-hidden", "true"); // the slider says the same
  strip.addEventListener("click", (event) => {
    const box = strip.getBoundingClientRect();
    onSeek(Math.round(((event.clientX - box.left) / box.width) * count));
  });
  track.append(slider, strip);
  const words = make("p", "ar-words");
  words.setAttribute("role", "status");
  element.append(words, track, buttons);

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction && event.shiftKey) onStage(direction);
    else if (direction) onSeek(at + direction);
    else if (event.key === "Home") onSeek(0);
    else if (event.key === "End") onSeek(count);
    else if (event.key === " " && event.target === slider) onPlay(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    addModes(all, choose) {
      all.forEach((mode, index) => {
        const made = makeButton("ar-mode", mode.name, mode.title, () => {
          for (const other of modes.children) other.setAttribute("aria-checked", String(other === made));
          choose(mode);
        });
        made.setAttribute("role", "radio");
        made.setAttribute("aria-checked", String(index === all.length - 1));
        modes.append(made);
      });
    },
    setPlaying(isPlaying) {
      player.replaceChildren(makeIcon(isPlaying ? "pause" : "play"));
      player.title = isPlaying ? __("Pause (Space)") : __("Play (Space)");
      player.setAttribute("aria-label", player.title);
    },
    setFrames(frames, nameOf, ends) {
      count = frames.length;
      slider.max = count;
      time.dataset.whole = count ? seconds(frames[count - 1].at) : seconds(0);
      strip.replaceChildren(
        ...ticksOf(ends, count).map((frame) => {
          const tick = make("span", `ar-tick ar-${frame.node ? frame.status : `run-${frame.status}`}`);
          tick.style.left = `${(100 * frame.n) / count}%`;
          tick.title = frame.node
            ? `${nameOf(frame.node)}: ${frame.status.replace("_", " ")}`
            : frame.words;
          return tick;
        }),
      );
    },
    show(n, frame) {
      at = n;
      slider.value = n;
      const said = frame ? frame.words : __("Before the first event.");
      slider.setAttribute("aria-valuetext", __("%1 of %2: %3", n, count, said));
      words.textContent = said;
      place.textContent = `${n} / ${count}`;
      time.textContent = `${seconds(frame ? frame.at : 0)} / ${time.dataset.whole || seconds(0)}`;
    },
  };
}
