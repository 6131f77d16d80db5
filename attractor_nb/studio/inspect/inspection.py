"""Inspections of a stage and of an edge, as values: for cells, the live view, exported pages.

``to_plain`` is the form that the front-end shows (``views/web/inspector.js``): JSON, no secrets, long texts
cut with their length said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.carried import preamble_of
from attractor_nb.errors import AttractorError
from attractor_nb.model.calls.call_content import split_context
from attractor_nb.redaction import redacted
from attractor_nb.studio.inspect.inspection_view import edge_html, edge_text, stage_html, stage_text
from attractor_nb.views.display import Displayed
from attractor_nb.views.summary_line import usage_words

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.decisions.history.route_explanation import EdgeCandidate, RouteReasons
    from attractor_nb.model.outcome import Usage
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.storage.stages.stage_directories import StageFile
    from attractor_nb.studio.inspect.failure import StageFailure


MAX_TEXT: Final = 20_000
"""Characters of one text in the plain form."""
MAX_VALUE: Final = 4_000
"""Characters of one context value in the plain form."""
MAX_ITEM: Final = 200
"""Characters of an item in the plain form."""
MAX_FILES_TEXT: Final = 200_000
"""Characters of all files of a stage in the plain form, where their texts are wanted."""
_FOLDERS: Final = re.compile(r'^( *(?:\| *)?File ")[^"\n]*[/\\]', re.MULTILINE)
"""The folders of a file that a traceback names."""
Reader = Callable[[str, int], "tuple[str, int] | None"]
"""Reads the beginning of a file of the attempt: name and bytes at most, to its text and size, or None."""
_TEXTS: Final = ("prompt", "task", "carried", "response", "notes", "reason", "changes", "traceback")
_OF_TEXTS: Final = frozenset(
    {
        "prompt.md",
        "response.md",
        "carried.md",
        "stdout.txt",
        "stderr.txt",
        "changes.diff",
        "traceback.txt",
        "failed_line.txt",
    }
)
"""Files whose text the plain form has already."""


@dataclass(frozen=True, slots=True, repr=False)
class StageInspection(Displayed):
    """Everything that is known of one attempt of one visit of a stage."""

    node: str  #: The node.
    label: str = ""  #: Its label, when it is another than its id; else empty.
    handler: str = ""  #: Its handler type.
    visit: int | None = None  #: The visit, by number; None when it was not reached, or nothing of it is stored.
    branch: str = ""  #: Path of the branch that the visit is in, or empty.
    visits: tuple[VisitLine, ...] = ()  #: All visits of the node, those that a rewind has set aside too.
    attempt: int | None = None  #: The attempt, by number, or None.
    attempts: tuple[AttemptLine, ...] = ()  #: All attempts of the visit.
    status: str = "pending"  #: Status of the attempt; ``running``, ``waiting``, ``cut off``, ``pending``.
    reason: str = ""  #: Reason of the failure, or empty.
    prompt: str | None = None  #: Prompt sent to the model, or the command; None when there was none.
    carried: str | None = None  #: Context received from earlier stages (``carried.md``), or None.
    response: str | None = None  #: Response, or None.
    notes: str = ""  #: Notes of the stage, or empty.
    stdout: str | None = None  #: Output of its command, or None.
    stderr: str | None = None  #: The same of its errors, or None.
    changes: str | None = None  #: Its changes in the run's worktree, as a diff, or None.
    traceback: str | None = None  #: Traceback of the user's Python code (``traceback.txt``), or None.
    #: Line of the user's Python code that raised the exception, between others (``failed_line.txt``), or None.
    user_line: str | None = None
    failure: StageFailure | None = None  #: The failure on one screen; None for a stage that did not fail.
    items: tuple[ItemLine, ...] = ()  #: Of a stage with `for_each`: its items, in the order of the list.
    context: tuple[ContextChange, ...] = ()  #: Each key of the context before and behind the visit; changed ones first.
    files: tuple[StageFile, ...] = ()  #: The files of the attempt.
    usage: Usage | None = None  #: Usage of the visit, all its attempts; None when it did not say.
    why_here: str = ""  #: Reason why the run reached the visit.
    why_next: RouteReasons | None = None  #: Reasons for the next edge; None while it has not ended.
    is_set_aside: bool = False  #: A rewind went behind the visit.
    by_hand: tuple[str, ...] = ()  #: Changes by a debugger, a line each.
    messages: tuple[MessageLine, ...] = ()  #: Messages of users or a supervisor to the attempt.
    cached: str = ""  #: Result of the cache lookup, or empty.
    directory: Path | None = None  #: Directory of the files; None when nothing is stored.
    workdir: str = ""  #: Working directory of commands, agents and tools of the run, or empty.
    problems: tuple[str, ...] = ()  #: Unreadable parts, with the reasons.
    mark: str = ""  #: Mark of the run's result, or empty (ruling 48).
    #: The run that it is a stage of; None if no caller has it.
    run: Execution | None = field(default=None, repr=False, compare=False)
    _read: Reader = field(default=lambda name, most: None, repr=False, compare=False)  # noqa: ARG005 - the interface of readers
    _sizes: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)

    @property
    def task(self) -> str | None:
        """The prompt without the preamble before it; None when there was no preamble."""
        context, task = split_context(self.prompt or "", preamble_of(self.carried or ""))
        return task if context else None

    def read(self, name: str, limit: int = MAX_TEXT) -> tuple[str, int] | None:
        """The beginning of a file of the attempt, at most ``limit`` bytes, without secrets; and its size."""
        found = self._read(name, limit)
        return None if found is None else (redacted(found[0]), found[1])

    def to_plain(self, limit: int = MAX_TEXT, *, with_files: bool = False, with_place: bool = True) -> dict[str, Any]:
        """JSON values for the inspector.

        Args:
            limit: Characters of a text at most; ``cut`` says how long those are that were longer.
            with_files: The texts of files as well, for readers that cannot ask for them later.
            with_place: Where the files are, which says something of the machine.
        """
        cut: dict[str, int] = {}
        texts = {name: getattr(self, name) for name in _TEXTS}
        output = {"stdout": self.stdout, "stderr": self.stderr}
        for name, text in (*texts.items(), *output.items()):
            short = None if text is None else cut_text(text, limit)
            whole = max(len(text or ""), self._sizes.get(name, 0))
            if short is not None and whole > len(short):
                cut[name] = whole
            (output if name in output else texts)[name] = short
        if texts["traceback"] and not with_place:
            texts["traceback"] = _FOLDERS.sub(r"\1…/", texts["traceback"])
        usage = self.usage
        return {
            "node": self.node,
            "label": redacted(self.label),
            "handler": self.handler,
            "visit": self.visit,
            "branch": self.branch,
            "visits": [line.to_plain() for line in self.visits],
            "attempt": self.attempt,
            "attempts": [line.to_plain() for line in self.attempts],
            "status": self.status,
            **texts,
            "output": output,
            "failure": None if self.failure is None else self.failure.to_plain(with_place=with_place),
            "items": [line.to_plain(MAX_ITEM) for line in self.items],
            "context": [change.to_plain(min(limit, MAX_VALUE)) for change in self.context],
            "files": self._plain_files(limit, with_texts=with_files),
            "usage": None if usage is None else usage.to_plain(),
            "usage_words": "" if usage is None else ", ".join(usage_words(usage)),
            "cost_usd": None if usage is None else usage.cost_usd,
            "why_here": redacted(self.why_here),
            "why_next": None if self.why_next is None else cleaned(self.why_next.to_plain()),
            "is_set_aside": self.is_set_aside,
            "by_hand": [redacted(line) for line in self.by_hand],
            "messages": [line.to_plain(min(limit, MAX_VALUE)) for line in self.messages],
            "cached": redacted(self.cached) if with_place else self.cached.partition(":")[0],
            "path": str(self.directory) if with_place and self.directory is not None else "",
            "editor_url": "",
            "workdir": redacted(self.workdir) if with_place else "",
            "problems": [redacted(problem) for problem in self.problems],
            "mark": self.mark,
            "cut": cut,
        }

    def _plain_files(self, limit: int, *, with_texts: bool) -> list[dict[str, Any]]:
        left = MAX_FILES_TEXT
        plain: list[dict[str, Any]] = []
        for file in self.files:
            text = None
            if with_texts and not file.problem and file.name not in _OF_TEXTS and left > 0:
                text = self._text_of(file, min(limit, left))
                left -= len(text or "")
            entry = {"name": redacted(file.name), "bytes": file.size, "text": text}
            plain.append(entry | ({"problem": file.problem} if file.problem else {}))
        return plain

    def _text_of(self, file: StageFile, limit: int) -> str | None:
        try:
            found = self.read(file.name, limit)
        except AttractorError as error:
            return f"(not shown: {error.message})"
        return None if found is None else cut_text(found[0], limit)

    def __str__(self) -> str:
        return stage_text(self.to_plain(with_place=False))

    def _html(self) -> str:
        return stage_html(self.to_plain(with_place=False))


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """The evaluation of an edge when its source was left."""

    visit: int  #: The visit of the source.
    branch: str  #: The branch that it was in, or empty.
    candidate: EdgeCandidate  #: Result of the edge.
    target: str  #: Node where the run went.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {"visit": self.visit, "branch": self.branch, "went_to": self.target, **self.candidate.to_plain()}


@dataclass(frozen=True, slots=True, repr=False)
class EdgeInspection(Displayed):
    """An edge: its condition, and what became of it each time."""

    edge: int  #: Its position in ``Graph.edges``.
    #: Its source.
    source: str
    target: str
    label: str = ""  #: Its label, or empty.
    condition: str = ""  #: Its condition, or empty.
    weight: int = 0  #: Its priority.
    is_default: bool = False  #: It is marked ``default=true``.
    is_restart: bool = False  #: It is marked ``loop_restart=true``.
    max_taken: int | None = None  #: Number of times that a run may take it; None for any number.
    passes: int = 0  #: Number of times that it was taken.
    verdicts: tuple[EdgeVerdict, ...] = ()  #: Its result each time that its source was left, oldest first.
    problems: tuple[str, ...] = ()  #: Unreadable parts, with the reasons.

    def to_plain(self) -> dict[str, Any]:
        """JSON values for the inspector."""
        return {
            "edge": self.edge,
            "source": self.source,
            "target": self.target,
            "label": redacted(self.label),
            "condition": redacted(self.condition),
            "weight": self.weight,
            "is_default": self.is_default,
            "is_restart": self.is_restart,
            "max_taken": self.max_taken,
            "passes": self.passes,
            "verdicts": [cleaned(verdict.to_plain()) for verdict in self.verdicts],
            "problems": [redacted(problem) for problem in self.problems],
        }

    def __str__(self) -> str:
        return edge_text(self.to_plain())

    def _html(self) -> str:
        return edge_html(self.to_plain())


# The lines of an inspection: visits, attempts, keys of the context; and texts without secrets.

_REACHES: Final = {
    "prompt": "in the prompt",
    "request": "with a later request",
    "turn": "as a turn of the agent",
    "waits": "not received yet",
}


@dataclass(frozen=True, slots=True)
class VisitLine:
    """A visit of the node."""

    number: int  #: Its number.
    branch: str  #: Path of the branch that it is in, or empty.
    status: str  #: Final status, or ``running``, ``cut off``.
    attempts: int  #: Number of attempts.
    is_set_aside: bool = False  #: A rewind went behind it.
    is_cached: bool = False  #: Its result came from the cache.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "number": self.number,
            "branch": self.branch,
            "status": self.status,
            "attempts": self.attempts,
            "is_set_aside": self.is_set_aside,
            "is_cached": self.is_cached,
        }


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """A try of the visit."""

    number: int  #: Its number.
    status: str  #: Final status, or ``running``, ``cut off``.
    reason: str = ""  #: Reason of the failure, or empty.
    seconds: float | None = None  #: Its duration; None while it is running, and when it is unknown.
    usage: Usage | None = None  #: Its usage; None when it did not say.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "number": self.number,
            "status": self.status,
            "reason": redacted(self.reason),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "usage": None if self.usage is None else self.usage.to_plain(),
        }


@dataclass(frozen=True, slots=True)
class MessageLine:
    """The instruction that an attempt received."""

    text: str  #: Its text.
    given_by: str = ""  #: Source of the message: a person or a channel.
    #: ``prompt``, ``request`` or ``turn``: how the attempt received it; ``waits`` while it may yet; empty when it did
    #: not.
    reach: str = ""

    @property
    def words(self) -> str:
        """The delivery to the attempt, in words."""
        return _REACHES.get(self.reach, "not received in this attempt")

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values."""
        return {
            "text": cut_text(self.text, limit),
            "given_by": redacted(self.given_by),
            "reach": self.reach,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item of a stage with `for_each`."""

    index: int  #: Its place in the list, from 0.
    value: Any = ""  #: Its value; an empty text when that is unknown.
    status: str = "not started"  #: Final status of its run, ``running``, ``cut off``, or ``not started``.
    reason: str = ""  #: Reason of the failure, or empty.
    run_id: str = ""  #: Its run, or empty.
    directory: Path | None = None  #: The directory of that; None where there is none.

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values; the item as a text."""
        return {
            "index": self.index,
            "value": cut_text(_value_text(self.value), limit),
            "status": self.status,
            "reason": redacted(self.reason),
            "run_id": self.run_id,
        }


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A key of the context around a visit."""

    key: str  #: The key.
    change: str  #: ``added``, ``changed``, ``removed`` or ``same``.
    before: Any = None  #: Its value before the visit; None when it had none.
    after: Any = None  #: Its value behind it; None when it has none.

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values: both as texts, None for no value."""
        before = None if self.change == "added" else _value_text(self.before)
        after = None if self.change == "removed" else _value_text(self.after)
        if self.change == "changed" and before == after:  # 1 became "1"
            before, after = _json_text(self.before), _json_text(self.after)
        return {"key": redacted(self.key), "change": self.change} | {
            name: None if text is None else cut_text(text, limit)
            for name, text in (("before", before), ("after", after))
        }


def cut_text(text: str, limit: int) -> str:
    """The beginning of a text without secrets; they go before it is cut: half of one has no form."""
    return redacted(text)[:limit]


def cleaned(value: Any) -> Any:
    """A plain form without secrets; its keys are ours."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: cleaned(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType] - of JSON values
    return [cleaned(one) for one in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType] - as above


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1 if isinstance(value, dict | list) else None, default=str)
