// The line under the graph: how the run stands, where, for how long, and what it has used.

import { make, makeButton, seconds } from "./parts.js";
import { runWord } from "./state_words.js";
import { __ } from "./wording.js";

// `onMore` is called by who wants to see all that is under way.
export function makeStatusLine(stop, onMore) {
  const dot = make("span", "al-dot", "", { "aria-hidden": "true" });
  const word = make("span", "al-word");
  const node = make("span", "al-node");
  const attempt = make("span", "al-attempt");
  const more = makeButton("al-link al-more", "", __("Show all running stages"), onMore);
  const said = make("span", "al-said", [word, node, more, attempt]);
  const stages = make("span", "al-number");
  const time = make("span", "al-number");
  const tokens = make("span", "al-number");
  const price = make("span", "al-number");
  const gap = make("span", "al-gap");
  const button = makeButton("al-stop", __("Stop"), __("Stop the run; it can be resumed"), () => {
    button.disabled = true;
    button.textContent = __("Stopping…");
    stop();
  });
  const buttons = [button];
  const element = make("div", "al-line", [dot, said, stages, time, tokens, price, gap, button]);

  const tick = (line, now) => {
    const elapsed = line.is_ended || !line.at ? line.elapsed || 0 : (line.elapsed || 0) + now - line.at;
    time.textContent = seconds(elapsed);
  };
  return {
    element,
    tick,
    show(line, now) {
      const status = line.status || "ready";
      const shown = line.is_paused ? "paused" : status;
      element.dataset.status = status;
      word.textContent = runWord(shown);
      node.textContent = line.node || "";
      more.hidden = !line.more;
      more.textContent = line.more ? __("and %1 more", line.more.toLocaleString("en")) : "";
      stages.textContent = !line.stages ? "" : line.stages === 1 ? __("1 stage") : __("%1 stages", line.stages.toLocaleString("en"));
      attempt.textContent = line.attempt > 1 ? __("attempt %1", line.attempts ? `${line.attempt}/${line.attempts}` : line.attempt) : "";
      tick(line, now);
      tokens.textContent = line.tokens ? __("%1 tokens", line.tokens.toLocaleString("en")) : "";
      price.textContent = [line.price, line.mark, line.cached].filter(Boolean).join("   ");
      for (const asking of buttons) asking.hidden = Boolean(line.is_ended);
    },
    // A button of the caller's that asks the kernel for something, beside Stop.
    addButton(asking) {
      buttons.push(asking);
      button.before(asking);
    },
    // With a reason nothing can be asked; without one it can again.
    setUnanswered(reason) {
      for (const asking of buttons) {
        asking.disabled = Boolean(reason);
        if (!("title" in asking.dataset)) asking.dataset.title = asking.title;
        asking.title = reason || asking.dataset.title;
      }
    },
  };
}
