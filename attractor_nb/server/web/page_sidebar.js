// The runs and their questions in a narrow frame: JupyterLab's sidebar. A run is opened by whoever has the frame.

import { matchesRow } from "./history_rows.js";
import { make, makeButton } from "./parts.js";
import { makeGates } from "./page_gates.js";
import { pollRuns } from "./page_polling.js";
import { makeResuming } from "./page_resuming.js";

const SIDE_ROWS = 1000;
const SIDE_SHOWN = 60; // what is in the page; a filter finds the others

export function showSidebar(server, el, { go }) {
  document.title = "Runs · attractor_nb";
  document.body.classList.add("ap-narrow");
  const root = make("div", "ap-side");
  const inbox = make("section", "ap-inbox");
  inbox.setAttribute("aria-label", "Waiting for an answer");
  const filter = make("input", "ap-field");
  filter.type = "search";
  filter.placeholder = "Filter runs";
  filter.setAttribute("aria-label", "Filter runs");
  const list = make("ul", "ap-side-runs");
  list.setAttribute("aria-label", "Runs, newest first");
  const said = make("p", "al-dim");
  said.setAttribute("role", "status");
  const trouble = make("p", "ap-said");
  trouble.setAttribute("role", "alert");
  const acting = make("div", "ap-acting");
  root.append(inbox, trouble, acting, filter, list, said);
  el.append(root);

  const items = new Map(); // the elements of the rows that are shown, by key: focus and hover outlive a look
  const names = new Map();
  let rows = [];
  let total = 0;
  const about = (question) => `${names.get(question.pipeline) || "run"} · ${question.stage}`;
  const resuming = makeResuming(server, acting, { onDone: open });
  const gates = makeGates(server, inbox, { about, onAnswered: () => polling.look(), onResume: resuming.begin });

  function open(key) {
    if (window.parent === window) go(key);
    else window.parent.postMessage({ kind: "attractor-open", run: key, name: names.get(key) || key }, location.origin);
  }

  function show() {
    const found = rows.filter((row) => matchesRow(row, filter.value));
    const shown = found.slice(0, SIDE_SHOWN);
    for (const key of [...items.keys()]) {
      if (shown.some((row) => row.key === key)) continue;
      items.get(key).remove();
      items.delete(key);
    }
    shown.forEach((row, number) => {
      if (!items.has(row.key)) items.set(row.key, makeSideRun(row.key, open));
      const item = items.get(row.key);
      fillSideRun(item, row);
      if (list.children[number] !== item) list.insertBefore(item, list.children[number] ?? null);
    });
    said.textContent = spokenCount(shown.length, found.length, total, Boolean(filter.value.trim()));
  }

  const polling = pollRuns(server, SIDE_ROWS, {
    onLook(answer, questions) {
      ({ rows, total } = answer);
      trouble.textContent = "";
      for (const row of rows) names.set(row.key, row.pipeline);
      gates.show(questions);
      inbox.hidden = !questions.length;
      show();
    },
    onRefused: (problem) => {
      trouble.textContent = problem.message;
    },
  });
  filter.addEventListener("input", show);

  return {
    find: polling.look,
    close() {
      polling.close();
      gates.close();
      document.body.classList.remove("ap-narrow");
      root.remove();
    },
  };
}

function makeSideRun(key, onOpen) {
  const item = make("li", "ap-side-run");
  item.dataset.run = key;
  const button = makeButton("ap-side-open", undefined, key, () => onOpen(key));
  button.append(make("span", "ap-side-mark"), make("span", "ap-side-name"), make("span", "ap-side-facts"));
  item.append(button);
  return item;
}

function fillSideRun(item, row) {
  const [mark, name, facts] = item.firstChild.children;
  mark.dataset.state = row.state;
  setText(mark, row.mark);
  setText(name, row.pipeline || row.key);
  const stages = row.stages ? `${row.stages} stages` : "";
  setText(facts, [row.status, stages, row.took, row.price, startedShort(row.start_time)].filter(Boolean).join(" · "));
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const startedShort = (iso) => (iso ? iso.slice(5, 16).replace("T", " ") : "");

function spokenCount(shown, found, total, isFiltered) {
  if (!total) return "No runs yet.";
  if (isFiltered && !found) return "No run has these words.";
  if (shown < found) return `The newest ${shown} of ${isFiltered ? `${found} found` : total}.`;
  return isFiltered ? `${found} of ${total} runs.` : "";
}
