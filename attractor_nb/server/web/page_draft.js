// What was typed for a new run, kept in this tab across reloads until the run begins. Never the token.

const draftPlace = () => `attractor-nb draft ${new URL(".", location.href).pathname}`;

export function keptDraft() {
  const blank = { text: "", name: "", backend: "", inputs: [], limits: {}, key: "" };
  try {
    const kept = JSON.parse(sessionStorage.getItem(draftPlace()) || "{}");
    const fits = (name) => typeof kept[name] === typeof blank[name] && Array.isArray(kept[name]) === Array.isArray(blank[name]);
    return Object.fromEntries(Object.entries(blank).map(([name, value]) => [name, fits(name) && kept[name] ? kept[name] : value]));
  } catch {
    return blank;
  }
}

// Whether it could be kept: a browser keeps some megabytes only.
export function keepDraft(draft) {
  try {
    sessionStorage.setItem(draftPlace(), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}
