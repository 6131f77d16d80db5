"""Errors as a terminal and as a program read them, exit codes, and remedies in words of the command line."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TextIO

from attractor_nb.errors import AttractorError, DotSyntaxError, RunInterrupted, SourceError, ValidationError
from attractor_nb.model.remedy_words import RemedyWords, calls_of, setting_of
from attractor_nb.model.texts import STEERING, shown
from attractor_nb.redaction import redacted_value

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span


def exit_code_of(error: AttractorError) -> ExitCode:
    """The exit code of a command after an error that kept it from its task."""
    return ExitCode.INTERRUPTED if isinstance(error, RunInterrupted) else ExitCode.INVALID_INPUT


def report(error: AttractorError, *, is_json: bool) -> None:
    """Print an error: for users on stderr, for programs as the one JSON document on stdout.

    A missing reader changes nothing: the exit code of the error holds.
    """
    with suppress(OSError):
        if is_json:
            print_json({"error": error_plain(error)})
            return
        first, *rest = report_in_options(error.report_lines())
        print("\n".join([f"error: {first}", *rest]), file=sys.stderr)


def error_plain(error: AttractorError) -> dict[str, Any]:
    """An error as JSON values: type, message, hint, place; a validation error's findings too."""
    plain: dict[str, Any] = {
        "type": type(error).__name__,
        "message": message_in_options(error.message),
        "hint": in_options(error.hint),
        "place": place_plain(error.span) if isinstance(error, SourceError) else None,
    }
    if isinstance(error, ValidationError | DotSyntaxError):
        plain["diagnostics"] = [diagnostic_plain(found) for found in error.diagnostics]
    return plain


def diagnostic_plain(found: Diagnostic) -> dict[str, Any]:
    """A finding as JSON values."""
    return {
        "rule": found.rule,
        "severity": found.severity.value,
        "message": found.message,
        "node": found.node_id or None,
        "edge": list(found.edge) if found.edge else None,
        "place": place_plain(found.span),
        "fix": in_options(found.fix.title) if found.fix else None,
        "can_be_fixed": bool(found.fix and found.fix.edits),
    }


def place_plain(span: Span | None) -> dict[str, Any] | None:
    """The start of a span, as JSON values."""
    if span is None:
        return None
    return {"file": span.outermost().source.name, "line": span.line, "column": span.column}


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a JSON document on stdout; without ``indent`` on its own line."""
    text = json.dumps(redacted_value(value), indent=indent, ensure_ascii=False)
    print(STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


class OutputStream:
    """An output of this process that keeps in mind what kept a text from being written.

    Attributes:
        failure: A full disk, or that the stream was closed before the program began. A reader that went away, as
            ``head`` does, is none.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._is_closed = stream is None
        self._stream = io.StringIO() if stream is None else stream
        self.failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text; how much of it, as a stream says."""
        if self._is_closed:
            self.failure = OSError(errno.EBADF, "it is closed")
            return len(text)
        with self._noting():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Have what was written leave this process."""
        with self._noting():
            self._stream.flush()

    def end(self) -> OSError | None:
        """Write what it still holds, or drop it; its failure.

        Python flushes its streams when it exits, and ends with code 120 when that fails.
        """
        try:
            self.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        return self.failure

    @contextmanager
    def _noting(self) -> Generator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failure = error
            raise


class ShownStream:
    """A text stream on which nothing but newline and tab steers; all else is that of the stream behind it.

    Attributes:
        behind: The stream itself, for those who draw with control sequences of their own.
    """

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    def write(self, text: str) -> int:
        """Write a text; how much of it, as a stream says."""
        self.behind.write(shown(text))
        return len(text)


def stream_behind(stream: TextIO) -> TextIO:
    """The stream to which control sequences of our own can be written."""
    return stream.behind if isinstance(stream, ShownStream) else stream


def print_source(text: str) -> None:
    """Print a text that was asked for as it is: raw for the program behind a pipe, never at a terminal."""
    stream = sys.stdout if sys.stdout.isatty() else stream_behind(sys.stdout)
    print(text, end="", file=stream)


# The exit codes, which are a contract with scripts and CI.


class ExitCode(IntEnum):
    """The exit code of a command."""

    SUCCESS = 0
    """It did what was asked; a pipeline succeeded."""
    FAILED = 1
    """The pipeline ran and failed, or the disk did; or a stage could not be tried, and a resume may continue."""
    INVALID_INPUT = 2
    """Nothing was run: arguments, a source, or a run directory cannot be used."""
    PAUSED = 3
    """The run is paused, at a gate or after a number of stages: a resume continues, once the gate is answered."""
    INTERRUPTED = 130
    """Ctrl-C or a request to end; a run that was active can be resumed."""

    @classmethod
    def of(cls, status: str, *, is_unmeasured: bool = False) -> ExitCode:
        """The exit code of a command that watches a run, a map or a session; 0 while it is running.

        Args:
            status: Its status.
            is_unmeasured: It is interrupted because a stage could not be executed; it was not stopped (ruling 51).
        """
        if is_unmeasured and status == "interrupted":
            return cls.FAILED
        return _CODES.get(status, cls.INTERRUPTED)


_CODES: Final[dict[str, ExitCode]] = {
    **dict.fromkeys(("ready", "running", "success", "complete"), ExitCode.SUCCESS),
    **dict.fromkeys(("fail", "failed"), ExitCode.FAILED),
    "paused": ExitCode.PAUSED,
}


