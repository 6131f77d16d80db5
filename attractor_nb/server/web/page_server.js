// The server as the page knows it: questions with the token, refusals as errors, and whether anybody answers at all.

import { __ } from "./wording.js";

const ANSWER_MS = 30000;

// A refusal: a problem document of the server.
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || __("The server answered with %1.", status));
    this.status = status;
    this.kind = String(problem.type || "").split(":").pop();
    this.hint = problem.hint || "";
    this.problem = problem;
  }
}

// Nobody answers.
export class Silence extends Error {}

// `onSilent(isSilent)` is told after each question; `onRefused()` when the token is not taken.
export function makeServer(token, { onSilent, onRefused }) {
  const address = (path) => new URL(path, new URL(".", location.href));

  async function ask(method, path, { query = {}, body = "{}", key = "" } = {}) {
    const url = address(path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
    }
    const headers = { Accept: "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    if (method === "POST") Object.assign(headers, { "Content-Type": "application/json", ...crossCheck() });
    if (key) headers["Idempotency-Key"] = key;
    let response;
    let answer;
    try {
      response = await fetch(url, {
        method,
        headers,
        ...(method === "POST" ? { body } : {}),
        cache: "no-store",
        credentials: "same-origin",
        redirect: "error",
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      answer = await response.json(); // ours are all JSON: what else comes is of a proxy that cannot reach it
    } catch (problem) {
      onSilent(true);
      throw new Silence(problem.message);
    }
    onSilent(false);
    if (response.ok) return answer;
    if (response.status === 401) onRefused();
    throw new Refusal(response.status, answer);
  }

  return {
    address,
    get: (path, query) => ask("GET", path, { query }),
    post: (path, body = {}) => ask("POST", path, { body: JSON.stringify(body) }),
    // A text of JSON as it stands, done once for its key however often it is sent.
    postOnce: (path, body, key) => ask("POST", path, { body, key }),
  };
}

// A run's id without the time in it.
export const shortId = (id) => id.replace(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-/, "");
export const mapAddress = (id) => `#map=${encodeURIComponent(id)}`;
export const mapPath = (id, rest = "") => `maps/${encodeURIComponent(id)}${rest}`;
export const runPath = (id, rest = "") => `pipelines/${encodeURIComponent(id)}${rest}`;

// A proxy that lets people in by a cookie wants to see that our page has read it.
function crossCheck() {
  const found = /(?:^|;\s*)_xsrf=([^;]+)/.exec(document.cookie);
  return found ? { "X-XSRFToken": decodeURIComponent(found[1]) } : {};
}
