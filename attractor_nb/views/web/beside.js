// What stands beside the live view of a run: other runs of the pipeline that wait, and, when it has ended, its answer and
// the ways to look into it again: replay, timeline, going on. Who opens a view says where it is; it stands in there.

import { make, makeButton } from "./parts.js";
import { makeText } from "./texts.js";
import { __ } from "./wording.js";

const AFTER_THE_END = [
  { what: "replay", label: __("Replay"), title: __("Every moment of the run, with a slider") },
  { what: "timeline", label: __("Timeline"), title: __("When each stage ran, as bars") },
];

// `onOpen(isOpen)` is told whether something stands in the place of the drawing.
export function makeBeside(host, { nameOf, onOpen }) {
  const notices = make("ul", "al-others");
  notices.hidden = true;
  const answer = make("section", "al-answer");
  answer.hidden = true;
  const above = make("div", "al-beside");
  const below = make("div", "al-below"); // outside of what sticks to the window in this view
  const bar = make("div", "al-after");
  const said = make("span", "al-after-said");
  said.setAttribute("role", "status");
  const modes = new Map();
  const opened = new Map(); // what was opened: its panel
  let current = "";

  const buttons = AFTER_THE_END.map(({ what, label, title }) => {
    const button = makeButton("al-button al-asks", label, title, () => choose(current === what ? "" : what));
    button.dataset.what = what;
    button.setAttribute("aria-pressed", "false");
    return button;
  });
  const resume = makeButton("al-button al-asks", __("Resume"), __("Resume the run where it stopped"), () => {
    resume.disabled = true;
    ask("resume");
  });
  bar.append(...buttons, resume);
  bar.hidden = true;

  const ask = (what, run = "") => {
    said.textContent = "";
    host.send({ kind: "beside", what, run });
  };

  function choose(what) {
    current = what;
    if (what && !opened.has(what)) ask(what);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.what === what));
    for (const [name, panel] of opened) panel.hidden = name !== what && name !== "resume";
    onOpen(Boolean(what && opened.has(what)));
  }

  function showPanel(what, place) {
    const panel = make("div", "al-panel");
    panel.dataset.attractorPlace = place;
    opened.set(what, panel);
    return panel;
  }

  function makeNotice({ run, words }) {
    const notice = make("li", "al-other");
    const stop = makeButton("al-button al-asks", __("Stop"), __("Stop run %1; it can be resumed", run), () => {
      stop.disabled = true;
      ask("stop", run);
    });
    const show = makeButton("al-button al-asks", __("Show"), __("Show run %1 here", run), () => ask("show", run));
    notice.append(make("span", "al-other-words", words), stop, show);
    notice.dataset.run = run;
    return notice;
  }

  const stopListening = host.listen((message) => {
    if (message.kind !== "beside") return;
    const { what, run, place, problem } = message;
    if (problem) {
      said.textContent = problem;
      bar.hidden = false;
      resume.disabled = false;
      if (current === what) choose("");
    } else if (what === "show" && place) {
      const notice = [...notices.children].find((one) => one.dataset.run === run);
      if (notice && !notice.querySelector(".al-panel")) notice.append(showPanel(`show ${run}`, place));
    } else if (what === "resume" && place) {
      resume.hidden = true;
      below.append(showPanel(what, place));
    } else if (place && !opened.has(what)) {
      for (const button of buttons) if (button.dataset.what === what) button.classList.remove("al-asks"); // it opens by itself now
      above.append(showPanel(what, place));
      choose(current);
    }
  });

  return {
    above,
    below,
    notices,
    bar,
    said,
    answer,
    show({ line, others, answer: last }) {
      const known = [...notices.children].map((notice) => notice.dataset.run).join();
      if (known !== (others || []).map(({ run }) => run).join()) notices.replaceChildren(...(others || []).map(makeNotice));
      notices.hidden = !notices.children.length;
      const isOver = Boolean(line.is_ended && host.get("has_beside"));
      bar.hidden = !isOver;
      resume.hidden = line.status !== "interrupted" || opened.has("resume");
      const { node, text, shown } = last || {};
      answer.hidden = !text;
      if (text && answer.dataset.text !== text) {
        answer.dataset.text = text;
        const label = __("The answer of %1", nameOf(node));
        answer.replaceChildren(makeText(text, 0, { name: label, shown, modes }));
      }
    },
    close: stopListening,
  };
}
