"""The record of one attempt of a stage: from its events and files, or from the memory of the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.carried import CARRIED_FILE
from attractor_nb.decisions.history.route_explanation import arrival_of
from attractor_nb.engine.attempts import CHANGES_FILE
from attractor_nb.engine.handler_calls import TRACEBACK_FILE, USER_LINE_FILE
from attractor_nb.errors import AttractorError, CheckpointCorrupt, OptionError, RunError
from attractor_nb.handlers.function_stage import SOURCE_FILE
from attractor_nb.model.calls.call_content import INPUTS_FILE
from attractor_nb.model.events import ChildEnded, ChildStarted
from attractor_nb.model.redacted import is_reference
from attractor_nb.model.states import as_result
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, list_key, value_at
from attractor_nb.runtime.handles.cache_verdict import words_of_look
from attractor_nb.runtime.workspace.worktree import place_facts
from attractor_nb.storage.stages.stage_directories import Listing, list_stage, read_beginning
from attractor_nb.studio.inspect.inspection import (
    AttemptLine,
    ContextChange,
    ItemLine,
    MessageLine,
    StageInspection,
    VisitLine,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.decisions.history.journal import AttemptRecord, VisitRecord
    from attractor_nb.model.graph import Node
    from attractor_nb.model.outcome import Usage
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.past import RecordedVisit, RunHistory

MAX_READ: Final = 1024 * 1024
"""Bytes of a prompt, a response or an output that an inspection holds."""
_FILES: Final = {
    "prompt": "prompt.md",
    "source": SOURCE_FILE,
    "carried": CARRIED_FILE,
    "response": "response.md",
    "stdout": "stdout.txt",
    "stderr": "stderr.txt",
    "changes": CHANGES_FILE,
    "traceback": TRACEBACK_FILE,
    "user_line": USER_LINE_FILE,
}
_ORDER: Final = {"changed": 0, "added": 1, "removed": 2, "same": 3}


def read_stage(
    run: Execution,
    past: RunHistory,
    spec: Node,
    known: Sequence[RecordedVisit],
    chosen: RecordedVisit,
    attempt: int | None,
    *,
    is_context_whole: bool = True,
) -> StageInspection:
    """Everything that is known of one attempt; of the latest, if ``attempt`` is None.

    ``known`` are the visits of the node that are listed beside it; ``is_context_whole`` has of the context what
    stayed the same, too.
    """
    record = chosen.record
    tried = _attempt_of(record, attempt)
    root = chosen.place.root
    directory = chosen.place.files_of(record, tried.number)
    problems: list[str] = []
    texts, sizes = _texts(directory, root, problems)
    _put_in_code(texts, spec)
    listing = _listed(directory, root, problems)
    outcome = None if tried.ended is None else tried.ended.outcome
    is_live = not run.is_done and not chosen.is_set_aside
    context, unresolved = _context(chosen, is_whole=is_context_whole)
    return StageInspection(
        spec.id,
        _label(spec),
        spec.handler_type,
        record.number,
        record.branch,
        tuple(visit_line(one, run) for one in known),
        tried.number,
        tuple(_attempt_line(one, record, is_live=is_live) for one in record.attempts),
        _attempt_status(tried, record, is_live=is_live),
        "" if outcome is None else outcome.failure_reason,
        notes="" if outcome is None else outcome.notes,
        **texts,
        items=_items(spec, chosen, problems, is_live=is_live) if FOR_EACH in spec.attrs else (),
        context=context,
        files=listing.files,
        usage=_consumed(record),
        why_here=arrival_of(chosen.journal, record).words,
        why_next=past.reasons_of(chosen) if _is_committed(tried, record) else None,
        is_set_aside=chosen.is_set_aside,
        by_hand=_by_hand(chosen),
        messages=_messages(chosen, tried, is_live=is_live),
        cached=_cached(directory, root, record, problems),
        directory=directory,
        workdir=str(place_facts(run.logs_root).get("workdir", "")),
        problems=(*problems, *unresolved),
        _read=lambda name, most: read_beginning(directory, name, most, root),
        _sizes=sizes,
    )


def _attempt_of(record: VisitRecord, number: int | None) -> AttemptRecord:
    """An attempt of a visit, by its number; the latest for None."""
    for one in reversed(record.attempts):
        if number in (None, one.number):
            return one
    listed = ", ".join(str(one.number) for one in record.attempts)
    raise OptionError(f"visit {record.number} of {record.node_id} has no attempt {number}", hint=f"attempts: {listed}")


def _is_committed(tried: AttemptRecord, record: VisitRecord) -> bool:
    """True if an attempt is the one that its visit committed."""
    return record.commit is not None and tried.ended is record.commit


def _consumed(record: VisitRecord) -> Usage | None:
    """The usage of all attempts of a visit. None if none of them reports any."""
    spent = [one.ended.outcome.usage for one in record.attempts if one.ended and one.ended.outcome.usage]
    return sum(spent[1:], spent[0]) if spent else None


def _put_in_code(texts: dict[str, Any], spec: Node) -> None:
    """Show the command of a tool, or the source of a function, where a prompt would be."""
    if spec.handler_type == FUNCTION_TYPE:
        texts["prompt"] = texts["source"]
    elif texts["prompt"] is None and spec.tool_command.strip():
        texts["prompt"] = spec.tool_command
    del texts["source"]


def _texts(directory: Path, root: Path, problems: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """The texts of an attempt, each at most ``MAX_READ`` long, and the sizes of those that are longer."""
    texts: dict[str, Any] = dict.fromkeys(_FILES)
    sizes: dict[str, int] = {}
    for name, file in _FILES.items():
        try:
            found = read_beginning(directory, file, MAX_READ, root)
        except RunError as error:
            problems.append(error.message)
            continue
        if found is not None:
            texts[name] = found[0]
            if found[1] > MAX_READ:
                sizes[name] = found[1]
    return texts, sizes


def _listed(directory: Path, root: Path, problems: list[str]) -> Listing:
    """The files of an attempt; what is not among them is a problem."""
    try:
        listing = list_stage(directory, root)
    except RunError as error:
        problems.append(error.message)
        return Listing(())
    if listing.is_cut:
        problems.append(f"more than {len(listing.files)} files; the rest is in {directory}")
    return listing


def _cached(directory: Path, root: Path, record: VisitRecord, problems: list[str]) -> str:
    """The result of the cache lookup; empty if there was none."""
    try:
        found = read_beginning(directory, INPUTS_FILE, MAX_READ, root)
    except RunError as error:
        problems.append(error.message)
        found = None
    words = "" if found is None else words_of_look(found[0])
    commit = record.commit
    return words or ("cached" if commit is not None and commit.is_cached else "")


def _by_hand(chosen: RecordedVisit) -> tuple[str, ...]:
    """The changes by a debugger to a visit, a line each."""
    record = chosen.record
    last = record.attempts[-1].ended
    found: list[str] = []
    for event in chosen.journal.changes_by_hand:
        if last is not None and event.sequence > last.sequence:
            break
        if event.node != record.node_id:
            continue
        if event.visit in {0, record.number} and event.branch == record.branch:
            before = f"; without the change the outcome was {event.before}" if event.before else ""
            found.append(f"{event.description}{before}")
    return tuple(found)


def _messages(chosen: RecordedVisit, tried: AttemptRecord, *, is_live: bool) -> tuple[MessageLine, ...]:
    """The instructions that an attempt received, in order."""
    record = chosen.record
    heard = chosen.journal.heard.get((record.branch, record.node_id, record.number, tried.number), {})
    missed = "waits" if is_live and tried.ended is None else ""
    return tuple(MessageLine(one.text, one.given_by, one.reach or missed) for one in heard.values())


def visit_line(one: RecordedVisit, run: Execution) -> VisitLine:
    """A visit in the list of its node's."""
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


