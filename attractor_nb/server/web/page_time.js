// The timeline of a run, folded until it is wanted; open it follows a run that goes on.

import { make } from "./parts.js";
import { makePageHost } from "./page_host.js";
import { runPath } from "./page_server.js";
import { showTimeline } from "./timeline.js";

const TIME_MS = 1000;

export function makeTimePanel(server, id, el, drawing) {
  const fold = make("details", "ap-fold");
  fold.append(make("summary", "", "Timeline and heat"));
  const place = make("div", "ap-fold-body");
  const said = make("p", "al-dim");
  fold.append(said, place);
  el.append(fold);
  let host = null;
  let end = () => {};
  let askedAt = 0;
  let isStale = true;
  let isAsking = false;

  async function look() {
    if (!fold.open || isAsking || !isStale || performance.now() - askedAt < TIME_MS) return;
    isAsking = true;
    isStale = false;
    askedAt = performance.now();
    try {
      const found = await server.get(runPath(id, "/timeline"));
      said.textContent = "";
      if (host) for (const name of ["timeline", "svg", "states", "heats"]) host.set(name, found[name]);
      else {
        host = makePageHost({ ...found, graph: drawing.svg, marks: drawing.marks, caption: drawing.caption }, () => {});
        end = showTimeline(host, place);
      }
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
      end();
      fold.remove();
    },
  };
}
