// What of a run is folded until it is wanted: its timeline, its replay, and how it differs from another run.

import { showCompare } from "./compare.js";
import { make, optionsOf } from "./parts.js";
import { makePageHost } from "./page_host.js";
import { Refusal, runPath } from "./page_server.js";
import { showReplay } from "./replay.js";
import { showTimeline } from "./timeline.js";
import { __ } from "./wording.js";

const TIME_MS = 1000;
const MOST_OTHERS = 200; // runs that one can be compared with, the newest ones

// The three of them; `show(status)` says how the run stands now.
export function makePast(server, id, el, drawing) {
  const timeline = makeFold(server, el, __("Timeline and heat"), runPath(id, "/timeline"), (found, place) => {
    const host = makePageHost({ ...found, graph: drawing.svg, marks: drawing.marks, caption: drawing.caption }, () => {});
    return { end: showTimeline(host, place), renew: setting(host, ["timeline", "svg", "states", "heats"]) };
  });
  const replay = makeFold(server, el, __("Replay"), runPath(id, "/replay"), (found, place) => {
    const host = makePageHost(found, (message) => message.kind === "inspect" && inspect(host, message));
    return { end: showReplay(host, place), renew: setting(host, ["replay"]) };
  });
  const comparison = makeComparison(server, id, el, {
    kind: "run",
    title: __("Compare with another run"),
    label: __("The run to compare with"),
    none: __("There is no other run."),
    said: (other) => __("A is this run, B is %1.", other),
    async begin(other) {
      const found = await server.get(runPath(id, "/comparison"), { other });
      return (place) => showCompare(makePageHost(found, () => {}), place);
    },
  });

  async function inspect(host, { kind, ...request }) {
    try {
      host.tell(await server.get(runPath(id, "/inspection"), request));
    } catch (problem) {
      if (problem instanceof Refusal) host.tell({ kind: "stage", node: request.node, problems: [problem.message] });
    }
  }

  return {
    show(status) {
      for (const fold of [timeline, replay]) fold.show(status);
    },
    close() {
      for (const fold of [timeline, replay, comparison]) fold.close();
    },
  };
}

const setting = (host, names) => (found) => {
  for (const name of names) host.set(name, found[name]);
};

function makeParts(el, title) {
  const fold = make("details", "ap-fold");
  const said = make("p", "al-dim");
  const place = make("div", "ap-fold-body");
  fold.append(make("summary", "", title), said, place);
  el.append(fold);
  return { fold, said, place };
}

// `begin(found, place)` shows what the server says first: `end()` ends that, `renew(found)` is told what it says next.
function makeFold(server, el, title, path, begin) {
  const { fold, said, place } = makeParts(el, title);
  let shown = null;
  let askedAt = 0;
  let isStale = true;
  let isAsking = false;

  async function look() {
    if (!fold.open || isAsking || !isStale || performance.now() - askedAt < TIME_MS) return;
    isAsking = true;
    isStale = false;
    askedAt = performance.now();
    try {
      const found = await server.get(path);
      said.textContent = "";
      if (shown) shown.renew(found);
      else shown = begin(found, place);
    } catch (problem) {
      said.textContent = problem.message;
      isStale = true;
    } finally {
      isAsking = false;
    }
  }

  fold.addEventListener("toggle", look);
  const ticker = setInterval(look, TIME_MS / 2);
  let latest = "";
  return {
    show(status) {
      const now = JSON.stringify([status.states, status.is_live]);
      isStale = isStale || now !== latest || status.is_live;
      latest = now;
    },
    close() {
      clearInterval(ticker);
      if (shown) shown.end();
      fold.remove();
    },
  };
}

// Another run, or map, is chosen from a list; those of the same pipeline stand first in it. `begin(other)` asks the server,
// and what it returns shows the answer in an element and returns how to end that.
export function makeComparison(server, id, el, { kind, title, label, none, said: saidOf, begin }) {
  const { fold, said, place } = makeParts(el, title);
  const choice = make("select", "ap-field", "", { "aria-label": label });
  said.setAttribute("role", "status");
  said.before(choice);
  let end = () => {};

  async function list() {
    if (!fold.open) return;
    try {
      const { rows } = await server.get("rows", { limit: MOST_OTHERS });
      const own = rows.find(({ key }) => key === id)?.pipeline;
      const others = rows.filter((row) => row.key !== id && row.kind === kind && row.is_readable);
      const ordered = [...others.filter((row) => row.pipeline === own), ...others.filter((row) => row.pipeline !== own)];
      const before = choice.value;
      choice.replaceChildren(...optionsOf([["", __("Choose one")], ...ordered.map((row) => [row.key, spokenRow(row)])]));
      choice.value = ordered.some(({ key }) => key === before) ? before : "";
      said.textContent = ordered.length ? "" : none;
    } catch (problem) {
      said.textContent = problem.message;
    }
  }

  async function compare() {
    end();
    end = () => {};
    place.replaceChildren();
    const other = choice.value;
    if (!other) return;
    said.textContent = __("They are being compared.");
    try {
      const show = await begin(other);
      if (choice.value !== other) return;
      said.textContent = saidOf(other);
      end = show(place);
    } catch (problem) {
      if (choice.value === other) said.textContent = problem.message;
    }
  }

  fold.addEventListener("toggle", list);
  choice.addEventListener("change", compare);
  return {
    close() {
      end();
      fold.remove();
    },
  };
}

const spokenRow = ({ key, pipeline, status }) => [pipeline, status, key].filter(Boolean).join(" · ");
