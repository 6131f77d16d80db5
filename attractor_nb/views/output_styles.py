"""The style sheets of what is in an output beside drawings: tables, findings, a stage, two runs.

They take their colours and their root class from the theme of drawings, and leave nothing of the styles of
the program that shows the output.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from attractor_nb.views.drawings.theme import LOUD_ID, root_class, themed_sheet

_OUTPUT_RULES: Final = """
&{text-align:left;white-space:normal;letter-spacing:normal;word-break:normal;overflow-wrap:normal}
& :where(:not(svg,svg *)){all:revert}
& *{box-sizing:border-box}
"""
"""Rules before those of an output: they remove all styles of the host, and nothing is inherited."""


_FINDINGS_RULES: Final = """
&.attractor-findings{background:var(--page);color:var(--ink);border:1px solid var(--frame);border-radius:8px;
padding:4px 8px;margin:6px 0;display:inline-block;font:12px SANS}
& table{border-collapse:collapse;border:none;margin:0;color:inherit;font-size:12px}
&.attractor-findings table tr{background:none;border:none}
&.attractor-findings table th,&.attractor-findings table td{text-align:left;padding:3px 8px;
border:none;color:inherit}
&.attractor-findings table th{color:var(--dim);font-weight:500}
& .place{font-family:MONO;color:var(--dim)}
&.attractor-findings table .sign{font-weight:700;text-align:center}
& .severity-error .sign{color:var(--fail-line)}
& .severity-warning .sign{color:var(--waiting-line)}
& .severity-info .sign{color:var(--running-line)}
"""


_SESSION_RULES: Final = """
&.attractor-session{background:var(--page);color:var(--ink);border:1px solid var(--frame);border-radius:8px;
padding:6px 10px;margin:6px 0;display:inline-block;max-width:100%;overflow-x:auto;font:12px SANS}
& .headline{padding:2px 8px 4px;white-space:pre-wrap}
& .headline .state{font-weight:600}
& table{border-collapse:collapse;border:none;margin:0;color:inherit;font-size:12px}
&.attractor-session table tr{background:none;border:none}
&.attractor-session table th,&.attractor-session table td{text-align:left;padding:2px 8px;
border:none;color:inherit;vertical-align:baseline}
&.attractor-session table .wave th{color:var(--dim);font-weight:500;padding-top:6px;white-space:pre}
&.attractor-session table .state{white-space:nowrap}
&.attractor-session table .place{font-family:MONO;color:var(--dim)}
&.attractor-session table .time{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;
color:var(--dim)}
&.attractor-session table .status-running .state,& .status-running .state{color:var(--running-line)}
&.attractor-session table .status-complete .state,& .status-complete .state{color:var(--success-line)}
&.attractor-session table .status-failed .state,& .status-failed .state{color:var(--fail-line)}
&.attractor-session table .status-failed .words{color:var(--fail-line)}
&.attractor-session table .is-gone .words{color:var(--waiting-line)}
&.attractor-session table .status-cancelled td{color:var(--dim)}
&.attractor-session table .status-queued td{color:var(--dim)}
"""


_TABLE_RULES: Final = """
&.attractor-table{background:var(--page);color:var(--ink);border:1px solid var(--frame);border-radius:8px;
padding:6px 10px;margin:6px 0;display:inline-block;max-width:100%;overflow-x:auto;font:12px SANS}
& .headline{padding:2px 8px 4px;font-weight:600}
& .note{padding:2px 8px;color:var(--dim);white-space:pre-wrap}
& table{border-collapse:collapse;border:none;margin:0;color:inherit;font-size:12px}
&.attractor-table table tr{background:none;border:none}
&.attractor-table table th,&.attractor-table table td{text-align:left;padding:2px 8px;border:none;
color:inherit;vertical-align:baseline}
&.attractor-table table thead th{color:var(--dim);font-weight:500}
&.attractor-table table .number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
&.attractor-table table .place{font-family:MONO}
&.attractor-table table .total td{border-top:1px solid var(--frame);font-weight:600}
&.attractor-table table .state-group td{padding-top:8px;color:var(--dim);font-family:SANS}
&.attractor-table table .state-ok .state{color:var(--success-line);white-space:nowrap}
&.attractor-table table .state-warn .state{color:var(--waiting-line);white-space:nowrap}
&.attractor-table table .state-error .state{color:var(--fail-line);white-space:nowrap}
"""


_INSPECTION_RULES: Final = (
    _TABLE_RULES
    + """
