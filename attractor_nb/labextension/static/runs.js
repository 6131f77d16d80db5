// The runs of this server's root in JupyterLab: a panel in the sidebar, a tab or a page for each run that is opened, a notification
// when a question begins to wait or a run fails. What is shown in them is the page of the proxied server.

const PAGE = "attractor-nb/";
const LOOK_MS = 5000;
const NEWEST = 50; // failures are looked for among so many runs

export function makeRuns(app, { apputils, coreutils, services, widgets }, { words, isNotified, notices, icon, hasTabs }) {
  const { ServerConnection } = services;
  const settings = ServerConnection.makeSettings();
  const address = (hash) => `${coreutils.URLExt.join(settings.baseUrl, PAGE)}#${hash}`;
  const tabs = new Map();

  function frameOf(hash, title) {
    const frame = document.createElement("iframe");
    frame.src = address(hash);
    frame.title = title;
    frame.style.cssText = "width:100%;height:100%;border:0;display:block";
    return frame;
  }

  const panel = new widgets.Widget();
  panel.id = "attractor-nb-runs";
  panel.title.icon = icon;
  panel.title.caption = words.__("Attractor runs");
  panel.node.setAttribute("role", "region");
  panel.node.setAttribute("aria-label", words.__("Attractor runs"));
  panel.onAfterShow = () => {
    if (panel.node.firstChild) return;
    const frame = frameOf("sidebar", words.__("Attractor runs"));
    frame.addEventListener("load", watch); // it asks the same server, and comes first
    panel.node.append(frame);
  };

  // A map, or an evaluation, has a page of its own kind.
  const hashOf = (run, isMap) => (run ? `${isMap ? "map" : "run"}=${encodeURIComponent(run)}` : "");

  // A run as a tab of its own; one that is open comes to the front.
  function open(run, name, isMap = false) {
    if (!hasTabs) {
      openPage(run, name, isMap);
      return;
    }
    if (!tabs.has(run)) {
      const content = new widgets.Widget();
      content.node.append(frameOf(hashOf(run, isMap), name));
      const tab = new apputils.MainAreaWidget({ content });
      tab.id = `attractor-nb-run-${run}`;
      tab.title.label = name;
      tab.title.caption = run;
      tab.title.icon = icon;
      tab.title.closable = true;
      tab.disposed.connect(() => tabs.delete(run));
      tabs.set(run, tab);
      app.shell.add(tab, "main");
    }
    app.shell.activateById(tabs.get(run).id);
  }

  // Notebook 7 shows one document in a page and has no tabs: there a run is a page of the browser.
  function openPage(run, name, isMap) {
    const page = window.open(address(hashOf(run, isMap)), `attractor-nb-run-${run}`);
    if (page) {
      page.focus();
      return;
    }
    const show = { label: words.__("Show"), callback: () => openPage(run, name, isMap) }; // by a click, which no browser blocks
    apputils.Notification.warning(words.__("The browser did not open a page for %1.", name), { autoClose: false, actions: [show] });
  }

  window.addEventListener("message", ({ data, origin }) => {
    if (origin === location.origin && data?.kind === "attractor-open" && typeof data.run === "string") open(data.run, String(data.name), data.isMap === true);
  });

  let timer = 0;
  const known = { questions: null, failed: null };

  async function get(path) {
    const url = coreutils.URLExt.join(settings.baseUrl, PAGE, path);
    const response = await ServerConnection.makeRequest(url, { cache: "default" }, settings);
    if (!response.ok) throw new Error(String(response.status));
    return response.json();
  }

  async function look() {
    try {
      const { questions, rows } = await get(`rows?limit=${NEWEST}&with_questions=true`);
      panel.title.dataset = questions.length ? { "attractor-count": String(questions.length) } : {};
      const waiting = new Map(questions.map((question) => [`${question.pipeline} ${question.id}`, question]));
      tellNew("questions", waiting, rows, (question) => [words.__("%1 waits for an answer: %2", nameOf(question.pipeline, rows), question.text), question.pipeline]);
      const failed = new Map(rows.filter(({ status }) => status === "failed").map((row) => [row.key, row]));
      tellNew("failed", failed, rows, (row) => [words.__("%1 failed", row.pipeline || row.key), row.key]);
    } catch {
      panel.title.dataset = {}; // nobody answers: nothing is claimed, and the panel's own page says so
    }
  }

  // What was there at the first look is no news.
  function tellNew(kind, now, rows, spoken) {
    const before = known[kind];
    known[kind] = new Set(now.keys());
    if (!before || !isNotified) return;
    for (const [key, value] of now) {
      if (before.has(key)) continue;
      const [message, run] = spoken(value);
      const openIt = () => open(run, nameOf(run, rows), isMap(run, rows));
      const show = { label: words.__("Show"), callback: openIt };
      apputils.Notification.emit(message, kind === "failed" ? "error" : "warning", { autoClose: false, actions: [show] });
      notices.tell(message, `${kind} ${key}`, openIt);
    }
  }

  async function openLast() {
    const { rows } = await get("rows?limit=1");
    if (rows.length) open(rows[0].key, nameOf(rows[0].key, rows), isMap(rows[0].key, rows));
    else apputils.Notification.info(words.__("No run yet."));
  }

  const isMap = (run, rows) => rows.some(({ key, kind }) => key === run && kind !== "run");
  const nameOf = (run, rows) => rows.find(({ key }) => key === run)?.pipeline || run;

  // Begins when somebody has use for the server; until then none is started.
  function watch() {
    if (timer) return;
    timer = setInterval(() => (document.visibilityState === "visible" || notices.isOn()) && look(), LOOK_MS);
    look();
  }

  return { open, openLast, panel, watch };
}
