// The page that the server serves: it gets in, then shows the list of runs or one run, and says when nobody answers.

import { showFile } from "./page_file.js";
import { showFiles } from "./page_files.js";
import { showFramedDocument } from "./page_framed_text.js";
import { showMap } from "./page_map.js";
import { showNew } from "./page_new.js";
import { showRun } from "./page_run.js";
import { showRuns } from "./page_runs.js";
import { makeServer } from "./page_server.js";
import { showSidebar } from "./page_sidebar.js";
import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const LOOK_AGAIN_MS = 2000; // at a server that does not answer
const GONE = __("The server does not answer. This page tries again every few seconds. It shows the last known state.");
// Another server of the same origin, under another prefix, has another one.
const tokenKey = () => `attractor-nb token ${new URL(".", location.href).pathname}`;

function startPage() {
  followJupyter();
  const isTokenWanted = document.body.dataset.tokenWanted !== "no";
  const icon = make("img", "ap-icon");
  icon.src = "icon.svg";
  icon.alt = "";
  const home = make("a", "ap-home", [icon, make("span", "", "attractor_nb")], { href: "#" });
  const way = make("span", "ap-way");
  const head = make("header", "ap-head", [home, way]);
  const banner = make("p", "ap-banner", "", { role: "alert", hidden: true });
  const main = make("main", "ap-main");
  const root = make("div", "attractor-ui ap-page", [head, banner, main]);
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
      if (asked.get("map")) return showMap(server, asked.get("map"), el, { go, way });
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

// In a frame of JupyterLab the page is as light or dark as JupyterLab is; elsewhere as the browser is.
function followJupyter() {
  let theirs = null;
  try {
    theirs = window.parent === window ? null : window.parent.document.body;
  } catch {
    return; // a page of another origin: nothing is known of it
  }
  if (!theirs) return;
  const follow = () => {
    const isLight = theirs.dataset.jpThemeLight;
    if (isLight !== undefined) document.body.dataset.jpThemeLight = isLight;
  };
  new MutationObserver(follow).observe(theirs, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  follow();
}

// The token: taken from the address once and out of it at once, kept for this tab, asked for where there is none.
const keptToken = () => sessionStorage.getItem(tokenKey()) || "";
const keepToken = (token) => sessionStorage.setItem(tokenKey(), token);
const forgetToken = () => sessionStorage.removeItem(tokenKey());

// Whether the address had one. What else it says stays in it.
function takeToken() {
  const address = new URL(location.href);
  const hash = new URLSearchParams(address.hash.slice(1));
  const token = hash.get("token") || address.searchParams.get("token");
  if (!token) return false;
  hash.delete("token");
  address.searchParams.delete("token");
  address.hash = hash.toString();
  history.replaceState(null, "", address.href.replace(/#$/, ""));
  keepToken(token);
  return true;
}

function makeTokenField(el, words, onToken) {
  const title = make("h1", "ap-title", __("The token of this server"));
  const field = make("input", "ap-field", "", { type: "password", autocomplete: "off", spellcheck: false });
  field.setAttribute("aria-label", __("Token, or the whole address"));
  field.placeholder = __("token, or the whole address");
  const said = make("p", "ap-said", words, { role: "alert" });
  const give = () => {
    const token = tokenOf(field.value);
    if (token) onToken(token);
    else said.textContent = __("There is no token in this.");
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") give();
  });
  const row = make("div", "ap-row", [field, makeButton("al-button", __("Open"), "", give)]);
  const hint = make("p", "al-dim", __("The line that "));
  hint.append(make("code", "", "attractor-nb serve"), __(" has printed ends with it. It is kept in this tab only."));
  const box = make("section", "ap-token", [title, hint, row, said]);
  el.append(box);
  field.focus();
  return { close: () => box.remove() };
}

function tokenOf(text) {
  const given = text.trim();
  const found = /[#?&]token=([^&#\s]+)/.exec(given);
  if (found) return decodeURIComponent(found[1]);
  return /^[\w.~+/=-]+$/.test(given) ? given : "";
}

startPage();
