"""Checks that an implementation keeps the contract of its protocol.

There is one function for each protocol, for the tests of your own implementations. Each raises an
AssertionError that says what the contract requires; the built-in implementations pass the same checks.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attractor_nb.calling import call
from attractor_nb.context import Context
from attractor_nb.decisions.answers.gate_choices import check_answer
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.question import Answer, Option, Question, QuestionType
from attractor_nb.protocols import BackendLifetime, CodergenBackend, Handler, Interviewer
from attractor_nb.testing.trials import try_stage

if TYPE_CHECKING:
    from collections.abc import Iterable

QUESTIONS = (
    Question(
        "Which?", options=(Option("A", "Approve"), Option("R", "Reject")), stage="choice", id="choice:1"
    ),
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


async def verify_handler(
    handler: Any, node: Node | None = None, graph: Graph | None = None
) -> Outcome | None:
    """Check a handler on a node (spec 4.1, 4.12), and return its outcome.

    The handler must return an Outcome or None, leave node and graph unchanged, put only values into
    the context that it can store, and do the same when several of its stages run at the same time.
    """
    assert isinstance(handler, Handler), "a handler has execute(node, context, graph, logs_root)"
    node = node or Node("stage", {"prompt": "Say something.", "tool_command": "true"})
    graph = graph or Graph(
        "conformance",
        nodes={node.id: node, "next": Node("next")},
        edges=(Edge(node.id, "next", {"label": "Next"}),),
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
        assert isinstance(result, str | Outcome), (
            f"a backend returns text or an Outcome, not {type(result).__name__}"
        )
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
        check_answer(question, answer)
    await call(interviewer.inform, "a message", "stage")
    return answers
