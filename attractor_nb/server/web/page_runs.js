// The list of runs, and above it what waits for an answer in any of them.

import { isMapRow, showHistory, SHOWN_ROWS } from "./history.js";
import { makeGates } from "./page_gates.js";
import { makePageHost } from "./page_host.js";
import { pollRuns } from "./page_polling.js";
import { makeResuming } from "./page_resuming.js";
import { mapAddress, shortId } from "./page_server.js";
import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

export function showRuns(server, el, { go }) {
  document.title = __("Runs · attractor_nb");
  const fresh = makeButton("al-button ap-new", __("New run"), __("Begin a run of a DOT text"), () => {
    location.hash = "new";
  });
  const files = make("a", "ap-files-link", __("Files"));
  files.href = "#files";
  files.hidden = document.body.dataset.tokenWanted === "no"; // in Jupyter its own browser of files has them
  const head = make("div", "ap-runs-head", [make("h1", "ap-title", __("Runs")), files, fresh]);
  const inbox = make("section", "ap-inbox", "", { "aria-label": __("Waiting for an answer") });
  const list = make("section", "ap-list");
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const acting = make("div", "ap-acting");
  const hint = make("p", "al-dim", __("From a command line: "));
  hint.append(make("code", "", `attractor-nb submit pipeline.dot --server ${new URL(".", location.href).href}`));
  const root = make("div", "ap-runs", [head, inbox, trouble, acting, list, hint]);
  el.append(root);

  // A row is opened by a click anywhere in it; by keys, by its button.
  list.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-run]");
    if (!row || event.target.closest("button") || getSelection().toString()) return;
    row.querySelector(".ah-do:not(:disabled)[data-focus^='Open']")?.click();
  });

  let wanted = { limit: SHOWN_ROWS };
  let gates = null;
  let host = null;
  let end = () => {};

  const resuming = makeResuming(server, acting, { onDone: go });

  function hear(message) {
    if (message.kind === "open") {
      const row = host.get("rows").find(({ key }) => key === message.key);
      if (row && isMapRow(row)) location.hash = mapAddress(message.key);
      else go(message.key);
    } else if (message.kind === "resume") resuming.begin(message.key);
    else if (message.kind === "refresh") polling.look();
    else if (message.kind === "find") {
      wanted = { words: message.words, sort: message.sort, descending: message.descending, limit: message.limit };
      polling.look();
    }
  }

  // The first look makes the list: it shows nothing that it does not know.
  function showRows({ rows, ...counts }) {
    trouble.textContent = "";
    if (host) {
      host.set("counts", counts);
      host.set("rows", rows);
      return;
    }
    host = makePageHost({ rows, counts, caption: __("the server"), place: "", actions: ["Open", "Resume"] }, hear);
    end = showHistory(host, list);
    const about = (question) => `${question.name || "run"} · ${question.stage} · ${__("run %1", shortId(question.pipeline))}`;
    gates = makeGates(server, inbox, { about, onAnswered: polling.look, onResume: resuming.begin });
  }

  const polling = pollRuns(server, () => wanted, {
    onLook(rows, questions, more) {
      showRows(rows);
      gates.show(questions, more);
      inbox.hidden = !questions.length;
    },
    onRefused(problem) {
      trouble.textContent = problem.message;
    },
  });

  return {
    find: polling.look,
    close() {
      polling.close();
      end();
      if (gates) gates.close();
      root.remove();
    },
  };
}
