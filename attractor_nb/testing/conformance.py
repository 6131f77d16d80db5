"""Checks that an implementation keeps the contract of its protocol; one attempt of one handler.

There is one function for each protocol, for the tests of your own implementations. Each raises an
AssertionError that says what the contract requires; the built-in implementations pass the same checks.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attractor_nb.context import Context
from attractor_nb.decisions.gate_choices import answer_problem, check_answer
from attractor_nb.maybe_async import call
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.question import Answer, Option, Question, QuestionType
from attractor_nb.processes import LocalProcesses
from attractor_nb.protocols import BackendLifetime, CodergenBackend, Handler, Interviewer
from attractor_nb.runtime.workspace.workspace import Folder, RunWorkplace
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.storage.run_directory import WORKSPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from attractor_nb.model.events import Event

QUESTIONS = (
    Question("Which?", options=(Option("A", "Approve"), Option("R", "Reject")), stage="choice", id="choice:1"),
    Question("Sure?", QuestionType.YES_NO, stage="yes_no", id="yes_no:1"),
    Question("Really?", QuestionType.CONFIRMATION, stage="confirmation", id="confirmation:1"),
    Question("Why?", QuestionType.FREEFORM, stage="freeform", id="freeform:1"),
    Question(
        "Which ones?",
        QuestionType.MULTI_SELECT,
        options=(Option("T", "Tests"), Option("D", "Docs"), Option("X", "Examples")),
        stage="several",
        id="several:1",
    ),
)
"""One question of each type."""


class FolderFiles:
    """A plain folder as the directory of a stage (``stage.StageFiles``)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def directory(self) -> Path:
        """The folder; made when first asked for."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return self._directory

    def write_text(self, name: str, text: str) -> None:
        """Write a file."""
        (self.directory / name).write_text(text, "utf-8", "backslashreplace")

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file that may hold anything, and be in folders of the stage's."""
        place = self.directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write the text that ``compose`` gives into a new file; whether it is."""
        if (self.directory / name).exists():
            return False
        self.write_text(name, compose())
        return True

    def append_text(self, name: str, text: str) -> None:
        """Add to a file."""
        with (self.directory / name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)

    def read_text(self, name: str) -> str | None:
        """The text of a file; None when there is none."""
        path = self._directory / name
        return path.read_text("utf-8") if path.exists() else None

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name."""
        (self._directory / name).rename(self._directory / new_name)


@dataclass(frozen=True, slots=True)
class StageTrial:
    """The result of one attempt: its outcome, events and files."""

    outcome: Outcome | None  #: Return value of the handler.
    events: tuple[Event, ...]  #: The events that it emitted.
    files: FolderFiles  #: The files that it wrote.
    context: Context  #: The context that it was given, with its own changes.


async def try_stage(
    handler: Handler,
    node: Node,
    logs_root: Path,
    *,
    graph: Graph | None = None,
    context: Context | None = None,
    preamble: str = "",
    complaint: str = "",
    visit: int = 1,
    attempt: int = 1,
) -> StageTrial:
    """Run one attempt of a handler in its own stage scope, as the engine would.

    Args:
        node: The node it executes.
        logs_root: The run directory; the stage's folder is made in it.
        graph: The node's graph; by default one of this node alone.
        context: The run's context; by default an empty one.
        preamble: Context carried into a model's prompt.
        complaint: What was wrong with the last response of this visit.
        visit: Which visit of the node it is.
        attempt: Which attempt of the visit it is.
    """
    graph = graph or Graph("trial", nodes={node.id: node})
    context = Context() if context is None else context
    events: list[Event] = []
    files = FolderFiles(logs_root / node.id)
    workspace = (logs_root / WORKSPACE_NAME).absolute()
    workspace.mkdir(parents=True, exist_ok=True)
    scope = StageScope(
        run_id="trial",
        node_id=node.id,
        visit=visit,
        attempt=attempt,
        logs_root=logs_root,
        files=files,
        announce=events.append,
        preamble=preamble,
        complaint=complaint,
        workplace=RunWorkplace(graph, Folder(workspace), LocalProcesses()),
    )
    variables = copy_context()
    variables.run(enter_stage, scope)
    work = call(handler.execute, node, context, graph, logs_root)
    outcome = await asyncio.get_running_loop().create_task(work, context=variables)
    return StageTrial(outcome, tuple(events), files, context)


