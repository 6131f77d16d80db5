// Lint findings as a table, each with the button that applies its fix.

import { make, makeButton, makeTable } from "./parts.js";
import { __ } from "./wording.js";

const FINDING_COLUMNS = ["", "place", "message", "fix"];

// `onFix(finding)` and `onFixAll()` are called for a click, `onGo(line, finding)` for one on a place; all may be left out.
export function makeFindingTable({ onFix, onFixAll, onGo } = {}) {
  const element = make("div", "af-findings", "", { hidden: true });

  function makeRow(finding) {
    const sign = make("td", "af-sign", finding.letter, { title: finding.severity, "aria-label": finding.severity });
    const place = make("td", "af-place");
    if (finding.place && onGo) {
      place.append(makeButton("af-go", finding.place, __("Show it in the text"), () => onGo(finding.line, finding)));
    } else place.textContent = finding.place;
    const message = make("td", "af-message", finding.message, { title: finding.rule });
    if (finding.excerpt) message.append(make("pre", "af-excerpt", finding.excerpt));
    const fix = make("td", "af-fix", finding.fix);
    if (finding.can_fix && onFix) {
      fix.append(makeButton("al-button", __("Fix"), "", () => onFix(finding), { "aria-label": __("Fix: %1", finding.fix) }));
    }
    return make("tr", `af-${finding.severity}`, [sign, place, message, fix]);
  }

  return {
    element,
    show(findings) {
      element.hidden = !findings.length;
      element.replaceChildren(makeTable("af-table", FINDING_COLUMNS, findings.map(makeRow), { "aria-label": __("Lint findings") }));
      const count = findings.filter((finding) => finding.can_fix).length;
      if (onFixAll && count > 1) element.append(makeButton("al-button af-all", __("Fix all %1", count), "", onFixAll));
    },
  };
}
