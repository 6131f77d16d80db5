// The plugins of the extension. What one needs and this JupyterLab does not share switches that one off, with a line
// in the console, and leaves the notebook as it is.

import { makeBreakpoints } from "./breakpoints.js";
import { makeBrowserNotices } from "./browser_notices.js";
import { DOT_MIME, followCells } from "./cells.js";
import { dotLanguage } from "./dot_language.js";
import { makeDocumentsPlugin } from "./documents.js";
import { makeLintServer } from "./lint_server.js";
import { makeNavigation } from "./navigation.js";
import { addOutlines } from "./outline.js";
import { makePipelineCommands } from "./pipeline_commands.js";
import { makeRuns } from "./runs.js";
import { makeSquiggles } from "./squiggles.js";
import { makeTelling } from "./telling.js";

const NO_WORDS = { __: (text, ...values) => filled(text, values), _n: (one, many, n) => filled(n === 1 ? one : many, [n]) };
const filled = (text, values) => values.reduce((now, value, number) => now.replaceAll(`%${number + 1}`, String(value)), text);

export async function makePlugins(shared) {
  const plugins = [];
  for (const make of [languagePlugin, editorPlugin, commandsPlugin, outlinePlugin, runsPlugin, documentsPlugin]) {
    try {
      plugins.push(await make(shared));
    } catch (problem) {
      console.warn(`attractor-nb: ${make.name} is off: ${problem.message}`);
    }
  }
  return plugins;
}