async def verify_handler(handler: Any, node: Node | None = None, graph: Graph | None = None) -> Outcome | None:
    """Check a handler on a node (spec 4.1, 4.12), and return its outcome.

    The handler must return an Outcome or None, leave node and graph unchanged, put only values into
    the context that it can store, and do the same when several of its stages run at the same time.
    """
    assert isinstance(handler, Handler), "a handler has execute(node, context, graph, logs_root)"
    node = node or Node("stage", {"prompt": "Say something.", "tool_command": "true"})
    graph = graph or Graph(
        "conformance", nodes={node.id: node, "next": Node("next")}, edges=(Edge(node.id, "next", {"label": "Next"}),)
    )
    before = graph.to_plain()
    with TemporaryDirectory() as folder:
        roots = [Path(folder) / str(number) for number in range(3)]
        trials = await asyncio.gather(*(try_stage(handler, node, root, graph=graph) for root in roots))
    for trial in trials:
        assert trial.outcome is None or isinstance(trial.outcome, Outcome), (  # pyright: ignore[reportUnnecessaryIsInstance] - it is what is checked
            f"a handler returns an Outcome or None, not {type(trial.outcome).__name__}"
        )
        if trial.outcome is not None:
            Context().apply_updates(trial.outcome.context_updates)
    statuses = {None if trial.outcome is None else trial.outcome.status for trial in trials}
    assert len(statuses) == 1, f"a handler keeps no state between stages; it gave {statuses}"
    assert graph.to_plain() == before, "a handler changes neither node nor graph"
    return trials[0].outcome


async def verify_backend(backend: Any, node: Node | None = None) -> str | Outcome:
    """Check a backend (spec 4.5), and return its response.

    The backend must return a text or an Outcome, serve several calls at the same time, and work
    outside a run. If it can be opened and closed, it must accept a second close and a new open.
    """
    assert isinstance(backend, CodergenBackend), "a backend has run(node, prompt, context)"
    node = node or Node("stage", {"prompt": "Say hello."})
    lifetime = backend if isinstance(backend, BackendLifetime) else None
    rounds = 1 if lifetime is None else 2
    results: list[Any] = []
    for _ in range(rounds):
        if lifetime is not None:
            await lifetime.open()
        try:
            calls = [call(backend.run, node, node.prompt, Context()) for _ in range(2)]
            results.extend(await asyncio.gather(*calls))
        finally:
            if lifetime is not None:
                await lifetime.close()
                await lifetime.close()
    for result in results:
        assert isinstance(result, str | Outcome), f"a backend returns text or an Outcome, not {type(result).__name__}"
    return results[0]


async def verify_interviewer(interviewer: Any, questions: Iterable[Question] = QUESTIONS) -> list[Answer]:
    """Check an interviewer on questions of every type (spec 6.1), and return its answers.

    Each answer must fit its question, or say that the question was skipped or timed out.
    ``ask_multiple`` must return the answers in order, and ``inform`` must return.
    """
    assert isinstance(interviewer, Interviewer), "an interviewer has ask, ask_multiple and inform"
    asked = tuple(questions)
    answers = [await call(interviewer.ask, question) for question in asked]
    several = await call(interviewer.ask_multiple, asked)
    assert len(several) == len(asked), "ask_multiple gives one answer for each question"
    for question, answer in zip(asked * 2, [*answers, *several], strict=True):
        assert isinstance(answer, Answer), f"an answer to {question.type} is no Answer: {answer!r}"  # pyright: ignore[reportUnnecessaryIsInstance] - it is what is checked
        assert not (problem := answer_problem(answer)), f"an answer to {question.type} is an Answer {problem}"
        check_answer(question, answer)
    await call(interviewer.inform, "a message", "stage")
    return answers
