// The plugins of the extension. What one needs and this JupyterLab does not share switches that one off, with a line
// in the console, and leaves the notebook as it is.

import { DOT_MIME, followCells } from "./cells.js";
import { dotLanguage } from "./dot_language.js";
import { makeLintServer } from "./lint_server.js";
import { makeNavigation } from "./navigation.js";
import { makeRuns } from "./runs.js";
import { makeSquiggles } from "./squiggles.js";

const NO_WORDS = { __: (text, ...values) => filled(text, values), _n: (one, many, n) => filled(n === 1 ? one : many, [n]) };
const filled = (text, values) => values.reduce((now, value, number) => now.replaceAll(`%${number + 1}`, String(value)), text);

export async function makePlugins(shared) {
  const plugins = [];
  for (const make of [languagePlugin, editorPlugin, runsPlugin]) {
    try {
      plugins.push(await make(shared));
    } catch (problem) {
      console.warn(`attractor-nb: ${make.name} is off: ${problem.message}`);
    }
  }
  return plugins;
}

async function languagePlugin(shared) {
  const [{ IEditorLanguageRegistry }, { INotebookTracker }, { ISettingRegistry }, { ITranslator }, codemirror] = await Promise.all([
    shared("@jupyterlab/codemirror"),
    shared("@jupyterlab/notebook"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
    shared("@codemirror/language"),
  ]);
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
        support: dotLanguage(codemirror),
      });
      app.docRegistry.addFileType({
        name: "attractor",
        displayName: words.__("Pipeline (DOT)"),
        extensions: [".dot", ".gv"],
        mimeTypes: [DOT_MIME],
        contentType: "file",
        fileFormat: "text",
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
  const server = makeLintServer(await shared("@jupyterlab/services"), await shared("@jupyterlab/coreutils"));
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
      const tools = { words, ...dialogsOf(apputils, words) };
      const add = (name, extensionOf) =>
        extensions.addExtension({
          name: `attractor-${name}`,
          factory: ({ model }) => EditorExtensionRegistry.createImmutableExtension(extensionOf(model)),
        });
      if (wanted.findings) add("findings", makeSquiggles(codemirror, server, { delay: wanted.delay, ...tools }));
      if (wanted.hover) add("navigation", makeNavigation(codemirror, server, tools));
    },
  };
}

async function runsPlugin(shared) {
  const [apputils, coreutils, services, widgets, ui, { ISettingRegistry }, { ITranslator }] = await Promise.all([
    shared("@jupyterlab/apputils"),
    shared("@jupyterlab/coreutils"),
    shared("@jupyterlab/services"),
    shared("@lumino/widgets"),
    shared("@jupyterlab/ui-components"),
    shared("@jupyterlab/settingregistry"),
    shared("@jupyterlab/translation"),
  ]);
  const icon = await (await fetch(new URL("icon.svg", import.meta.url))).text();
  const id = "attractor-nb:runs";
  return {
    id,
    description: "The runs and the questions that wait: in the sidebar, as tabs, as notifications.",
    autoStart: true,
    optional: [apputils.ICommandPalette, ISettingRegistry, ITranslator],
    async activate(app, palette, settings, translator) {
      const { panel: hasPanel, notifications } = await settingsOf(settings, id, { panel: true, notifications: true });
      addSheet("style.css");
      if (!hasPanel) return;
      const words = wordsOf(translator);
      const runs = makeRuns(app, { apputils, coreutils, services, widgets, ui }, { words, isNotified: notifications, icon });
      app.shell.add(runs.panel, "left", { rank: 450 });
      addCommands(app, palette, words, runs);
    },
  };
}

function addCommands(app, palette, words, runs) {
  const category = words.__("Attractor");
  const add = (command, label, execute) => {
    app.commands.addCommand(command, { label, execute });
    if (palette) palette.addItem({ command, category });
  };
  add("attractor-nb:show-runs", words.__("Show runs and questions"), () => app.shell.activateById(runs.panel.id));
  add("attractor-nb:open-page", words.__("Open the page of all runs"), () => runs.open("", words.__("Attractor runs")));
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
    refuse: (problem) => showErrorMessage(words.__("The text stays as it was"), problem),
  };
}

const wordsOf = (translator) => (translator ? translator.load("attractor_nb") : NO_WORDS);

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
