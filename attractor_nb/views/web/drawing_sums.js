// How the nodes of a folded group stand as one: what needs a person first, then what goes on, then what is done.
// views/drawings/branch_stacks.py says the same of a picture.

const WORST_STATES = ["fail", "waiting", "retrying", "running"];
const ORDER = [...WORST_STATES, "partial_success", "success", "cached", "skipped", "pending"];

export function summed(statuses) {
  const found = new Set(statuses);
  const worst = WORST_STATES.find((status) => found.has(status));
  if (worst) return worst;
  if ([...found].every((status) => status === "pending" || status === "skipped")) return "pending";
  if (found.has("pending")) return "running";
  return found.has("partial_success") ? "partial_success" : "success";
}

// How many stand how, what matters first; those that find no room are others.
export function inWords(statuses, fits = () => true) {
  const stand = ORDER.map((status) => [statuses.filter((other) => other === status).length, status.replace("_", " ")]).filter(([count]) => count);
  for (let shown = stand.length; shown > 0; shown -= 1) {
    const others = stand.slice(shown).reduce((sum, [count]) => sum + count, 0);
    const rest = others ? [[others, others === 1 ? "other" : "others"]] : [];
    const words = [...stand.slice(0, shown), ...rest].map((one) => one.join(" ")).join(", ");
    if (fits(words)) return words;
  }
  return stand[0].join(" ");
}
