// The files of an attempt: name and size; the text when it is asked for. And the way to the editor.

import { make, makeButton } from "./parts.js";
import { makeCopy, makeText, makeWords, sizeOf } from "./texts.js";
import { __ } from "./wording.js";

// Files whose text the plain form has under another name.
const KNOWN_TEXTS = {
  "prompt.md": "prompt", "response.md": "response", "carried.md": "carried", "changes.diff": "changes",
  "stdout.txt": "stdout", "stderr.txt": "stderr", "traceback.txt": "traceback",
};

export function makeFileList(plain, onFile, modes) {
  const element = make("div", "al-parts");
  const files = plain.files || [];
  const places = new Map();
  if (!files.length) element.append(makeWords(__("There are no files.")));
  const list = make("ul", "al-files");
  for (const { name, bytes, text, problem, shown } of files) {
    const place = make("div", "al-file-text");
    const key = KNOWN_TEXTS[name];
    const options = { nothing: __("It is empty."), modes, label: name };
    const known = text ?? plain.output?.[key] ?? plain[key];
    const button = makeButton("al-file", name, "", () => {
      if (place.childElementCount) {
        place.replaceChildren();
        button.setAttribute("aria-expanded", "false");
        return;
      }
      button.setAttribute("aria-expanded", "true");
      if (problem) place.append(makeWords(problem));
      else if (known !== undefined && known !== null) place.append(makeText(known, plain.cut?.[key], { ...options, shown: shown ?? plain.shown?.[key] }));
      else if (!plain.path) place.append(makeWords(__("Its text is not part of this page."))); // nobody can be asked
      else {
        place.append(makeWords(__("The text is loading.")));
        onFile(name);
      }
    }, { "aria-expanded": "false" });
    const item = make("li", "", [button, make("span", "al-number", sizeOf(bytes))]);
    const link = editorLink(plain.path, name);
    if (link) item.append(link);
    item.append(place);
    places.set(name, place);
    list.append(item);
  }
  element.append(list);
  if (plain.path) {
    const where = make("div", "al-path");
    where.append(make("span", "al-dim", __("Directory")), make("code", "", plain.path), makeCopy(plain.path, __("Copy path")));
    element.append(where);
  }
  return {
    element,
    // The text of a file has come.
    show({ name, text, bytes, problem, shown }) {
      const place = places.get(name);
      if (!place) return;
      const whole = bytes > new TextEncoder().encode(text || "").length ? bytes : 0;
      place.replaceChildren(problem ? makeWords(problem) : makeText(text, whole, { nothing: __("It is empty."), shown, modes, label: name }));
    },
  };
}

// A link that opens a file in JupyterLab or Notebook 7, where the server has the directory and shows it: hidden ones
// it does not. The page says where its server's root is: JupyterLab as a path, Notebook 7 as a URI.
function editorLink(path, name) {
  const settings = document.getElementById("jupyter-config-data");
  if (!path || !settings) return null;
  let config;
  try {
    config = JSON.parse(settings.textContent);
  } catch {
    return null;
  }
  const inside = relativeTo(config.serverRoot || folderOfUri(config.rootUri), path);
  if (inside === null) return null;
  const parts = [...inside.split("/"), ...name.split("/")].filter(Boolean);
  if (parts.some((part) => part.startsWith("."))) return null;
  const page = "notebookPage" in config ? "edit" : "lab/tree";
  const link = make("a", "al-edit", __("open in editor"));
  const base = new URL(config.baseUrl || "/", window.location.href);
  link.href = new URL(`${page}/${parts.map(encodeURIComponent).join("/")}`, base).href;
  link.target = "_blank";
  link.rel = "noopener";
  return link;
}

function folderOfUri(uri) {
  return uri && uri.startsWith("file:///") ? decodeURIComponent(uri.slice("file://".length)) : "";
}

function relativeTo(root, path) {
  if (!root) return null;
  const end = root.replace(/\/+$/, "");
  if (end.startsWith("~")) {
    const home = /^(\/root|\/(?:home|Users)\/[^/]+)/.exec(path);
    return home ? relativeTo(home[0] + end.slice(1), path) : null;
  }
  return path === end || path.startsWith(`${end}/`) ? path.slice(end.length) : null;
}
