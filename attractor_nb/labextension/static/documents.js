// A .dot file as text and graph side by side. The text is JupyterLab's own: its editor, undo, dirty mark, autosave and
// conflicts. The graph is the page of the proxied server in a frame, which is told the text and asks for changes of it.

import { make, rangeOf, smallestChanges } from "./editor_text.js";

const PAGE = "attractor-nb/";
const FACTORY = "Attractor graph";
const SLOW_MS = 800; // a server that is started takes about so long

export async function makeDocumentsPlugin(shared, { wordsOf, settingsOf }) {
  const [apputils, { ILayoutRestorer }, { IEditorServices }, coreutils, docregistry, { FileEditor }, { IMainMenu }, services, widgets, { ISettingRegistry }, { ITranslator }] =
    await Promise.all([
      shared("@jupyterlab/apputils"),
      shared("@jupyterlab/application"),
      shared("@jupyterlab/codeeditor"),
      shared("@jupyterlab/coreutils"),
      shared("@jupyterlab/docregistry"),
      shared("@jupyterlab/fileeditor"),
      shared("@jupyterlab/mainmenu"),
      shared("@jupyterlab/services"),
      shared("@lumino/widgets"),
      shared("@jupyterlab/settingregistry"),
      shared("@jupyterlab/translation"),
    ]);
  const id = "attractor-nb:documents";
  return {
    id,
    description: "DOT files as graph and text side by side.",
    autoStart: true,
    requires: [IEditorServices],
    optional: [ILayoutRestorer, IMainMenu, ISettingRegistry, ITranslator],
    async activate(app, editorServices, restorer, menu, settings, translator) {
      const wanted = await settingsOf(settings, id, { graph: true, default: true });
      if (!wanted.graph) return;
      const words = wordsOf(translator);
      const graphOf = makeGraphs({ coreutils, services, widgets }, words);
      const factory = makeFactory({ docregistry, FileEditor, widgets }, { editorServices, graphOf, label: words.__("Attractor graph"), isDefault: wanted.default });
      const tracker = new apputils.WidgetTracker({ namespace: "attractor-graph" });
      factory.widgetCreated.connect((_, widget) => {
        widget.context.pathChanged.connect(() => tracker.save(widget));
        widget.title.icon = app.docRegistry.getFileType("attractor")?.icon;
        tracker.add(widget);
      });
      app.docRegistry.addWidgetFactory(factory);
      const args = ({ context }) => ({ path: context.path, factory: FACTORY });
      if (restorer) restorer.restore(tracker, { command: "docmanager:open", args, name: ({ context }) => context.path });
      if (menu) addUndo(app, menu, tracker, words);
    },
  };
}

function makeFactory({ docregistry, FileEditor, widgets }, { editorServices, graphOf, label, isDefault }) {
  class Both extends widgets.SplitPanel {
    constructor(context) {
      super({ orientation: "horizontal", spacing: 4 });
      this.addClass("attractor-document");
      const newEditor = (options) => editorServices.factoryService.newDocumentEditor(options);
      this.text = new FileEditor({ factory: newEditor, context, mimeTypeService: editorServices.mimeTypeService });
      this.graph = graphOf(this.text, context);
      this.addWidget(this.text);
      this.addWidget(this.graph);
      this.setRelativeSizes([2, 3]);
    }

    onActivateRequest() {
      this.text.activate();
    }
  }

  class Factory extends docregistry.ABCWidgetFactory {
    createNewWidget(context) {
      return new docregistry.DocumentWidget({ content: new Both(context), context });
    }
  }
  return new Factory({ name: FACTORY, label, fileTypes: ["attractor"], defaultFor: isDefault ? ["attractor"] : [] });
}

// The Undo and Redo of the Edit menu, where one of these documents is the one in front.
function addUndo(app, menu, tracker, words) {
  const isEnabled = (widget) => tracker.has(widget);
  for (const [name, label] of [["undo", words.__("Undo in the pipeline")], ["redo", words.__("Redo in the pipeline")]]) {
    const command = `attractor-nb:${name}-in-document`;
    app.commands.addCommand(command, { label, execute: () => tracker.currentWidget?.content.text.editor[name]() });
    menu.editMenu.undoers[name]?.add({ id: command, isEnabled, rank: 10 });
  }
}