# Remedies that name Python, in the words of the command line.
#
# The layers below write for those who call them. A command shows the same errors, and says its own options and commands
# in them. What the command line has none for stays as it is, and is said to be Python.

_CALLS: Final = calls_of(
    (
        r'run\(trust="([0-9a-f]+)"\) or resume\(…, trust="[0-9a-f]+"\) in Python, --trust on the command line',
        r"--trust-hash \1, --trust",
    ),
    (r"(?:resume\(…, )?workdir=(?:DIR\))?, --workdir DIR(?: on the command line)?", "--workdir DIR"),
    (r', or give backend=ProviderBackend\("…"\)', ""),
    (r'backend=ProviderBackend\("…"\)', "--backend llm --model NAME"),
    (r"run\.fork\(node, prompt=…\)", "`attractor-nb fork DIR NODE --prompt FILE`"),
    (r"run\.fork\(node, context=\{[^}]*\}\)", "`attractor-nb fork DIR NODE --set KEY=TEXT`"),
    (r"run\.fork\([^)]*\)", "`attractor-nb fork DIR NODE`"),
    (r"run\.rewind\([^)]*\) or (?=`attractor-nb resume )", ""),
    (r"run\.rewind\([^)]*\)", "`attractor-nb resume DIR --from NODE`"),
    (r"resume\(…, backend=…\)", "`attractor-nb resume DIR --backend NAME`"),
    (r"(?:Pipeline\([^)]*\)|pipeline)\.resume_map\([^)]*\)", "`attractor-nb map FILE --resume DIR`"),
    (r"pipeline\.resume_evaluation\([^)]*\)", "`attractor-nb evaluate --resume DIR --scorers MODULE:NAME`"),
    (r"(?:Pipeline\([^)]*\)|pipeline)\.resume\([^)]*\)", "`attractor-nb resume DIR --graph FILE`"),
    (r'(?:run|Run\.load\("[^"]*"\))\.resume\(\)', "`attractor-nb resume DIR`"),
    (r"run\.answer\([^)]*\)", "`attractor-nb answer DIR GATE CHOICE`"),
    (r"run\.tell\([^)]*\)", '`attractor-nb tell DIR "TEXT"`'),
    (r'runs\("DIR"\)', "--runs-dir DIR"),
    (r"Run\.load\(…\)", "`attractor-nb watch DIR --once`"),
    (r"allow_remote=True", "--allow-remote"),
    (r"take_over=True", "--take-over"),
    (r"documents=Path\(…\)", "--documents DIR"),
    (r'interviewer="auto", a function of a question, or QueueInterviewer\(\[…\]\)', "--auto-approve"),
    (r'params=\{"(\w+)": "(\w+)"\}', r"--param \1=\2"),
    (r'outputs=\["(\w+)"\]', r"--output \1"),
    (r'leave map_dir and durability="none" out', "leave --durability none out"),
    (r"backend=…", "--backend NAME"),
    (r"see pipeline\.lint\(\)", "`attractor-nb validate FILE`"),
    (r"trust=True, --trust", "--trust"),
    (r'give interviewer="auto" \(--auto-approve on the command line\), or answers beforehand.*', "give --auto-approve"),
    (r'interviewer="(auto|console)"', r"--gates \1"),
    (r": +(Pipeline\(…, |ProviderBackend\()", r" in Python: \1"),
    (r"^(?=Pipeline\(…, )", "in Python: "),
)
"""Python as remedies have it, and what the command line has for it, applied in this order."""
_NAMES: Final = (
    "on_graph_change|on_interrupted|backend|durability|cassette_mode|cassette|isolation|workdir|workspace_from|runs_dir|"
    "logs_root|max_steps|max_node_visits|max_restarts|max_goal_gate_redirects|max_budget_usd_all|max_budget_usd|"
    "max_tokens_total|max_duration_all|max_duration|max_tokens_all|max_parallel|max_runs|max_streams"
)
"""Options of Python that the command line has under the same name, with hyphens."""
_SUBJECT: Final = re.compile(rf"({_NAMES})(?= (?:cannot|must|is) )")


def _flag(name: str, value: str = "") -> str:
    return f"--{name.replace('_', '-')} {value.replace(chr(34), '')}".rstrip()


_WORDS: Final = RemedyWords(_CALLS, setting_of(_NAMES), _flag)


def in_options(text: str) -> str:
    """A remedy that names Python, in the options and commands of the command line.

    >>> in_options('on_interrupted="rerun" runs it again')
    '--on-interrupted rerun runs it again'
    >>> in_options("change values: run.fork(node, context={…})")
    'change values: `attractor-nb fork DIR NODE --set KEY=TEXT`'
    """
    return _WORDS.of(text)


def message_in_options(message: str) -> str:
    """A message that begins with the name of an option, with that of the command line.

    >>> message_in_options("max_duration cannot be 'soon'")
    "--max-duration cannot be 'soon'"
    """
    found = _SUBJECT.match(message)
    return message if found is None else _flag(found[1]) + message[found.end() :]


def reason_in_options(reason: str) -> str:
    """The reason of a failure, with the remedies in brackets at its end as ``in_options``.

    >>> reason_in_options('max_steps=3 reached; x calls "y", which is not registered (Pipeline(…, functions={"y": y}))')
    'max_steps=3 reached; x calls "y", which is not registered (in Python: Pipeline(…, functions={"y": y}))'
    """
    return _WORDS.of_reason(reason)


def report_in_options(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a report, remedies in the words of the command line; what is quoted from a source stays."""
    for line in lines:
        yield message_in_options(_WORDS.of_line(line))
