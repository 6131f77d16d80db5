"""``run`` and ``resume``: a run from the command line, watched, asked at the console, summed up."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from attractor_nb.cli.option_choices import BackendName, GateMode, GraphChange, OnInterrupted, Settings
from attractor_nb.cli.quiet_progress import QuietProgress
from attractor_nb.cli.reporting import ExitCode, print_json, report
from attractor_nb.cli.run_summary import (
    answer_command,
    can_be_resumed,
    failed_lines,
    in_words,
    resume_command,
    shown_path,
    summary_plain,
)
from attractor_nb.cli.source_inputs import read_params, read_pipeline
from attractor_nb.cli.tones import Tone
from attractor_nb.decisions.gate_choices import form_words
from attractor_nb.decisions.log_history import open_questions
from attractor_nb.decisions.planning.executable_surface import Command, ExecutableSurface, executable_surface
from attractor_nb.decisions.planning.model_choices import is_model_asked
from attractor_nb.errors import (
    AttractorError,
    OptionError,
    RunInterrupted,
    StorageError,
    TerminalError,
    UntrustedSource,
)
from attractor_nb.given_files import read_file
from attractor_nb.interviewers import AutoApproveInterviewer, ConsoleInterviewer, PausingInterviewer
from attractor_nb.interviewers.terminal_input import LineInput
from attractor_nb.model.diagnostic import Severity, listed, rest_line
from attractor_nb.model.states import PAUSED
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.pipeline.run import Run
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.text_sources import changed_source
from attractor_nb.runtime.prepare.trust import TrustQuestion, trust_question, untrusted, where_commands_run
from attractor_nb.runtime.stored_state import choices_of
from attractor_nb.runtime.workspace.worktree import place_facts
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.stored_run import read_facts
from attractor_nb.views.drawings.drawing import SEVERITY_LETTERS
from attractor_nb.views.shown_commands import are_commands, command_count, command_lines
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from attractor_nb.model.question import Answer, Question
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.runtime.handles.handle import Handle, ResultT
    from attractor_nb.runtime.handles.run_result import RunResult


_REQUESTS_TO_END: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]  # Windows has no SIGHUP


def run_file(
    file: str,
    settings: Settings,
    *,
    params: Mapping[str, Any] = MappingProxyType({}),
    logs_root: Path | None = None,
    runs_dir: Path | None = None,
    is_strict: bool = False,
) -> ExitCode:
    """Run the pipeline of a file, or of stdin for ``-``."""
    if logs_root is not None and runs_dir is not None:
        raise OptionError(
            "--logs-root and --runs-dir are both given",
            hint="--logs-root is the directory of this run, --runs-dir the folder for new run directories",
        )
    pipeline = read_pipeline(file, is_strict=is_strict)
    place = {"logs_root": logs_root, "runs_dir": runs_dir}
    return run_pipeline(pipeline, settings, {"params": params, **place})


def run_pipeline(pipeline: Pipeline, settings: Settings, options: dict[str, Any]) -> ExitCode:
    """Run a pipeline, with further options of ``Pipeline.run``."""

    def start(given: dict[str, Any]) -> Run:
        chosen: dict[str, Any] = {**options, **given, "backend": settings.made_backend or settings.first_backend}
        return pipeline.run(wait=False, **chosen)

    return _watch(pipeline, settings, start, backend=settings.first_backend)


def resume_directory(
    logs_root: Path,
    settings: Settings,
    *,
    graph: str = "",
    on_graph_change: GraphChange = GraphChange.ERROR,
    on_interrupted: OnInterrupted | None = None,
    rewind_to: str | None = None,
    visit: int | None = None,
    take_over: bool = False,
) -> ExitCode:
    """Resume the run of a directory, with its own graph or that of a file; or rewind it."""
    pipeline = read_pipeline(graph) if graph else load_pipeline(logs_root)
    if settings.gates is None and read_facts(logs_root).get("status") == PAUSED and not is_asked_here():
        settings = replace(settings, gates=GateMode.PAUSE)  # a gate that fails there would end the run for good

    def start(given: dict[str, Any]) -> Run:
        policy = on_interrupted.value if on_interrupted else None
        run = pipeline.resume(
            logs_root,
            on_graph_change=on_graph_change.value,
            on_interrupted=policy,
            rewind_to=rewind_to,
            visit=visit,
            take_over=take_over,
            wait=False,
            **given,
        )
        changed = changed_source(pipeline, logs_root / SOURCE_NAME, read_facts(logs_root))
        if changed is not None and not settings.is_quiet:
            name = shown_path(changed)
            command = resume_command(logs_root, "--graph", name, "--on-graph-change", "accept")
            print(f"hint: `{command}` resumes with the current {name}", file=sys.stderr)
        return run

    return _watch(pipeline, settings, start, logs_root, backend=_kept_backend(settings, logs_root))


def fork_directory(
    logs_root: Path,
    node: str,
    settings: Settings,
    *,
    visit: int | None = None,
    values: Sequence[str] = (),
    prompt: Path | None = None,
    graph: str = "",
    fork_root: Path | None = None,
) -> ExitCode:
    """Begin a run that goes another way from before a visit of a run, which stays as it is."""
    pipeline = read_pipeline(graph) if graph else load_pipeline(logs_root)
    parent = Run.load(logs_root, None if graph else pipeline)
    changes: dict[str, Any] = {
        "context": read_params(values, "--set"),
        "prompt": None if prompt is None else read_file(prompt),
    }

    def start(given: dict[str, Any]) -> Run:
        other = pipeline if graph else None
        return parent.fork(node, visit, **changes, pipeline=other, logs_root=fork_root, wait=False, **given)

    return _watch(pipeline, settings, start, logs_root, backend=_kept_backend(settings, logs_root))


def _title(pipeline: Pipeline) -> str:
    name, label = redacted(pipeline.name), one_line(redacted(pipeline.graph.get("label", str, "")))
    return f"{name}   {label}" if label and label != name else name


def _kept_backend(settings: Settings, logs_root: Path) -> str | None:
    """The backend of a resumed run: the one that the options name, else the recorded one."""
    return settings.named_backend or read_facts(logs_root).get("backend")


def _watch(
    pipeline: Pipeline,
    settings: Settings,
    start: Callable[[dict[str, Any]], Run],
    logs_root: Path | None = None,
    *,
    backend: str | None,
) -> ExitCode:
    """Start a run, or continue the one in ``logs_root``, show it, and sum it up."""
    trust = settings.trust_hash or settled_trust(
        pipeline,
        is_trusted=settings.needs_no_question,
        logs_root=logs_root,
        place=_place(pipeline, settings, logs_root),
        recorded=() if logs_root is None else recorded_by(logs_root, pipeline, settings),
    )
    progress = _progress(pipeline, settings, backend)
    run = start({**_options(settings, progress), "trust": trust})
    try:
        result = wait_for(run)
    except StorageError as error:
        report(error, is_json=settings.is_json)
        return ExitCode.FAILED
    finally:
        progress.close()
    with contextlib.suppress(OSError):  # the reader has gone: the exit code says it all
        _show(run, result, settings, progress)
    return ExitCode.of(result.status, is_unmeasured=result.is_unmeasured) if result else ExitCode.INTERRUPTED


def _progress(pipeline: Pipeline, settings: Settings, backend: str | None) -> QuietProgress:
    if settings.is_quiet:
        return QuietProgress()
    from attractor_nb.cli.progress import ProgressDisplay  # noqa: PLC0415 - a quiet run needs no terminal

    return ProgressDisplay(
        pipeline.graph, heading=_heading(pipeline, settings, backend), is_verbose=settings.is_verbose
    )


def _place(pipeline: Pipeline, settings: Settings, logs_root: Path | None) -> str:
    """The place where commands would run, in words: as the options say, else as in the earlier run."""
    facts: Mapping[str, Any] = {} if logs_root is None else place_facts(logs_root)
    place = {**facts, **settings.options}
    return where_commands_run(pipeline.graph, place.get("isolation"), place.get("workdir"))


def _heading(pipeline: Pipeline, settings: Settings, backend: str | None) -> list[tuple[str, Tone]]:
    """The title of the pipeline, the warnings of lint, and whether anything is real."""
    lines = [(_title(pipeline), Tone.STRONG)]
    warnings = [found for found in pipeline.diagnostics if found.severity is Severity.WARNING]
    for _, found in listed(warnings):
        place = f"{found.place}  " if found.place else ""
        mark = SEVERITY_LETTERS[found.severity]
        lines.append((f"{mark} {place}{one_line(found.message)} [{found.rule}]", Tone.WAITING))
    if rest := rest_line(warnings):
        lines.append((rest, Tone.WAITING))
    if settings.is_simulated:
        lines.append(("simulated: no model is called, no command is run", Tone.QUIET))
    elif settings.is_replay:
        lines.append(
            (f"replayed from {settings.options['cassette']}: no model is called, no command is run", Tone.QUIET)
        )
    elif settings.backend is None and backend == BackendName.SIMULATED and is_model_asked(pipeline.graph):
        lines.append(("responses are simulated; --backend local uses the model on this machine", Tone.QUIET))
    return [*lines, ("", Tone.PLAIN)]


def _options(settings: Settings, progress: QuietProgress) -> dict[str, Any]:
    return {
        "backend": settings.made_backend,
        "interviewer": gate_interviewer(settings.gates, progress),
        "cache": settings.cache,
        **settings.options,
        "observers": [progress.take],
        "processes": SimulatedProcesses() if settings.is_simulated else None,
    }


def wait_for(run: Handle[ResultT]) -> ResultT | None:
    """The result of a run or a map; of one that was interrupted, what there is of it."""
    with requests_to_end_as_interrupts():
        try:
            return run.result()
        except (RunInterrupted, KeyboardInterrupt):
            if not run.is_done:
                return None  # a second Ctrl-C: leave at once
            with contextlib.suppress(AttractorError, TimeoutError):
                return run.result(0.0)
            raise


@contextlib.contextmanager
def requests_to_end_as_interrupts() -> Generator[None]:
    """TERM, and HUP when the terminal is closed, stop a run as Ctrl-C does: in order, to be resumed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _REQUESTS_TO_END}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(run: Run, result: RunResult | None, settings: Settings, progress: QuietProgress) -> None:
    """The outcome on stdout; how to continue, which is no result, on stderr."""
    progress.say("")
    if result is not None and result.cassette is not None:
        progress.say(f"cassette: {result.cassette}")
    if settings.is_json:
        print_json(summary_plain(run, result, progress.tally))
    elif result is not None:
        print(in_words(result))
    sys.stdout.flush()
    if not settings.is_json and run.logs_root.is_dir():
        print(*failed_lines(run), sep="\n", end="", file=sys.stderr)
    if can_be_resumed(result, progress.tally) and run.logs_root.is_dir():
        node = run.view.next_node
        if not settings.is_json:
            print(*_questions(run.logs_root), sep="\n", end="", file=sys.stderr)
        where = f"Stopped at `{node}`; resume" if node else "Resume"
        command = resume_command(run.logs_root, *settings.kept_options(run.view.bound))
        print(f"{where} with `{command}`", file=sys.stderr)


