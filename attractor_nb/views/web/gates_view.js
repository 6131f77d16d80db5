// The questions of a run, one at a time, or those of an inbox, all of them; and a line for each past one.

import { makeGateCard } from "./gate_card.js";
import { switchOffWhenLost } from "./controls.js";
import { makeIcon } from "./icons.js";
import { make } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { __ } from "./wording.js";

const GATE_TICK_MS = 250;

export default asPlacedWidget(showGates);

export function showGates(host, el) {
  const root = make("div", "attractor-ui attractor-gate", "", { role: "region" });
  root.setAttribute("aria-label", host.get("shows_all") ? __("Open questions") : __("Questions of the run"));
  root.classList.toggle("has-gates", Boolean(host.get("has_gates")));
  const answers = make("ol", "ag-answers");
  const said = make("p", "al-unseen", "", { "aria-live": "polite" });
  const none = make("p", "ag-none");
  const cards = make("div", "ag-cards");
  root.append(answers, said, none, cards);
  el.append(root);
  const shown = new Map();

  function showCards() {
    const gates = host.get("gates") || [];
    const wanted = host.get("shows_all") ? gates : gates.slice(0, 1);
    for (const [key, card] of shown) {
      if (wanted.some((question) => question.key === key)) continue;
      card.close();
      card.element.remove();
      shown.delete(key);
    }
    for (const question of wanted) {
      if (shown.has(question.key)) continue;
      const card = makeGateCard(question, {
        isLive: host.isLive,
        who: host.who,
        onAnswer: (answer) => host.send({ kind: "answer", ...answer }),
        onResume: (wish) => host.send({ kind: "resume", ...wish }),
      });
      shown.set(question.key, card);
      cards.append(card.element);
      said.textContent = __("Question: %1", question.title);
    }
    if (!host.get("shows_all")) for (const card of shown.values()) card.setMore(gates.length - 1);
    root.classList.toggle("is-open", gates.length > 0);
    none.textContent = gates.length ? "" : host.get("none") || "";
    showRefusals();
  }

  function showRefusals() {
    for (const [key, refusal] of Object.entries(host.get("refusals") || {})) {
      if (shown.has(key)) shown.get(key).refuse(refusal);
    }
  }

  function showAnswers() {
    answers.replaceChildren(
      ...(host.get("answers") || []).map(({ is_answered: isAnswered, words }) => {
        const sign = make("span", "ag-sign", [makeIcon(isAnswered ? "taken" : "none")]);
        return make("li", isAnswered ? "is-answered" : "is-missed", [sign, make("span", "", ` ${words}`)]);
      }),
    );
  }

  const stops = [switchOffWhenLost(host, root), host.on("gates", showCards), host.on("refusals", showRefusals), host.on("answers", showAnswers)];
  showCards();
  showAnswers();
  const ticker = setInterval(() => {
    for (const card of shown.values()) card.tick();
  }, GATE_TICK_MS);
  return () => {
    for (const stop of stops) stop();
    clearInterval(ticker);
    for (const card of shown.values()) card.close();
  };
}
