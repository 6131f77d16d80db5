// The form of a pipeline's inputs: a field for each, and a button that starts a run.

import { makeGateForm } from "./gate_form.js";
import { switchOffWhenLost } from "./controls.js";
import { keepKeys, make, makeButton } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { __ } from "./wording.js";

export default asPlacedWidget(showRunForm);

export function showRunForm(host, el) {
  const root = make("section", "attractor-ui ag-card al-run-form", "", { "aria-label": __("Run %1", host.get("caption") || __("the pipeline")) });
  keepKeys(root);
  const form = makeGateForm({ name: "inputs", fields: host.get("fields") });
  const said = make("pre", "al-run-said", "", { role: "alert" });
  const run = makeButton("al-button al-run-start", __("Run"), __("Start a run with these values"), () => {
    said.textContent = "";
    run.disabled = true;
    host.send({ kind: "submit", values: form.values() });
  });
  root.append(form.element, run, said);
  el.append(root);
  const stops = [
    host.listen((message) => {
      if (message.kind !== "said") return;
      run.disabled = false;
      said.textContent = message.words;
    }),
    switchOffWhenLost(host, root),
    host.onLost(() => (said.textContent = __("The kernel is gone: nothing can be started from here. Run the cell again."))),
  ];
  return () => stops.forEach((stop) => stop());
}
