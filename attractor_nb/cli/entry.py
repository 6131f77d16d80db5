"""The frame around every command: arguments in, exit code out, whatever happens in between."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import typer

from attractor_nb.cli.command_tree import app
from attractor_nb.cli.reporting import ExitCode, OutputStream, ShownStream, exit_code_of, report
from attractor_nb.errors import AttractorError, OptionError, StorageError
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.model.vocabulary.option_meanings import OTHER_NAMES
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.known_secrets import learn_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

# Typer carries click inside and gives this class no public name; BadParameter is a usage error is one.
USAGE_PROBLEM: Final[type[Exception]] = typer.BadParameter.__mro__[2]


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. What it prints steers no terminal (ruling 38)."""
    _tolerate_narrow_encodings()
    learn_environment()
    out, err = OutputStream(sys.stdout), OutputStream(sys.stderr)
    with contextlib.redirect_stdout(_shown(out)), contextlib.redirect_stderr(_shown(err)):
        code = _run_shown(list(sys.argv[1:] if arguments is None else arguments), out)
        err.end()
        return code


def _shown(stream: OutputStream) -> TextIO:
    return cast("TextIO", ShownStream(cast("TextIO", stream)))


def _run_shown(given: list[str], out: OutputStream) -> ExitCode:
    """Run a command; a result that cannot be written fails it, unless its reader went away, as ``head`` does."""
    code = ExitCode.FAILED
    with contextlib.suppress(OSError):  # of the output: the reader has gone, or it is reported below
        code = _run(given, out, is_json="--json" in given)
    failure = out.end()
    if failure is None:
        return code
    report(StorageError(f"the output cannot be written: {(failure.strerror or str(failure)).lower()}"), is_json=False)
    return code or ExitCode.FAILED


def _run(given: list[str], out: OutputStream, *, is_json: bool) -> ExitCode:
    try:
        code = app(given, prog_name="attractor-nb", standalone_mode=False)
    except AttractorError as error:
        report(error, is_json=is_json)
        return exit_code_of(error)
    except Exception as error:  # the last frame: a user gets a report, never a traceback
        if error is out.failure:
            raise
        return _report_foreign(error, is_json=is_json)
    return ExitCode(code or 0)


def _report_foreign(error: Exception, *, is_json: bool) -> ExitCode:
    """A wrong command line, or an internal error."""
    if isinstance(error, USAGE_PROBLEM):
        _report_usage(error, is_json=is_json)
        return ExitCode.INVALID_INPUT
    if isinstance(error, FileNotFoundError):
        try:
            here()
        except OptionError as gone:
            report(gone, is_json=is_json)
            return ExitCode.INVALID_INPUT
    if os.environ.get(environment_variables.TRACEBACK):
        print(redacted("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    hint = f"set {environment_variables.TRACEBACK}=1 and run the command again to see where"
    fault = AttractorError(f"internal error: {type(error).__name__}: {error}", hint=hint)
    report(fault, is_json=is_json)
    return ExitCode.FAILED


_SURPLUS: Final = re.compile(r"Got unexpected extra argument\S*+ \((.+)\)")
"""As typer says it of a file of rows that is given behind the pipeline."""


def _report_usage(problem: Any, *, is_json: bool) -> None:
    """Say what is wrong with a command line; a command without arguments shows its help instead."""
    message = redacted(problem.format_message())
    if message.startswith("Usage:"):
        print(message, file=sys.stderr)
        return
    command = problem.ctx.command_path if getattr(problem, "ctx", None) else "attractor-nb"
    hint = f"{command} --help"
    if command.endswith(" map") and (surplus := _SURPLUS.match(message)):
        hint = f"an option names the rows: {command} FILE --params {surplus[1]}"
    if option := getattr(problem, "option_name", ""):
        message = f"no such option: {redacted(option)}{suggestion(_meant(option, problem.ctx))}"
    report(OptionError(message.strip(), hint=hint), is_json=is_json)


def _meant(option: str, context: Any) -> str:
    """The option of a command that was meant by an unknown one, or empty."""
    known = [] if context is None else [flag for each in context.command.get_params(context) for flag in each.opts]
    name = OTHER_NAMES.get(option.lstrip("-").replace("-", "_"), "").replace("_", "-")
    flags = [flag for flag in (f"--{name.removesuffix('s')}", f"--{name}") if name and flag in known]
    return flags[0] if flags else nearest(option, [flag for flag in known if flag.startswith("--")])


def _tolerate_narrow_encodings() -> None:
    """A mark that the terminal's encoding lacks becomes a question mark instead of an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
