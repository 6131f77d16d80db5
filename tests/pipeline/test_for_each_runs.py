"""Stages with `for_each` whose items are pipelines, that are stopped and go on, that cost, that cannot be executed."""

import asyncio
import subprocess
import sys

import pytest

from attractor_nb import Outcome, Pipeline, Run, Usage, load_pipeline
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ChildEnded, ChildStarted
from attractor_nb.testing import ManualClock
from tests.pipeline.test_children import naming_one_another, without_records
from tests.pipeline.test_for_each import FILES, FRAME, PerItem, events_of, notes_of, repeated, results, run
from tests.waiting import wait_until

READER = """digraph reader { inputs="path, tone=plain" start [shape=Mdiamond] read [prompt="Read $path"]
    judge [prompt="Judge ${read.response}"] done [shape=Msquare] start -> read -> judge -> done }"""
PATHS = [{"path": name} for name in FILES]
NO_CREDIT = TerminalError("the account has no credit left", is_unmeasured=True)


class Reader(PerItem):
    """Answers the two stages of a reader."""

    async def run(self, node, prompt, context):
        """Answer by node and path."""
        self.asked.append((node.id, context.get("path")))
        await asyncio.sleep(0)
        return self.answers.get((node.id, context.get("path")), f"{node.id} {context.get('path')}")


class Holding(PerItem):
    """Answers all items but one, at which it waits for ever."""

    def __init__(self, held):
        super().__init__()
        self.held = held

    async def run(self, node, prompt, context):
        """Answer, or wait for ever."""
        if context.get("item") == self.held:
            await asyncio.Event().wait()
        return await super().run(node, prompt, context)


@pytest.fixture
def directory(tmp_path):
    """A run directory to be."""
    return tmp_path / "run"


# -- sub-pipelines -------------------------------------------------------------------------------------


def nested(attributes=""):
    """A pipeline text whose stage runs the pipeline ``reader`` for each item."""
    return repeated(
        'type=pipeline, pipeline.name=reader, pipeline.inputs="path=context.item.path", '
        f'pipeline.outputs="opinion=context.judge.response"{", " * bool(attributes)}{attributes}'
    )


def run_nested(text, directory=None, backend=None, **options):
    """Run a pipeline whose items are read by ``reader``."""
    made = {"pipelines": {"reader": READER}}
    return run(text, directory, backend or Reader(), made, params={"files": PATHS}, **options)


def test_the_outputs_of_a_sub_pipeline_are_those_of_its_items(directory):
    result = run_nested(nested(), directory)
    assert result.context["review.outputs"] == [{"opinion": f"judge {name}"} for name in FILES]
    assert "opinion" not in result.context
    child = Run.load(directory / "children/review/item-2/1").children["review"]
    assert child.result().completed_nodes == ("start", "read", "judge", "done")


def test_a_sub_pipeline_that_fails_fails_its_item(directory):
    result = run_nested(nested(), directory, Reader({("judge", "b.py"): Outcome.fail("no taste")}))
    assert results(result, "status", "reason")[1] == ("fail", "reader failed: no taste")
    assert result.context["review.outputs"][1] is None


def test_an_item_of_a_sub_pipeline_is_tried_again_with_a_child_of_its_own(directory):
    class Once(Reader):
        async def run(self, node, prompt, context):
            if (node.id, context.get("path")) == ("judge", "b.py") and ("judge", "b.py") not in self.asked:
                self.asked.append(("judge", "b.py"))
                return Outcome.fail("not yet")
            return await super().run(node, prompt, context)

    result = run_nested(nested("max_retries=1"), directory, Once(), clock=ManualClock())
    assert result.context["review.outputs"][1] == {"opinion": "judge b.py"}
    own = directory / "children/review/item-1/1/children/review"
    assert sorted(path.name for path in own.iterdir() if path.is_dir()) == ["1", "1.2"]


