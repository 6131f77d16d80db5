"""Who is asked at a command line: about gates, and about commands that come from elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.option_choices import GateMode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.source_inputs import read_pipeline
from attractor_nb.decisions.answers.form_answers import form_words
from attractor_nb.decisions.planning.executable_surface import ExecutableSurface, executable_surface
from attractor_nb.errors import TerminalError, UntrustedSource
from attractor_nb.interviewers import AutoApproveInterviewer, ConsoleInterviewer, PausingInterviewer
from attractor_nb.interviewers.terminal_input import LineInput
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.runtime.prepare.trust import trust_question, untrusted
from attractor_nb.runtime.recorded_options import choices_of
from attractor_nb.views.shown_commands import are_commands, command_count, command_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.cli.quiet_progress import QuietProgress
    from attractor_nb.cli.run_settings import Settings
    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.runtime.prepare.trust import TrustQuestion

_CONSENTS = frozenset({"y", "yes"})


class _Asks(Protocol):
    """What all interviewers used here can do."""

    async def ask(self, question: Question) -> Answer: ...
    async def inform(self, message: str, stage: str) -> None: ...


def gate_interviewer(mode: GateMode | None, progress: QuietProgress) -> InTurn:
    """Who answers gates. Without a terminal and without a word from the user: nobody.

    Args:
        mode: What the user said, or None.
        progress: What is on the screen before a question.
    """
    if mode is GateMode.AUTO:
        return InTurn(AutoApproveInterviewer(), progress)
    if mode is GateMode.PAUSE:
        return InTurn(PausingInterviewer(), progress)
    console = ConsoleInterviewer()
    if mode is GateMode.CONSOLE or (mode is None and console.is_terminal):
        return InTurn(console, progress, is_piped=not console.is_terminal)
    return InTurn(_Nobody(), progress)


def is_asked_here() -> bool:
    """Whether there is a terminal at which somebody can be asked."""
    return ConsoleInterviewer().is_terminal


class InTurn:
    """Asks when all that happened before the question is on the screen, so that a menu stands alone.

    Args:
        inner: Who is asked.
        progress: What is on the screen.
        is_piped: Answers come over a pipe: they are repeated, for nobody has typed them here.
    """

    def __init__(self, inner: _Asks, progress: QuietProgress, *, is_piped: bool = False) -> None:
        self._inner = inner
        self._progress = progress
        self._is_piped = is_piped
        self.refuses_all = getattr(inner, "refuses_all", False)
        self.pauses_run = getattr(inner, "pauses_run", False)

    async def ask(self, question: Question) -> Answer:
        """The answer of whoever is asked."""
        await asyncio.to_thread(self._progress.wait_until_asked, question.id)
        answer = await self._inner.ask(question)
        if self._is_piped and not answer.is_skipped and not answer.is_timeout:
            filled = f" ({form_words(answer.form)})" if answer.form else ""
            print(f"{answer.text or answer.value}{filled}", file=sys.stderr)
        return answer

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """The questions one after another."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass a message on."""
        await self._inner.inform(message, stage)


class _Nobody:
    """There is no terminal, and nobody said who else answers: the gate fails, and approves nothing."""

    refuses_all = True

    async def ask(self, question: Question) -> NoReturn:
        raise TerminalError(
            f"gate `{question.stage}` needs an answer, and there is no terminal",
            hint="--gates pause stops the run here, to be answered later; --auto-approve takes the first choice; "
            "--gates console reads answers from stdin",
        )

    async def inform(self, message: str, stage: str) -> None:
        del message, stage


def recorded_by(directory: Path, pipeline: Pipeline, settings: Settings) -> tuple[Command, ...]:
    """What a directory would choose by itself, with what the options of the command line leave to it."""
    return choices_of(
        directory,
        pipeline.graph,
        is_backend_given=settings.named_backend is not None,
        is_place_given=settings.is_place_given,
        is_trusted=settings.needs_no_question,
    )


def settled_trust(
    pipeline: Pipeline,
    *,
    is_trusted: bool,
    logs_root: Path | None = None,
    place: str = "",
    recorded: Sequence[Command] = (),
) -> bool | str:
    """The option ``trust`` of a run: what the user said, or answers now at a terminal.

    A yes is the hash of what was on the screen, so that this and nothing else is run.

    Args:
        pipeline: What shall run.
        is_trusted: The user said ``--trust``, or no command will be run.
        logs_root: The run directory that shall go on, if any.
        place: Where the commands would run, as ``where_commands_run`` says.
        recorded: What that directory would choose by itself, as ``recorded_choices`` says.
    """
    if is_trusted or any(found.is_error for found in pipeline.judged_for_a_run()):
        return is_trusted
    question = trust_question(pipeline.graph, pipeline.origin, logs_root, place=place, recorded=recorded)
    if question is None:
        return False
    if not ConsoleInterviewer().is_terminal:
        raise untrusted(question)
    if not _is_consented(question):
        raise UntrustedSource("nothing was run", surface_hash=question.surface.full_hash)
    return question.remember()


def _is_consented(question: TrustQuestion) -> bool:
    """Show the commands, or what changed in them, and ask; the end of the input is a no."""
    commands = question.surface.commands
    shown = question.diff or command_lines(commands)
    these = f"{'this' if len(commands) == 1 else 'these'} "
    asked = f"Run {these}{command_count(commands)}" if are_commands(commands) else f"Trust {command_count(commands)}"
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
    logs_root = path if path.is_dir() else None
    recorded = choices_of(path, pipeline.graph, is_backend_given=False) if path.is_dir() else ()
    surface = ExecutableSurface((*executable_surface(pipeline.graph).commands, *recorded))
    is_trusted = trust_question(pipeline.graph, pipeline.origin, logs_root, recorded=recorded) is None
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
