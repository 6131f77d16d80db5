"""Looking at one stage or edge of a run, live, ended, loaded or stored nowhere; and at what it raised.

What is not stored, or cannot be read, is said in ``problems`` beside what is known.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.engine.handler_calls import TRACEBACK_FILE
from attractor_nb.errors import AttractorError, OptionError, RunError, RunNotFound, StageError
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE
from attractor_nb.runtime.execution import Execution, child_places, failures_of
from attractor_nb.runtime.past import RecordedVisit, RunHistory, read_history
from attractor_nb.studio.inspect.failure import failure_of
from attractor_nb.studio.inspect.inspection import MAX_TEXT, EdgeInspection, EdgeVerdict, StageInspection
from attractor_nb.studio.inspect.stage_records import error_text, not_reached, read_stage, stage_from_view
from attractor_nb.views.texts.prose import prose_of, shown_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Edge, Node

MAX_VERDICTS: Final = 200
_ARROW: Final = "->"


def inspect(run: Execution, what: str | int, visit: int | None = None, attempt: int | None = None) -> Any:
    """A stage by its node's id (``node>inner``: of a child run); an edge by ``"a -> b"`` or by its position."""
    if isinstance(what, int) or (isinstance(what, str) and _ARROW in what):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        return inspect_edge(run, what)
    return inspect_stage(run, what, visit, attempt)


def inspect_stage(
    run: Execution, node: str, visit: int | None = None, attempt: int | None = None, branch: str = ""
) -> StageInspection:
    """Everything that is known of a stage.

    Args:
        run: The run.
        node: The node; ``node>inner`` is a stage of the node's child run.
        visit: Which of its visits, by number; the latest that counts by default.
        attempt: Which attempt of it; the latest by default.
        branch: Path of a branch, where the same node was visited in several.
    """
    whole, path = run, node
    run, node = _inner(run, node)
    spec = _node_of(run, node)
    try:
        past = read_history(run)
    except RunError as error:
        return _with_failure(replace(stage_from_view(run, spec, error), run=run, mark=run.mark), whole, path)
    known = past.visits_of(node)
    if not known:
        if visit is not None:
            raise OptionError(f"{node} was not visited yet, so it has no visit {visit}")
        return replace(not_reached(run, spec), run=run, mark=run.mark)
    chosen = _chosen(known, node, visit, branch)
    found = replace(read_stage(run, past, spec, known, chosen, attempt), run=run, mark=run.mark)
    return _with_failure(found, whole, path)


def plain_failure(run: Execution, path: str) -> Mapping[str, Any] | None:
    """The failure of a stage as JSON values; None if it has none, or if the stage cannot be read."""
    with contextlib.suppress(AttractorError):
        return inspect_stage(run, path).to_plain(with_place=False)["failure"]
    return None


def _with_failure(stage: StageInspection, run: Execution, path: str) -> StageInspection:
    """A stage with its failure, if it failed, or if it could not be executed and its run ended there."""
    view = run.view
    is_stopped = view.is_unmeasured and view.next_node == path and not stage.is_set_aside
    if stage.status != "fail" and not is_stopped:
        return stage
    failure = failure_of(
        path,
        stage.reason or (view.reason if is_stopped else ""),
        branch=stage.branch,
        user_line=stage.user_line or "",
        outputs=(stage.stdout, stage.stderr, stage.response),
        view=view if run.is_done and not stage.is_set_aside else None,
    )
    return replace(stage, failure=failure)


def inspect_item(
    run: Execution, node: str, item: int, visit: int | None = None, branch: str = "", attempt: int | None = None
) -> StageInspection:
    """The stage of one item in the item's own run.

    Args:
        run: The run.
        node: The stage with `for_each`; ``node>inner`` is one of the node's child run.
        item: The item, by its place in the list.
        visit: The visit of the stage; the latest by default.
        branch: The branch that the visit is in.
        attempt: The try of the item; its latest by default.
    """
    from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - an engine is loaded only where a run is read

    inner, name = _inner(run, node)
    lines = inspect_stage(inner, name, visit, None, branch).items
    line = next((one for one in lines if one.index == item), None)
    if line is None:
        raise OptionError(f"{name} has no item {item}", hint=f"it has {len(lines)} items, from 0")
    if line.directory is None:
        raise RunNotFound(f"item {item} of {name} has no run yet", hint="it begins when others have ended")
    live = (each for each in child_places(inner).values() if not isinstance(each, Path) and each.id == line.run_id)
    child = next(live, None) or load_execution(line.directory, type(inner.pipeline))
    return inspect_stage(child, name, None, attempt)