def test_a_sub_pipeline_of_a_file_is_found_beside_the_pipeline_and_again_in_the_run_directory(tmp_path, directory):
    (tmp_path / "reader.dot").write_text(READER)
    body = """review [for_each="item in files", type=pipeline, pipeline.dotfile="reader.dot",
        pipeline.inputs="path=context.item", pipeline.outputs="opinion=context.judge.response"]
        wait [prompt=Wait] start -> wait -> review -> done"""
    (tmp_path / "top.dot").write_text(FRAME.format(graph="", body=body))
    pipeline = Pipeline(tmp_path / "top.dot")
    first = pipeline.run(
        wait=True,
        backend=Reader(),
        logs_root=directory,
        durability="fast",
        params={"files": FILES},
        stop_after=2,
        trust=True,
    )
    assert first.status == "paused"
    (tmp_path / "reader.dot").unlink()
    again = load_pipeline(directory, backend=Reader()).resume(directory, durability="fast").result(60)
    assert again.context["review.outputs"] == [{"opinion": f"judge {name}"} for name in FILES]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pipeline.name=raeder", 'no pipeline is registered as "raeder"; did you mean "reader"?'),
        ('pipeline.dotfile="none.dot"', 'there is no file "none.dot"'),
        ("pipeline.name=broken", "the pipeline registered as broken has 4 errors"),
        ("pipeline.name=reader", 'the child of "review": the input "path" is missing'),
        ("pipeline.name=reader, pipeline.inputs=\"path=context.item, tnoe='x'\"", "tnoe"),
    ],
    ids=["name", "file", "child with errors", "missing input", "unknown input"],
)
def test_what_is_wrong_with_the_sub_pipeline_of_an_item_is_known_before_anything_runs(body, message):
    pipelines = {"reader": READER, "broken": "digraph { a -> b }"}
    errors = Pipeline(repeated(f"type=pipeline, {body}"), pipelines=pipelines).lint().errors
    assert len(errors) == 1, errors
    assert message in errors[0].message


def test_the_items_of_several_lists_have_at_most_10000_nodes_together_ruling_52(tmp_path):
    naming_one_another(tmp_path, files=4, names=8)
    body = "".join(f'n{n} [for_each="item in x", type=pipeline, pipeline.dotfile="level0.dot"] ' for n in (1, 2))
    (tmp_path / "top.dot").write_text(FRAME.format(graph='inputs="x=[]"', body=f"{body} start -> n1 -> n2 -> done"))
    (found,) = [found for found in Pipeline(tmp_path / "top.dot").diagnostics if found.is_error]
    assert found.node_id == "n2"
    assert "with this one, the child pipelines have 11,706 nodes together" in found.message


def test_the_depth_of_nesting_counts_the_sub_pipeline_of_an_item_once():
    assert (
        not Pipeline(
            nested().replace("digraph top {", "digraph top { max_child_depth=1 "), pipelines={"reader": READER}
        )
        .lint()
        .errors
    )


def test_a_list_within_a_list_is_gone_through(directory):
    inner = """digraph inner { inputs="names" start [shape=Mdiamond] done [shape=Msquare]
        each [for_each="item in names", prompt="Read ${item}"] start -> each -> done }"""
    text = repeated(
        'type=pipeline, pipeline.name=inner, pipeline.inputs="names=context.item", pipeline.outputs="read=context.each.outputs"'
    )
    result = run(text, directory, made={"pipelines": {"inner": inner}}, params={"files": [["a", "b"], [], ["c"]]})
    assert result.context["review.outputs"] == [{"read": ["read a", "read b"]}, {"read": []}, {"read": ["read c"]}]


