"""A map of a directory: watched until nobody works at it, and what is wrong with it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.map_execution import MapProgress, resume_map_command
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.cli.tones import Tone
from attractor_nb.maps.map_view import map_headline, shown_rows, shown_rows_table
from attractor_nb.maps.stored_map import read_stored_map
from attractor_nb.studio.history.diagnosis import MARKS, VERDICTS
from attractor_nb.views.columns import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.maps.stored_map import StoredMap

INTERVAL_SECONDS: Final = 0.5
LOOK_FACTOR: Final = 10
"""A look that takes long is repeated as much less often."""


def watch_map(directory: Path, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show a map until nobody works at it."""
    found = read_stored_map(directory)
    if is_once:
        if is_json:
            print_json(found.to_plain())
        else:
            _show(found)
        return ExitCode.SUCCESS if found.is_live else ExitCode.of(found.view.status, is_unmeasured=False)
    progress = MapProgress(found.view, is_quiet=is_json)
    progress.say(f"{found.view.name}   {found.view.row_count:,} rows", Tone.STRONG)
    progress.begin()
    told: set[int] = set()
    try:
        while True:
            begun = time.monotonic()
            for row in found.rows:
                if row.status in {"success", "fail"} and row.row not in told:
                    told.add(row.row)
                    progress.take(row)
                    if is_json:
                        print_json(row.to_plain(), indent=None)
            sys.stdout.flush()
            if not found.is_live:
                break
            time.sleep(max(INTERVAL_SECONDS, LOOK_FACTOR * (time.monotonic() - begun)))
            found = read_stored_map(directory)
            progress.follow(found.view)
    finally:
        progress.close()
    if is_json:
        print_json({name: value for name, value in found.to_plain().items() if name != "rows"}, indent=None)
    else:
        _show(found)
    return ExitCode.of(found.view.status, is_unmeasured=False)


def diagnose_map(directory: Path, *, is_json: bool) -> ExitCode:
    """Print what is wrong with a map and how it goes on."""
    found = read_stored_map(directory)
    verdict = "damaged" if found.damages else "healthy"
    code = ExitCode.FAILED if found.damages else ExitCode.SUCCESS
    if is_json:
        print_json({"verdict": verdict, "damages": dict(found.damages), **found.to_plain()})
        return code
    print(f"{VERDICTS[verdict]}: {shown_path(directory)}, a map\n\n{_text(found)}")
    for name, problem in found.damages.items():
        print(f"{MARKS['damaged']} damaged   {name}   {one_line(problem)}")
    advice = _advice(found)
    if found.damages:
        advice.append(f"a row is a run: attractor-nb doctor {shown_path(directory)}/row-00000 says what can be saved")
    if advice:
        print("\n" + "\n".join(advice))
    return code


def _show(found: StoredMap) -> None:
    print(_text(found))
    sys.stdout.flush()
    for line in _advice(found):
        print(line, file=sys.stderr)


def _text(found: StoredMap) -> str:
    """Totals, and the rows that are worth a look: failures first."""
    rows = shown_rows(found.view)
    return f"{map_headline(found.view)}\n{shown_rows_table(rows, left=found.view.row_count - len(rows))}".rstrip()


def _advice(found: StoredMap) -> list[str]:
    if found.is_live:
        return []
    command = resume_map_command(found.directory)
    if found.has_unfinished_rows:
        return [f"Continue with `{command}`"]
    return [f"Try the failed rows again with `{command} --failed retry`"] if found.view.failures else []