& details{margin:4px 8px}
& summary{cursor:pointer;font-weight:600;padding:2px 0}
& pre{margin:2px 0;padding:6px 8px;max-height:22em;overflow:auto;border:1px solid var(--frame);
border-radius:6px;background:var(--panel);color:inherit;font:11.5px/1.45 MONO;
white-space:pre-wrap;overflow-wrap:anywhere}
& ol{margin:2px 0;padding-left:24px}
&.attractor-table table th[scope="row"]{color:var(--dim);font-weight:500;white-space:nowrap}
&.attractor-table table .taken td{color:var(--success-line);font-weight:600}
"""
)


_MAP_RULES: Final = """
&.attractor-map{background:var(--page);color:var(--ink);border:1px solid var(--frame);border-radius:8px;
padding:6px 10px;margin:6px 0;display:inline-block;min-width:26em;max-width:100%;overflow-x:auto;
font:12px SANS}
& .headline{padding:2px 8px 4px;white-space:pre-wrap}
& .headline .state{font-weight:600}
& .bar{display:flex;height:6px;margin:2px 8px 6px;border-radius:3px;overflow:hidden;background:var(--frame)}
& .bar .done{background:var(--success-line)}
& .bar .bad{background:var(--fail-line)}
& table{border-collapse:collapse;border:none;margin:0;color:inherit;font-size:12px}
&.attractor-map table tr{background:none;border:none}
&.attractor-map table td{text-align:left;padding:2px 8px;border:none;color:inherit;vertical-align:baseline}
&.attractor-map table .state{white-space:nowrap}
&.attractor-map table .place{font-family:MONO;color:var(--dim);text-align:right}
&.attractor-map table .time{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;
color:var(--dim)}
&.attractor-map table .more td{color:var(--dim)}
&.attractor-map table .status-running .state,& .status-running .state{color:var(--running-line)}
&.attractor-map table .status-success .state,& .status-success .state{color:var(--success-line)}
&.attractor-map table .status-fail .state,& .status-fail .state{color:var(--fail-line)}
&.attractor-map table :is(.status-waiting,.status-paused,.status-interrupted) .state,
& :is(.status-waiting,.status-paused,.status-interrupted) .state{color:var(--waiting-line)}
&.attractor-map table .status-fail .words{color:var(--fail-line)}
"""


_COMPARE_RULES: Final = """
&.attractor-compare{color:var(--ink);font:12px SANS;max-width:100%}
&.attractor-compare .headline{font-weight:600;white-space:pre-wrap;overflow-wrap:anywhere;
background:var(--page);padding:1px 8px}
&.attractor-compare>.attractor-table{display:block}
&.attractor-compare>.note{color:var(--dim);padding:1px 8px;background:var(--page)}
& .legend{display:flex;flex-wrap:wrap;gap:4px 16px;padding:4px 8px;color:var(--dim);background:var(--page)}
& .legend .entry{display:inline-flex;align-items:center;gap:6px}
& .legend .stroke{display:inline-block;width:26px;text-align:center;font-weight:600;line-height:14px;
border-bottom:2px solid var(--taken);color:var(--cached-line)}
& .legend .only-a .stroke{border-bottom:2px dashed var(--running-line);color:var(--running-line)}
& .legend .only-b .stroke{border-bottom:2px dotted var(--retrying-line);color:var(--retrying-line)}
& .legend .changed .stroke{border-bottom:4px solid var(--cached-line)}
&.attractor-compare details{background:var(--page);border:1px solid var(--frame);border-radius:8px;
padding:4px 10px;margin:4px 0;max-width:100%}
&.attractor-compare summary{cursor:pointer;font-weight:600}
&.attractor-compare pre{margin:4px 0;padding:0;background:none;color:inherit;font:11.5px/1.5 MONO;
white-space:pre-wrap;overflow-wrap:anywhere}
&.attractor-compare pre .in-a{color:var(--running-line)}
&.attractor-compare pre .in-b{color:var(--retrying-line)}
"""


_GATE_RULES: Final = """
&.attractor-gate{color:var(--ink);font:13px/1.45 SANS;max-width:100%}
&.attractor-gate .title{margin:0;font-size:14px;font-weight:600;white-space:pre-wrap;overflow-wrap:anywhere}
& .about,& .hint{color:var(--dim);font-size:12px;overflow-wrap:anywhere}
& .detail{white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0 0}
& .label{font-weight:500}
& .problem{color:var(--fail-line);font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
& .line{white-space:pre-wrap;overflow-wrap:anywhere}
& .answered .sign{color:var(--success-line);font-weight:700}
& summary{cursor:pointer;color:var(--dim);font:12px MONO;overflow-wrap:anywhere}
& .material{max-height:360px;overflow:auto}
"""


@cache
def findings_css() -> str:
    """The style sheet of a table of findings."""
    return _output_sheet(_FINDINGS_RULES)


@cache
def session_css() -> str:
    """The style sheet of a table of agents."""
    return _output_sheet(_SESSION_RULES)


@cache
def table_css() -> str:
    """The style sheet of a table of facts."""
    return _output_sheet(_TABLE_RULES)


@cache
def compare_css() -> str:
    """The style sheet of two runs beside each other, but for the drawing and the tables in it."""
    return _output_sheet(_COMPARE_RULES)


@cache
def inspection_css() -> str:
    """The style sheet of a stage that is inspected."""
    return _output_sheet(_INSPECTION_RULES)


@cache
def map_css() -> str:
    """The style sheet of a table of a map's rows."""
    return _output_sheet(_MAP_RULES)


@cache
def gate_css() -> str:
    """The style sheet of the words of a gate's controls."""
    return _output_sheet(_GATE_RULES)


def _output_sheet(rules: str) -> str:
    """A sheet of markup that is in an output, among the styles of the program that shows it."""
    loud = f":is(.{root_class()},{LOUD_ID})"
    return themed_sheet((_OUTPUT_RULES + rules).replace("&", loud))
