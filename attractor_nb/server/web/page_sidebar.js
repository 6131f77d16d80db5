// The runs and their questions in a narrow frame: JupyterLab's sidebar. A run is opened by whoever has the frame.

import { isMapRow } from "./history.js";
import { make, makeButton } from "./parts.js";
import { makeGates } from "./page_gates.js";
import { pollRuns } from "./page_polling.js";
import { makeResuming } from "./page_resuming.js";
import { mapAddress, shortId } from "./page_server.js";
import { __, _n } from "./wording.js";

const SIDE_ROW_PX = 46; // of each row, also in page.css
const SIDE_AROUND = 12; // rows that are kept above and below those in sight
const SIDE_SETTLED_MS = 60; // between the last scrolling or key and the question for other rows

export function showSidebar(server, el, { go }) {
  document.title = __("Runs · attractor_nb");
  document.body.classList.add("ap-narrow");
  const inbox = make("section", "ap-inbox", "", { "aria-label": __("Waiting for an answer") });
  const waiting = make("summary", "ap-side-heading");
  const questions = make("details", "ap-side-questions", [waiting, inbox], { open: true, hidden: true });
  const heading = make("h2", "ap-side-heading", __("Runs"));
  const filter = make("input", "ap-field", "", { type: "search", placeholder: __("Filter runs"), "aria-label": __("Filter runs") });
  const list = make("ul", "ap-side-runs", "", { "aria-label": __("Runs, newest first") });
  const said = make("p", "al-dim", "", { role: "status" });
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const acting = make("div", "ap-acting");
  const root = make("div", "ap-side", [questions, trouble, acting, heading, filter, said, list]);
  el.append(root);

  const items = new Map(); // the elements of the rows that are shown, by key: focus and hover outlive a look
  const known = new Map(); // the rows that were shown, by key: what is open has a name and a kind
  let part = { rows: [], offset: 0, found: 0, total: 0 };
  let timer = 0;
  const about = (question) => [question.name, question.stage, __("run %1", shortId(question.pipeline))].filter(Boolean).join(" · ");
  const resuming = makeResuming(server, acting, { onDone: open });
  const gates = makeGates(server, inbox, { about, onAnswered: () => polling.look(), onResume: resuming.begin });

  function open(key) {
    const row = known.get(key);
    const isMap = Boolean(row && isMapRow(row));
    if (window.parent !== window) window.parent.postMessage({ kind: "attractor-open", run: key, name: row?.pipeline || key, isMap }, location.origin);
    else if (isMap) location.hash = mapAddress(key);
    else go(key);
  }

  // The rows in sight, whether they are here or not: the place of the first and of the one behind the last.
  function inSight() {
    const above = -list.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(above / SIDE_ROW_PX));
    return [first, Math.max(first, Math.ceil((above + window.innerHeight) / SIDE_ROW_PX))];
  }

  function wantedPart() {
    const [first, end] = inSight();
    const offset = Math.max(0, first - SIDE_AROUND);
    return { offset, limit: end + SIDE_AROUND - offset, words: filter.value.trim() };
  }

  function lookSoon() {
    clearTimeout(timer);
    timer = setTimeout(() => polling.look(), SIDE_SETTLED_MS);
  }

  function lookIfOthersAreSeen() {
    const [first, end] = inSight();
    if (first < part.offset || Math.min(end, part.found) > part.offset + part.rows.length) lookSoon();
  }

  function show() {
    const { rows, offset, found, total } = part;
    const shown = new Set(rows.map(({ key }) => key));
    for (const [key, item] of items) {
      if (shown.has(key)) continue;
      item.remove();
      items.delete(key);
    }
    list.style.height = `${found * SIDE_ROW_PX}px`;
    rows.forEach((row, number) => {
      if (!items.has(row.key)) items.set(row.key, makeSideRun(row.key, open));
      const item = items.get(row.key);
      fillSideRun(item, row);
      item.style.top = `${(offset + number) * SIDE_ROW_PX}px`;
      item.setAttribute("aria-posinset", String(offset + number + 1));
      item.setAttribute("aria-setsize", String(found));
      if (list.children[number] !== item) list.insertBefore(item, list.children[number] ?? null);
    });
    setText(said, spokenCount(found, total, Boolean(filter.value.trim())));
  }

  const polling = pollRuns(server, wantedPart, {
    onLook(answer, asked, more) {
      part = answer;
      trouble.textContent = "";
      for (const row of part.rows) known.set(row.key, row);
      gates.show(asked, more);
      questions.hidden = !asked.length;
      setText(waiting, _n("%1 question waits", "%1 questions wait", asked.length + more));
      show();
      lookIfOthersAreSeen();
    },
    onRefused: (problem) => {
      trouble.textContent = problem.message;
    },
  });
  filter.addEventListener("input", () => {
    filter.scrollIntoView({ block: "nearest" });
    lookSoon();
  });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
    if (!next) return;
    event.preventDefault();
    next.firstChild.focus();
  });
  window.addEventListener("scroll", lookIfOthersAreSeen, { passive: true });
  window.addEventListener("resize", lookIfOthersAreSeen);

  return {
    find: polling.look,
    close() {
      clearTimeout(timer);
      window.removeEventListener("scroll", lookIfOthersAreSeen);
      window.removeEventListener("resize", lookIfOthersAreSeen);
      polling.close();
      gates.close();
      document.body.classList.remove("ap-narrow");
      root.remove();
    },
  };
}

function makeSideRun(key, onOpen) {
  const button = makeButton("ap-side-open", undefined, key, () => onOpen(key));
  button.append(make("span", "ap-side-mark"), make("span", "ap-side-name"), make("span", "ap-side-began"), make("span", "ap-side-facts"));
  return make("li", "ap-side-run", [button], { "data-run": key });
}

function fillSideRun(item, row) {
  const [mark, name, began, facts] = item.firstChild.children;
  mark.dataset.state = row.state;
  setText(mark, row.mark);
  setText(name, row.pipeline || row.key);
  item.firstChild.title = [row.key, row.inputs].filter(Boolean).join("\n");
  const size = row.stages ? (isMapRow(row) ? _n("%1 row", "%1 rows", row.stages) : _n("%1 stage", "%1 stages", row.stages)) : "";
  const kind = isMapRow(row) ? row.kind : "";
  setText(began, startedShort(row.start_time));
  setText(facts, [row.status, kind, row.inputs, size, row.took, row.price, ...row.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · "));
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const startedShort = (iso) => (iso ? iso.slice(5, 16).replace("T", " ") : "");

function spokenCount(found, total, isFiltered) {
  if (!total) return __("No runs yet.");
  const all = total === 1 ? __("1 run") : __("%1 runs", total.toLocaleString("en"));
  if (!isFiltered) return all;
  return found ? __("%1 of %2", found.toLocaleString("en"), all) : __("No run has these words.");
}
