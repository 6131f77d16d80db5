// A DOT file below the folder that is served: its text, the graph beside it, and where the server lets it, Save.

import { showDocument } from "./page_document.js";
import { Refusal, Silence } from "./page_server.js";
import { makeSourceField } from "./page_source.js";
import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

const BYTE_ORDER = "\ufeff";

export function showFile(server, path, el, { go, way, isNew }) {
  document.title = `${path} · attractor_nb`;
  document.body.classList.add("ap-wide");
  const back = make("a", "", __("Files"), { href: "#files" });
  const title = make("h1", "ap-file-name", path);
  way.append("/ ", back, " / ");
  way.after(title);
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const said = make("p", "ap-file-said al-dim", "", { role: "status" });
  title.after(said);
  const conflict = make("section", "ap-refusal", "", { "aria-label": __("Conflict"), hidden: true });
  const written = make("div", "ap-written");
  const drawn = make("div", "ap-drawn");
  const root = make("div", "ap-document", [trouble, conflict, make("div", "ap-both", [written, drawn])]);
  el.append(root);

  const source = makeSourceField(written, { onChange: changed, onSaid: (words) => (trouble.textContent = words) });
  const save = makeButton("al-button ap-save", __("Save"), "Ctrl-S", () => store(digest));
  source.element.querySelector(".an-head").append(save);
  written.append(source.element);

  let saved = ""; // the text as it is in the file
  let digest = "";
  let lineEnd = "\n";
  let mark = "";
  let isEditable = false;
  let isSaving = false;
  let isClosed = false;
  let view = null;
  let listener = null;

  const isDirty = () => isEditable && (source.value !== saved || !digest);

  const keeper = {
    get value() {
      return source.value;
    },
    canUndo: true,
    canRedo: true,
    canSave: false,
    name: path,
    get canChange() {
      return isEditable;
    },
    listen: (given) => (listener = given),
    change(before, after) {
      if (!isEditable || source.value !== before) return false;
      source.quietly(() => source.replace(after));
      return true;
    },
    // By keys one stays at the graph; by a click one goes to the text.
    select: (place) => (document.activeElement?.matches(":focus-visible") ? source.quietly(() => source.selectFinding(place)) : source.selectFinding(place)),
    undo: () => source.takeBack("undo"),
    redo: () => source.takeBack("redo"),
    save: () => store(digest),
    openRun: go,
  };

  function showState() {
    save.disabled = !isDirty() || isSaving;
    said.textContent = !isEditable ? __("read-only") : isSaving ? __("saving") : !digest ? __("new, not saved yet") : isDirty() ? __("changed") : __("saved");
  }

  function changed() {
    showState();
    listener?.onText();
  }

  // Line ends and a byte order mark are kept as the file has them; a field of a browser knows neither.
  function take(found) {
    mark = found.text.startsWith(BYTE_ORDER) ? BYTE_ORDER : "";
    lineEnd = /\r\n/.test(found.text) ? "\r\n" : "\n";
    saved = shownText(found.text);
    ({ digest } = found);
  }

  const shownText = (text) => text.replace(BYTE_ORDER, "").replace(/\r\n?/g, "\n");

  async function begin() {
    try {
      const list = isNew ? await server.get("documents") : null;
      const found = list ? { text: "", digest: "", is_editable: list.is_editable } : await server.get(address(path));
      if (isClosed || view) return;
      isEditable = found.is_editable;
      take(found);
      source.value = saved;
      source.setReadOnly(!isEditable);
      save.hidden = !isEditable;
      showState();
      trouble.textContent = "";
      view = showDocument(server, drawn, keeper);
    } catch (problem) {
      sayProblem(problem);
    }
  }

  function sayProblem(problem) {
    if (!isClosed && !(problem instanceof Silence)) trouble.textContent = [problem.message, problem.hint].filter(Boolean).join(" · ");
  }

  async function store(wanted) {
    if (!isDirty() || isSaving) return;
    const text = source.value;
    isSaving = true;
    showState();
    try {
      const answer = await server.post(address(path), { text: mark + text.replaceAll("\n", lineEnd), digest: wanted });
      conflict.hidden = true;
      trouble.textContent = "";
      saved = text;
      ({ digest } = answer);
    } catch (problem) {
      if (problem instanceof Refusal && problem.kind === "document-changed") showConflict(problem.problem.document);
      else if (problem instanceof Silence) trouble.textContent = __("It was not saved: the server does not answer.");
      else sayProblem(problem);
    }
    isSaving = false;
    if (!isClosed) showState();
  }

  // Both texts are kept until somebody chooses; the one that gives way can be had back by Undo, or is shown here.
  function showConflict(theirs) {
    const words = theirs ? __("The file has changed since it was read. Nothing was saved.") : __("The file is gone. Nothing was saved.");
    const row = make("div", "ap-row");
    row.append(makeButton("al-button", theirs ? __("Save mine over it") : __("Save it again"), "", () => store(theirs?.digest ?? "")));
    if (theirs) {
      row.append(
        makeButton("al-button", __("Take the file's text"), __("Undo restores your text"), () => {
          take(theirs);
          source.replace(saved);
          conflict.hidden = true;
          changed();
        }),
      );
    }
    row.append(makeButton("al-button", __("Not now"), "", () => (conflict.hidden = true)));
    conflict.replaceChildren(make("strong", "", words));
    if (theirs) conflict.append(make("p", "al-dim", __("The file now contains:")), make("pre", "ap-words", theirs.text));
    conflict.append(row);
    conflict.hidden = false;
    row.querySelector("button").focus();
  }

  const warn = (event) => isDirty() && source.value !== saved && event.preventDefault();
  const tellCursor = () => document.activeElement?.id === "an-text" && listener?.onCursor(source.cursor);
  window.addEventListener("beforeunload", warn);
  document.addEventListener("selectionchange", tellCursor);
  begin();
  return {
    lose: () => view?.lose(),
    find: () => (view ? view.find() : begin()),
    close() {
      isClosed = true;
      window.removeEventListener("beforeunload", warn);
      document.removeEventListener("selectionchange", tellCursor);
      view?.close();
      title.remove();
      said.remove();
      document.body.classList.remove("ap-wide");
      root.remove();
    },
  };
}

const address = (path) => `documents/${path.split("/").map(encodeURIComponent).join("/")}`;