async function languagePlugin(shared) {
  const [{ IEditorLanguageRegistry }, { INotebookTracker }, { ISettingRegistry }, { ITranslator }, ui, language, state] = await Promise.all([
    shared("@jupyterlab/codemirror"),
    shared("@jupyterlab/notebook"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
    shared("@jupyterlab/ui-components"),
    shared("@codemirror/language"),
    shared("@codemirror/state"),
  ]);
  const icon = await iconOf(ui);
  const id = "attractor-nb:language";
  return {
    id,
    description: "DOT as a language: in %%attractor cells, and in .dot and .gv files.",
    autoStart: true,
    requires: [IEditorLanguageRegistry],
    optional: [INotebookTracker, ISettingRegistry, ITranslator],
    async activate(app, languages, notebooks, settings, translator) {
      const words = wordsOf(translator);
      languages.addLanguage({
        name: "attractor",
        displayName: words.__("Pipeline (DOT)"),
        alias: ["dot", "graphviz"],
        mime: DOT_MIME,
        extensions: ["dot", "gv"],
        support: dotLanguage(language, state),
      });
      app.docRegistry.addFileType({
        name: "attractor",
        displayName: words.__("Pipeline (DOT)"),
        extensions: [".dot", ".gv"],
        mimeTypes: [DOT_MIME],
        contentType: "file",
        fileFormat: "text",
        icon,
      });
      const { colours } = await settingsOf(settings, id, { colours: true });
      if (notebooks && colours) followCells(notebooks, languages);
    },
  };
}

async function editorPlugin(shared) {
  const [apputils, { EditorExtensionRegistry, IEditorExtensionRegistry }, { ISettingRegistry }, { ITranslator }] = await Promise.all([
    shared("@jupyterlab/apputils"),
    shared("@jupyterlab/codemirror"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
  ]);
  const codemirror = { state: await shared("@codemirror/state"), view: await shared("@codemirror/view") };
  const server = await lintServerOf(shared);
  const id = "attractor-nb:findings";
  return {
    id,
    description: "While a pipeline is typed: what lint finds, what a word means, where a node is.",
    autoStart: true,
    requires: [IEditorExtensionRegistry],
    optional: [ISettingRegistry, ITranslator],
    async activate(_app, extensions, settings, translator) {
      const wanted = await settingsOf(settings, id, { findings: true, delay: 300, hover: true });
      const words = wordsOf(translator);
      const telling = makeTelling(codemirror, words);
      const tools = { telling, words, ...dialogsOf(apputils, words) };
      const add = (name, extensionOf) =>
        extensions.addExtension({
          name: `attractor-${name}`,
          factory: ({ model }) => EditorExtensionRegistry.createImmutableExtension(extensionOf(model)),
        });
      if (wanted.findings) add("findings", makeSquiggles(codemirror, server, { delay: wanted.delay, ...tools }));
      if (wanted.hover) add("navigation", makeNavigation(codemirror, server, tools));
      if (wanted.findings || wanted.hover) add("telling", telling.extensionOf);
    },
  };
}

async function commandsPlugin(shared) {
  const [apputils, coreutils, { EditorExtensionRegistry, IEditorExtensionRegistry }, filebrowser, { ILauncher }, notebook, ui, { ISettingRegistry }, { ITranslator }] =
    await Promise.all([
      shared("@jupyterlab/apputils"),
      shared("@jupyterlab/coreutils"),
      shared("@jupyterlab/codemirror"),
      shared("@jupyterlab/filebrowser"),
      shared("@jupyterlab/launcher"),
      shared("@jupyterlab/notebook"),
      shared("@jupyterlab/ui-components"),
      shared("@jupyterlab/settingregistry"),
      shared("@jupyterlab/translation"),
    ]);
  const codemirror = { state: await shared("@codemirror/state"), view: await shared("@codemirror/view") };
  const server = await lintServerOf(shared);
  const icon = await iconOf(ui);
  const id = "attractor-nb:commands";
  return {
    id,
    description: "Commands for the pipeline of a cell: run it, run from a node, breakpoints; a new one from the examples.",
    autoStart: true,
    requires: [notebook.INotebookTracker],
    optional: [IEditorExtensionRegistry, filebrowser.IDefaultFileBrowser, ILauncher, apputils.ICommandPalette, ISettingRegistry, ITranslator],
    async activate(app, notebooks, extensions, files, launcher, palette, settings, translator) {
      if (!(await settingsOf(settings, id, { commands: true })).commands) return;
      const words = wordsOf(translator);
      const commands = makePipelineCommands(app, notebooks, server, {
        actions: notebook.NotebookActions,
        EditorView: codemirror.view.EditorView,
        join: coreutils.PathExt.join,
        cwd: () => files?.model.path ?? "",
        words,
        ...dialogsOf(apputils, words),
      });
      const isHere = () => commands.here() !== null;
      addCommands(app, palette, words, [
        { id: "new-cell", label: words.__("New pipeline in a cell"), execute: commands.newCell, isEnabled: commands.hasNotebook },
        { id: "new-file", label: words.__("New pipeline file"), execute: commands.newFile, icon },
        { id: "run", label: words.__("Run this cell's pipeline"), execute: commands.run, isEnabled: isHere },
        { id: "run-from-here", label: words.__("Run from the node at the cursor"), execute: commands.runFromHere, isEnabled: isHere },
        { id: "breakpoint", label: words.__("Toggle breakpoint on the node at the cursor"), execute: commands.toggle, isEnabled: isHere },
      ]);
      launcher?.add({ command: "attractor-nb:new-file", category: words.__("Other") });
      const markOf = makeBreakpoints(codemirror, server, words);
      extensions?.addExtension({
        name: "attractor-breakpoints",
        factory: ({ model }) => EditorExtensionRegistry.createImmutableExtension(markOf(model)),
      });
    },
  };
}

async function outlinePlugin(shared) {
  const [{ EditorView }, toc, { IEditorTracker }, { INotebookTracker }, { ISettingRegistry }, { ITranslator }] = await Promise.all([
    shared("@codemirror/view"),
    shared("@jupyterlab/toc"),
    shared("@jupyterlab/fileeditor"),
    shared("@jupyterlab/notebook"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
  ]);
  const server = await lintServerOf(shared);
  const id = "attractor-nb:outline";
  return {
    id,
    description: "The nodes of pipelines in the table of contents.",
    autoStart: true,
    // Notebook 7 has no table of contents on the page of a file.
    optional: [toc.ITableOfContentsRegistry, INotebookTracker, IEditorTracker, ISettingRegistry, ITranslator],
    activate(_app, registry, notebooks, editors, settings, translator) {
      if (!registry) return;
      const wanted = settingsOf(settings, id, { outline: true }).then(({ outline }) => outline);
      addOutlines(registry, { toc, notebooks, editors, EditorView }, server, { wanted, words: wordsOf(translator) });
    },
  };
}

async function runsPlugin(shared) {
  const [{ ILabShell }, apputils, coreutils, services, widgets, ui, { ISettingRegistry }, { ITranslator }] = await Promise.all([
    shared("@jupyterlab/application"),
    shared("@jupyterlab/apputils"),
    shared("@jupyterlab/coreutils"),
    shared("@jupyterlab/services"),
    shared("@lumino/widgets"),
    shared("@jupyterlab/ui-components"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
  ]);
  const icon = await iconOf(ui);
  const id = "attractor-nb:runs";
  return {
    id,
    description: "The runs and the questions that wait: in the sidebar, as tabs, as notifications.",
    autoStart: true,
    optional: [apputils.ICommandPalette, ISettingRegistry, ITranslator, ILabShell],
    async activate(app, palette, settings, translator, labShell) {
      const { panel: hasPanel, notifications, browser } = await settingsOf(settings, id, { panel: true, notifications: true, browser: false });
      addSheet("style.css");
      const words = wordsOf(translator);
      const notices = makeBrowserNotices({
        isWanted: browser,
        remember: async (value) => settings?.set(id, "browser", value),
        say: (text, kind) => apputils.Notification.emit(text, kind, { autoClose: 5000 }),
        words,
      });
      const runs = makeRuns(app, { apputils, coreutils, services, widgets }, { words, isNotified: notifications, notices, icon, hasTabs: Boolean(labShell) });
      if (!hasPanel) return; // a graph document still opens its runs
      app.shell.add(runs.panel, "left", { rank: 450 });
      addCommands(app, palette, words, [
        { id: "show-runs", label: words.__("Show runs and questions"), execute: () => app.shell.activateById(runs.panel.id) },
        { id: "open-page", label: words.__("Open the page of all runs"), execute: () => runs.open("", words.__("Attractor runs")) },
        { id: "open-last-run", label: words.__("Open the last run"), execute: runs.openLast },
        { id: "notify", label: words.__("Notify me while I look elsewhere"), execute: () => notices.allow().then(runs.watch) },
      ]);
      if (notices.isOn()) runs.watch();
    },
  };
}

function documentsPlugin(shared) {
  return makeDocumentsPlugin(shared, { wordsOf, settingsOf });
}

function addCommands(app, palette, words, commands) {
  const category = words.__("Attractor");
  for (const { id, ...options } of commands) {
    const command = `attractor-nb:${id}`;
    app.commands.addCommand(command, options);
    palette?.addItem({ command, category });
  }
}

let lintServer = null;

// One for all plugins: they ask for the same texts.
async function lintServerOf(shared) {
  lintServer ??= makeLintServer(await shared("@jupyterlab/services"), await shared("@jupyterlab/coreutils"));
  return lintServer;
}

let icon = null;

// One for all plugins: JupyterLab knows it by its name. One that could not be fetched is asked for again by the next plugin.
async function iconOf({ LabIcon, fileIcon }) {
  icon ??= fetchedIcon(LabIcon);
  try {
    return await icon;
  } catch (problem) {
    icon = null;
    console.warn(`attractor-nb: the icon could not be fetched: ${problem.message}`);
    return fileIcon;
  }
}

async function fetchedIcon(LabIcon) {
  const answer = await fetch(new URL("icon.svg", import.meta.url));
  if (!answer.ok) throw new Error(String(answer.status));
  return new LabIcon({ name: "attractor-nb:runs", svgstr: await answer.text() });
}

function addSheet(name) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL(name, import.meta.url).href;
  document.head.append(link);
}

function dialogsOf({ InputDialog, showErrorMessage }, words) {
  return {
    // A text, or undefined when nobody gave one.
    askForText: async (title, text) => (await InputDialog.getText({ title, text, okLabel: words.__("Rename") })).value?.trim(),
    chooseFrom: async (title, items) => (await InputDialog.getItem({ title, items, okLabel: words.__("Begin") })).value,
    refuse: (title, why) => showErrorMessage(title, why),
  };
}

// Our pages in frames, and our views in notebooks, look for them in the window that they stand in (views/web/wording.js).
function wordsOf(translator) {
  window.attractorWords = translator ? translator.load("attractor_nb") : NO_WORDS;
  return window.attractorWords;
}

// The settings of a plugin as values; those that cannot be read are as they are by default.
async function settingsOf(registry, id, defaults) {
  if (!registry) return defaults;
  try {
    const loaded = await registry.load(id);
    return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, loaded.get(name).composite ?? value]));
  } catch (problem) {
    console.warn(`attractor-nb: the settings of ${id} could not be read: ${problem.message}`);
    return defaults;
  }
}
