"""Evaluation of variants side by side: each is validated before anything is paid, and equal stages are cached.

A comparison has a directory of its own with an evaluation for each variant. One that was stopped continues there:
variants that ended are read, the one under way is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, cast

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.evaluation.comparison import EvaluationComparison, compare_scored
from attractor_nb.evaluation.evaluation_rows import read_rows
from attractor_nb.evaluation.evaluation_run import EvaluationRun, begin_evaluation, continue_evaluation
from attractor_nb.evaluation.scorers import read_scorers
from attractor_nb.evaluation.scoring import read_head
from attractor_nb.evaluation.stored_stages import check_stage, stage_rows
from attractor_nb.maps.map_launch import new_directory
from attractor_nb.model.texts import did_you_mean
from attractor_nb.runtime.begin import seams_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.map_directory import is_map
from attractor_nb.studio.edit.editor import Editor

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.evaluation.scoring import EvaluationHead
    from attractor_nb.maps.map_launch import MapRequest
    from attractor_nb.maps.row_run import StoredStage
    from attractor_nb.runtime.prepare.run_options import EvaluationOptions

BASELINE: Final = "baseline"
MAX_VARIANTS: Final = 20
_EXAMPLE: Final = '{"short": {"write.prompt": "…"}}'
_TYPO: Final = "attribute_typo"
_CACHE: Final = ".cache"
"""The cache that the variants share, in the directory of the comparison; no variant has such a name."""
_NAME: Final = re.compile(r"\w(?:[\w .+-]{0,62}[\w+-])?")
"""A name is that of a directory, too."""
_GRAPH: Final = "graph"
_MODEL_TYPE: Final = "codergen"
LOOKED_AT: Final = 20
"""Rows of a variant whose runs are read to say how many stages came from the cache."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """The request for a comparison."""

    rows: object
    scorers: object
    own: EvaluationOptions
    directory: Path | None
    of_map: MapRequest
    runs: object = None  #: Stored runs, in which the stage ``own.only`` is executed; None for whole runs.


def variants_of(pipeline: Definition, given: object) -> dict[str, Definition]:
    """The pipelines that are compared, by name, the baseline first; errors in one are found before anything runs.

    Args:
        pipeline: The baseline.
        given: Pipelines, or changes of attributes by ``node.attribute``, by the name of the variant. A node is an id
            or a pattern such as ``*``, which stands for the model stages; ``graph.attribute`` is one of the graph.

    Raises:
        OptionError: A change names no node.
        ValidationError: Lint finds errors in a variant.
    """
    if not isinstance(given, Mapping) or not given:
        raise OptionError(
            "variants are a dict of changes or pipelines by name", hint=f"compare({_EXAMPLE}, rows, scorers)"
        )
    variants = cast("Mapping[object, object]", given)
    if len(variants) > MAX_VARIANTS:
        raise OptionError(
            f"there are {len(variants)} variants, more than {MAX_VARIANTS}", hint="compare fewer at a time"
        )
    found: dict[str, Definition] = {BASELINE: pipeline}
    for name, change in variants.items():
        taken = {each.casefold() for each in found}
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.casefold() in taken:
            raise OptionError(
                f"{name!r:.80} cannot be the name of a variant",
                hint=f"a short name of its own, of letters, digits, spaces and -_.+, as in {_EXAMPLE}",
            )
        found[name] = change if isinstance(change, Definition) else _changed(pipeline, name, change)
    for name, variant in found.items():
        try:
            variant.refuse_errors()
        except ValidationError as error:
            error.add_note(f"in the variant {name}")
            raise
    return found


def _changed(pipeline: Definition, name: str, change: object) -> Definition:
    if not isinstance(change, Mapping) or not change:
        raise OptionError(
            f"the variant {name} must be a dict of changes or a pipeline, not {change!r}",
            hint=f"compare({_EXAMPLE}, …)",
        )
    editor = Editor(pipeline)
    for place, value in cast("Mapping[object, object]", change).items():
        for target, attribute in _places(pipeline, name, str(place)):
            editor.set(target, {attribute: value})
    changed = editor.pipeline()
    if typo := next(iter(_typos(changed) - _typos(pipeline)), None):
        raise OptionError(
            f"{name}: {typo}", hint="a change of what no stage reads would compare a pipeline with itself"
        )
    return changed


def _typos(pipeline: Definition) -> set[str]:
    return {each.message for each in pipeline.diagnostics if each.rule == _TYPO}


def _places(pipeline: Definition, variant: str, place: str) -> list[tuple[str, str]]:
    """The targets of a change, each with its attribute."""
    target, dot, attribute = place.partition(".")
    graph = pipeline.graph
    if not dot or not attribute or not target:
        raise OptionError(
            f"{variant}: {place!r} names no attribute of a node", hint=f"node.attribute, as in {_EXAMPLE}"
        )
    if target == _GRAPH and target not in graph.nodes:
        return [("", attribute)]
    if target in graph.nodes:
        return [(target, attribute)]
    models = [node for node, kind in graph.handler_types.items() if kind == _MODEL_TYPE]
    found = [(node, attribute) for node in models if fnmatchcase(node, target)]
    if not found:
        is_pattern = any(sign in target for sign in "*?[")
        near = "" if is_pattern else did_you_mean(target, graph.nodes)
        what = "no model stage matches" if is_pattern else "the pipeline has no node"
        raise OptionError(f'{variant}: {what} "{target}"{near}', hint=f"its nodes: {', '.join(graph.nodes)}")
    return found


def comparison_steps(
    pipeline: Definition, variants: object, request: CompareRequest
) -> Generator[EvaluationRun, Evaluation, EvaluationComparison]:
    """The evaluations of a comparison, one after the other; the caller waits for each and sends its result.

    Args:
        pipeline: The baseline.
        variants: See ``variants_of``.
        request: Rows, scorers and options.
    """
    pipelines = variants_of(pipeline, variants)
    scorers = read_scorers(request.scorers)
    rows, stored = _rows_of_all(pipelines, request)
    directory = _directory(request)
    has_own_cache = request.own.repeat == 1 and request.of_map.of_rows.cache is False
    evaluations: dict[str, Evaluation] = {}
    for name, each in pipelines.items():
        of_rows = request.of_map.of_rows
        if has_own_cache:
            of_rows = replace(of_rows, cache=directory / _CACHE)
        place = directory / name
        own = replace(request.of_map.own, map_dir=None if is_map(place) else place)
        asked = replace(request.of_map, own=own, of_rows=of_rows)
        if own.map_dir is None:
            kept = read_head(place)
            _check_same(place, kept, rows[name], stored, request)
            run = continue_evaluation(each, place, scorers, asked, failed="keep", on_graph_change="error", kept=kept)
        else:
            run = begin_evaluation(each, rows[name], scorers, asked, request.own, stored)
        evaluations[name] = yield run
        if evaluations[name].unfinished:
            reason = evaluations[name].map.reason
            raise OptionError(
                f"the comparison stopped in the variant {name}: {reason}", hint=f'resume with directory="{directory}"'
            )
    scored = {name: evaluation.scored(name) for name, evaluation in evaluations.items()}
    baseline = scored.pop(BASELINE)
    is_noted = has_own_cache and not stored  # of one stage, which differs, nothing comes from the cache
    notes = [words for name in scored if (words := _cache_words(name, evaluations[name]))] if is_noted else []
    return compare_scored(baseline, list(scored.values()), notes=notes, evaluations=evaluations)


def _rows_of_all(
    pipelines: Mapping[str, Definition], request: CompareRequest
) -> tuple[dict[str, list[EvaluationRow]], list[StoredStage]]:
    """The rows of each variant, and for a comparison of one stage what each row executes anew."""
    given, only = request.rows, request.own.only
    if isinstance(given, Iterator):  # each variant reads them
        given = list(cast("Iterator[object]", given))
    if only is None:
        if request.runs is not None:
            raise OptionError("runs need only: variants are not run on whole runs that exist", hint='only="write"')
        return {name: read_rows(given, each, request.own.inputs) for name, each in pipelines.items()}, []
    found, stored = stage_rows(pipelines[BASELINE], request.runs, request.own, given)
    for name, each in pipelines.items():
        try:
            check_stage(each, only)
        except OptionError as error:
            raise OptionError(f"{name}: {error.message}", hint=error.hint) from None
        if name != BASELINE and _is_same_stage(pipelines[BASELINE], each, only):
            raise OptionError(
                f"the variant {name} does not change {only}, and nothing else is executed",
                hint=f'change it, or leave only="{only}" out',
            )
    return dict.fromkeys(pipelines, found), stored


def _is_same_stage(one: Definition, other: Definition, node: str) -> bool:
    """True if a stage does the same in two pipelines that differ by changes of their text alone."""
    if one.run_defaults != other.run_defaults or one.handlers != other.handlers or one.tools != other.tools:
        return False
    first, second = one.graph, other.graph
    ways = [[edge for edge in graph.edges if edge.source == node] for graph in (first, second)]
    return (first.nodes[node], first.attrs, ways[0]) == (second.nodes[node], second.attrs, ways[1])


def _check_same(
    place: Path,
    kept: tuple[EvaluationHead, Sequence[EvaluationRow]],
    rows: Sequence[EvaluationRow],
    stages: Sequence[StoredStage],
    request: CompareRequest,
) -> None:
    """Refuse to continue an evaluation of other rows or repeats: its scores are no answer to what is asked now."""
    head, found = kept
    for what, is_same in (
        ("another stage", head.only == (request.own.only or "")),
        ("other rows", [row.to_plain() for row in found] == [row.to_plain() for row in rows]),
        ("other rows", list(head.runs) == [str(stage.directory) for stage in stages]),
        ("other repeats", head.repeat == request.own.repeat),
    ):
        if not is_same:
            raise OptionError(f"{place} holds the evaluation of {what}", hint="name another directory")


def _directory(request: CompareRequest) -> Path:
    if request.directory is not None:
        return as_path(request.directory, "directory")
    options = request.of_map.of_rows
    return new_directory(replace(request.of_map.own, map_dir=None), options, seams_of(options))[0]


def _cache_words(name: str, evaluation: Evaluation) -> str:
    """Numbers of stages of a variant that ran and that came from the cache, in words."""
    ran: set[str] = set()
    cached: set[str] = set()
    for row in list(evaluation.map.results)[:LOOKED_AT]:
        result = evaluation.map.run(row).result(0.0)
        cached |= set(result.cached_nodes)
        ran |= {node for node in result.completed_nodes if result[node].prompt is not None} - set(result.cached_nodes)
    both = ran | cached
    return f"{name} ran {len(ran)} of {len(both)} model stages; the others came from the cache" if cached else ""


def compare(pipeline: Definition, variants: object, request: CompareRequest) -> EvaluationComparison:
    """Evaluate the variants and block until all have ended."""
    steps = comparison_steps(pipeline, variants, request)
    try:
        run = next(steps)
        while True:
            run = steps.send(run.result())
    except StopIteration as end:
        return end.value


async def compare_async(pipeline: Definition, variants: object, request: CompareRequest) -> EvaluationComparison:
    """Evaluate the variants in the running event loop."""
    steps = comparison_steps(pipeline, variants, request)
    try:
        run = next(steps)
        while True:
            run = steps.send(await run)
    except StopIteration as end:
        return end.value
