"""Writes the figures of a fault campaign into docs/campaigns.md.

Usage: python tests/faults/report.py FIGURES

``FIGURES`` is the file that the campaign wrote, one figure a line (see conftest.py). The part of the page
between the two marks is made anew; everything else is left alone.
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "campaigns.md"
BEGIN = "<!-- figures: written by `make figures` -->\n"
END = "<!-- end of figures -->\n"

FAULTS = {
    1: ("The process is killed at any durable operation, and again while it resumes", "The same path and context in the end; nothing recorded runs again; at most the interrupted stage runs twice"),
    2: ("Power is lost: any prefix of the operations, those not flushed dropped or reordered", "The old or the new state, no mix; nothing acknowledged is lost"),
    3: ("An operation fails: input/output error, full disk, quota, permission, read-only", "A StorageError, the old state intact; the run stops, and can be resumed when the fault is gone"),
    4: ("Files are damaged: any byte flipped, any length cut off", "Detected; the previous generation or the log replaces it, or the message says what can be saved"),
    5: ("Many processes resume one run; an owner freezes and thaws", "One owner; a dead one's lock is free; a thawed one has lost"),
    6: ("Stop or Ctrl-C at any line, once and twice", "Children ended, the run interrupted and resumable, the prompt back within 1 s; the second leaves at once"),
    7: ("The kernel is killed while a stage runs or a gate waits", "Shown as stopped with the command that resumes it; no child left; the same question with its remaining time"),
    8: ("A handler returns garbage, raises anything, never returns, returns 100 MB", "A failure in words; late results are ignored; memory is bounded"),
    9: ("A command ignores TERM, forks, leaves its session, floods, reads, writes bytes", "Ended within its time and 2 s, no descendant alive, output capped and spooled"),
    10: ("Loops: gate redirects, restarts, A and B in turn", "Stopped at the exact bound, the cycle named, resumable with a higher one"),
    11: ("A gate is answered twice, late, after a stop, from two places, wrongly", "The first durable answer counts, others are told; a wrong one is asked again"),
    12: ("The clock jumps, the machine sleeps", "Durations stay right, deadlines are kept"),
    13: ("Hostile names; links, pipes and devices planted in the run directory", "Safe names; nothing written outside; refused in words"),
    14: (
        "A status.json by an agent who means harm",
        (
            "FAIL with the reason, the file kept; a stale one is never read; one in a gate, fan-out or child stage, or beside"
            " a failure that was observed, decides nothing ([who may write an outcome](runs.md#who-may-write-an-outcome))"
        ),
    ),
    15: ("A consumer of events is slow, raises, calls back", "The run is not affected; a gap is reported"),
    16: ("A model's server refuses, breaks off, sends nonsense", "Classed as retryable or not; a part is never a success"),
    17: ("Values that JSON does not carry", "Refused when set, with key and stage; all others are the same after a resume"),
    18: ("Huge or hostile DOT", "Read in bound or refused with its place; under 1 s for 1 MB"),
    19: ("Writers of one session status are killed at any point", "No update is lost, and no writer waits forever"),
}  # fmt: skip


def read_figures(path: Path) -> dict[int, list[dict[str, Any]]]:
    """The figures by fault, each subject once: that of the whole campaign before that of a sample, else the last."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        figure = json.loads(line)
        before = found.get((figure["fault"], figure["subject"]), figure)
        if figure["scale"] == "full" or before["scale"] != "full":
            found[figure["fault"], figure["subject"]] = figure
    by_fault: dict[int, list[dict[str, Any]]] = {}
    for (fault, _), figure in sorted(found.items()):
        by_fault.setdefault(fault, []).append(figure)
    return by_fault


def table(figures: dict[int, list[dict[str, Any]]]) -> str:
    """The fault list with what was measured."""
    lines = ["| # | fault | what must be | measured |", "| --- | --- | --- | --- |"]
    for number, (fault, promise) in FAULTS.items():
        lines.append(f"| {number} | {fault} | {promise} | {_cell(figures.get(number, []))} |")
    if others := figures.get(0, []):
        lines += ["", "Beside the list:", "", "| subject | measured |", "| --- | --- |"]
        lines += [f"| {figure['subject']} | {figure['figure']} (`{_short(figure['test'])}`) |" for figure in others]
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.release()}"
    lines += ["", f"Measured on {when}, two processors, {machine}.", ""]
    return "\n".join(lines)


def _cell(figures: list[dict[str, Any]]) -> str:
    parts = [f"{figure['subject']}: {_measured(figure)}" for figure in figures]
    return "<br>".join(part.replace("|", "\\|") for part in parts) or "not measured"


def _measured(figure: dict[str, Any]) -> str:
    sample = "in a sample, " if figure["scale"] == "sample" else ""
    return f"{sample}{figure['figure']} (`{_short(figure['test'])}`)"


def _short(test: str) -> str:
    return test.removeprefix("tests/faults/").partition("::")[0]


def main() -> int:
    """Write the table into the page; 1 when a row of the list has no figure."""
    figures = read_figures(Path(sys.argv[1]))
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(figures)}\n{END}{after}", encoding="utf-8")
    missing = [str(number) for number in FAULTS if number not in figures]
    if missing:
        print(f"no figure for fault {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
