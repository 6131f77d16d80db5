"""Launch, resume and rescoring of an evaluation: a map over rows and repeats whose rows are scored as they end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.evaluation import Evaluation
from attractor_nb.evaluation.evaluation_rows import read_rows
from attractor_nb.evaluation.scorers import read_scorers
from attractor_nb.evaluation.scoring import OutputSpec, Scoring, check_output, read_head
from attractor_nb.maps.map_launch import MapRequest, MapRun, continue_map, start_map
from attractor_nb.maps.row_run import ROWS, StoredStage
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE
from attractor_nb.runtime.prepare.trust import check_trust
from attractor_nb.runtime.stored_state import choices_for
from attractor_nb.views.display import Displayed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.evaluation.scoring import EvaluationHead
    from attractor_nb.maps.map_view import MapView
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import EvaluationOptions, RunOptions

MAX_REPEAT: Final = 1_000


class EvaluationRun(Displayed):
    """A handle on an evaluation; ``run.result()`` and ``await run`` wait for its ``Evaluation``.

    Attributes:
        map: The handle of the map that runs the rows: its live view, ``stop()``, ``cancel()``.
    """

    def __init__(self, of_map: MapRun, scoring: Scoring) -> None:
        self.map = of_map
        self._scoring = scoring

    @property
    def directory(self) -> Path | None:
        """The directory of the evaluation."""
        return self.map.directory

    @property
    def view(self) -> MapView:
        """The state of its rows."""
        return self.map.view

    @property
    def is_done(self) -> bool:
        """True if nothing more will happen by itself."""
        return self.map.is_done

    @property
    def status(self) -> str:
        """``running``, ``completed``, ``failed`` or ``interrupted``."""
        return self.map.status

    def stop(self) -> None:
        """Start no further rows; active rows run to their end and are scored."""
        self.map.stop()

    def cancel(self) -> None:
        """Stop it: active rows are interrupted; all that is stored stays."""
        self.map.cancel()

    def result(self, timeout: float | None = None) -> Evaluation:
        """Block until it has ended; raises as the result of a map does.

        Args:
            timeout: Seconds to wait at most.
        """
        self.map.result(timeout)
        return self._evaluation()

    def __await__(self) -> Generator[Any, None, Evaluation]:
        yield from self.map.__await__()
        return self._evaluation()

    def _evaluation(self) -> Evaluation:
        scoring = self._scoring
        return Evaluation(
            self.map.result(0.0),
            scoring.rows,
            scoring.scorers,
            scoring.repeat,
            scoring.output,
            dict(scoring.scores),
            scoring.only,
            self.directory,
        )

    def __str__(self) -> str:
        return str(self._evaluation() if self.is_done else self.map)

    def _html(self) -> str:
        return (self._evaluation() if self.is_done else self.map)._repr_mimebundle_()["text/html"]


def start_evaluation(
    pipeline: Definition, rows: object, scorers: object, request: MapRequest, own: EvaluationOptions
) -> EvaluationRun:
    """Begin an evaluation in a fresh directory; everything is checked before the first row runs.

    Args:
        pipeline: The pipeline.
        rows: The rows; see ``evaluation_rows.read_rows``.
        scorers: The scorers; see ``scorers.read_scorers``.
        request: The options of the map.
        own: The options of the evaluation.
    """
    return begin_evaluation(pipeline, read_rows(rows, pipeline, own.inputs), scorers, request, own)


def begin_evaluation(
    pipeline: Definition,
    rows: Sequence[EvaluationRow],
    scorers: object,
    request: MapRequest,
    own: EvaluationOptions,
    stored: Sequence[StoredStage] = (),
) -> EvaluationRun:
    """Begin an evaluation of rows that were read; ``stored`` has the stage that each row executes anew."""
    _check(request, own.repeat)
    if stored and request.own.ship == ROWS:
        raise OptionError(
            'the stored runs stay here, so ship="rows" cannot send them', hint='ship="stages" sends the stage'
        )
    _check_stored(pipeline, stored, request.of_rows)
    scoring = Scoring(
        pipeline,
        rows,
        read_scorers(scorers),
        own.repeat,
        _judged(own.output, stored),
        request.of_rows.durability == "full",
        stored,
    )
    params = [row.inputs for _ in range(own.repeat) for row in rows]
    return EvaluationRun(start_map(pipeline, params, _following(request, scoring)), scoring)


def continue_evaluation(
    pipeline: Definition,
    path: Path,
    scorers: object,
    request: MapRequest,
    *,
    failed: str,
    on_graph_change: str,
    output: OutputSpec | None = None,
    kept: tuple[EvaluationHead, list[EvaluationRow]] | None = None,
) -> EvaluationRun:
    """Continue an evaluation: rows that ended are not run again, and scores that are stored are not made again.

    Args:
        pipeline: The pipeline.
        path: The directory of the evaluation.
        scorers: The scorers.
        request: The options of the map.
        failed: ``keep`` rows that failed, or ``retry`` them.
        on_graph_change: Rule for another graph than the one that ran.
        output: The output to judge; None for the same. A function has to be given again.
        kept: Its head and rows, if the caller has read them.
    """
    head, rows = kept or read_head(path)
    stored = [StoredStage(head.only, Path(place)) for place in head.runs]
    _check_stored(pipeline, stored, request.of_rows)
    judged = head.output if output is None else _judged(output, stored)
    if not judged:
        raise OptionError(
            "the evaluation judges what a function of a run returns, and the function is not stored",
            hint="resume_evaluation(directory, scorers, output=the_function)",
        )
    is_synced = request.of_rows.durability == "full"
    scoring = Scoring(pipeline, rows, read_scorers(scorers), head.repeat, judged, is_synced, stored)
    following = _following(request, scoring)
    handle = continue_map(pipeline, path, None, following, on_graph_change=on_graph_change, failed=failed)
    return EvaluationRun(handle, scoring)


def _check_stored(pipeline: Definition, stored: Sequence[StoredStage], options: RunOptions) -> None:
    """Refuse stored runs whose directories choose something that is not trusted: a row is a fork, and keeps it."""
    for stage in stored:
        if stage.directory.is_dir():  # one that is gone is unmeasured
            recorded = choices_for(pipeline.graph, stage.directory, options)
            check_trust(pipeline, options, stage.directory, recorded)


def _judged(output: OutputSpec | None, stored: Sequence[StoredStage]) -> OutputSpec:
    """The output to judge: of a stored stage the response of the row's own visit, not that of the context."""
    is_response = bool(stored) and output == f"{stored[0].node}.response"
    return WHOLE_RESPONSE if is_response or output is None else check_output(output)


def _check(request: MapRequest, repeat: object) -> None:
    if type(repeat) is not int or not 1 <= repeat <= MAX_REPEAT:
        raise OptionError(f"repeat must be a whole number from 1 to {MAX_REPEAT:,}, not {repeat!r}")
    if request.of_rows.durability == "none":
        raise OptionError(
            'an evaluation keeps its runs and scores, so durability="none" is not for it', hint='durability="fast"'
        )
    if repeat > 1 and request.of_rows.cache:
        raise OptionError(
            "with cache the repeats of a row would be one answer, read again", hint="leave cache out, or repeat=1"
        )


def _following(request: MapRequest, scoring: Scoring) -> MapRequest:
    """The request of the map, whose rows are scored and keep what is judged."""
    judged = (scoring.output,) if isinstance(scoring.output, str) else ()
    outputs = tuple(dict.fromkeys((*request.own.outputs, *judged)))
    return replace(request, own=replace(request.own, outputs=outputs), follower=scoring, stored=scoring.stored)