def _context(chosen: RecordedVisit, *, is_whole: bool) -> tuple[tuple[ContextChange, ...], list[str]]:
    """Each key around the visit, changed ones first; and what could not be read."""
    journal, record, problems = chosen.journal, chosen.record, list[str]()
    before = journal.context_before(record)
    after = journal.context_after(record)
    if after is None:
        after = before

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
        old, new = (_whole(value, chosen, problems) for value in (old, new))
        found.append(ContextChange(key, change, old, new))
    return tuple(sorted(found, key=lambda one: (_ORDER[one.change], one.key))), problems


def _items(spec: Node, chosen: RecordedVisit, problems: list[str], *, is_live: bool) -> tuple[ItemLine, ...]:
    """The items of a visit: those of its list, with what the log says of their runs."""
    record = chosen.record
    before, key = chosen.journal.context_before(record), list_key(spec.get(FOR_EACH, str, ""))

    def get(name: str, absent: Any) -> Any:
        return _whole(before.get(name, absent), chosen, problems)

    found: object = value_at(get, key) if key else None
    values = cast("list[Any]", found) if isinstance(found, list) else []
    lines = dict(enumerate(ItemLine(index, value) for index, value in enumerate(values)))
    for event in chosen.journal.counted:
        if not isinstance(event, ChildStarted | ChildEnded) or event.item is None:
            continue
        if (event.name, event.branch, event.visit) != (record.node_id, record.branch, record.number):
            continue
        line = lines.get(event.item, ItemLine(event.item))
        status, reason = "running" if is_live and record.commit is None else "cut off", ""
        if isinstance(event, ChildEnded):
            status, reason = as_result(event.status), event.reason
        directory = chosen.place.root / event.child_root
        lines[event.item] = replace(line, status=status, reason=reason, run_id=event.child_id, directory=directory)
    return tuple(lines[index] for index in sorted(lines))


def _whole(recorded: Any, chosen: RecordedVisit, problems: list[str]) -> Any:
    """A value as it was, read where the record only refers to it; what cannot be read is a problem."""
    if not is_reference(recorded):
        return recorded
    try:
        return chosen.place.resolve(recorded)
    except CheckpointCorrupt as error:
        problems.append(error.message)
        return recorded


def _is_same(old: Any, new: Any) -> bool:
    """True if two JSON values are; in Python 1 equals True."""
    return type(old) is type(new) and bool(old == new)


def stage_from_view(run: Execution, spec: Node, problem: RunError) -> StageInspection:
    """Inspect a stage whose events are not stored, or cannot be read."""
    problems = [error_text(problem)]
    texts: dict[str, Any] = dict.fromkeys(_FILES)
    for name, file in _FILES.items():
        try:
            texts[name] = run.read_stage_file(spec.id, file)
        except AttractorError as error:
            problems.append(error.message)
    _put_in_code(texts, spec)
    outcome = run.outcomes.get(spec.id)
    status = _status_of(run, spec.id) if outcome is None else outcome.status.value
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


def not_reached(run: Execution, spec: Node) -> StageInspection:
    """A stage that was not visited yet."""
    return StageInspection(spec.id, _label(spec), spec.handler_type, status=_status_of(run, spec.id))


def _label(spec: Node) -> str:
    return "" if spec.label == spec.id else spec.label


def _status_of(run: Execution, node: str) -> str:
    state = run.view.nodes.get(node)
    return "pending" if state is None else state.status.value


def error_text(error: AttractorError) -> str:
    """An error and its remedy on one line."""
    return f"{error.message} ({error.hint})" if error.hint else error.message
