"""``Debugger.rerun``: one stage once more, on its input: a fork that ends after its first stage."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from attractor_nb.decisions.overrides import overrides_of
from attractor_nb.errors import OptionError, RunError
from attractor_nb.runtime.fork import fork_run
from attractor_nb.runtime.prepare.run_options import RerunKeywords, takes
from attractor_nb.studio.inspect.inspect_run import inspect_stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.outcome import Outcome
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution

_OWN = frozenset({"stop_after", "breakpoints", "host"})


@dataclass(frozen=True, slots=True)
class Rerun:
    """A stage that was executed once more, beside what it had come to."""

    node: str  #: The node.
    visit: int  #: The visit whose input it had.
    outcome: Outcome  #: What it came to now.
    before: Outcome | None  #: What it had come to; None when it never ended.
    response: str  #: The text of its response now; empty without one.
    response_before: str  #: The text that it had then.
    run: Execution  #: The run in which it was executed, in a directory of its own.

    @property
    def is_same(self) -> bool:
        """Whether status and response are what they were."""
        return (
            self.before is not None
            and self.outcome.status is self.before.status
            and self.response == self.response_before
        )

    @property
    def diff(self) -> str:
        """The response against the one before, as a unified diff; empty when they are the same."""
        lines = difflib.unified_diff(
            self.response_before.splitlines(), self.response.splitlines(), "before", "now", lineterm=""
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        before = "never ended" if self.before is None else str(self.before.status)
        words = f"{self.node}, visit {self.visit}, once more: {self.outcome.status}, before {before}"
        if reason := self.outcome.failure_reason:
            words += f"\nreason: {reason}"
        if self.response == self.response_before:
            return f"{words}; the response is the same" if self.response else words
        return f"{words}\n{self.diff}"

    def __repr__(self) -> str:
        return str(self)


def rerun_stage(run: Execution, node: str, visit: int | None, **options: Any) -> Rerun:
    """Execute a stage once more on its stored input; see ``Debugger.rerun``."""
    for name in options:
        if name in _OWN:
            raise OptionError(f"{name} is given, and a rerun executes one stage and ends")
    visits = [entry for entry in run.journal().visits_of(node, "") if visit in (None, entry.number)]
    if visits:
        started = visits[-1].sequence
        before = (event for event in run.journal().counted if event.sequence < started)
        if node in overrides_of(before).pins:
            raise RunError(
                f"{node} was pinned in visit {visits[-1].number}: nothing was executed that could be again",
                hint=f'another visit: rerun("{node}", visit=…)',
            )
    given: Mapping[str, Any] = options.get("pins") or {}
    pins = {**given, node: None}  # one that the handle keeps does not stand for this stage
    options.setdefault("is_shown", False)
    options.update(pins=pins, stop_after=1)
    fork = fork_run(run, node, visit, **options)
    fork.result()
    outcome = fork.outcomes.get(node)
    if outcome is None or not visits:
        raise RunError(f"{node} was not brought to an end: {fork.result().reason}")
    commit = visits[-1].commit
    return Rerun(
        node,
        visits[-1].number,
        outcome,
        None if commit is None else commit.outcome,
        fork.read_stage_file(node, "response.md") or "",
        _response_of(run, node, visits[-1].number),
        fork,
    )


def _response_of(run: Execution, node: str, visit: int) -> str:
    """The response of a visit, also of one whose files were moved aside."""
    inspected = inspect_stage(run, node, visit)
    response = inspected.to_plain().get("response")
    return response if isinstance(response, str) else ""


class Rerunning:
    """Executing a stage of a run once more."""

    _run: Execution

    @takes(RerunKeywords, is_shown=False)
    def rerun(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        **options: Unpack[RerunKeywords],
    ) -> Rerun:
        """Execute one stage once more on its stored input, in a directory of its own; the run stays as it is.

        Works for loaded runs and for those that have ended, too.

        Args:
            node: The node.
            visit: Which of its visits, by number; the latest by default.
            context: Values of the context that are others now.
            prompt: The prompt of the node now.
            pipeline: What is run in place of what the run ran.
            on_graph_change: As of ``Pipeline.resume``; with a pipeline given the change is accepted.
        """
        return rerun_stage(
            self._run,
            node,
            visit,
            context=context,
            prompt=prompt,
            pipeline=pipeline,
            on_graph_change=on_graph_change,
            **options,
        )
