// Sentences in the language of who shows them: JupyterLab's translator, which its extension puts into the window that our
// page or our view stands in. Elsewhere they are as they are written. `%1` is the first value, or the number.

function givenWording() {
  try {
    return window.attractorWords ?? window.parent.attractorWords ?? null;
  } catch {
    return null; // the window around it is of another origin
  }
}

const filledIn = (text, values) => text.replace(/%(\d)/g, (whole, place) => String(values[place - 1] ?? whole));

export const __ = (text, ...values) => givenWording()?.__(text, ...values) ?? filledIn(text, values);

// Of one, or of many.
export const _n = (one, many, count) => givenWording()?._n(one, many, count) ?? filledIn(count === 1 ? one : many, [count]);
