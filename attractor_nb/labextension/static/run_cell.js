// The cells beneath a pipeline's cell that run it: what stands in them, and what is changed there. Texts only.

const OPTION_WITH_VALUE = /^--(param|backend|live|write)$/;
const WORD = /(?:[^\s"']+|"[^"]*"|'[^']*')+/g;
const GRAPH_NAME = /\bdigraph\s+("?)([A-Za-z_]\w*)\1\s*\{/;

// What the first line says: the variable that gets the pipeline, and whether the cell itself runs it. Without a name the
// variable is that of the graph; "" when neither is one.
export function magicOf(source) {
  const [line] = source.split("\n", 1);
  const words = line.replace(/^\s*%%attractor/, "").match(WORD) ?? [];
  const isName = (word, number) => !word.startsWith("--") && !OPTION_WITH_VALUE.test(words[number - 1] ?? "");
  const name = words.find(isName) ?? GRAPH_NAME.exec(source)?.[2] ?? "";
  return { name, runs: words.includes("--run") };
}

export const runVariable = (name) => `${name}_run`;
export const forkVariable = (name) => `${name}_fork`;

// Whether a cell is the one that begins a run, or a fork of it.
export const isRunCell = (source, name) => source.startsWith(`${runVariable(name)} = ${name}.run(`);
export const isForkCell = (source, name) => source.startsWith(`${forkVariable(name)} = ${runVariable(name)}.fork(`);

// The text of the cell that runs a pipeline. Of one that is there only the breakpoints change, and not if they are written
// in a form that is not ours.
export function runCellText(name, breakpoints, before) {
  const variable = runVariable(name);
  const list = breakpoints.length ? `breakpoints=${JSON.stringify(breakpoints)}` : "";
  if (!before) return `${variable} = ${name}.run(${list})\n${variable}`;
  const call = `${variable} = ${name}.run(`;
  const rest = before.slice(call.length).replace(/^breakpoints=\[[^\]]*\](,\s*)?/, "");
  if (!list || /^[^\n]*\bbreakpoints=/.test(rest)) return call + (list ? before.slice(call.length) : rest);
  return call + list + (rest.startsWith(")") ? "" : ", ") + rest;
}

export function forkCellText(name, node) {
  const variable = forkVariable(name);
  return `${variable} = ${runVariable(name)}.fork(${JSON.stringify(node)}, pipeline=${name})\n${variable}`;
}
