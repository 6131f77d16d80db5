// One stage by itself, as `run.inspect("draft")` shows it: the inspector without a drawing.

import { makeBeneath } from "./beneath.js";
import { makeInspector } from "./inspector.js";
import { makeView } from "./parts.js";
import { asPlacedWidget } from "./place.js";
import { __ } from "./wording.js";

export default asPlacedWidget(showStageAlone);

export function showStageAlone(host, el) {
  const stage = host.get("stage");
  const root = makeView("al-stage-alone", __("Stage %1", stage.node));
  const inspector = makeInspector({
    onAsk: (request) => host.send({ kind: "inspect", ...request }),
    onAct: (request) => host.send({ kind: "act", ...request }),
  });
  const beneath = makeBeneath(host);
  root.append(inspector.element, beneath.element);
  el.append(root);
  const label = stage.label && stage.label !== stage.node ? stage.label : stage.node;
  inspector.open(stage.node, label);
  inspector.show(stage);
  const stops = [host.listen((message) => inspector.show(message))];
  return () => {
    for (const stop of stops) stop();
    beneath.close();
    inspector.hide();
  };
}
