// Asks Python what is wrong with a text: over the server that jupyter-server-proxy starts on demand, not the kernel.

const PLACE = "attractor-nb/validate";
const LONGEST = 500_000;
const OUTLINES = 200; // that are kept: all pipelines of a notebook are asked for when one of them has changed
// Of files beside the notebook the server knows nothing: it reads none for a text that was sent.
const ABOUT_FILES = new Set(["text_file", "sub_pipeline_source"]);

// `state` is "unasked", "answers", "lost" (it has answered before) or "absent" (there is no such server).
export function makeLintServer({ ServerConnection }, { URLExt }) {
  const settings = ServerConnection.makeSettings();
  const url = URLExt.join(settings.baseUrl, PLACE);
  const server = { state: "unasked", findingsOf, changed, outlineOf };
  const outlines = new Map();

  async function post(values) {
    // With its default of no cache JupyterLab adds a query, and ours takes none.
    const asked = { method: "POST", cache: "default", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values) };
    let response;
    try {
      response = await ServerConnection.makeRequest(url, asked, settings);
    } catch {
      server.state = server.state === "answers" ? "lost" : server.state;
      return null;
    }
    if (response.ok || response.status === 422) {
      server.state = "answers";
      return response.json();
    }
    if (response.status === 404 && server.state === "unasked") {
      server.state = "absent";
      console.info("attractor-nb: no findings while typing: install attractor-nb[proxy] beside JupyterLab");
    } else if (response.status >= 500 && server.state === "answers") server.state = "lost";
    return null;
  }

  // The findings of a text, or null when nobody answers.
  async function findingsOf(text) {
    if (server.state === "absent" || text.length > LONGEST) return null;
    const answer = await post({ source: text });
    if (!answer?.diagnostics) return null;
    return answer.diagnostics.map((found, number) => ({ ...found, number })).filter((found) => !ABOUT_FILES.has(found.rule));
  }

  // The text after a change: `{ fix: number }` or `{ rename: { node, to } }`. Null, or `problem`, when it was not made.
  async function changed(text, change) {
    const answer = await post({ source: text, ...change });
    return answer && { text: answer.source || null, problem: answer.detail ?? "" };
  }

  // The nodes of a text, each with its place and edges; of a text that does not parse none, and null when nobody answers.
  async function outlineOf(text) {
    if (server.state === "absent" || text.length > LONGEST) return null;
    const asked = outlines.get(text) ?? post({ source: text, with_outline: true }).then((answer) => answer?.outline ?? null);
    outlines.delete(text);
    outlines.set(text, asked);
    if (outlines.size > OUTLINES) outlines.delete(outlines.keys().next().value);
    const nodes = await asked;
    if (!nodes) outlines.delete(text);
    return nodes;
  }

  return server;
}
