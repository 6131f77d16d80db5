"""checkpoint.json shows what is committed while a long stage goes on (ruling 29)."""

import asyncio
import json

from attractor_nb import Outcome, Pipeline
from tests.waiting import wait_until

TEXT = """digraph G { start [shape=Mdiamond] done [shape=Msquare]
    a [type=quick] b [type=quick] long [type=long] start -> a -> b -> long -> done }"""


class Quick:
    async def execute(self, node, context, graph, logs_root):
        return Outcome.success()


class Long:
    """Goes on until it is told to end."""

    def __init__(self):
        self.is_over = False

    async def execute(self, node, context, graph, logs_root):
        while not self.is_over:  # noqa: ASYNC110 - told from another thread
            await asyncio.sleep(0.01)
        return Outcome.success()


def completed(root):
    path = root / "checkpoint.json"
    return json.loads(path.read_text())["completed_nodes"] if path.exists() else []


def test_a_long_stage_does_not_keep_earlier_ones_out_of_the_checkpoint():
    long = Long()
    run = Pipeline(TEXT, handlers={"quick": Quick(), "long": long}).run(logs_root="run")
    wait_until(lambda: completed(run.logs_root) == ["start", "a", "b"], "a checkpoint of the stages before")
    long.is_over = True
    assert run.result(60).status == "success"
    assert completed(run.logs_root) == ["start", "a", "b", "long", "done"]


def test_a_run_that_is_killed_there_goes_on_from_that_checkpoint():
    long = Long()
    run = Pipeline(TEXT, handlers={"quick": Quick(), "long": long}).run(logs_root="run")
    wait_until(lambda: "b" in completed(run.logs_root), "a checkpoint of the stages before")
    kept = (run.logs_root / "checkpoint.json").read_bytes()
    run.cancel()
    run.result(60)
    (run.logs_root / "checkpoint.json").write_bytes(kept)
    (run.logs_root / "checkpoint.previous.json").unlink()
    again = Pipeline(TEXT, handlers={"quick": Quick(), "long": Quick()}).resume(run.logs_root)
    assert again.result(60).status == "success"
    assert completed(run.logs_root) == ["start", "a", "b", "long", "done"]
