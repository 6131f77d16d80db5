// Lint findings as a table, each with the button that applies its fix.

import { make, makeButton } from "./parts.js";
import { __, _n } from "./wording.js";

const FINDING_COLUMNS = ["", "place", "message", "fix"];

// `onFix(finding)` and `onFixAll()` are called for a click, `onGo(line, finding)` for one on a place; all may be left out.
export function makeFindingTable({ onFix, onFixAll, onGo } = {}) {
  const element = make("div", "af-findings");
  element.hidden = true;

  function makeRow(finding) {
    const row = make("tr", `af-${finding.severity}`);
    const sign = make("td", "af-sign", finding.letter);
    sign.title = finding.severity;
    sign.setAttribute("aria-label", finding.severity);
    const place = make("td", "af-place");
    if (finding.place && onGo) {
      place.append(makeButton("af-go", finding.place, __("Show it in the text"), () => onGo(finding.line, finding)));
    } else place.textContent = finding.place;
    const message = make("td", "af-message", finding.message);
    message.title = finding.rule;
    if (finding.excerpt) message.append(make("pre", "af-excerpt", finding.excerpt));
    const fix = make("td", "af-fix", finding.fix);
    if (finding.can_fix && onFix) {
      const button = makeButton("al-button", __("Fix"), "", () => onFix(finding));
      button.setAttribute("aria-label", __("Fix: %1", finding.fix));
      fix.append(button);
    }
    row.append(sign, place, message, fix);
    return row;
  }

  return {
    element,
    // `more` is how many findings there are beside these.
    show(findings, more = 0) {
      element.hidden = !findings.length;
      const head = make("tr");
      head.append(...FINDING_COLUMNS.map((name) => make("th", "", name)));
      const top = make("thead");
      top.append(head);
      const body = make("tbody");
      body.append(...findings.map(makeRow));
      const table = make("table", "af-table");
      table.setAttribute("aria-label", __("Lint findings"));
      table.append(top, body);
      element.replaceChildren(table);
      if (more) element.append(make("p", "af-more", _n("and %1 more finding", "and %1 more findings", more)));
      const count = findings.filter((finding) => finding.can_fix).length;
      if (onFixAll && count > 1) element.append(makeButton("al-button af-all", __("Fix all %1", count), "", onFixAll));
    },
  };
}
