// A drawing to take along: as SVG, as PNG, as Mermaid. The server draws it, the browser keeps it as a file.

import { make } from "./parts.js";
import { __ } from "./wording.js";

const FORMATS = { svg: __("SVG picture"), png: __("PNG picture"), mermaid: __("Mermaid text") };
const ENDINGS = { svg: "svg", png: "png", mermaid: "mmd" };

// `onSaid(words)` is called with what keeps it from being drawn; with an empty text when it was.
export function makeExport(server, { textOf, nameOf, onSaid }) {
  const element = make("select", "ae-input ad-export");
  element.setAttribute("aria-label", __("Export the drawing"));
  const first = make("option", "", __("Export…"));
  first.value = "";
  element.append(first);
  for (const [format, words] of Object.entries(FORMATS)) {
    const option = make("option", "", words);
    option.value = format;
    element.append(option);
  }

  async function save(format) {
    try {
      const theme = document.body.dataset.jpThemeLight === "false" ? "dark" : "light";
      const picture = await server.post("picture", { source: textOf(), format, theme });
      const bytes = picture.encoding === "base64" ? Uint8Array.from(atob(picture.content), (one) => one.charCodeAt(0)) : picture.content;
      keepAsFile(new Blob([bytes], { type: picture.media_type }), `${baseName(nameOf() || picture.name)}.${ENDINGS[format]}`);
      onSaid("");
    } catch (problem) {
      onSaid([problem.message, problem.hint].filter(Boolean).join(" · "));
    }
  }

  element.addEventListener("change", () => {
    const format = element.value;
    element.value = "";
    if (format) save(format);
  });
  return { element };
}

const baseName = (path) => path.split("/").pop().replace(/\.(dot|gv)$/, "");

function keepAsFile(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
