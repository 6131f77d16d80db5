"""Every error that attractor_nb raises, on one page.

    AttractorError
    ├── SourceError                a text is wrong: has a span, a caret excerpt and a hint
    │   ├── DotSyntaxError         the DOT source (spec 2)
    │   ├── ConditionSyntaxError   an edge condition (spec 10)
    │   ├── StylesheetSyntaxError  a model stylesheet (spec 8)
    │   ├── MappingSyntaxError     the inputs or outputs of a child pipeline (spec 9.4)
    │   ├── InputsSyntaxError      the inputs that a graph declares (ruling 34)
    │   └── ParamsSyntaxError      a file of inputs is not JSON Lines or CSV
    ├── ValidationError            lint found errors: carries all diagnostics (spec 7.3)
    ├── OptionError                an argument, option or environment value is unusable
    │   ├── NoSuchKey              a lookup by a name that is not there; a KeyError, too
    │   └── NoSuchRow              a lookup by a number that is not there; an IndexError, too
    ├── ContextValueError          a value cannot be kept in the run context (ruling 31)
    ├── StatusFileError            a status.json does not keep its contract (ruling 27)
    ├── StageError                 raise it in a handler or backend to class a failure (Appendix D)
    │   ├── RetryableError         transient: the retry policy applies
    │   │   └── BudgetReached      a budget was reached; the run stops during this attempt
    │   ├── TerminalError          permanent: never retried
    │   │   └── CassetteMiss       a replay has no recorded answer: says what changed
    │   └── WorkerLost             the worker was lost; whether the stage took effect is unknown
    ├── CheckFailed                a replayed pipeline did not do what a check expects
    ├── GateError                  a human gate does not accept this
    │   ├── AlreadyAnswered        another answer came first (ruling 23)
    │   ├── AnswerRefused          the answer matches no choice, or its form is not valid; ask again
    │   ├── NoSuchGate             no pending gate of that name
    │   └── GateWouldBlock         waiting here would block the answer to the gate
    ├── SessionError               the status of parallel agents (status-schema.md)
    │   ├── SessionNotFound        no session there, or none is active
    │   ├── SessionDamaged         status.json is torn, altered or foreign; says what is salvageable
    │   ├── SessionBusy            another writer holds the session
    │   └── IllegalTransition      a transition that is not allowed: says which are
    └── RunError                   a run or its directory
        ├── RunNotFound            no run directory there
        ├── RunLocked              another process owns the run: pid, host, since
        ├── RunInterrupted         waiting for a run that was stopped
        ├── RunAtBreakpoint        waiting for a run that is stopped at a breakpoint
        ├── GraphChanged           resume with another graph than the one that ran
        ├── InputsChanged          resume a map with other inputs than those that it began with
        ├── CheckpointCorrupt      nothing valid to resume from; says what is salvageable
        ├── UntrustedSource        commands of a source that is not trusted
        └── StorageError           the disk refused a write; the old state is intact

A message says what is wrong; ``hint`` says what to do about it. ``str(error)`` is the whole report,
carets included, and is what a terminal, a notebook and a log show. Engine code never raises these
out of ``run()`` for a failing *stage*: that is a FAIL outcome (ruling 30).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, listed, rest_line
from attractor_nb.redaction import redacted
from attractor_nb.source import render_excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.source import Span


class AttractorError(Exception):
    """The root of all our errors.

    Attributes:
        message: What is wrong, in one sentence.
        hint: What to do about it; empty when there is nothing sensible to say.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = redacted(message)
        self.hint = redacted(hint)
        super().__init__(self.message)

    def add_note(self, note: str, /) -> None:
        """Add a note, without the secrets in it."""
        super().add_note(redacted(note))

    def report_lines(self) -> list[str]:
        """The report without the class name, line by line."""
        lines = self.message.splitlines() or [""]
        if self.hint:
            lines.append(f" hint: {self.hint}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.report_lines())

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows in place of a traceback: the report alone."""
        first, *rest = self.report_lines()
        return [f"{type(self).__name__}: {first}", *rest]


class SourceError(AttractorError):
    """A text cannot be read. ``span`` is the offending text, or None when there is no text.

    Correct the text at the marked place; ``hint`` says how.
    """

    def __init__(self, message: str, span: Span | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.span = span

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings of the text: this error as a finding of the rule ``syntax``."""
        fix = Fix(self.hint) if self.hint else None
        return (Diagnostic("syntax", Severity.ERROR, self.message, fix=fix, span=self.span),)

    def report_lines(self) -> list[str]:
        """Message, place, excerpt with carets, hint."""
        lines = self.message.splitlines() or [""]
        if self.span is not None:
            lines.extend(render_excerpt(self.span))
        if self.hint:
            lines.append(f" hint: {self.hint}")
        return lines


class DotSyntaxError(SourceError):
    """The DOT source is outside the supported subset (spec 2.1-2.4).

    Correct the marked place; ``attractor-nb validate FILE`` lists all mistakes at once.

    Attributes:
        others: The other findings of the text: its further syntax errors, and what lint finds in the statements that
            were read.
        is_limit: The text is too large or too deep; nothing more is read of it.
        is_brace_open: A brace is never closed: the span is the brace, and the text was read to its end.
        read_to: The offset up to which the text was read, where that is behind the beginning of the span; or None.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        hint: str = "",
        others: Sequence[Diagnostic] = (),
        is_limit: bool = False,
        is_brace_open: bool = False,
        read_to: int | None = None,
    ) -> None:
        super().__init__(message, span, hint=hint)
        self.others = tuple(others)
        self.is_limit = is_limit
        self.is_brace_open = is_brace_open
        self.read_to = read_to

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings of the text, this error first."""
        return (*super().diagnostics, *self.others)

    def report_lines(self) -> list[str]:
        """Message, place, excerpt with carets, hint; then the other findings that are listed."""
        lines = super().report_lines()
        for _, found in listed(self.others):
            lines.extend(found.report_lines())
        return [*lines, *filter(None, [rest_line(self.others)])]


class ConditionSyntaxError(SourceError):
    """An edge condition does not parse (spec 10.2).

    Write comparisons joined by ``&&``, such as ``outcome=success && context.tests=3``.
    """


class StylesheetSyntaxError(SourceError):
    """A model stylesheet does not parse (spec 8.2).

    Write rules such as ``.hard { llm_model: large; }``.
    """


class MappingSyntaxError(SourceError):
    """``pipeline.inputs`` or ``pipeline.outputs`` does not parse (spec 9.4).

    Write pairs with commas between them: ``ticket=context.ticket, tone='plain'``.
    """


class InputsSyntaxError(SourceError):
    """The ``inputs`` of a graph do not parse (ruling 34).

    Write names with commas between them, each with an optional default: ``inputs="ticket, tone=plain"``.
    """


class ParamsSyntaxError(SourceError):
    """A file of inputs is not the JSON Lines or CSV that it should be.

    Correct the line that the message names.
    """


class ValidationError(AttractorError):
    """Lint found errors, so nothing was run (spec 7.1, 7.3).

    Correct the findings; ``pipeline.lint().fix()`` shows the corrected text.

    Attributes:
        diagnostics: All findings, warnings included, in source order.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], *, hint: str = "") -> None:
        self.diagnostics = tuple(diagnostics)
        errors = [found for found in self.diagnostics if found.is_error]
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(f"the pipeline has {count} and was not run", hint=hint)

    def report_lines(self) -> list[str]:
        """The count, each error that is listed with its excerpt and fix, then the hint."""
        errors = [found for found in self.diagnostics if found.is_error]
        lines = [self.message]
        for _, found in listed(errors):
            lines.extend(found.report_lines())
        return [*lines, *filter(None, [rest_line(errors), self.hint and f" hint: {self.hint}"])]


class OptionError(AttractorError):
    """An argument, option or environment value is unusable.

    Correct the argument; the message has the nearest name or the values that are possible.
    """


class NoSuchKey(OptionError, KeyError):
    """A lookup by name, such as ``result["plan"]``, of something that is not there.

    Use a name that exists; most messages have the nearest.
    """


class NoSuchRow(OptionError, IndexError):
    """A lookup by number, such as ``result[3]`` of a map, of a row that is not there.

    Use a number below the length.
    """


class ContextValueError(AttractorError):
    """A value that would not survive a JSON round trip was set in the context (ruling 31).

    Store texts, numbers, truth values, lists and dicts with text keys.
    """


class StatusFileError(AttractorError):
    """A status.json is not what its contract asks for (ruling 27).

    Correct the program that writes the file; it is kept as ``status.rejected.json``.
    """


class StageError(AttractorError):
    """A stage failed. Handlers and backends raise its subclasses to class the failure.

    Raise one of its subclasses in a handler, function or backend of your own.

    Attributes:
        retry_after_seconds: Pause that the server asks for; None when it names none.
        is_unmeasured: The attempt could not be made for a reason outside the pipeline (ruling 51).
    """

    def __init__(
        self, message: str, *, hint: str = "", retry_after_seconds: float | None = None, is_unmeasured: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds
        self.is_unmeasured = is_unmeasured


class RetryableError(StageError):
    """A transient failure: rate limit, network, 5xx. Retried within the node's policy (Appendix D).

    Raise it in your own code for a failure that may pass; give the node ``max_retries``.
    """


class BudgetReached(RetryableError):
    """A bound on money or tokens was reached in the middle of an attempt, which ends there (ruling 18).

    The run stops and can be resumed with a higher bound: its stage is then tried again.
    """


class TerminalError(StageError):
    """A permanent failure: authentication, configuration, validation. Never retried (Appendix D).

    Raise it in your own code for a failure that no retry can change; correct the cause, then rewind to the stage.
    """


class CassetteMiss(TerminalError):
    """A replayed run makes a call that its cassette has no answer for; nothing was called.

    Record again with ``cassette_mode="auto"``, or undo the change that the message names.

    Attributes:
        node_id: The stage.
        changed: Names of the inputs in which the call differs from the nearest recorded one.
    """

    def __init__(self, message: str, *, node_id: str = "", changed: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.node_id = node_id
        self.changed = tuple(changed)


class WorkerLost(StageError):
    """The worker of a stage was lost, and its effects are not known: ``on_interrupted`` decides.

    Set ``on_interrupted=rerun`` on a node that may safely run again; look at the worker's log.
    """


class CheckFailed(AttractorError, AssertionError):
    """A replayed pipeline did not do what ``pipeline.check`` expects; a test fails with it.

    Correct the pipeline, or the expectation of the test if the change is intended.
    """


class GateError(AttractorError):
    """A human gate cannot take this.

    Look at the open questions: ``gates()``.
    """


class AlreadyAnswered(GateError):
    """The gate has an answer already; the first durable one wins (ruling 23).

    Continue with the recorded answer, which the message names.
    """


class AnswerRefused(GateError):
    """The answer matches no choice, or its form is not valid; the gate still waits (ruling 23).

    Answer again with one of the choices that the message lists, or with a valid form.

    Attributes:
        fields: What is wrong with the form, by field; under the empty name what is wrong with all together.
    """

    def __init__(self, message: str, *, hint: str = "", fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.fields = {name: redacted(words) for name, words in (fields or {}).items()}


class NoSuchGate(GateError):
    """No gate of that name is waiting: not yet, not any more, or the name is wrong.

    Wait for it with ``run.wait_for_gate(...)``, or resume the run if its process is gone.
    """


class GateWouldBlock(GateError):
    """Waiting here would block the very thread that has to deliver the gate's answer.

    End the cell and click, ``await run``, or answer by ``run.answer(...)`` in another cell.
    """


class SessionError(AttractorError):
    """The status of parallel agents cannot do what was asked (status-schema.md).

    Look at ``.founder-mode/status`` in the directory of the session.
    """


class SessionNotFound(SessionError):
    """There is no session at that place, or none is active.

    Name the directory of a session, or create one.
    """


class SessionDamaged(SessionError):
    """A session's status.json is torn, altered or foreign; the message says what is salvageable.

    Read what is salvageable, and create a new session.

    Attributes:
        salvageable: What can be read of it without any proof that it is right; None for nothing.
    """

    def __init__(self, message: str, *, salvageable: dict[str, Any] | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.salvageable = salvageable


class SessionBusy(SessionError):
    """Another writer has held a session's lock for longer than a write can take.

    Try again; end the other writer if it hangs.
    """


class IllegalTransition(SessionError):
    """An agent or a session cannot go from one state to another.

    Use one of the allowed states, which the message lists.

    Attributes:
        source: The state it is in.
        target: The state it was to go to; empty when nothing may change at all.
        allowed: The states it could go to.
    """

    def __init__(
        self, message: str, *, source: str, target: str = "", allowed: Sequence[str] = (), hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.target = target
        self.allowed = tuple(allowed)


class RunError(AttractorError):
    """A run, or the directory that holds it, cannot do what was asked.

    Look at the directory with ``attractor-nb doctor DIR``.
    """


class RunNotFound(RunError):
    """There is no run directory at that place.

    List the runs: ``runs()``, ``attractor-nb runs``.
    """


class RunLocked(RunError):
    """Another process owns the run directory.

    Answer, stop or resume it there; with ``take_over=True`` take it from a process that is frozen or gone.

    Attributes:
        owner: Facts about the owner: ``pid``, ``host``, ``since``; empty when unreadable.
    """

    def __init__(self, message: str, *, owner: dict[str, Any] | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.owner = owner or {}


class RunInterrupted(RunError):
    """The run that was waited for was stopped before its end; it can be resumed.

    Continue it with ``run.resume()``.
    """


class RunAtBreakpoint(RunError):
    """The run that is waited for is stopped at a breakpoint, and no live view can continue it.

    Continue it with ``run.debugger``.
    """


class GraphChanged(RunError):
    """The graph is not the one that the run was started with (ruling 29).

    Resume with the text that began, ``Run.load(directory).resume()``, or accept the new one:
    ``on_graph_change="accept"``.
    """


class InputsChanged(RunError):
    """The inputs are not those that the map was started with.

    Resume with the inputs that began, or start a new map.
    """


class CheckpointCorrupt(RunError):
    """Stored state is damaged beyond its own means of repair; the message says what is salvageable.

    Save what is intact: ``attractor-nb doctor DIR --salvage NEW_DIR``.
    """


class UntrustedSource(RunError):
    """The graph's executable surface came from elsewhere and is not trusted.

    Read the commands (``attractor-nb commands FILE``), then pass their hash: ``run(trust="...")``.

    Attributes:
        surface_hash: The hash by which it can be trusted: ``run(trust=error.surface_hash)``.
    """

    def __init__(self, message: str, *, surface_hash: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.surface_hash = surface_hash


class StorageError(RunError):
    """An operation on the run directory failed; what was stored before is intact.

    Free space or correct the permissions, then resume the run.

    Attributes:
        path: The file or directory concerned.
    """

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