def inspect_visit(run: Execution, past: RunHistory, visit: RecordedVisit) -> StageInspection:
    """Inspect one visit, for a caller that inspects all: only its changes of the context, and no other visit."""
    spec = _node_of(run, visit.record.node_id)
    return replace(read_stage(run, past, spec, (), visit, None, is_context_whole=False), run=run, mark=run.mark)


def inspect_edge(run: Execution, edge: str | int) -> EdgeInspection:
    """An edge and what became of it each time that its source was left.

    Args:
        run: The run.
        edge: Its position in ``Graph.edges``, or ``"a -> b"``; with ``"#2"`` behind it the second of those.
    """
    index = _edge_index(run, edge)
    found = run.graph.edges[index]
    state = run.view.edges.get(index)
    facts = _edge_facts(index, found, 0 if state is None else state.passes)
    try:
        past = read_history(run)
        verdicts = [
            EdgeVerdict(commit.visit, commit.branch, candidate, commit.next_node)
            for _, commit, reasons in past.explained()
            if commit.name == found.source
            for candidate in reasons.candidates
            if candidate.edge == index
        ]
    except RunError as error:
        return EdgeInspection(**facts, problems=(error_text(error),))
    return EdgeInspection(**facts, verdicts=tuple(verdicts[-MAX_VERDICTS:]))


def _inner(run: Execution, path: str) -> tuple[Execution, str]:
    """The run that a path leads to, and the rest of it."""
    from attractor_nb.runtime.stored_execution import inner_run  # noqa: PLC0415 - an engine is loaded only where a run is read

    return inner_run(run, path)


def _child_of(run: Execution, node: str) -> Execution | None:
    """The child run of a node, also of one in a branch; None without one."""
    from attractor_nb.runtime.stored_execution import child_of  # noqa: PLC0415 - as above

    return child_of(run, node)


def _node_of(run: Execution, node: str) -> Node:
    found = run.graph.nodes.get(node)
    if found is None:
        hint = did_you_mean(node, run.graph.nodes) or f"; nodes: {', '.join(list(run.graph.nodes)[:20])}"
        raise OptionError(f"the pipeline has no node {node!r}{hint}")
    return found


def _chosen(known: Sequence[RecordedVisit], node: str, visit: int | None, branch: str) -> RecordedVisit:
    """The visit that was asked for: outside of branches, and not set aside, where there is a choice."""
    fitting = [one for one in known if not branch or one.record.branch == branch]
    if visit is not None:
        fitting = [one for one in fitting if one.record.number == visit]
    if not fitting:
        listed = ", ".join(str(one.record.number) for one in known[-20:])
        where = f" in branch {branch}" if branch else ""
        raise OptionError(f"there is no visit {visit} of {node}{where}", hint=f"visits of {node}: {listed}")
    counting = [one for one in fitting if not one.is_set_aside] or fitting
    return next((one for one in reversed(counting) if not one.record.branch), counting[-1])


def _edge_index(run: Execution, edge: str | int) -> int:
    edges = run.graph.edges
    if isinstance(edge, int):
        if 0 <= edge < len(edges):
            return edge
        raise OptionError(f"there is no edge {edge}", hint=f"edges are numbered 0 to {len(edges) - 1}")
    text, _, ordinal = edge.partition("#")
    source, _, target = (part.strip() for part in text.partition(_ARROW))
    found = [index for index, one in enumerate(edges) if (one.source, one.target) == (source, target)]
    with contextlib.suppress(ValueError, IndexError):
        return found[max(0, int(ordinal.strip() or "1") - 1)]
    leaving = [f"{one.source} -> {one.target}" for one in edges if one.source == source]
    hint = f"out of {source} lead: {', '.join(leaving[:20])}" if leaving else 'name it as "source -> target"'
    raise OptionError(f'there is no edge "{edge}"', hint=hint)


def _edge_facts(index: int, edge: Edge, passes: int) -> dict[str, Any]:
    return {
        "edge": index,
        "source": edge.source,
        "target": edge.target,
        "label": edge.label,
        "condition": edge.condition,
        "weight": edge.weight,
        "is_default": edge.is_default,
        "is_restart": edge.loop_restart,
        "max_taken": edge.max_taken,
        "passes": passes,
    }