def _questions(logs_root: Path) -> list[str]:
    """The questions that wait in a run directory, each with the command that answers it."""
    waiting = open_questions(read_log(logs_root).events).values()
    if not waiting:
        return []
    from attractor_nb.cli.run_watched import question_lines  # noqa: PLC0415 - few runs stop at a gate

    lines = (question_lines(asked, answer_command(logs_root, asked.stage)) for asked in waiting)
    return [*(line for shown in lines for line in shown), ""]


@dataclass(frozen=True, slots=True)
class SimulatedResult:
    """A command that is said to have succeeded."""

    stdout: str
    exit_code: int = 0
    stderr: str = ""
    is_timed_out: bool = False


class SimulatedProcesses:
    """Starts nothing."""

    starts_nothing = True

    async def run(self, command: str | Sequence[str], **_how: Any) -> SimulatedResult:
        """Say which command would have been run."""
        text = command if isinstance(command, str) else shlex.join(command)
        return SimulatedResult(f"[Simulated] {one_line(text)}\n")


# Interviewers of the command line: for gates, and for foreign commands.

_CONSENTS = frozenset({"y", "yes"})


class _Asks(Protocol):
    """The common interface of all interviewers used here."""

    async def ask(self, question: Question) -> Answer: ...
    async def inform(self, message: str, stage: str) -> None: ...


