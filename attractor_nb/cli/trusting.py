"""Commands from elsewhere at the command line: shown, asked about, and listed without being run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.source_inputs import read_pipeline
from attractor_nb.decisions.executable_surface import executable_surface
from attractor_nb.errors import UntrustedSource
from attractor_nb.interviewers import ConsoleInterviewer
from attractor_nb.interviewers.line_input import LineInput
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.runtime.prepare.trust import trust_question, untrusted
from attractor_nb.views.shown_commands import command_count, command_lines

if TYPE_CHECKING:
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.runtime.prepare.trust import TrustQuestion

_CONSENTS = frozenset({"y", "yes"})


def settled_trust(
    pipeline: Pipeline, *, is_trusted: bool, logs_root: Path | None = None, place: str = ""
) -> bool | str:
    """The option ``trust`` of a run: what the user said, or answers now at a terminal.

    A yes is the hash of what was on the screen, so that this and nothing else is run.

    Args:
        pipeline: What shall run.
        is_trusted: The user said ``--trust``, or no command will be run.
        logs_root: The run directory that shall go on, if any.
        place: Where the commands would run, as ``where_commands_run`` says.

    Raises:
        UntrustedSource: The answer was no, or there is nobody to ask.
    """
    if is_trusted or any(found.is_error for found in pipeline.judged_for_a_run()):
        return is_trusted
    question = trust_question(pipeline.graph, pipeline.origin, logs_root, place=place)
    if question is None:
        return False
    if not ConsoleInterviewer().is_terminal:
        raise untrusted(question)
    if not _is_consented(question):
        raise UntrustedSource("nothing was run", surface_hash=question.surface.full_hash)
    question.remember()
    return question.surface.full_hash


def _is_consented(question: TrustQuestion) -> bool:
    """Show the commands, or what changed in them, and ask; the end of the input is a no."""
    commands = question.surface.commands
    shown = question.diff or command_lines(commands)
    asked = f"Run {'this' if len(commands) == 1 else 'these'} {command_count(commands)}"
    print("\n".join([question.headline, *filter(None, [question.where]), "", *shown, ""]), file=sys.stderr)
    print(f"{asked} ({len(shown)} lines above)? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = asyncio.run(LineInput(sys.stdin).read_line())
    if answer is None:
        print(file=sys.stderr)
    return (answer or "").strip().lower() in _CONSENTS


def show_commands(file: str, *, is_json: bool) -> ExitCode:
    """Print what a file or a run directory would run, and its hash. Runs nothing."""
    path = Path(file)
    pipeline = load_pipeline(path) if path.is_dir() else read_pipeline(file)
    surface = executable_surface(pipeline.graph)
    is_trusted = trust_question(pipeline.graph, pipeline.origin) is None
    if is_json:
        print_json(
            {
                "file": file,
                "hash": surface.full_hash if surface else None,
                "is_trusted": is_trusted,
                "commands": [
                    {"node": entry.node_id or None, "attribute": entry.attribute, "text": entry.text}
                    for entry in surface.commands
                ],
            }
        )
        return ExitCode.SUCCESS
    if not surface:
        print("no commands")
        return ExitCode.SUCCESS
    print("\n".join(command_lines(surface.commands)))
    print(f"\n{command_count(surface.commands)}, hash {surface.full_hash}")
    if not is_trusted:
        print("not trusted yet: a run at a terminal asks; --trust trusts them for one call", file=sys.stderr)
    return ExitCode.SUCCESS