// Makes the graph of a text: `(fileEditor, context)` gives a widget.
function makeGraphs({ coreutils, services, widgets }, words) {
  const { ServerConnection } = services;
  const settings = ServerConnection.makeSettings();
  const page = coreutils.URLExt.join(settings.baseUrl, PAGE);

  return (fileEditor, context) => {
    const widget = new widgets.Widget();
    widget.addClass("attractor-document-graph");
    widget.node.setAttribute("role", "region");
    widget.node.setAttribute("aria-label", words.__("Graph of %1", context.path));
    widget.node.style.minWidth = "200px";
    let frame = null;

    function say(text, onAgain) {
      const box = make("div", "");
      box.setAttribute("role", "status");
      box.style.cssText = "padding:12px;color:var(--jp-ui-font-color1);font-family:var(--jp-ui-font-family);font-size:var(--jp-ui-font-size1)";
      box.append(make("p", "", text));
      if (onAgain) {
        const again = make("button", "jp-mod-styled jp-mod-minimal", words.__("Try again"));
        again.type = "button";
        again.addEventListener("click", onAgain);
        box.append(again);
      }
      widget.node.replaceChildren(box);
    }

    // The frame is made when somebody answers: what a proxy says of a server that is gone is no page of ours.
    async function begin() {
      const slow = setTimeout(() => say(words.__("The server of attractor_nb is being started.")), SLOW_MS);
      let status = 0;
      try {
        ({ status } = await ServerConnection.makeRequest(page, { cache: "default" }, settings));
      } catch {
        // nobody answers
      }
      clearTimeout(slow);
      if (widget.isDisposed) return;
      if (status === 200) showFrame();
      else if (status === 404) say(words.__("The graph is drawn by the server of attractor_nb: install its extra proxy beside JupyterLab. The text can be edited without it."));
      else say(words.__("The server of attractor_nb does not answer. The text can be edited without it."), begin);
    }

    function showFrame() {
      frame = make("iframe", "");
      frame.src = `${page}#document`;
      frame.title = words.__("Graph of %1", context.path);
      frame.style.cssText = "width:100%;height:100%;border:0;display:block";
      widget.node.replaceChildren(frame);
    }

    const tell = (message) => frame?.contentWindow?.postMessage(message, location.origin);
    const { sharedModel } = context.model;
    const canChange = () => context.contentsModel?.writable !== false;

    // A moment later: only then is it known what can be undone.
    const tellTextSoon = () => queueMicrotask(tellText);
    const tellText = () =>
      tell({
        kind: "attractor-text",
        text: sharedModel.getSource(),
        name: context.path,
        can_undo: sharedModel.canUndo(),
        can_redo: sharedModel.canRedo(),
        can_change: canChange(),
      });

    // Lines and columns from 1 on; the server counts characters.
    function tellCursor() {
      const { line, column } = fileEditor.editor.getCursorPosition();
      const before = (fileEditor.editor.getLine(line) ?? "").slice(0, column);
      tell({ kind: "attractor-cursor", line: line + 1, column: [...before].length + 1 });
    }

    function change({ before, after }) {
      const view = fileEditor.editor.editor;
      if (canChange() && typeof after === "string" && view.state.doc.toString() === before) {
        sharedModel.undoManager?.stopCapturing(); // a change of the graph is one step back, however fast the next one comes
        view.dispatch({ changes: smallestChanges(before, after, 0), userEvent: "input.graph" });
        sharedModel.undoManager?.stopCapturing();
      } else tellText();
    }

    function select({ place }) {
      const view = fileEditor.editor.editor;
      const { from, to } = rangeOf(view.state.doc, 0, place);
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
    }

    const doers = {
      "attractor-ready": tellText,
      "attractor-change": change,
      "attractor-select": select,
      "attractor-undo": () => fileEditor.editor.undo(),
      "attractor-redo": () => fileEditor.editor.redo(),
      "attractor-save": () => context.save(),
    };

    function hear({ source, origin, data }) {
      if (!frame || source !== frame.contentWindow || origin !== location.origin) return;
      if (typeof data?.kind === "string" && Object.hasOwn(doers, data.kind)) doers[data.kind](data);
    }

    window.addEventListener("message", hear);
    sharedModel.changed.connect(tellTextSoon);
    fileEditor.model.selections.changed.connect(tellCursor);
    widget.disposed.connect(() => {
      window.removeEventListener("message", hear);
      sharedModel.changed.disconnect(tellTextSoon);
    });
    context.ready.then(begin);
    return widget;
  };
}
