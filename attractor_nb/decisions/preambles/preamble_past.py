"""What there is to tell of a run: its stages as they are remembered, its values, its events (spec 5.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.decisions.notes import Note

BRANCHES_KEY: Final = "parallel.results"
TOOL_OUTPUT_KEY: Final = "tool.output"
TOOL_ERRORS_KEY: Final = "tool.stderr"
COMPLETED: Final = "Stage completed: "
"""How notes begin that say no more than the status."""


class PreambleLine(msgspec.Struct):
    """How a stage stands among the earlier ones; it is kept, for it changes only with what it is made of."""

    limit: int  #: Characters of its notes.
    text: str  #: The line.
    owed: int  #: About how much it takes to say behind the line how much the stage said.
    value: object = None  #: A text that the stage left, and ``whole`` the line with all of it.
    whole: str = ""
    replaced: str = ""  #: The line with its excerpt, once a later visit has replaced that text; or empty.


@dataclass(slots=True)
class StageSummary:
    """What is remembered of a stage."""

    node_id: str  #: The node.
    label: str  #: Its display name.
    status: str  #: How it ended.
    notes: str = ""  #: Its own summary, or why it failed.
    #: The beginning of its response, or the end of its command's output: what is told of it when a later visit has
    #: replaced the whole.
    excerpt: str = ""
    size: int = 0  #: Characters of the whole, as far as they are known.
    #: The context keys that it has set, of those that a later stage may be told; the first one has its response or
    #: output.
    keys: tuple[str, ...] = ()
    command: str = ""  #: The command that it ran, if it is one that runs commands.
    line: PreambleLine | None = field(default=None, init=False, repr=False, compare=False)  #: How it was told last.
    #: The same under the label of its node, and ``named_by`` the plan that has that.
    named: StageSummary | None = field(default=None, init=False, repr=False, compare=False)
    named_by: object = field(default=None, init=False, repr=False, compare=False)


class PreamblePast(msgspec.Struct, frozen=True):
    """What there is to tell."""

    value: Callable[[str, Any], Any]  #: The value of a context key; the second argument for one that is not there.
    #: The same where it is at hand as it is; what is not a text there is asked for.
    kept: Mapping[str, Any] = MappingProxyType({})
    goal: str = ""  #: The pipeline's goal.
    run_id: str = ""  #: The run.
    inputs: Sequence[str] = ()  #: Names of the values that the run began with.
    stages: Sequence[StageSummary] = ()  #: Completed stages, oldest first.
    keys: Sequence[str] = ()  #: Context keys that stages have set, oldest first.
    events: Sequence[Note] = ()  #: Notable events and incidents, oldest first.
    wanted: Sequence[str] = ()  #: What the stage must have whole, in this order.
    has_branches: bool = True  #: The results of branches may be told; the task of a fan-in that asks has them itself.
