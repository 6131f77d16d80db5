// The page that the server serves: it gets in, then shows the list of runs or one run, and says when nobody answers.

import { make } from "./parts.js";
import { showFile } from "./page_file.js";
import { showFiles } from "./page_files.js";
import { showFramedDocument } from "./page_framed_text.js";
import { showNew } from "./page_new.js";
import { showRun } from "./page_run.js";
import { showRuns } from "./page_runs.js";
import { makeServer } from "./page_server.js";
import { showSidebar } from "./page_sidebar.js";
import { followJupyter } from "./page_theme.js";
import { forgetToken, keptToken, keepToken, makeTokenField, takeToken } from "./page_token.js";
import { __ } from "./wording.js";

const LOOK_AGAIN_MS = 2000; // at a server that does not answer
const GONE = __("The server does not answer. This page tries again every few seconds. It shows the last known state.");

function startPage() {
  followJupyter();
  const isTokenWanted = document.body.dataset.tokenWanted !== "no";
  const root = make("div", "attractor-ui ap-page");
  const head = make("header", "ap-head");
  const home = make("a", "ap-home");
  home.href = "#";
  const icon = make("img", "ap-icon");
  icon.src = "icon.svg";
  icon.alt = "";
  home.append(icon, make("span", "", "attractor_nb"));
  const way = make("span", "ap-way");
  head.append(home, way);
  const banner = make("p", "ap-banner");
  banner.setAttribute("role", "alert");
  banner.hidden = true;
  const main = make("main", "ap-main");
  root.append(head, banner, main);
  document.body.append(root);

  let screen = null; // what is shown: { close, lose, find }
  let asking = 0;
  let server = null;

  function show(makeScreen) {
    if (screen) screen.close();
    main.replaceChildren();
    way.textContent = "";
    screen = makeScreen(main);
  }

  function askForToken(words) {
    setSilent(false);
    show((el) => makeTokenField(el, words, (token) => {
      keepToken(token);
      begin();
    }));
    document.title = "attractor_nb";
  }

  // Nobody answers: said once, and asked until somebody does.
  function setSilent(isSilent) {
    if (banner.hidden !== isSilent) return;
    banner.hidden = !isSilent;
    banner.textContent = isSilent ? GONE : "";
    clearInterval(asking);
    if (isSilent) {
      asking = setInterval(() => server.get("pipelines", { limit: 1 }).catch(() => {}), LOOK_AGAIN_MS);
      if (screen?.lose) screen.lose();
    } else if (screen?.find) screen.find();
  }

  function begin() {
    const token = isTokenWanted ? keptToken() : "";
    if (isTokenWanted && !token) {
      askForToken("");
      return;
    }
    server = makeServer(token, {
      onSilent: setSilent,
      onRefused() {
        forgetToken();
        askForToken(__("The server does not accept this token. A restarted server has a new one."));
      },
    });
    route();
  }

  function route() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const run = asked.get("run");
    const go = (id) => {
      location.hash = id ? `run=${encodeURIComponent(id)}` : "";
    };
    show((el) => {
      if (run) return showRun(server, run, el, { go, way });
      if (asked.has("document")) return showFramedDocument(server, el);
      if (asked.get("file")) return showFile(server, asked.get("file"), el, { go, way, isNew: asked.has("new") });
      if (asked.has("files")) return showFiles(server, el, { way });
      if (asked.has("sidebar")) return showSidebar(server, el, { go });
      return asked.has("new") ? showNew(server, el, { go, way }) : showRuns(server, el, { go });
    });
  }

  window.addEventListener("hashchange", () => {
    if (takeToken() || !server || (isTokenWanted && !keptToken())) begin();
    else route();
  });
  takeToken();
  begin();
}

startPage();
