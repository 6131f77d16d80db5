// What one does with the pipeline of a cell by a command: run it, run it from a node, stop before a node, begin a new one.

import { breakpointsOf, toggleBreakpoint } from "./breakpoints.js";
import { bodyOf, isPipeline } from "./cells.js";
import { nodeNear } from "./editor_text.js";
import { forkCellText, isForkCell, isRunCell, magicOf, runCellText, runVariable } from "./run_cell.js";

const PATIENCE_MS = 2000; // a run does not wait longer for a slow server
const EMPTY = "digraph Pipeline {\n    start [shape=Mdiamond]\n    done  [shape=Msquare]\n    start -> done\n}\n";

export function makePipelineCommands(app, notebooks, server, { actions, chooseFrom, cwd, join, refuse, words, EditorView }) {
  // The pipeline's cell that is active in the notebook in front, or null.
  function here() {
    const panel = notebooks.currentWidget;
    const cell = panel === app.shell.currentWidget ? panel?.content.activeCell : null;
    if (cell?.model.type !== "code" || !isPipeline(sourceOf(cell))) return null;
    return { panel, cell, ...magicOf(sourceOf(cell)) };
  }

  async function nodeHere({ cell }) {
    const editor = cell.editor?.editor;
    const node = editor && (await nodeNear(editor, editor.state.selection.main.head, server));
    if (!node && server.state === "lost") await refuse(words.__("The nodes are not known"), words.__("The server of attractor_nb does not answer."));
    else if (!node) await refuse(words.__("No node is at the cursor"), words.__("Put the cursor on a node's id. To know the nodes, its extra proxy must be installed beside JupyterLab."));
    return node && editor ? { node: node.node, editor } : null;
  }

  async function toggle() {
    const place = here();
    const found = place && (await nodeHere(place));
    if (!found) return;
    const { node, editor } = found;
    const isSet = toggleBreakpoint(place.cell.model, node);
    const said = isSet ? words.__("Runs now stop before %1", node) : words.__("Runs no longer stop before %1", node);
    editor.dispatch({ effects: EditorView.announce.of(said) });
  }

  // Breakpoints of nodes that are there no more would refuse the run.
  async function breakpointsIn(cell) {
    const wanted = breakpointsOf(cell.model);
    const late = new Promise((give) => setTimeout(give, PATIENCE_MS, null));
    const nodes = wanted.length ? await Promise.race([server.outlineOf(bodyOf(sourceOf(cell)).text), late]) : null;
    return nodes ? wanted.filter((id) => nodes.some(({ node }) => node === id)) : wanted;
  }

  const hasName = async ({ name }) => {
    if (!name) await refuse(words.__("The pipeline has no name"), words.__("Give it one in the first line, as in %%attractor review."));
    return Boolean(name);
  };

  async function run() {
    const place = here();
    if (!place || !(await hasName(place))) return;
    const { panel, cell, name } = place;
    const breakpoints = await breakpointsIn(cell);
    if (place.runs && breakpoints.length) {
      await refuse(words.__("This cell runs without breakpoints"), words.__("Remove --run from its first line, or remove the breakpoints."));
      return;
    }
    const isMade = await execute(panel, cell);
    if (!isMade || place.runs) return;
    const beneath = cellBeneath(panel.content, cell, (source) => isRunCell(source, name));
    const text = runCellText(name, breakpoints, beneath.isNew ? "" : sourceOf(beneath.cell));
    setSource(beneath.cell, text);
    await execute(panel, beneath.cell);
  }

  async function runFromHere() {
    const place = here();
    const found = place && (await hasName(place)) && (await nodeHere(place));
    if (!found) return;
    const { panel, cell, name } = place;
    if (!(await knows(panel, runVariable(name)))) {
      await refuse(words.__("%1 has not been run", name), words.__("A run from a node reuses the stages of an earlier run. Run the pipeline first."));
      return;
    }
    if (place.runs) cell.model.sharedModel.setSource(sourceOf(cell).replace(/[ \t]*--run\b/, ""));
    if (!(await execute(panel, cell))) return;
    const runCell = findBeneath(panel.content, cell, (source) => isRunCell(source, name)) ?? cell;
    const beneath = cellBeneath(panel.content, runCell, (source) => isForkCell(source, name));
    setSource(beneath.cell, forkCellText(name, found.node));
    await execute(panel, beneath.cell);
  }

  function execute(panel, cell) {
    const { content } = panel;
    content.activeCellIndex = content.widgets.indexOf(cell);
    content.deselectAll();
    return actions.run(content, panel.sessionContext);
  }

  async function example() {
    const { EXAMPLES } = await import("./examples.js");
    const offered = [{ name: "pipeline", meaning: words.__("a start and an end"), text: EMPTY }, ...EXAMPLES];
    const labels = offered.map(({ name, meaning }) => `${name}: ${meaning}`);
    const chosen = await chooseFrom(words.__("Begin with"), labels);
    return offered[labels.indexOf(chosen)];
  }

  async function newCell() {
    const { content } = notebooks.currentWidget;
    const begun = await example();
    if (!begun) return;
    const index = Math.max(0, content.activeCellIndex + 1);
    content.model.sharedModel.insertCell(index, { cell_type: "code", source: `%%attractor ${begun.name}\n${begun.text.trimEnd()}` });
    content.activeCellIndex = index;
  }

  // In the folder that is shown; a file that is there keeps its name and its text.
  async function newFile(args) {
    const begun = await example();
    if (!begun) return;
    const { contents } = app.serviceManager;
    const made = await contents.newUntitled({ path: args.cwd ?? cwd(), type: "file", ext: ".dot" });
    await contents.save(made.path, { type: "file", format: "text", content: begun.text });
    const { path } = await contents.rename(made.path, join(args.cwd ?? cwd(), `${begun.name}.dot`)).catch(() => made);
    await app.commands.execute("docmanager:open", { path });
  }

  return { here, newCell, newFile, run, runFromHere, toggle, hasNotebook: () => notebooks.currentWidget !== null };
}

const sourceOf = (cell) => cell.model.sharedModel.getSource();
const NEAR = 2; // what belongs to a pipeline's cell is among so many below

function findBeneath({ widgets }, cell, isWanted) {
  const index = widgets.indexOf(cell);
  return widgets.slice(index + 1, index + 1 + NEAR).find((each) => each.model.type === "code" && isWanted(sourceOf(each)));
}

// The wanted cell near below another, or a new one just below.
function cellBeneath(notebook, cell, isWanted) {
  const found = findBeneath(notebook, cell, isWanted);
  if (found) return { cell: found, isNew: false };
  const index = notebook.widgets.indexOf(cell) + 1;
  notebook.model.sharedModel.insertCell(index, { cell_type: "code", source: "" });
  return { cell: notebook.widgets[index], isNew: true };
}

function setSource(cell, text) {
  if (sourceOf(cell) !== text) cell.model.sharedModel.setSource(text);
}

// Whether the kernel has a variable of this name.
async function knows({ sessionContext }, name) {
  const kernel = sessionContext.session?.kernel;
  if (!kernel) return false;
  const asked = { code: "", silent: true, store_history: false, user_expressions: { known: `${JSON.stringify(name)} in globals()` } };
  const { content } = await kernel.requestExecute(asked).done;
  return content.user_expressions?.known?.data?.["text/plain"] === "True";
}