def test_a_gate_in_the_sub_pipeline_of_an_item_names_its_item(directory):
    asking = """digraph asking { inputs="path" start [shape=Mdiamond] ok [shape=hexagon, label="Fine?"] done [shape=Msquare]
        start -> ok  ok -> done [label="Yes"] }"""
    text = repeated('type=pipeline, pipeline.name=asking, pipeline.inputs="path=context.item", max_parallel=1')
    stages = []

    def answer(question):
        stages.append(question.stage)
        return "Yes"

    result = run(text, directory, made={"pipelines": {"asking": asking}}, interviewer=answer)
    assert result.status == "success"
    assert stages == [f"review/{index}/review/ok" for index in range(3)]


# -- stopped and gone on with --------------------------------------------------------------------------


def test_what_had_ended_is_not_asked_again_by_a_resume(directory):
    pipeline = Pipeline(repeated())
    running = pipeline.run(logs_root=directory, backend=Holding("b.py"), durability="fast", params={"files": FILES})
    wait_until(lambda: len(events_of(directory, ChildEnded)) == 2, "the end of two items")
    running.cancel()
    assert running.result(60).status == "interrupted"
    after = PerItem()
    again = pipeline.resume(directory, backend=after, durability="fast").result(60)
    assert (again.status, after.asked) == ("success", ["b.py"])
    assert again.context["review.outputs"] == [f"read {name}" for name in FILES]
    assert [path.name for path in directory.glob("children/review/item-*/*")] == ["1", "1", "1"]


def test_an_item_that_was_cut_off_before_its_first_record_begins_anew_in_its_place(directory):
    pipeline = Pipeline(repeated("max_parallel=1"))
    running = pipeline.run(logs_root=directory, backend=Holding("b.py"), durability="fast", params={"files": FILES})
    wait_until(lambda: len(events_of(directory, ChildStarted)) == 2, "the beginning of the second item")
    running.cancel()
    running.result(60)
    without_records(directory / "children/review/item-1/1")
    after = PerItem()
    again = pipeline.resume(directory, backend=after, durability="fast").result(60)
    assert (again.status, after.asked) == ("success", ["b.py", "c.py"])
    assert [path.name for path in directory.glob("children/review/item-*/*")] == ["1", "1", "1"]


WORKER = '''
import os, signal, sys
from pathlib import Path
from attractor_nb import Pipeline
root, life = Path(sys.argv[1]), sys.argv[2]
text = """digraph top { start [shape=Mdiamond] done [shape=Msquare]
    review [for_each="item in files", prompt="Review ${item}", max_parallel=1] start -> review -> done }"""
def backend(node, prompt, context):
    item = context["item"]
    with (root.parent / "calls").open("a") as calls:
        calls.write(item + "\\n")
    if item == "c" and life == "new":
        os.kill(os.getpid(), signal.SIGKILL)
    return "read " + item
pipeline = Pipeline(text)
run = pipeline.run(logs_root=root, backend=backend, params={"files": list("abcd")}) if life == "new" else pipeline.resume(root, backend=backend)
print(run.result(60).context["review.outputs"])
'''


@pytest.mark.campaign
def test_after_a_kill_a_resume_asks_only_for_what_had_not_ended(tmp_path):
    def live(life):
        return subprocess.run(
            [sys.executable, "-c", WORKER, str(tmp_path / "run"), life], capture_output=True, text=True, timeout=120
        )

    assert live("new").returncode < 0
    again = live("again")
    assert again.stdout.strip() == "['read a', 'read b', 'read c', 'read d']", again.stderr
    assert (tmp_path / "calls").read_text().split() == ["a", "b", "c", "c", "d"]


def test_a_list_that_is_another_one_after_a_stop_has_runs_of_its_own(directory):
    class Stop(PerItem):
        async def run(self, node, prompt, context):
            if context["item"] == "b.py":
                raise NO_CREDIT
            return await super().run(node, prompt, context)

    pipeline = Pipeline(repeated('prompt="${item}", max_parallel=1'))
    options = {"logs_root": directory, "durability": "fast", "params": {"files": ["a.py", "b.py"]}}
    assert pipeline.run(wait=True, backend=Stop(), **options).status == "interrupted"
    after = PerItem()
    running = pipeline.resume(directory, backend=after, durability="fast", breakpoints=["review"])
    assert running.debugger.wait_for_stop(60).node == "review"
    running.debugger.set_context("files", ["z.py", "b.py"])
    running.debugger.clear().continue_()
    assert running.result(60).context["review.outputs"] == ["read z.py", "read b.py"]


