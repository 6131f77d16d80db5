"""The outcome of one attempt: garbage, exceptions of every kind, time limits, status files (ruling 27)."""

import asyncio
import json
import threading

import pytest

from attractor_nb import Outcome, RetryableError, StageStatus, TerminalError
from attractor_nb.testing import ManualClock

ONE = 'a [type="own"{more}] start -> a -> done'


def run_one(make, handler, more="", **options):
    pipeline = make(ONE.format(more=more), handlers={"own": handler})
    return pipeline.run(wait=True, **{"durability": "fast", **options})


def raising(error):
    def execute(node, context, graph, logs_root):
        raise error

    async def execute_async(node, context, graph, logs_root):
        raise error

    return execute, execute_async


@pytest.mark.parametrize("kind", [0, 1], ids=["plain", "async"])
@pytest.mark.parametrize("more", ["", ", timeout=60s"], ids=["no_limit", "with_limit"])
@pytest.mark.parametrize(
    ("error", "reasons"),
    [
        (ValueError("wrong"), ["ValueError: wrong"] * 2),
        (RetryableError("busy"), ["busy"] * 2),
        (TerminalError("no key"), ["no key"] * 2),
        (asyncio.CancelledError("its own"), ["CancelledError: its own"] * 2),
        (SystemExit(3), ["SystemExit: 3"] * 2),
        (KeyboardInterrupt("its own"), ["KeyboardInterrupt: its own"] * 2),
        (GeneratorExit("its own"), ["RuntimeError: GeneratorExit('its own') left NAME", "GeneratorExit: its own"]),
        (
            StopIteration("its own"),
            ["RuntimeError: StopIteration('its own') left NAME", "RuntimeError: coroutine raised StopIteration"],
        ),
        (TimeoutError("late"), ["TimeoutError: late"] * 2),
        (MemoryError("full"), ["MemoryError: full"] * 2),
        (RecursionError("deep"), ["RecursionError: deep"] * 2),
        (ExceptionGroup("two", [ValueError("1"), KeyError("2")]), ["ExceptionGroup: two (2 sub-exceptions)"] * 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_a_handler_raises_fails_its_stage_and_nothing_else(make, error, reasons, more, kind):
    execute = raising(error)[kind]
    result = run_one(make, execute, more)
    assert (result.status, result.reason) == ("fail", reasons[kind].replace("NAME", repr(execute)))


def test_the_engine_goes_on_with_other_runs_after_a_handler_left_by_system_exit(make):
    for error in (SystemExit(1), KeyboardInterrupt()):
        run_one(make, raising(error)[1], ", timeout=60s")
        assert make("start -> done").run(wait=True, durability="none").status == "success"


@pytest.mark.parametrize(
    ("error", "tries"),
    [(RetryableError("busy"), 3), (ValueError("wrong"), 3), (TerminalError("no key"), 1), (ConnectionError(), 3)],
    ids=lambda value: type(value).__name__,
)
def test_appendix_d_an_exception_is_retried_as_its_class_says(make, seams, error, tries):
    calls = []

    def execute(node, context, graph, logs_root):
        calls.append(node.id)
        raise error

    run_one(make, execute, ", max_retries=2", **seams())
    assert len(calls) == tries


@pytest.mark.parametrize("value", [1, "done", [], {"outcome": "success"}, StageStatus.SUCCESS], ids=repr)
def test_what_is_no_outcome_is_a_failure_that_names_its_type(make, value):
    result = run_one(make, lambda node, context, graph, logs_root: value)
    assert result.reason == f"the handler of a returned {type(value).__name__}, not an Outcome"


def test_silence_is_a_failure(make):
    assert "no status: a returned nothing" in run_one(make, lambda *_: None).reason


class Stubborn:
    """A handler that goes on when it is cancelled."""

    def __init__(self):
        self.release = None
        self.begun = threading.Event()
        self.cancelled = 0

    async def execute(self, node, context, graph, logs_root):
        self.release = asyncio.Event()
        self.begun.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > 3:
                    raise
        return Outcome.success()


def test_a_handler_that_takes_too_long_is_retry(make):
    async def forever(node, context, graph, logs_root):
        await asyncio.Event().wait()

    result = run_one(make, forever, ", timeout=900s", clock=ManualClock())
    assert result.status == "fail"
    assert "timeout: a took more than 15m" in result.reason


def test_a_plain_handler_that_never_returns_is_left_behind_at_its_timeout(make):
    release = threading.Event()
    result = run_one(make, lambda *_: release.wait(60), ", timeout=900s", clock=ManualClock())
    release.set()
    assert "timeout: a took more than 15m" in result.reason


def test_a_handler_that_ignores_its_cancellation_is_left_behind_too(make):
    handler = Stubborn()
    result = run_one(make, handler, ", timeout=900s", clock=ManualClock())
    assert "timeout: a took more than 15m" in result.reason
    assert handler.cancelled == 1
    handler.cancelled = 3


def test_a_handler_within_its_time_keeps_its_outcome(make):
    assert run_one(make, lambda *_: Outcome.success(), ", timeout=60s").status == "success"


def written(**plain):
    def execute(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text(json.dumps(plain))

    return execute


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        pytest.param({"outcome": "maybe"}, "'maybe' is not known", id="unknown_outcome"),
        pytest.param({}, 'has no "outcome"', id="no_outcome"),
        pytest.param({"outcome": "success", "notes": 3}, "notes is a number", id="wrong_type"),
        pytest.param(
            {"outcome": "success", "context_updates": {"graph.goal": "x"}}, "belongs to the engine", id="reserved"
        ),
        pytest.param(
            {"outcome": "success", "suggested_next_ids": ["nowhere"]}, "which no outgoing edge", id="no_target"
        ),
    ],
)
def test_ruling_27_a_broken_status_file_fails_with_the_reason_and_is_kept(make, tmp_path, plain, reason):
    result = run_one(make, written(**plain), durability="fast", logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert reason in result.reason
    assert json.loads((tmp_path / "run/a/status.rejected.json").read_text()) == plain
    assert json.loads((tmp_path / "run/a/status.json").read_text())["outcome"] == "fail"


@pytest.mark.parametrize("key", ["outcome", "status"])
@pytest.mark.parametrize("label", ["preferred_next_label", "preferred_label"])
def test_ruling_27_other_spellings_are_read(make, key, label):
    pipeline = make(
        'a [type="own"] x y start -> a a -> x [label=X] a -> y [label=Y] x -> done y -> done',
        handlers={"own": written(**{key: "success", label: "Y"})},
    )
    assert pipeline.run(wait=True, durability="fast").completed_nodes == ("start", "a", "y", "done")


def test_ruling_27_a_status_file_of_an_earlier_attempt_never_counts(make, seams, tmp_path):
    calls = []

    def execute(node, context, graph, logs_root):
        calls.append((logs_root / node.id / "status.json").exists())
        if len(calls) == 1:
            written(outcome="success")(node, context, graph, logs_root)
            raise RetryableError("after the file was written")
        return

    result = run_one(make, execute, ", max_retries=1", durability="fast", logs_root=tmp_path / "run", **seams())
    assert calls[0] is False
    assert result.visits["a"] == 1


def test_ruling_27_precedence_is_file_then_outcome(make):
    def both(node, context, graph, logs_root):
        written(outcome="partial_success", context_updates={"from": "file"})(node, context, graph, logs_root)
        return Outcome.success("returned", context_updates={"also": "returned"})

    result = run_one(make, both)
    assert result.outcomes["a"].status is StageStatus.PARTIAL_SUCCESS
    assert (result.context["from"], result.context["also"]) == ("file", "returned")


def test_ruling_27_status_json_says_attempt_visit_duration_and_reason(make, seams, tmp_path):
    run_one(
        make, lambda *_: Outcome.fail("no"), ", max_retries=1", durability="fast", logs_root=tmp_path / "run", **seams()
    )
    status = json.loads((tmp_path / "run/a/status.json").read_text())
    assert (status["attempt"], status["visit"], status["failure_reason"]) == (2, 1, "no")
    assert isinstance(status["duration_ms"], int)


def test_ruling_28_earlier_attempts_and_visits_are_kept(make, seams, tmp_path):
    pipeline = make(
        'a [max_retries=1] b start -> a -> b b -> a [condition="outcome=fail"] b -> done',
        {"a": ["one", "two"], "b": [Outcome.fail("again"), "fine"]},
    )
    pipeline.run(wait=True, durability="fast", logs_root=tmp_path / "run", **seams())
    assert (tmp_path / "run/a/response.md").read_text() == "two"
    assert (tmp_path / "run/a/visits/1.1/response.md").read_text() == "one"
    assert json.loads((tmp_path / "run/b/visits/1.1/status.json").read_text())["outcome"] == "fail"


def test_ruling_31_a_direct_set_of_what_json_cannot_keep_fails_the_stage_naming_the_key(make):
    def execute(node, context, graph, logs_root):
        context.set("answer", object())

    result = run_one(make, execute)
    assert "context key 'answer'" in result.reason


def test_the_scope_of_the_stage_reaches_plain_handlers_in_their_thread(make):
    from attractor_nb import current_stage

    def execute(node, context, graph, logs_root):
        scope = current_stage()
        return Outcome.success(f"{scope.node_id} {scope.visit} {scope.attempt}")

    assert run_one(make, execute).outcomes["a"].notes == "a 1 1"
