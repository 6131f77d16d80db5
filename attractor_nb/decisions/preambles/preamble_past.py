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
    """How a stage stands among the earlier ones; it is kept, for it changes only with what it is made of.

    Attributes:
        limit: Characters of its notes.
        text: The line.
        owed: About how much it takes to say behind the line how much the stage said.
        value: A text that the stage left, and ``whole`` the line with all of it.
        replaced: The line with its excerpt, once a later visit has replaced that text; or empty.
    """

    limit: int
    text: str
    owed: int
    value: object = None
    whole: str = ""
    replaced: str = ""


@dataclass(slots=True)
class StageSummary:
    """What is remembered of a stage.

    Attributes:
        node_id: The node.
        label: Its display name.
        status: How it ended.
        notes: Its own summary, or why it failed.
        excerpt: The beginning of its response, or the end of its command's output: what is told of it when
            a later visit has replaced the whole.
        size: Characters of the whole, as far as they are known.
        keys: The context keys that it has set, of those that a later stage may be told; the first one has
            its response or output.
        command: The command that it ran, if it is one that runs commands.
        line: How it was told last.
        named: The same under the label of its node, and ``named_by`` the plan that has that.
    """

    node_id: str
    label: str
    status: str
    notes: str = ""
    excerpt: str = ""
    size: int = 0
    keys: tuple[str, ...] = ()
    command: str = ""
    line: PreambleLine | None = field(default=None, init=False, repr=False, compare=False)
    named: StageSummary | None = field(default=None, init=False, repr=False, compare=False)
    named_by: object = field(default=None, init=False, repr=False, compare=False)


class PreamblePast(msgspec.Struct, frozen=True):
    """What there is to tell.

    Attributes:
        value: The value of a context key; the second argument for one that is not there.
        kept: The same where it is at hand as it is; what is not a text there is asked for.
        goal: The pipeline's goal.
        run_id: The run.
        inputs: Names of the values that the run began with.
        stages: Completed stages, oldest first.
        keys: Context keys that stages have set, oldest first.
        events: Notable events and incidents, oldest first.
        wanted: What the stage must have whole, in this order.
        has_branches: The results of branches may be told; the task of a fan-in that asks has them itself.
    """

    value: Callable[[str, Any], Any]
    kept: Mapping[str, Any] = MappingProxyType({})
    goal: str = ""
    run_id: str = ""
    inputs: Sequence[str] = ()
    stages: Sequence[StageSummary] = ()
    keys: Sequence[str] = ()
    events: Sequence[Note] = ()
    wanted: Sequence[str] = ()
    has_branches: bool = True