def test_items_that_had_not_ended_begin_anew_with_a_changed_stage_that_is_accepted(directory):
    first = PerItem({"b.py": NO_CREDIT})
    assert run(repeated('prompt="Read ${item}", max_parallel=1'), directory, first).status == "interrupted"
    changed, after = Pipeline(repeated('prompt="Judge ${item}", max_parallel=1')), PerItem()
    again = changed.resume(directory, backend=after, durability="fast", on_graph_change="accept").result(60)
    assert (again.status, again.reason) == ("success", "")
    assert [prompt.splitlines()[-1] for prompt in after.prompts] == ["Judge b.py", "Judge c.py"]


def test_a_rewind_before_the_stage_runs_its_items_again_in_runs_of_their_own(directory):
    run(repeated(), directory)
    backend = PerItem()
    again = Run.load(directory, Pipeline(repeated())).rewind("review", backend=backend, durability="fast")
    assert again.result(60).status == "success"
    assert sorted(backend.asked) == FILES
    assert {path.name for path in (directory / "children/review/item-0").iterdir()} == {"1", "2"}


def test_a_fork_after_the_stage_has_the_runs_of_its_items(directory, tmp_path):
    text = FRAME.format(
        graph="",
        body='review [for_each="item in files", prompt="${item}"] last [prompt=L] start -> review -> last -> done',
    )
    run(text, directory)
    backend = PerItem()
    forked = Run.load(directory, Pipeline(text)).fork(
        "last", backend=backend, durability="fast", logs_root=tmp_path / "fork"
    )
    assert forked.result(60).context["review.outputs"] == [f"read {name}" for name in FILES]
    assert backend.asked == [None]
    assert Run.load(tmp_path / "fork").children["review/1"]["review"].response == "read b.py"


def test_a_recorded_run_is_replayed_item_by_item(tmp_path):
    options = {"params": {"files": FILES}, "durability": "none", "cassette": tmp_path / "tape.json"}
    recorded = Pipeline(repeated()).run(wait=True, backend=PerItem(pause=3), cassette_mode="record", **options)
    silent = PerItem()
    replayed = Pipeline(repeated()).run(wait=True, backend=silent, cassette_mode="replay", **options)
    assert replayed.context["review.outputs"] == recorded.context["review.outputs"]
    assert not silent.asked


# -- what it may cost ----------------------------------------------------------------------------------


def test_a_budget_ends_the_items_and_with_more_money_the_rest_are_run(directory):
    text = repeated('prompt="${item}", max_parallel=1')
    backend = PerItem(usage=Usage(10, 5, 0.5, 1))
    pipeline = Pipeline(text)
    first = pipeline.run(
        wait=True,
        backend=backend,
        logs_root=directory,
        durability="fast",
        params={"files": ["a", "b", "c", "d"]},
        max_budget_usd=1.0,
    )
    assert first.bound == "max_budget_usd"
    assert backend.asked == ["a", "b"]
    again = pipeline.resume(directory, backend=backend, durability="fast", max_budget_usd=1.5).result(60)
    assert again.bound == "max_budget_usd"
    assert backend.asked == ["a", "b", "c"]
    last = pipeline.resume(directory, backend=backend, durability="fast", max_budget_usd=9).result(60)
    assert (last.status, backend.asked) == ("success", ["a", "b", "c", "d"])
    assert last.usage == Usage(40, 20, 2.0, 4)


