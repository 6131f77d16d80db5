// A question to a person as a card: choices with keys, text, form, what is under review, time left.
//
// It knows only the question and whom to tell the answer, so that it works in a notebook's run, in the inbox
// and on any page. All text goes through textContent.

import { makeGateForm } from "./gate_form.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { makeText } from "./texts.js";
import { __, _n } from "./wording.js";

const REPLY_MS = 6000;
const RAW_MATERIALS = new Map(); // which texts are wanted raw, in all cards of a view
const YES_NO = [
  { key: "Y", label: __("Yes") },
  { key: "N", label: __("No") },
];

// `onResume`, where there is one, has the run of a question go on that nobody works on (`can_resume`).
export function makeGateCard(question, { onAnswer, onResume, isLive = true, who = "kernel", now = () => Date.now() / 1000 }) {
  const element = make("section", "ag-card", "", { tabIndex: -1, role: "group", "aria-label": __("Question: %1", question.title) });
  keepKeys(element);

  const isMany = question.kind === "multi_select";
  const isText = question.kind === "freeform";
  const isWord = question.kind === "yes_no" || question.kind === "confirmation";
  const choices = isWord ? YES_NO : question.choices;
  const canAnswer = isLive && !question.how;

  const title = make("h4", "ag-title", question.title);
  const about = make("span", "ag-about", question.about || "");
  const more = make("span", "ag-more");
  const detail = make("pre", "ag-detail", question.detail || "");
  detail.hidden = !question.detail;
  const left = make("div", "ag-left", [title, about, more, detail]);

  const form = question.form && question.form.fields ? makeGateForm(question.form) : null;
  const boxes = isMany ? choices.map(makeChoiceBox) : [];
  const buttons = isMany || isText ? [] : choices.map(makeChoice);
  const text = make("textarea", "ag-input ag-text", "", { rows: 2, placeholder: isText ? __("Your answer") : __("Comment (optional)") });
  text.setAttribute("aria-label", text.placeholder);
  const send = makeButton("al-button attractor-choice", __("Send"), __("Ctrl+Enter"), () => handIn(pickedKeys()));
  const row = make("div", "attractor-row", [...(isMany || isText ? [send] : buttons)]);
  const refusal = make("p", "ag-refusal", "", { role: "alert" });

  if (canAnswer) {
    if (form) left.append(form.element);
    if (isMany) {
      left.append(make("div", "ag-boxes", boxes.map((box) => box.label)));
    }
    if (isText) left.append(text, row);
    else left.append(row, text); // who answers by a choice need not pass the comment
  } else {
    left.append(make("p", "ag-how", question.how || __("Answer it in the process that owns the run.")));
    if (question.can_resume && onResume) {
      const resume = makeButton("al-button ag-resume", __("Resume"), __("Resume the run; it asks the question again"), () => {
        resume.disabled = true;
        onResume({ gate: question.key });
      });
      left.append(make("div", "attractor-row", [resume]));
    }
  }
  const bar = make("div", "ag-time-bar");
  const hidden = !question.deadline;
  const rest = make("span", "ag-time-text", "", { hidden });
  left.append(make("div", "ag-time", [bar], { "aria-hidden": "true", hidden }), rest, refusal);
  element.append(left);
  if (question.materials.length) element.append(makeMaterials(question.materials));

  let waiting = 0;

  function makeChoice({ key, label }) {
    const button = makeButton("al-button attractor-choice", "", __("Key %1", key), () => handIn(key), { "aria-keyshortcuts": key });
    underline(button, label, key);
    return button;
  }

  const pickedKeys = () => boxes.filter(({ box }) => box.checked).map(({ key }) => key).join(",");
  const controls = () => left.querySelectorAll("button, input, select, textarea");

  function handIn(choice) {
    for (const control of controls()) control.disabled = true;
    refusal.textContent = "";
    waiting = setTimeout(() => {
      const restart = question.resume ? ` ${__("After a restart resume with %1.", question.resume)}` : "";
      const isBusy = __("The %1 has not taken the answer yet: it is busy, or was restarted.", who);
      refuse({ message: isBusy + restart, fields: {} });
    }, REPLY_MS);
    onAnswer({ gate: question.key, choice, text: text.value.trim(), form: form ? form.values() : {} });
  }

  // What the run says against an answer. It is final when the gate takes no other.
  function refuse({ message, fields, is_final: isFinal }) {
    clearTimeout(waiting);
    refusal.textContent = message;
    if (isFinal) return;
    for (const control of controls()) control.disabled = false;
    if (form) form.show(fields || {});
  }

  element.addEventListener("keydown", (event) => {
    if (!canAnswer) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && row.contains(send) && !send.disabled) {
      event.preventDefault();
      send.click();
      return;
    }
    const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = isMany || isText ? -1 : choices.findIndex(({ key }) => key.toUpperCase() === event.key.toUpperCase());
    if (at >= 0 && !buttons[at].disabled) {
      event.preventDefault();
      event.stopPropagation();
      buttons[at].click();
    }
  });

  function tick() {
    if (!question.deadline) return;
    const seconds = Math.max(0, question.deadline - now());
    bar.style.width = `${Math.min(100, (100 * seconds) / Math.max(1, question.deadline - question.since))}%`;
    rest.textContent = seconds > 0 ? __("%1 left", spellRest(seconds)) : __("time is up");
  }

  tick();
  return {
    element,
    tick,
    refuse,
    setMore(count) {
      more.textContent = count ? _n("%1 more question waits", "%1 more questions wait", count) : "";
    },
    close: () => clearTimeout(waiting),
  };
}

function makeChoiceBox({ key, label }) {
  const box = make("input", "ag-box", "", { type: "checkbox" });
  const wrapper = make("label", "ag-choice-box", [box, make("span", "", label)]);
  return { key, box, label: wrapper };
}

function makeMaterials(materials) {
  const side = make("div", "ag-side");
  for (const { name, text, note, shown } of materials) {
    const fold = make("details", "ag-material", [make("summary", "", name)], { open: true });
    if (note) fold.append(make("p", "ag-note", note));
    if (text) fold.append(makeText(text, 0, { shown, modes: RAW_MATERIALS, label: name }));
    side.append(fold);
  }
  return side;
}

function underline(button, label, key) {
  const at = label.toUpperCase().indexOf(key.toUpperCase());
  if (at < 0) {
    button.append(label, " ", make("kbd", "", key));
    return;
  }
  button.append(label.slice(0, at), make("u", "", label.slice(at, at + key.length)), label.slice(at + key.length));
}

function spellRest(seconds) {
  const rest = Math.ceil(seconds);
  if (rest < 60) return `${rest} s`;
  const minutes = Math.floor(rest / 60);
  return minutes < 60 ? __("%1 min %2 s", minutes, rest % 60) : __("%1 h %2 min", Math.floor(minutes / 60), minutes % 60);
}
