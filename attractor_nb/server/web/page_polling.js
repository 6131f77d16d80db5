// Looks again and again, while the page is seen: at the runs and the questions of all runs, or at something else.

import { Silence } from "./page_server.js";

const POLL_MS = 3000; // between two looks, and longer where the server takes long to answer
const POLL_FACTOR = 10;

// `query()` says which rows; `onLook(rows, questions, more)` is told what there is, and the number of questions that are
// not listed; `onRefused(problem)` what the server says against it.
export function pollRuns(server, query, { onLook, onRefused }) {
  const ask = () => server.get("rows", { ...query(), with_questions: true });
  return poll(ask, { onLook: (rows) => onLook(rows, rows.questions, rows.more_questions), onRefused });
}

// `ask()` asks the server, and `onLook(answer)` is told what it says.
export function poll(ask, { onLook, onRefused }) {
  let timer = 0;
  let isClosed = false;
  let isLooking = false;
  let isAskedAgain = false;

  async function look() {
    isAskedAgain = isLooking;
    if (isLooking || isClosed) return;
    isLooking = true;
    clearTimeout(timer);
    const begun = performance.now();
    try {
      const answer = await ask();
      if (!isClosed) onLook(answer);
    } catch (problem) {
      if (!isClosed && !(problem instanceof Silence)) onRefused(problem);
    } finally {
      isLooking = false;
      const wait = Math.max(POLL_MS, POLL_FACTOR * (performance.now() - begun));
      if (isAskedAgain) look();
      else if (!isClosed) timer = setTimeout(lookIfSeen, wait);
    }
  }

  function lookIfSeen() {
    if (document.visibilityState === "visible") look();
    else timer = setTimeout(lookIfSeen, POLL_MS);
  }

  look();
  return {
    look,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