def test_a_budget_that_is_used_up_lets_no_item_begin(directory):
    text = FRAME.format(
        graph="",
        body='plan [prompt=P] review [for_each="item in files", prompt="${item}"] start -> plan -> review -> done',
    )
    backend = PerItem(usage=Usage(10, 5, 0.5, 1))
    result = run(text, directory, backend, max_budget_usd=0.5)
    assert (result.bound, backend.asked) == ("max_budget_usd", [None])
    assert not events_of(directory, ChildStarted)


# -- what could not be executed ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["error_policy=continue", "error_policy=ignore", "join_policy=k_of_n, join_k=1"])
def test_ruling_51_an_item_that_cannot_be_executed_stops_the_rest_and_the_run_goes_on_later(policy, directory):
    text = repeated(f'prompt="${{item}}", max_parallel=1, {policy}')
    backend = PerItem({"b.py": [NO_CREDIT, "paid"]})
    pipeline = Pipeline(text)
    first = run(text, directory, backend)
    assert (first.status, first.is_unmeasured) == ("interrupted", True)
    assert "item 1 could not be executed" in first.reason
    assert "no credit" in first.reason
    assert backend.asked == ["a.py", "b.py"]
    again = pipeline.resume(directory, backend=backend, durability="fast").result(60)
    assert (again.status, backend.asked) == ("success", ["a.py", "b.py", "b.py", "c.py"])
    assert again.context["review.outputs"] == ["read a.py", "paid", "read c.py"]


def test_ruling_51_it_is_a_failure_where_the_graph_routes_it(directory):
    text = FRAME.format(
        graph="",
        body="""review [for_each="item in files", prompt="${item}"] mend [prompt=Mend]
            start -> review -> done  review -> mend [condition="outcome=fail"]  mend -> done""",
    )
    backend = PerItem(dict.fromkeys(FILES, NO_CREDIT))
    result = run(text, directory, backend)
    assert (result.status, result.completed_nodes) == ("success", ("start", "review", "mend", "done"))
    assert "0 of 3 items" in notes_of(result)


def test_ruling_51_one_that_another_item_has_won_before_stays_a_success(directory):
    text = repeated('prompt="${item}", max_parallel=1, join_policy=first_success')
    assert run(text, directory, PerItem({"b.py": NO_CREDIT})).status == "success"


def test_ruling_51_what_was_spent_on_items_that_had_ended_is_counted_once(directory):
    backend = PerItem({"b.py": [NO_CREDIT, "paid"]}, usage=Usage(10, 5, 0.5, 1))
    pipeline = Pipeline(repeated('prompt="${item}", max_parallel=1'))
    first = run(repeated('prompt="${item}", max_parallel=1'), directory, backend)
    assert first.usage == Usage(10, 5, 0.5, 1)
    again = pipeline.resume(directory, backend=backend, durability="fast").result(60)
    assert again.usage == Usage(30, 15, 1.5, 3)


def test_ruling_51_what_was_spent_in_a_sub_pipeline_that_goes_on_is_counted_once(directory):
    class Costly(Reader):
        is_poor = True

        async def run(self, node, prompt, context):
            if node.id == "judge" and self.is_poor:
                raise NO_CREDIT
            return Response(await super().run(node, prompt, context), usage=Usage(10, 5, 0.5, 1))

    text = FRAME.format(
        graph="", body="""sub [type=pipeline, pipeline.name=reader, pipeline.inputs="path='a'"] start -> sub -> done"""
    )
    pipeline, backend = Pipeline(text, pipelines={"reader": READER}), Costly()
    first = pipeline.run(wait=True, backend=backend, logs_root=directory, durability="fast")
    assert (first.status, first.usage) == ("interrupted", Usage(10, 5, 0.5, 1))
    backend.is_poor = False
    again = pipeline.resume(directory, backend=backend, durability="fast").result(60)
    assert (again.status, again.usage) == ("success", Usage(20, 10, 1.0, 2))
