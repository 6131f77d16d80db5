"""``pipeline.check``: a pipeline on its recording as a test (docs/cassettes.md)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from attractor_nb.decisions.replays.recordings import unused_lines
from attractor_nb.errors import CheckFailed, OptionError
from attractor_nb.model.texts import did_you_mean
from attractor_nb.runtime.prepare.run_options import as_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.runtime.handles.run_result import RunResult

OUTCOMES = ("success", "fail", "paused", "interrupted")
_MAX_UNUSED = 10


def read_expectation(path: object, outcome: object) -> tuple[tuple[str, ...] | None, str]:
    """Read the expectation of a check, before anything is run for it."""
    if outcome is not None and outcome not in OUTCOMES:
        word = str(outcome)
        raise OptionError(
            f"there is no outcome {word!r}{did_you_mean(word, OUTCOMES)}",
            hint=f"outcome is one of {', '.join(OUTCOMES)}",
        )
    if path is None:
        return None, str(outcome or "")
    stages = as_list("path", path)
    if not all(isinstance(stage, str) for stage in stages):
        raise OptionError("path must be a list of node ids", hint='path=["start", "plan", "done"]')
    return tuple(stages), str(outcome or "")


def check_result(result: RunResult, path: Sequence[str] | None, outcome: str, *, is_unused_allowed: bool) -> None:
    """Compare what a run did with what was expected of it."""
    problems: list[str] = []
    report = result.cassette
    if report is not None and report.misses:
        problems.append(f"the cassette had no answer for {report.misses[0]}")
    if outcome and result.status != outcome:
        problems.append(f"outcome: expected {outcome}, was {result.status}")
    if path is not None and tuple(path) != result.completed_nodes:
        problems.append(_path_difference(path, result.completed_nodes))
    if report is not None and report.unused and not is_unused_allowed:
        problems.append(_unused(unused_lines(report.unused)))
    if not problems:
        return
    if result.reason:
        problems.append(f"the run says: {result.reason}")
    raise CheckFailed(
        "\n".join(["the pipeline did not do what was expected", *problems]),
        hint='when this is meant, record again: pipeline.check(…, cassette_mode="record")',
    )


def _path_difference(expected: Sequence[str], taken: Sequence[str]) -> str:
    """Both paths, and the first step at which they part."""
    marks = difflib.ndiff(list(expected), list(taken))
    steps = [line for line in marks if not line.startswith("?")]
    place = next(
        (at for at, pair in enumerate(zip(expected, taken, strict=False), 1) if pair[0] != pair[1]),
        min(len(expected), len(taken)) + 1,
    )
    return "\n".join([f"path: parts at step {place} (- expected, + taken)", *(f"    {step}" for step in steps)])


def _unused(lines: Sequence[str]) -> str:
    shown = [f"    {line}" for line in lines[:_MAX_UNUSED]]
    if len(lines) > _MAX_UNUSED:
        shown.append(f"    and {len(lines) - _MAX_UNUSED} more")
    return "\n".join(["recorded, and not called now (allow_unused=True lets them be):", *shown])
