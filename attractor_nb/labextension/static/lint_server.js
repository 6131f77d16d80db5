// Asks Python what is wrong with a text: over the server that jupyter-server-proxy starts on demand, not the kernel.

const PLACE = "attractor-nb/validate";
const LONGEST = 500_000;
const PATIENCE_MS = 20_000; // a server that takes longer is taken for one that is gone
const OUTLINES = 200; // that are kept: all pipelines of a notebook are asked for when one of them has changed
// Of files beside the notebook the server knows nothing: it reads none for a text that was sent.
const ABOUT_FILES = new Set(["text_file", "child_pipeline"]);
// Nor of the functions of the notebook, which the cell takes when it is run.
const isOfPython = ({ rule, fix }) => rule === "function_known" && (fix ?? "").startsWith("register it");

// `state` is "unasked", "answers", "lost" (nobody answers, or too late) or "absent" (there is no such server).
export function makeLintServer({ ServerConnection }, { URLExt }) {
  const settings = ServerConnection.makeSettings();
  const url = URLExt.join(settings.baseUrl, PLACE);
  const server = { state: "unasked", findingsOf, changed, factsOf, outlineOf };
  const known = new Map(); // what was asked about a text, as a promise

  async function post(values) {
    // With its default of no cache JupyterLab adds a query, and ours takes none.
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const asked = { method: "POST", cache: "default", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values), signal };
    try {
      const response = await ServerConnection.makeRequest(url, asked, settings);
      if (response.ok || response.status === 422) {
        const answer = await response.json();
        server.state = "answers";
        return answer;
      }
      if (response.status === 404 && server.state === "unasked") {
        server.state = "absent";
        console.info("attractor-nb: no findings while typing: install its extra proxy beside JupyterLab");
      } else if (response.status >= 500) server.state = "lost";
    } catch {
      server.state = "lost";
    }
    return null;
  }

  // The findings of a text, or null when nobody answers.
  async function findingsOf(text) {
    if (server.state === "absent" || text.length > LONGEST) return null;
    const answer = await post({ source: text });
    if (!answer?.diagnostics) return null;
    return answer.diagnostics.filter((found) => !ABOUT_FILES.has(found.rule) && !isOfPython(found));
  }

  // The text after a change: `{ fix: number }` or `{ rename: { node, to } }`. Null, or `problem`, when it was not made.
  async function changed(text, change) {
    const answer = await post({ source: text, ...change });
    return answer && { text: answer.source || null, problem: answer.detail ?? "" };
  }

  // What a text has, or null when nobody answers: its nodes, each with its place and edges (none where it does not parse),
  // its inputs and its goal.
  async function factsOf(text) {
    if (server.state === "absent" || text.length > LONGEST) return null;
    const asked = known.get(text) ?? post({ source: text, with_outline: true }).then(factsIn);
    known.delete(text);
    known.set(text, asked);
    if (known.size > OUTLINES) known.delete(known.keys().next().value);
    const facts = await asked;
    if (!facts) known.delete(text);
    return facts;
  }

  async function outlineOf(text) {
    return (await factsOf(text))?.nodes ?? null;
  }

  return server;
}

const factsIn = (answer) => (answer?.outline ? { nodes: answer.outline, inputs: answer.inputs, goal: answer.goal } : null);
