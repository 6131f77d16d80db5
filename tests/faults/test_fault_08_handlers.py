"""Fault 8: handlers that return garbage, raise whatever there is, never return, or return 100 MB."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import TerminalError
from attractor_nb.model.outcome import Usage

WORKER = Path(__file__).parent / "workers" / "hostile_results.py"
ATTEMPTS = "attractor_nb/engine/attempts.py"
OUTCOMES = "attractor_nb/engine/attempt_spending.py"
CHECKS = "attractor_nb/decisions/commits.py"
SOURCE = """digraph g {{
    start [shape=Mdiamond] work [type=own{more}] next [type=next] done [shape=Msquare]
    start -> work work -> next [condition="outcome=fail"] work -> done [condition="outcome=success"]
    next -> done
}}"""


class Lying(Outcome):
    """An outcome whose fields are not those of an outcome."""


class Unspeakable(Exception):
    """An exception that cannot be shown."""

    def __str__(self):
        raise ValueError("no")


def cyclic():
    value = {}
    value["self"] = value
    return value


GARBAGE = {
    "text": lambda: "done",
    "number": lambda: 1,
    "true": lambda: True,
    "bytes": lambda: b"\xff",
    "list": list,
    "dict": lambda: {"outcome": "success"},
    "class": lambda: Outcome,
    "exception": lambda: ValueError("returned"),
    "generator": lambda: (number for number in range(3)),
    "function": lambda: len,
    "nothing": lambda: None,
    "unknown status": lambda: Outcome("maybe"),
    "status of a wrong type": lambda: Outcome(1),
    "notes are a number": lambda: Outcome("success", notes=5),
    "label is a list": lambda: Outcome("success", preferred_label=["a"]),
    "ids are a text": lambda: Outcome("success", suggested_next_ids="done"),
    "ids are numbers": lambda: Outcome("success", suggested_next_ids=[1]),
    "updates are a list": lambda: Outcome("success", context_updates=["a"]),
    "updates are no JSON": lambda: Outcome("success", context_updates={"a": object()}),
    "updates are a cycle": lambda: Outcome("success", context_updates={"a": cyclic()}),
    "updates have a number as key": lambda: Outcome("success", context_updates={1: "a"}),
    "usage is a text": lambda: Outcome("success", usage="much"),
    "usage is negative": lambda: Outcome("success", usage=Usage(-1, 0)),
    "usage is not a number": lambda: Outcome("success", usage=Usage(0, 0, float("nan"))),
    "a subclass that lies": lambda: Lying({"success"}),
    "a huge label": lambda: Outcome("success", preferred_label="x" * 200_000),
}
RAISED = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "BaseException": BaseException,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [SystemExit(1), ValueError("x")]),
    "no message": Unspeakable,
    "surrogates": lambda: ValueError("\ud800"),
}


def judged(handler, root, more="", **options):
    """The outcome of a stage with this handler, after which the run continued."""
    handlers = {"own": handler, "next": lambda *_: Outcome.success()}
    pipeline = Pipeline(SOURCE.format(more=more), handlers=handlers)
    result = pipeline.run(wait=True, logs_root=root, durability="fast", **options)
    assert (result.status, result.completed_nodes) == ("success", ("start", "work", "next", "done"))
    outcome = result.outcomes["work"]
    assert outcome.status == "fail"
    assert outcome.failure_reason
    assert json.loads((root / "work/status.json").read_text())["outcome"] == "fail"
    return outcome.failure_reason, result


def both(give):
    """A plain handler and an async one that return or raise what is given."""

    def act():
        value = give()
        if isinstance(value, BaseException) and give in RAISED.values():
            raise value
        return value

    async def asynchronous(*_):
        return act()

    return {"plain": lambda *_: act(), "async": asynchronous}


@pytest.mark.protects(CHECKS, "    if refusal := _refusal(outcome, node_id):", instead="    if refusal := None:")
@pytest.mark.protects(
    OUTCOMES,
    'return Outcome.fail(f"the handler of {planned.id} returned {kind}, not an Outcome")',
    instead="return Outcome.success()",
)
def test_whatever_a_handler_returns_fails_its_stage_alone(tmp_path, figures):
    """Protected by: each field of an outcome is looked at; what is none is a failure that names its type."""
    count = 0
    for name, give in GARBAGE.items():
        for kind, handler in both(give).items():
            judged(handler, tmp_path / f"{name} {kind}")
            count += 1
    figures.record(8, "handlers that return garbage", f"{count} of {count}: a failed stage, and the run went on")


@pytest.mark.protects(
    ATTEMPTS,
    "        except BaseException as error:  # whatever a handler raises fails its stage (spec 4.12)",
    instead="        except Exception as error:",
)
def test_whatever_a_handler_raises_fails_its_stage_alone(tmp_path, figures):
    """Protected by: nothing that a handler raises leaves its attempt."""
    count = 0
    for name, give in RAISED.items():
        for kind, handler in both(give).items():
            for more in ("", ", timeout=60s"):
                judged(handler, tmp_path / f"{name} {kind}{more}", more)
                count += 1
    figures.record(8, "handlers that raise", f"{count} of {count}: a failed stage, and the run went on")


class Late:
    """A handler that comes back after it was given up, and then tries everything."""

    def __init__(self):
        self.release, self.tried, self.refused = threading.Event(), threading.Event(), []

    def attempt(self, act):
        try:
            act()
        except TerminalError as error:
            self.refused.append(error.message)

    def execute(self, node, context, graph, logs_root):
        self.release.wait(60)
        self.attempt(lambda: context.set("late", 1))
        self.attempt(lambda: context.apply_updates({"late": 2}))
        self.attempt(lambda: context.append_log("late"))
        self.tried.set()
        return Outcome.success(context_updates={"late": 3})


class Deaf(Late):
    """An async one that ignores that it is cancelled."""

    async def execute(self, node, context, graph, logs_root):
        loop = asyncio.get_running_loop()
        while not self.release.is_set():
            try:
                await loop.run_in_executor(None, self.release.wait, 60)
            except asyncio.CancelledError:
                continue
        return super().execute(node, context, graph, logs_root)


@pytest.mark.protects(ATTEMPTS, "            context.close()\n", instead="")
@pytest.mark.protects(
    ATTEMPTS, "return await race(self.time, contained(work), seconds, grace_seconds=grace)", instead="return await work"
)
@pytest.mark.parametrize("kind", [Late, Deaf], ids=["plain", "async"])
def test_a_handler_that_never_returns_is_given_up_and_changes_nothing_later(kind, tmp_path, figures):
    """Protected by: the time limit; the context of an attempt that is over takes no values."""
    late = kind()

    def following(node, context, graph, logs_root):
        late.release.set()
        assert late.tried.wait(60)
        return Outcome.success()

    pipeline = Pipeline(SOURCE.format(more=', timeout="200ms"'), handlers={"own": late, "next": following})
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast")
    assert "timeout" in result.outcomes["work"].failure_reason
    assert result.completed_nodes == ("start", "work", "next", "done")
    assert len(late.refused) == 3
    assert "late" not in result.context
    assert "late" not in result.context.logs
    figures.record(
        8, f"a handler that never returns ({kind.__name__})", "given up at its timeout; 3 of 3 late writes refused"
    )


MEGABYTES = 100
KINDS = {"text": 6, "bytes": 2, "notes": 4, "label": 3, "reason": 4}


@pytest.mark.protects(CHECKS, 'return f"{text[:MAX_TEXT_CHARACTERS]}…', instead='return f"{text}…')
@pytest.mark.campaign
def test_a_handler_that_returns_100_mb_costs_a_few_copies_of_it_and_no_more(tmp_path, campaign, figures):
    """Protected by: texts of an outcome are cut before they are logged; large values become artifacts."""
    megabytes = campaign.count(sample=30, full=MEGABYTES)
    grown = {}
    for kind, copies in KINDS.items():
        done = subprocess.run(
            [sys.executable, str(WORKER), kind, str(megabytes), str(tmp_path / kind)],
            check=True,
            capture_output=True,
            text=True,
        )
        told = json.loads(done.stdout)
        grown[kind] = told["grown_bytes"] / 1e6
        assert told["path"] == ["start", "work", "next", "done"], kind
        assert told["log_bytes"] < 2_000_000, kind
        assert grown[kind] < copies * megabytes + 20, kind
    worst = max(grown.values())
    figures.record(
        8,
        "handlers that return 100 MB",
        f"{len(KINDS)} of {len(KINDS)} with {megabytes} MB: log below 2 MB, memory grew by at most"
        f" {worst / megabytes:.1f} times the value",
    )
