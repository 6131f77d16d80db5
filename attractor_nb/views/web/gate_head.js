// The head of a gate card: question, material, time left, refusals, and the lines of past answers.
//
// The buttons below it are ipywidgets; this file gives them what those cannot have: an underlined
// accelerator key, and the key itself while the card has the focus. All text goes through textContent.

import { asWidget } from "./host.js";
import { make } from "./parts.js";

const GATE_TICK_MS = 250;

export default asWidget(showGateHead);

export function showGateHead(host, el) {
  const head = make("div", "ag-head");
  const title = make("h4", "ag-title");
  title.setAttribute("aria-live", "polite");
  const more = make("span", "ag-more");
  const material = make("details", "ag-material");
  const text = make("pre", "");
  material.append(make("summary", "", "Under review"), text);
  const track = make("div", "ag-time");
  const bar = make("div", "ag-time-bar");
  const left = make("span", "ag-time-text");
  track.append(bar);
  const refusal = make("p", "ag-refusal");
  refusal.setAttribute("role", "alert");
  const answers = make("ol", "ag-answers");
  head.append(title, more, material, track, left, refusal);
  el.append(answers, head);

  let card = null;
  let observer = null;

  const showGate = () => {
    const gate = host.get("gate");
    head.hidden = !gate.id;
    if (!gate.id) return;
    title.textContent = gate.title;
    more.textContent = gate.more ? `${gate.more} more ${gate.more > 1 ? "questions wait" : "question waits"}` : "";
    material.hidden = !gate.detail;
    text.textContent = gate.detail || "";
    track.hidden = left.hidden = !gate.deadline;
    refusal.textContent = gate.refusal || "";
    tick();
    dress();
  };

  const showAnswers = () => {
    answers.replaceChildren(
      ...host.get("answers").map(({ is_answered: isAnswered, words }) => {
        const item = make("li", isAnswered ? "is-answered" : "is-missed");
        item.append(make("span", "ag-sign", isAnswered ? "✓" : "–"), make("span", "", ` ${words}`));
        return item;
      }),
    );
  };

  const tick = () => {
    const gate = host.get("gate");
    if (!gate.id || !gate.deadline) return;
    const rest = Math.max(0, gate.deadline - Date.now() / 1000);
    bar.style.width = `${Math.min(100, (100 * rest) / Math.max(1, gate.deadline - gate.since))}%`;
    left.textContent = rest > 0 ? `${spell(rest)} left` : "time is up";
  };

  // Accelerators: the buttons stand in the order of gate.keys.
  const buttons = () => [...(card ? card.querySelectorAll(".attractor-choice") : [])].filter(isShown);

  const dress = () => {
    const keys = host.get("gate").keys || [];
    buttons().forEach((button, index) => underline(button, keys[index]));
  };

  const press = (event) => {
    const target = event.target;
    const isTyping = target.matches("input:not([type=checkbox]), textarea, select");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = (host.get("gate").keys || []).indexOf(event.key.toUpperCase());
    const button = index >= 0 ? buttons()[index] : undefined;
    if (button && !button.disabled) {
      event.preventDefault();
      event.stopPropagation();
      button.click();
    }
  };

  const adopt = () => {
    card = el.closest(".attractor-gate");
    if (!card) return;
    card.tabIndex = -1;
    card.setAttribute("role", "group");
    card.setAttribute("aria-label", "Question");
    // Keys pressed here are the card's, not JupyterLab's shortcuts (Lumino honours this attribute).
    card.dataset.lmSuppressShortcuts = "true";
    card.addEventListener("keydown", press);
    observer = new MutationObserver(dress);
    observer.observe(card, { childList: true, subtree: true });
    dress();
  };
  // The view is put into the page after it was made.
  const adopting = requestAnimationFrame(adopt);

  const stops = [host.on("gate", showGate), host.on("answers", showAnswers)];
  showGate();
  showAnswers();
  const ticker = setInterval(tick, GATE_TICK_MS);
  return () => {
    for (const stop of stops) stop();
    clearInterval(ticker);
    cancelAnimationFrame(adopting);
    if (observer) observer.disconnect();
    if (card) card.removeEventListener("keydown", press);
  };
}

const isShown = (element) => element.offsetParent !== null;

function underline(button, key) {
  if (!key || button.querySelector("u, kbd")) return;
  button.setAttribute("aria-keyshortcuts", key);
  const label = button.textContent;
  const at = label.toUpperCase().indexOf(key);
  if (at < 0) {
    button.append(" ", make("kbd", "", key));
    return;
  }
  const letter = make("u", "", label.slice(at, at + key.length));
  button.replaceChildren(label.slice(0, at), letter, label.slice(at + key.length));
}

function spell(seconds) {
  const rest = Math.ceil(seconds);
  if (rest < 60) return `${rest} s`;
  const minutes = Math.floor(rest / 60);
  return minutes < 60 ? `${minutes} min ${rest % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
