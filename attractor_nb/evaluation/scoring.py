"""Scoring of the rows that end: each scorer once for each run, stored before the next row begins."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.errors import AttractorError, CheckpointCorrupt, OptionError, RunNotFound
from attractor_nb.evaluation.evaluation_rows import EvaluationRow
from attractor_nb.evaluation.open_backends import OpenBackends
from attractor_nb.evaluation.scorers import UNMEASURED, Judged, Score, Scorer, error_words
from attractor_nb.evaluation.versions import version_of
from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Record, decoder_of
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE, named_value
from attractor_nb.redaction import redacted
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.storage.map_directory import EVALUATION_NAME
from attractor_nb.storage.score_log import ScoreLog

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.maps.row_run import StoredStage
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution

ROWS_NAME: Final = "evaluation-rows.jsonl"
_MAX_BYTES: Final = 4 * 1024**3
NO_OUTPUT: Final = 'the run has no "{name}"; output=… says what is judged'

OutputSpec = str | Callable[..., Any]


class EvaluationHead(Record, frozen=True, omit_defaults=False):
    """Repeats, inputs and judged output of an evaluation, as its directory stores them."""

    repeat: int  #: Runs of each row.
    inputs: tuple[str, ...]  #: Columns that the pipeline gets.
    output: str  #: Context key of what is judged; empty for a function.
    only: str = ""  #: The stage that is executed anew in stored runs; empty for whole runs.
    runs: tuple[str, ...] = ()  #: Their directories, one for each row.
    schema_version: int = 1


class ScoreLine(Record, frozen=True):
    """The scores of one scorer for one run."""

    run: str  #: Id of the run.
    row: int  #: Its number in the map.
    scorer: str  #: Name of the scorer.
    version: str  #: Its version; empty when unknown.
    scores: tuple[Score, ...]
    of: str = ""  #: The output that was judged; empty where that is unknown.
    is_lower_better: bool = False  #: A smaller number is better.


@dataclass(slots=True)
class Scoring:
    """The scoring of one evaluation; follows the rows of its map."""

    pipeline: Definition
    rows: Sequence[EvaluationRow]
    scorers: Sequence[Scorer]
    repeat: int = 1
    output: OutputSpec = WHOLE_RESPONSE
    is_synced: bool = True
    stored: Sequence[StoredStage] = ()  #: The stage that each row executes anew; empty for whole runs.
    #: Scores by number of the map's row.
    scores: dict[int, list[Score]] = field(default_factory=dict[int, "list[Score]"])
    _log: ScoreLog | None = None
    _directory: Path | None = None
    _known: dict[tuple[str, str, str, str], tuple[Score, ...]] = field(
        default_factory=dict[tuple[str, str, str, str], tuple[Score, ...]]
    )
    """Stored scores by run, scorer, version and what was judged."""
    _around: Context = field(default_factory=copy_context)
    """Variables of the caller, for scorers: where a row has run, the current stage is still its last one."""
    _backends: OpenBackends = field(default_factory=OpenBackends)

    @property
    def only(self) -> str:
        """The stage that is executed anew; empty for whole runs."""
        return self.stored[0].node if self.stored else ""

    def files(self) -> dict[str, bytes]:
        """The head and the rows, as files of the directory."""
        head = EvaluationHead(
            self.repeat,
            tuple(self.rows[0].inputs),
            self.output if isinstance(self.output, str) else "",
            self.only,
            tuple(str(stage.directory) for stage in self.stored),
        )
        rows = b"".join(json_bytes(row.to_plain()) + b"\n" for row in self.rows)
        return {EVALUATION_NAME: json_bytes(head.to_plain()) + b"\n", ROWS_NAME: rows}

    def open(self, directory: Path) -> None:
        """Read the scores of a directory, and append further ones there."""
        self.look_in(directory)
        self._log = ScoreLog(directory, is_synced=self.is_synced)
        for line in read_lines(self._log):
            self._known[line.run, line.scorer, line.version, line.of] = line.scores

    async def close(self) -> None:
        """Close the backends of scorers."""
        await self._backends.close()

    def look_in(self, directory: Path) -> None:
        """Read runs from a directory, and store no scores: of runs that this evaluation did not make."""
        self._directory = directory

    def row_of(self, number: int) -> EvaluationRow:
        """The row that a row of the map is a run of."""
        return self.rows[number % len(self.rows)]

    async def follow(self, result: RowResult) -> Usage:
        """Score a row of the map that has ended; returns the usage of its scores, those of earlier sessions too."""
        judged, problem = await asyncio.to_thread(self._judged, result)
        lines: list[ScoreLine] = []
        found: list[Score] = []
        for scorer in self.scorers:
            of = self._judged_by(scorer)
            known = None
            if result.was_finished and scorer.version and of:  # else it ran just now: on from an end that was scored
                known = self._known.get((result.run_id, scorer.name, scorer.version, of))
            if known is None:
                made = asyncio.create_task(self._made(scorer, judged, problem), context=self._around.copy())
                known = tuple(await made)
                line = ScoreLine(
                    result.run_id, result.row, scorer.name, scorer.version, known, of, scorer.is_lower_better
                )
                lines.append(line)
            found += known
        self.scores[result.row] = found
        if lines and self._log is not None:
            await asyncio.to_thread(self._log.append, [line.to_plain() for line in lines])
        cost, tokens = sum(score.cost_usd for score in found), sum(score.tokens for score in found)
        return Usage(input_tokens=tokens, cost_usd=cost or None)  # bounds count tokens in both directions together

    def _judged_by(self, scorer: Scorer) -> str:
        """The judged output, on which a score depends beside the run; empty for a function without a version."""
        if "output" not in scorer.takes:
            return "run"
        return f"output {self.output}" if isinstance(self.output, str) else version_of(self.output)

    async def _made(self, scorer: Scorer, judged: Judged, problem: str) -> list[Score]:
        if judged.result.is_unmeasured:
            return [Score(scorer.name, state=UNMEASURED, reason=judged.result.reason)]
        is_judging = "output" in scorer.takes and judged.result.status != "fail"
        if problem and is_judging:
            return [Score(scorer.name, state=UNMEASURED, reason=problem)]
        return await scorer.scores(judged)

    def _judged(self, result: RowResult) -> tuple[Judged, str]:
        """The arguments of scorers for a row, and the reason that it has no output, in words."""
        found: list[Execution] = []

        def read_run() -> Execution:
            if not found:
                if self._directory is None or not result.directory:
                    raise OptionError("nothing is kept of the row's run")
                found.append(load_execution(self._directory / result.directory, self.pipeline))
            return found[0]

        row = self.row_of(result.row)
        if isinstance(self.output, str):
            output = result.outputs.get(self.output)
            if output is None and self.output != WHOLE_RESPONSE and result.directory:
                output = named_value(read_run().result(0.0).context.get, self.output)
            name = "response" if self.output == WHOLE_RESPONSE else self.output
            problem = NO_OUTPUT.format(name=name) if output is None else ""
            return Judged(row, result, output, read_run, self._backends.open), problem
        try:
            return Judged(row, result, self.output(read_run()), read_run, self._backends.open), ""
        except BaseException as error:  # of the caller's function; its fault costs no paid row
            if isinstance(error, KeyboardInterrupt):
                raise
            words = error.message if isinstance(error, AttractorError) else f"output raised {error_words(error)}"
            return Judged(row, result, None, read_run, self._backends.open), redacted(words)


def read_lines(log: ScoreLog) -> Iterable[ScoreLine]:
    """Stored scores that count: unmeasured ones are made again."""
    return (line for line in _lines(log) if all(score.state != UNMEASURED for score in line.scores))


def stored_lines(directory: Path) -> list[ScoreLine]:
    """All scores of a directory, in the order in which they were stored."""
    return list(_lines(ScoreLog(directory, is_synced=False)))


def _lines(log: ScoreLog) -> Iterable[ScoreLine]:
    for plain in log.read():
        with suppress(ValueError):
            yield ScoreLine.from_plain(plain)


def check_evaluation(directory: Path) -> None:
    """Refuse a directory that holds no evaluation.

    Raises:
        RunNotFound: No evaluation is there.
    """
    if not all((directory / name).is_file() for name in (EVALUATION_NAME, ROWS_NAME)):
        raise RunNotFound(f"{directory} holds no evaluation", hint="name the directory that evaluate(…) made")


def read_head(directory: Path) -> tuple[EvaluationHead, list[EvaluationRow]]:
    """The head and the rows of the evaluation of a directory.

    Raises:
        RunNotFound: No evaluation is there.
        CheckpointCorrupt: A file of it is damaged.
    """
    check_evaluation(directory)
    data = read_plain_file(directory / EVALUATION_NAME, max_bytes=_MAX_BYTES) or b""
    lines = read_plain_file(directory / ROWS_NAME, max_bytes=_MAX_BYTES) or b""
    try:
        head = decoder_of(EvaluationHead).decode(data)
        decoder = decoder_of(EvaluationRow)
        rows = [decoder.decode(line) for line in lines.split(b"\n") if line]
    except msgspec.DecodeError as error:
        raise CheckpointCorrupt(
            f"{directory / EVALUATION_NAME} or {ROWS_NAME}: {error}",
            hint="evaluate the rows again in the same directory",
        ) from None
    return head, rows


def check_output(output: object) -> OutputSpec:
    """The judged output as the caller gives it, checked."""
    if isinstance(output, str) and output.strip():
        return output
    if callable(output):
        try:
            count = len(inspect.signature(output).parameters)
        except (TypeError, ValueError):  # of a builtin
            count = 0
        if count != 1:
            raise OptionError("output is a function of a run", hint='output=lambda run: run["write"].response')
        return output
    raise OptionError(f"output must be a context key or a function, not {output!r}", hint='output="write.response"')
