"""What is known of one stage, and of one edge, as values: for cells, the live view, exported pages.

``to_plain`` is the form that the front-end shows (``views/web/inspector.js``): JSON, no secrets, long texts
cut with their length said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import AttractorError
from attractor_nb.redaction import redacted
from attractor_nb.studio.inspect.inspection_lines import (
    AttemptLine,
    ContextChange,
    ItemLine,
    MessageLine,
    VisitLine,
    cleaned,
    cut_text,
)
from attractor_nb.studio.inspect.inspection_view import edge_html, edge_text, stage_html, stage_text
from attractor_nb.views.summary_line import usage_words

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.decisions.hindsight.route_reasons import EdgeCandidate, RouteReasons
    from attractor_nb.model.outcome import Usage
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.storage.stages.stage_listing import StageFile

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
_TEXTS: Final = ("prompt", "carried", "response", "notes", "reason", "changes", "traceback")
_OF_TEXTS: Final = frozenset(
    {"prompt.md", "response.md", "carried.md", "stdout.txt", "stderr.txt", "changes.diff", "traceback.txt"}
)
"""Files whose text the plain form has already."""


@dataclass(frozen=True, slots=True)
class StageInspection:
    """Everything that is known of one attempt of one visit of a stage.

    Attributes:
        node: The node.
        label: Its label, when it is another than its id; else empty.
        handler: Its handler type.
        visit: The visit, by number; None when it was not reached, or nothing of it is stored.
        branch: Path of the branch that the visit is in, or empty.
        visits: All visits of the node, those that a rewind has set aside too.
        attempt: The attempt, by number, or None.
        attempts: All attempts of the visit.
        status: How the attempt ended; ``running``, ``waiting``, ``cut off``, ``pending``.
        reason: Why it failed, or empty.
        prompt: What was sent to the model, or the command; None when there was nothing.
        carried: What it was given of the stages before (``carried.md``), or None.
        response: What came back, or None.
        notes: What the stage said of itself, or empty.
        stdout: What its command wrote, or None.
        stderr: The same of its errors, or None.
        changes: What it changed in the run's worktree, as a diff, or None.
        traceback: Where Python of the user's failed in it (``traceback.txt``), or None.
        items: Of a stage with `for_each`: its items, in the order of the list.
        context: Each key of the context before and behind the visit; changed ones first.
        files: The files of the attempt.
        usage: What the visit consumed, all its attempts; None when it did not say.
        why_here: How the run came to the visit.
        why_next: Why it was left as it was; None while it has not ended.
        is_set_aside: A rewind went behind the visit.
        by_hand: What a debugger changed of it, a line each.
        messages: What the attempt was told by people or a supervisor.
        cached: What the look into the cache came to, or empty.
        directory: Where the files are; None when nothing is stored.
        workdir: Where commands, agents and tools of the run work, or empty.
        problems: What could not be read, and why.
        mark: What must be said of the run's result, or empty (ruling 48).
        run: The run that it is a stage of; None where nobody has it.
    """

    node: str
    label: str = ""
    handler: str = ""
    visit: int | None = None
    branch: str = ""
    visits: tuple[VisitLine, ...] = ()
    attempt: int | None = None
    attempts: tuple[AttemptLine, ...] = ()
    status: str = "pending"
    reason: str = ""
    prompt: str | None = None
    carried: str | None = None
    response: str | None = None
    notes: str = ""
    stdout: str | None = None
    stderr: str | None = None
    changes: str | None = None
    traceback: str | None = None
    items: tuple[ItemLine, ...] = ()
    context: tuple[ContextChange, ...] = ()
    files: tuple[StageFile, ...] = ()
    usage: Usage | None = None
    why_here: str = ""
    why_next: RouteReasons | None = None
    is_set_aside: bool = False
    by_hand: tuple[str, ...] = ()
    messages: tuple[MessageLine, ...] = ()
    cached: str = ""
    directory: Path | None = None
    workdir: str = ""
    problems: tuple[str, ...] = ()
    mark: str = ""
    run: Execution | None = field(default=None, repr=False, compare=False)
    _read: Reader = field(default=lambda name, most: None, repr=False, compare=False)  # noqa: ARG005 - the interface of readers
    _sizes: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)

    def read(self, name: str, limit: int = MAX_TEXT) -> tuple[str, int] | None:
        """The beginning of a file of the attempt, at most ``limit`` bytes, without secrets; and its size.

        Raises:
            StorageError: It is not a plain file of the attempt, or cannot be read.
        """
        found = self._read(name, limit)
        return None if found is None else (redacted(found[0]), found[1])

    def to_plain(self, limit: int = MAX_TEXT, *, with_files: bool = False, with_place: bool = True) -> dict[str, Any]:
        """JSON values for the inspector.

        Args:
            limit: Characters of a text at most; ``cut`` says how long those are that were longer.
            with_files: The texts of files as well, for where nobody can be asked for them.
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

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        plain = self.to_plain(with_place=False)
        return {"text/html": stage_html(plain), "text/plain": stage_text(plain)}


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """What an edge came to when its source was left.

    Attributes:
        visit: The visit of the source.
        branch: The branch that it was in, or empty.
        candidate: How the edge fared.
        target: Where the run went.
    """

    visit: int
    branch: str
    candidate: EdgeCandidate
    target: str

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {"visit": self.visit, "branch": self.branch, "went_to": self.target, **self.candidate.to_plain()}


@dataclass(frozen=True, slots=True)
class EdgeInspection:
    """An edge: its condition, and what became of it each time.

    Attributes:
        edge: Its position in ``Graph.edges``.
        source, target: What it joins.
        label: Its label, or empty.
        condition: Its condition, or empty.
        weight: Its priority.
        is_default: It is marked ``default=true``.
        is_restart: It is marked ``loop_restart=true``.
        passes: How often it was taken.
        verdicts: What it came to each time that its source was left, oldest first.
        problems: What could not be read, and why.
    """

    edge: int
    source: str
    target: str
    label: str = ""
    condition: str = ""
    weight: int = 0
    is_default: bool = False
    is_restart: bool = False
    passes: int = 0
    verdicts: tuple[EdgeVerdict, ...] = ()
    problems: tuple[str, ...] = ()

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
            "passes": self.passes,
            "verdicts": [cleaned(verdict.to_plain()) for verdict in self.verdicts],
            "problems": [redacted(problem) for problem in self.problems],
        }

    def __str__(self) -> str:
        return edge_text(self.to_plain())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        plain = self.to_plain()
        return {"text/html": edge_html(plain), "text/plain": edge_text(plain)}