def gate_interviewer(mode: GateMode | None, progress: QuietProgress) -> InTurn:
    """The interviewer that answers gates. Without a terminal or an option, gates have no answer.

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
    """True if there is a terminal at which a user can be asked."""
    return ConsoleInterviewer().is_terminal


class InTurn:
    """Asks when all that happened before the question is on the screen, so that a menu is alone.

    Args:
        inner: Who is asked.
        progress: What is on the screen.
        is_piped: Answers come over a pipe: they are repeated, for they were not typed here.
    """

    def __init__(self, inner: _Asks, progress: QuietProgress, *, is_piped: bool = False) -> None:
        self._inner = inner
        self._progress = progress
        self._is_piped = is_piped
        self.refuses_all = getattr(inner, "refuses_all", False)
        self.pauses_run = getattr(inner, "pauses_run", False)

    async def ask(self, question: Question) -> Answer:
        """The answer of the interviewer."""
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
    """There is no terminal, and no option names another interviewer: the gate fails, and approves nothing."""

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
    """The commands that a directory would choose by itself, given the options of the command line."""
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
        logs_root: The run directory that shall continue, if any.
        place: Where the commands would run, as ``where_commands_run`` says.
        recorded: What that directory would choose by itself, as ``recorded_choices`` says.
    """
    if is_trusted or any(found.is_error for found in pipeline.run_diagnostics()):
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
