// The DOT files below the folder that is served: each opens as a graph beside its text.

import { make, makeButton } from "./parts.js";
import { Silence } from "./page_server.js";
import { sizeOf } from "./texts.js";
import { __, _n } from "./wording.js";

const MOST_FILES = 300; // what is in the page; a filter finds the others
const fileHash = (path) => `file=${encodeURIComponent(path)}`;

export function showFiles(server, el, { way }) {
  document.title = __("Files · attractor_nb");
  way.append("/ ", make("a", "", __("Runs"), { href: "#" }));
  const said = make("p", "al-dim", "", { role: "status" });
  const trouble = make("p", "ap-said", "", { role: "alert" });
  const filter = make("input", "ap-field", "", { type: "search", placeholder: __("Filter files"), "aria-label": __("Filter files") });
  const list = make("ul", "ap-file-list", "", { "aria-label": __("DOT files") });
  const name = make("input", "ap-field");
  name.placeholder = __("folder/name.dot");
  name.setAttribute("aria-label", __("Name of a new file"));
  const create = () => {
    const path = name.value.trim().replace(/^\/+/, "");
    if (path) location.hash = `${fileHash(/\.(dot|gv)$/.test(path) ? path : `${path}.dot`)}&new`;
    else name.focus();
  };
  name.addEventListener("keydown", (event) => event.key === "Enter" && create());
  const fresh = make("div", "ap-row", [name, makeButton("al-button", __("New file"), "", create)], { hidden: true });
  const root = make("div", "ap-files", [make("h1", "ap-title", __("Files")), trouble, fresh, filter, list, said]);
  el.append(root);
  let files = [];
  let isCut = false;
  let isClosed = false;

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = files.filter(({ path }) => words.every((word) => path.toLowerCase().includes(word)));
    list.replaceChildren(...found.slice(0, MOST_FILES).map(makeFile));
    const count = found.length > MOST_FILES ? __("The first %1 of %2 files.", MOST_FILES, found.length) : _n("%1 file.", "%1 files.", found.length);
    said.textContent = [count, isCut ? __("The folder has more files than are listed.") : ""].filter(Boolean).join(" ");
  }

  async function look() {
    try {
      const answer = await server.get("documents");
      if (isClosed) return;
      files = answer.documents;
      isCut = answer.is_cut;
      trouble.textContent = answer.is_served ? "" : __("This server shows no files: start it with --documents DIR.");
      filter.hidden = list.hidden = said.hidden = !answer.is_served;
      fresh.hidden = !answer.is_editable;
      show();
    } catch (problem) {
      if (!isClosed && !(problem instanceof Silence)) trouble.textContent = problem.message;
    }
  }

  filter.addEventListener("input", show);
  look();
  return {
    find: look,
    close() {
      isClosed = true;
      root.remove();
    },
  };
}

function makeFile({ path, bytes, modified }) {
  const link = make("a", "ap-file", path, { href: `#${fileHash(path)}` });
  const facts = make("span", "al-dim", [sizeOf(bytes), new Date(modified * 1000).toISOString().slice(0, 16).replace("T", " ")].join(" · "));
  return make("li", "", [link, facts]);
}