def answer_inspection(run: Execution, request: dict[str, Any], *, with_place: bool = True) -> dict[str, Any]:
    """Answer a front-end: by ``node`` or ``edge``, and ``visit``, ``attempt``, ``branch``, ``item``, ``file``.

    ``with_place`` says where files are, for users of this machine.

    Returns:
        The plain form with ``kind`` (``stage``, ``edge`` or ``file``), of a stage with ``can_be_told``, and the
        ``node`` or ``edge`` as it was asked for; when it cannot be answered, ``problems`` says why.
    """
    node, edge = str(request.get("node", "")), request.get("edge")
    visit, attempt = _number(request.get("visit")), _number(request.get("attempt"))
    try:
        if edge is not None:
            *above, index = str(edge).split(CHILD_SEPARATOR)
            inner, _ = _inner(run, CHILD_SEPARATOR.join((*above, "")) if above else "")
            return {"kind": "edge", **inspect_edge(inner, _number(index, -1)).to_plain(), "edge": edge}
        branch, item = str(request.get("branch") or ""), _number(request.get("item"))
        if item is None:
            stage, own = inspect_stage(run, node, visit, attempt, branch), {"node": node}
        else:
            stage, own = (
                inspect_item(run, node, item, visit, branch, attempt),
                {"node": node, "item": item, "of_visit": visit},
            )
        if file := request.get("file"):
            return {"kind": "file", "visit": stage.visit, "attempt": stage.attempt, **_file(stage, file), **own}
        plain = shown_stage(stage.to_plain(with_place=with_place))
        return {"kind": "stage", **plain, **own, "can_be_told": item is None and _can_be_told(stage)}
    except AttractorError as error:
        asked = {"kind": "edge", "edge": edge} if edge is not None else {"kind": "stage", "node": node}
        return {**asked, "problems": [error_text(error)]}


def _can_be_told(stage: StageInspection) -> bool:
    """True if a message for a stage is still received: it asks a model, and is under way or comes yet."""
    is_open = stage.run is not None and not stage.run.is_done and stage.handler == DEFAULT_TYPE
    return is_open and stage.status in {"running", "pending", "retrying"}


def _number(value: Any, default: Any = None) -> Any:
    try:
        return default if value is None else int(value)
    except (TypeError, ValueError):
        return default


def _file(stage: StageInspection, name: Any) -> dict[str, Any]:
    try:
        found = stage.read(str(name), MAX_TEXT)
    except AttractorError as error:
        return {"name": str(name), "text": None, "bytes": 0, "problem": error.message}
    if found is None:
        return {"name": str(name), "text": None, "bytes": 0, "problem": "the file is gone"}
    return {"name": str(name), "text": found[0], "bytes": found[1], "shown": prose_of(found[0], str(name))}


def error_of(run: Execution, node: str = "") -> BaseException | None:
    """The latest exception of the user's Python in a run: of a handler, a backend, a tool, an interviewer.

    While it is in this process it is the exception itself, its traceback beginning in the user's code: after
    ``raise run.error()`` ``%debug`` is in the frame that failed. A run keeps the latest few.

    Args:
        run: The run.
        node: Of this node's stages; ``node>inner`` is a stage of the node's child run.

    Returns:
        The exception. Where it is not here any more, or was raised on a worker: a ``StageError`` with the
        reason, whose hint says where the traceback can be read. None when no stage failed.
    """
    inside, separator, rest = node.partition(CHILD_SEPARATOR)
    if separator:
        child = _child_of(run, inside)
        if child is None:
            raise OptionError(f"{inside} has no child run", hint="see run.children")
        return error_of(child, rest.strip())
    if node and node not in run.graph.nodes:
        raise OptionError(f"the pipeline has no node {node!r}", hint=f"nodes: {', '.join(run.graph.nodes)}")
    failures = failures_of(run)
    if failures is not None and (found := failures.latest(node)) is not None:
        return found.error
    failed = [name for name, outcome in run.outcomes.items() if outcome.status.is_failure]
    for name in [node] if node else reversed(failed):
        if (error := _of_stage(run, name)) is not None:
            return error
    return None


def _of_stage(run: Execution, node: str) -> StageError | None:
    """The recorded failure of a node's latest visit."""
    try:
        stage = inspect_stage(run, node)
    except AttractorError as error:
        outcome = run.outcomes.get(node)
        if outcome is None or not outcome.status.is_failure:
            return None
        return StageError(f"{node} failed: {outcome.failure_reason}", hint=error.message)
    if not stage.reason and not stage.traceback:
        return None
    if not stage.traceback:
        return StageError(f"{node} failed: {stage.reason}", hint=f'see run.inspect("{node}")')
    place = f" ({stage.directory / TRACEBACK_FILE})" if stage.directory else ""
    error_text = stage.reason or stage.traceback.strip().rpartition("\n")[2]
    return StageError(f"{node} failed: {error_text}", hint=f'where: print(run.inspect("{node}").traceback){place}')
