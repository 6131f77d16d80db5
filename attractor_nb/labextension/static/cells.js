// Which cells are pipelines: those whose first line is the magic. Their language follows that line as it is typed.

export const DOT_MIME = "text/vnd.graphviz";

const MAGIC = /^[ \t]*%%attractor(?![\w.])[^\n]*\n?/;

export const isPipeline = (source) => MAGIC.test(source);

// The DOT text of a cell or file, and where in it that begins: behind the magic's line, if there is one.
export function bodyOf(source) {
  const offset = MAGIC.exec(source)?.[0].length ?? 0;
  return { offset, text: source.slice(offset) };
}

export function followCells(notebooks, languages) {
  const follow = (panel) => followNotebook(panel.content, languages);
  notebooks.forEach(follow);
  notebooks.widgetAdded.connect((_, panel) => follow(panel));
}

const MARGIN = "50% 0px"; // so far outside of the view a cell gets its language before it is seen
const LATEST_MS = 200;

// A cell gets its language when it is in view or near it, and the page is idle: each change of a language makes the page
// measure all cells of the notebook anew. The notebook gives every code cell the kernel's language when it hears of it, and
// an editor takes a language when it is loaded, whatever was set in between. So ours is set when the language before it has
// been loaded, and again whenever the notebook has set its own.
function followNotebook(notebook, languages) {
  const followed = new WeakSet();
  const near = new Set();
  let model = null;
  let isPlanned = false;

  const wantedOf = ({ sharedModel }) => (isPipeline(sharedModel.getSource()) ? DOT_MIME : notebook.codeMimetype);
  const isWrong = (cell) => isPipeline(cell.sharedModel.getSource()) !== (cell.mimeType === DOT_MIME);

  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) near[isIntersecting ? "add" : "delete"](target);
      settleSoon();
    },
    { root: notebook.node.querySelector(".jp-WindowedPanel-outer"), rootMargin: MARGIN },
  );

  function settleSoon() {
    if (isPlanned) return;
    isPlanned = true;
    requestIdleCallback(settle, { timeout: LATEST_MS });
  }

  async function settle() {
    const asked = notebook.widgets.filter(({ node, model: cell }) => near.has(node) && isWrong(cell)).map(({ model: cell }) => [cell, cell.mimeType]);
    try {
      await Promise.all(asked.map(([, mimeType]) => languages.getLanguage(mimeType)));
    } finally {
      isPlanned = false;
    }
    for (const [cell, before] of asked) {
      if (cell.isDisposed || !isWrong(cell)) continue;
      if (cell.mimeType === before) cell.mimeType = wantedOf(cell);
      else settleSoon();
    }
  }

  function followAll() {
    for (const { node, model: cell } of notebook.widgets) {
      if (cell.type !== "code" || followed.has(cell)) continue;
      followed.add(cell);
      cell.contentChanged.connect(() => isWrong(cell) && settleSoon());
      cell.mimeTypeChanged.connect(() => isWrong(cell) && settleSoon());
      observer.observe(node);
    }
  }

  function followModel() {
    if (model) model.cells.changed.disconnect(followAll);
    model = notebook.model;
    if (!model) return;
    model.cells.changed.connect(followAll);
    followAll();
  }

  notebook.modelChanged.connect(followModel);
  notebook.disposed.connect(() => observer.disconnect());
  followModel();
}
