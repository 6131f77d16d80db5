// The line under the graph: how the run stands, where, for how long, and what it has used.

import { make, makeButton, seconds } from "./parts.js";

const RUN_WORDS = {
  ready: "ready", running: "running", waiting: "waiting", retrying: "retrying",
  success: "completed", fail: "failed", interrupted: "stopped",
};

export function makeStatusLine(stop) {
  const element = make("div", "al-line");
  const dot = make("span", "al-dot");
  dot.setAttribute("aria-hidden", "true");
  const said = make("span", "al-said");
  said.setAttribute("role", "status");
  const word = make("span", "al-word");
  const node = make("span", "al-node");
  const attempt = make("span", "al-attempt");
  said.append(word, node, attempt);
  const time = make("span", "al-number");
  const tokens = make("span", "al-number");
  const price = make("span", "al-number");
  const gap = make("span", "al-gap");
  const button = makeButton("al-stop", "Stop", "Stop the run; it can be resumed", () => {
    button.disabled = true;
    button.textContent = "Stopping…";
    stop();
  });
  element.append(dot, said, time, tokens, price, gap, button);

  const tick = (line, now) => {
    const elapsed = line.is_ended || !line.at ? line.elapsed || 0 : (line.elapsed || 0) + now - line.at;
    time.textContent = seconds(elapsed);
  };
  return {
    element,
    tick,
    show(line, now) {
      element.dataset.status = line.status || "ready";
      word.textContent = RUN_WORDS[line.status] || "ready";
      node.textContent = line.node || "";
      attempt.textContent = line.attempt > 1
        ? `attempt ${line.attempt}${line.attempts ? `/${line.attempts}` : ""}`
        : "";
      tick(line, now);
      tokens.textContent = line.tokens ? `${line.tokens.toLocaleString("en")} tokens` : "";
      price.textContent = [line.price, line.cached].filter(Boolean).join("   ");
      button.hidden = Boolean(line.is_ended);
    },
  };
}
