"""Looking at one stage or one edge of a run: live, ended, loaded, or stored nowhere.

What is not stored, or cannot be read, is said in ``problems`` beside what is known.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.context import is_reference
from attractor_nb.decisions.arrivals import arrival_of
from attractor_nb.decisions.carried import CARRIED_FILE
from attractor_nb.errors import AttractorError, CheckpointCorrupt, OptionError, RunError, RunNotFound
from attractor_nb.model.cached import INPUTS_FILE
from attractor_nb.model.spelling import did_you_mean
from attractor_nb.pipeline.inspection import (
    MAX_TEXT,
    AttemptLine,
    ContextChange,
    EdgeInspection,
    EdgeVerdict,
    StageInspection,
    VisitLine,
)
from attractor_nb.pipeline.lookback import KnownVisit, Lookback, look_back
from attractor_nb.pipeline.why import words_of_look
from attractor_nb.storage.stage_listing import Listing, list_stage, read_beginning
from attractor_nb.views.svg import CHILD_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.decisions.journal import AttemptRecord, VisitRecord
    from attractor_nb.model.graph import Edge, Node
    from attractor_nb.pipeline.run import Run

MAX_READ: Final = 1024 * 1024
"""Bytes of a prompt, a response or an output that an inspection holds."""
MAX_VERDICTS: Final = 200
_FILES: Final = {
    "prompt": "prompt.md",
    "carried": CARRIED_FILE,
    "response": "response.md",
    "stdout": "stdout.txt",
    "stderr": "stderr.txt",
}
_ARROW: Final = "->"
_ORDER: Final = {"changed": 0, "added": 1, "removed": 2, "same": 3}


def inspect(run: Run, what: str | int, visit: int | None = None, attempt: int | None = None) -> Any:
    """A stage by its node's id (``node>inner``: of a child run); an edge by ``"a -> b"`` or by its position.

    Raises:
        OptionError: There is no such node, edge, visit or attempt.
        RunNotFound: A child run that the path names does not exist yet.
    """
    if isinstance(what, int) or (isinstance(what, str) and _ARROW in what):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        return inspect_edge(run, what)
    return inspect_stage(run, what, visit, attempt)


def inspect_stage(
    run: Run,
    node: str,
    visit: int | None = None,
    attempt: int | None = None,
    branch: str = "",
    *,
    is_context_whole: bool = True,
) -> StageInspection:
    """Everything that is known of a stage.

    Args:
        run: The run.
        node: The node; ``node>inner`` is a stage of the node's child run.
        visit: Which of its visits, by number; the latest on the way by default.
        attempt: Which attempt of it; the latest by default.
        branch: Path of a branch, where the same node was visited in several.
        is_context_whole: Tell of the context what stayed the same, too.

    Raises:
        OptionError: There is no such node, visit or attempt.
        RunNotFound: The child run does not exist yet.
    """
    run, node = _inner(run, node)
    spec = _node_of(run, node)
    try:
        past = look_back(run)
    except RunError as error:
        return _from_view(run, spec, error)
    known = past.visits_of(node)
    if not known:
        if visit is not None:
            raise OptionError(f"{node} was not visited yet, so it has no visit {visit}")
        return StageInspection(node, _label(spec), spec.handler_type, status=_standing(run, node))
    chosen = _chosen(known, node, visit, branch)
    return _stage(run, past, spec, known, chosen, attempt, is_context_whole=is_context_whole)


def inspect_edge(run: Run, edge: str | int) -> EdgeInspection:
    """An edge and what became of it each time that its source was left.

    Args:
        run: The run.
        edge: Its position in ``Graph.edges``, or ``"a -> b"``; with ``"#2"`` behind it the second of those.

    Raises:
        OptionError: There is no such edge.
    """
    index = _edge_index(run, edge)
    found = run.graph.edges[index]
    state = run.view.edges.get(index)
    facts = _edge_facts(index, found, 0 if state is None else state.passes)
    try:
        past = look_back(run)
        verdicts = [
            EdgeVerdict(commit.visit, commit.branch, candidate, commit.next_node)
            for _, commit, way in past.explained()
            if commit.name == found.source
            for candidate in way.candidates
            if candidate.edge == index
        ]
    except RunError as error:
        return EdgeInspection(**facts, problems=(_said(error),))
    return EdgeInspection(**facts, verdicts=tuple(verdicts[-MAX_VERDICTS:]))


def _inner(run: Run, path: str) -> tuple[Run, str]:
    """The run that a path leads to, and the rest of it."""
    *above, last = str(path).split(CHILD_SEPARATOR)
    for name in above:
        children = run.children
        found = next((run for at, run in children.items() if at.rpartition("/")[2] == name.strip()), None)
        if found is None:
            raise RunNotFound(f"{name} has no child run yet", hint="it begins with the stage")
        run = found
    return run, last.strip() if above else last


def _node_of(run: Run, node: str) -> Node:
    found = run.graph.nodes.get(node)
    if found is None:
        hint = did_you_mean(node, run.graph.nodes) or f"; nodes: {', '.join(list(run.graph.nodes)[:20])}"
        raise OptionError(f"the pipeline has no node {node!r}{hint}")
    return found


def _label(spec: Node) -> str:
    return "" if spec.label == spec.id else spec.label


def _standing(run: Run, node: str) -> str:
    state = run.view.nodes.get(node)
    return "pending" if state is None else state.status.value


def _chosen(known: Sequence[KnownVisit], node: str, visit: int | None, branch: str) -> KnownVisit:
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


def _stage(
    run: Run,
    past: Lookback,
    spec: Node,
    known: Sequence[KnownVisit],
    chosen: KnownVisit,
    attempt: int | None,
    *,
    is_context_whole: bool,
) -> StageInspection:
    record = chosen.record
    tried = next((one for one in reversed(record.attempts) if attempt in (None, one.number)), None)
    if tried is None:
        listed = ", ".join(str(one.number) for one in record.attempts)
        raise OptionError(
            f"visit {record.number} of {spec.id} has no attempt {attempt}", hint=f"attempts: {listed}"
        )
    directory = chosen.place.files_of(record, tried.number)
    problems: list[str] = []
    texts, sizes = _texts(directory, problems)
    listing = _listed(directory, problems)
    if listing.is_cut:
        problems.append(f"more than {len(listing.files)} files; the rest is in {directory}")
    ended = tried.ended
    outcome = None if ended is None else ended.outcome
    is_live = not run.is_done and not chosen.is_set_aside
    commit = record.commit
    spent = [one.ended.outcome.usage for one in record.attempts if one.ended and one.ended.outcome.usage]
    context, unresolved = _context(chosen, is_whole=is_context_whole)
    why_next = None
    if commit is not None and ended is commit:
        why_next = past.way_of(chosen)
    if texts["prompt"] is None and spec.tool_command.strip():
        texts["prompt"] = spec.tool_command
    return StageInspection(
        spec.id,
        _label(spec),
        spec.handler_type,
        record.number,
        record.branch,
        tuple(_visit_line(one, run) for one in known),
        tried.number,
        tuple(_attempt_line(one, record, is_live=is_live) for one in record.attempts),
        _attempt_status(tried, record, is_live=is_live),
        "" if outcome is None else outcome.failure_reason,
        notes="" if outcome is None else outcome.notes,
        **texts,
        context=context,
        files=listing.files,
        usage=sum(spent[1:], spent[0]) if spent else None,
        why_here=arrival_of(chosen.journal, record).words,
        why_next=why_next,
        is_set_aside=chosen.is_set_aside,
        cached=_cached(directory, record, problems),
        directory=directory,
        problems=(*problems, *unresolved),
        _read=lambda name, most: read_beginning(directory, name, most),
        _sizes=sizes,
    )


def _texts(directory: Path, problems: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """The texts of an attempt, each at most ``MAX_READ`` long, and the sizes of those that are longer."""
    texts: dict[str, Any] = dict.fromkeys(_FILES)
    sizes: dict[str, int] = {}
    for name, file in _FILES.items():
        try:
            found = read_beginning(directory, file, MAX_READ)
        except RunError as error:
            problems.append(error.message)
            continue
        if found is not None:
            texts[name] = found[0]
            if found[1] > MAX_READ:
                sizes[name] = found[1]
    return texts, sizes


def _listed(directory: Path, problems: list[str]) -> Listing:
    try:
        return list_stage(directory)
    except RunError as error:
        problems.append(error.message)
        return Listing(())


def _cached(directory: Path, record: VisitRecord, problems: list[str]) -> str:
    """What the look into the cache came to; empty where there was none."""
    try:
        found = read_beginning(directory, INPUTS_FILE, MAX_READ)
    except RunError as error:
        problems.append(error.message)
        found = None
    words = "" if found is None else words_of_look(found[0])
    commit = record.commit
    return words or ("cached" if commit is not None and commit.is_cached else "")


def _visit_line(one: KnownVisit, run: Run) -> VisitLine:
    record = one.record
    is_live = not run.is_done and not one.is_set_aside
    commit = record.commit
    return VisitLine(
        record.number,
        record.branch,
        _attempt_status(record.attempts[-1], record, is_live=is_live),
        len(record.attempts),
        one.is_set_aside,
        commit is not None and commit.is_cached,
    )


def _attempt_line(one: AttemptRecord, record: VisitRecord, *, is_live: bool) -> AttemptLine:
    status = _attempt_status(one, record, is_live=is_live)
    if one.ended is None:
        return AttemptLine(one.number, status)
    outcome = one.ended.outcome
    seconds = max(0.0, one.ended.time - one.started.time)
    return AttemptLine(one.number, status, outcome.failure_reason, seconds, outcome.usage)


def _attempt_status(one: AttemptRecord, record: VisitRecord, *, is_live: bool) -> str:
    if one.ended is not None:
        return one.ended.outcome.status.value
    return "running" if is_live and one is record.attempts[-1] else "cut off"


def _context(chosen: KnownVisit, *, is_whole: bool) -> tuple[tuple[ContextChange, ...], list[str]]:
    """Each key around the visit, changed ones first; and what could not be read."""
    journal, record, problems = chosen.journal, chosen.record, list[str]()
    before = journal.context_before(record)
    after = journal.context_after(record)
    if after is None:
        after = before

    def value(recorded: Any) -> Any:
        if not is_reference(recorded):
            return recorded
        try:
            return chosen.place.resolve(recorded)
        except CheckpointCorrupt as error:
            problems.append(error.message)
            return recorded

    found: list[ContextChange] = []
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if key not in before:
            change = "added"
        elif key not in after:
            change = "removed"
        else:
            change = "same" if _is_same(old, new) else "changed"
        if change == "same" and not is_whole:
            continue
        found.append(ContextChange(key, change, value(old), value(new)))
    return tuple(sorted(found, key=lambda one: (_ORDER[one.change], one.key))), problems


def _is_same(old: Any, new: Any) -> bool:
    """Whether two JSON values are; in Python 1 equals True."""
    return type(old) is type(new) and bool(old == new)


def _from_view(run: Run, spec: Node, problem: RunError) -> StageInspection:
    """What is known of a stage whose events are not stored, or cannot be read."""
    problems = [_said(problem)]
    texts: dict[str, Any] = dict.fromkeys(_FILES)
    for name, file in _FILES.items():
        try:
            texts[name] = run.read_stage_file(spec.id, file)
        except AttractorError as error:
            problems.append(error.message)
    if texts["prompt"] is None and spec.tool_command.strip():
        texts["prompt"] = spec.tool_command
    outcome = run.outcomes.get(spec.id)
    status = _standing(run, spec.id) if outcome is None else outcome.status.value
    spent = tuple(run.view.attempts.get(spec.id, ()))
    return StageInspection(
        spec.id,
        _label(spec),
        spec.handler_type,
        run.visits.get(spec.id),
        attempts=tuple(AttemptLine(one.attempt, one.status, usage=one.usage) for one in spent),
        status=status,
        reason="" if outcome is None else outcome.failure_reason,
        notes="" if outcome is None else outcome.notes,
        **texts,
        usage=run.view.usage_by_node.get(spec.id),
        problems=tuple(problems),
    )


def _edge_index(run: Run, edge: str | int) -> int:
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
        "passes": passes,
    }


def answer_inspection(run: Run, request: dict[str, Any]) -> dict[str, Any]:
    """What a front-end is told: by ``node`` or ``edge``, and ``visit``, ``attempt``, ``branch``, ``file``.

    Returns:
        The plain form with ``kind`` (``stage``, ``edge`` or ``file``) and the ``node`` or ``edge`` as it was
        asked for; when it cannot be answered, ``problems`` says why.
    """
    node, edge = str(request.get("node", "")), request.get("edge")
    visit, attempt = _number(request.get("visit")), _number(request.get("attempt"))
    try:
        if edge is not None:
            *above, index = str(edge).split(CHILD_SEPARATOR)
            inner, _ = _inner(run, CHILD_SEPARATOR.join((*above, "")) if above else "")
            return {"kind": "edge", **inspect_edge(inner, _number(index, -1)).to_plain(), "edge": edge}
        stage = inspect_stage(run, node, visit, attempt, str(request.get("branch") or ""))
        if file := request.get("file"):
            return {
                "kind": "file",
                "node": node,
                "visit": stage.visit,
                "attempt": stage.attempt,
                **_file(stage, file),
            }
        return {"kind": "stage", **stage.to_plain(), "node": node}
    except AttractorError as error:
        asked = {"kind": "edge", "edge": edge} if edge is not None else {"kind": "stage", "node": node}
        return {**asked, "problems": [_said(error)]}


def _said(error: AttractorError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


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
    return {"name": str(name), "text": found[0], "bytes": found[1]}
