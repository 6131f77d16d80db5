// The nodes of pipelines in JupyterLab's table of contents: below the section that a cell stands in, and of a file alone.
//
// A notebook's own headings, their numbers and their marks of running cells stay JupyterLab's; what it keeps by their
// positions it is told of its own headings only.

import { DOT_MIME, bodyOf, isPipeline } from "./cells.js";
import { rangeOf } from "./editor_text.js";
import { magicOf } from "./run_cell.js";

const IDLE = -1;

// `wanted` promises whether there is to be an outline: the registry may be asked before the settings are read.
export function addOutlines(registry, { toc, notebooks, editors, EditorView }, server, { wanted, words }) {
  const goTo = makeGoing(EditorView, server);
  const getModel = registry.getModel.bind(registry);
  registry.getModel = (widget, configuration) => {
    const model = getModel(widget, configuration);
    if (model && notebooks?.has(widget)) weaveNodes(model, widget.content, server, { wanted, words, goTo });
    return model;
  };
  registry.add(fileOutline(toc, editors, server, { wanted, goTo }));
}

const textOf = ({ node, label }) => (label === node ? node : `${node}: ${label}`);

function weaveNodes(model, notebook, server, { wanted, words, goTo }) {
  const nodeOf = new WeakMap(); // the node of each heading that is ours; null for a pipeline as a whole
  const isTheirs = (heading) => !nodeOf.has(heading);
  const getHeadings = model.getHeadings.bind(model);
  const updateRunningStatus = model.updateRunningStatus.bind(model);

  function headingOf(cell, level, text, node) {
    const heading = { text, level, prefix: "", cellRef: cell, collapsed: false };
    nodeOf.set(heading, node);
    return still(heading);
  }

  async function headingsOf(cell, level) {
    const source = cell.model.sharedModel.getSource();
    if (cell.model.type !== "code" || !isPipeline(source)) return [];
    const nodes = await server.outlineOf(bodyOf(source).text);
    if (!nodes?.length) return [];
    const whole = headingOf(cell, level, magicOf(source).name || words.__("pipeline"), null);
    return [whole, ...nodes.map((node) => headingOf(cell, level + 1, textOf(node), node.node))];
  }

  model.getHeadings = async () => {
    const theirs = await getHeadings();
    if (!model.isActive || !theirs || !(await wanted)) return theirs;
    const { widgets: cells } = notebook;
    const ofCell = groupedByCell(theirs);
    const levels = levelsAbove(cells, ofCell);
    const ours = await Promise.all(cells.map((cell, index) => headingsOf(cell, levels[index] + 1)));
    return cells.flatMap((cell, index) => [...ours[index], ...(ofCell.get(cell) ?? [])]);
  };
  model.getCellHeadings = (cell) => model.headings.filter((heading) => isTheirs(heading) && heading.cellRef === cell);
  model.updateRunningStatus = (headings) => {
    updateRunningStatus(headings.filter(isTheirs));
    headings.filter((heading) => !isTheirs(heading)).forEach(still);
  };

  // Nodes are asked for while the table is seen.
  let { isActive } = model;
  Object.defineProperty(model, "isActive", {
    get: () => isActive,
    set(value) {
      isActive = value;
      if (isActive) model.refresh();
    },
  });

  model.activeHeadingChanged.connect((_, heading) => {
    if (heading && nodeOf.get(heading)) goToNode(notebook, heading.cellRef, (editor) => goTo(editor, nodeOf.get(heading)));
  });
}

function still(heading) {
  heading.isRunning = IDLE;
  heading.dataset = { ...heading.dataset, "data-running": String(IDLE) };
  return heading;
}

function groupedByCell(headings) {
  const ofCell = new Map();
  for (const heading of headings) ofCell.set(heading.cellRef, [...(ofCell.get(heading.cellRef) ?? []), heading]);
  return ofCell;
}

// For each cell the level of the heading that it stands below.
function levelsAbove(cells, ofCell) {
  let level = 0;
  return cells.map((cell) => {
    const above = level;
    level = ofCell.get(cell)?.at(-1).level ?? level;
    return above;
  });
}

// JupyterLab itself scrolls to the cell at the same time, and may take the place of ours; the node's line comes last.
async function goToNode(notebook, cell, goIn) {
  await scrolledTo(notebook, cell);
  await cell.ready;
  if (!cell.editor) return;
  notebook.mode = "edit";
  await goIn(cell.editor.editor);
}

// Whoever asks to scroll takes the place of whoever asked before; a cell that is not in view yet cannot have the focus.
async function scrolledTo(notebook, cell, tries = 3) {
  try {
    await notebook.scrollToItem(notebook.widgets.indexOf(cell), "start", 0);
  } catch {
    if (tries > 1) await scrolledTo(notebook, cell, tries - 1);
  }
}

// Puts the cursor where a node is declared, with what stands around it in view.
function makeGoing(EditorView, server) {
  return async (editor, wanted) => {
    const { doc } = editor.state;
    const { offset, text } = bodyOf(doc.toString());
    const found = (await server.outlineOf(text))?.find(({ node }) => node === wanted);
    if (!found?.line || editor.state.doc !== doc) return;
    const { from } = rangeOf(doc, offset, found);
    editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    editor.focus();
  };
}

// The editor of a file's text: alone, or beside its graph (documents.js).
const fileEditorOf = ({ content }) => content.text ?? content;

function fileOutline({ TableOfContentsFactory, TableOfContentsModel }, editors, server, { wanted, goTo }) {
  const tracker = { has: (widget) => Boolean(editors?.has(widget) || widget.content?.hasClass("attractor-document")) };

  class FileModel extends TableOfContentsModel {
    get documentType() {
      return "attractor";
    }
    async getHeadings() {
      if (!this.isActive || !(await wanted)) return [];
      const nodes = await server.outlineOf(bodyOf(fileEditorOf(this.widget).model.sharedModel.getSource()).text);
      return (nodes ?? []).map((node) => ({ text: textOf(node), level: 1, prefix: "", node: node.node }));
    }
  }

  class FileFactory extends TableOfContentsFactory {
    isApplicable(widget) {
      return super.isApplicable(widget) && fileEditorOf(widget).model?.mimeType === DOT_MIME;
    }
    _createNew(widget, configuration) {
      const model = new FileModel(widget, configuration);
      model.activeHeadingChanged.connect((_, heading) => heading && goTo(fileEditorOf(widget).editor.editor, heading.node));
      return model;
    }
  }

  return new FileFactory(tracker);
}
