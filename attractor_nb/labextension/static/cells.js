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

function followNotebook(notebook, languages) {
  const followed = new WeakSet();
  let model = null;

  function followAll() {
    for (const cell of model.cells) {
      if (cell.type !== "code" || followed.has(cell)) continue;
      followed.add(cell);
      followCell(cell, notebook, languages);
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
  followModel();
}

// The notebook gives every code cell the kernel's language when it hears of it, and an editor takes a language when it
// is loaded, whatever was set in between. So ours is set when the language before it has been loaded, and again
// whenever the notebook has set its own.
function followCell(cell, notebook, languages) {
  let isSetting = false;

  async function update() {
    const isOurs = cell.mimeType === DOT_MIME;
    if (isSetting || isPipeline(cell.sharedModel.getSource()) === isOurs) return;
    isSetting = true;
    try {
      await languages.getLanguage(cell.mimeType);
    } finally {
      isSetting = false;
    }
    if (cell.isDisposed) return;
    const wanted = isPipeline(cell.sharedModel.getSource()) ? DOT_MIME : notebook.codeMimetype;
    if (wanted !== cell.mimeType) cell.mimeType = wanted;
  }

  cell.contentChanged.connect(update);
  cell.mimeTypeChanged.connect(update);
  update();
}
