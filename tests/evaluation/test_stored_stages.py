"""``pipeline.evaluate(scorers=…, runs=…, only="write")``: one stage, executed anew on its stored inputs."""

import asyncio
import errno
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.backends.local_model import Completion, LocalModelBackend
from attractor_nb.errors import OptionError, UntrustedSource
from attractor_nb.evaluation.scorers import cost, equals, latency, route
from attractor_nb.evaluation.stored_evaluation import read_evaluation
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Usage
from attractor_nb.pipeline.runs import runs
from tests.disks.faulty_disk import FaultyDisk
from tests.waiting import wait_until

TEXT = """digraph letter {
    inputs="ticket"
    start [shape=Mdiamond]
    plan [prompt="Plan: $ticket"]
    write [prompt="Write it"]
    send [prompt="Send it"]
    done [shape=Msquare]
    start -> plan -> write -> send -> done
}"""
SHORT = TEXT.replace("Write it", "Write it shortly")


class Model:
    """Answers with the node and the words of its task, counts its calls, and has a price."""

    version = "1"

    def __init__(self):
        self.asked = Counter()
        self.prompts = []

    def __call__(self, node, prompt, context):
        self.asked[node.id] += 1
        self.prompts.append(prompt)
        if context["ticket"] == "broken" and node.id == "plan":
            return Outcome.fail("the service said no")
        words = "short" if "shortly" in prompt else "a long text"
        usage = Usage(calls=1, input_tokens=1, output_tokens=1, cost_usd=1.0)
        return Response(f"{words} about {context['ticket']}" if node.id == "write" else node.id, usage=usage)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def stored(model, tmp_path):
    """Two runs that reached ``write``, and one that failed before it."""
    pipeline = Pipeline(TEXT, backend=model, runs_dir=tmp_path / "runs")
    found = [pipeline.run(params={"ticket": ticket}, wait=True) for ticket in ("pay", "refund", "broken")]
    model.asked.clear()
    model.prompts.clear()
    return found


def short(output):
    return output.startswith("short")


def files_of(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_only_the_stage_is_executed_with_the_stored_context_and_the_new_prompt(stored, model, tmp_path):
    before = files_of(tmp_path / "runs")
    better = Pipeline(SHORT, backend=model, runs_dir=tmp_path / "evaluations")
    evaluation = better.evaluate(scorers=[short, cost()], runs=stored[:2], only="write", wait=True)
    assert model.asked == {"write": 2}
    assert evaluation.scores["short"].estimate.value == 1.0
    assert sorted(row.outputs[0] for row in evaluation) == ["short about pay", "short about refund"]
    assert all("plan" in prompt and "Write it shortly" in prompt for prompt in model.prompts)
    assert evaluation.scores["cost"].estimate.value == 1.0  # what the stages before cost is not counted again
    assert evaluation.usage.cost_usd == 2.0
    assert evaluation.headline().startswith("2 rows of write alone   short 2 of 2")
    assert files_of(tmp_path / "runs") == before
    assert evaluation.status == "success"


def test_the_run_of_a_row_ends_after_the_stage(stored, model, tmp_path):
    evaluation = Pipeline(SHORT, backend=model).evaluate(scorers=short, runs=stored[:1], only="write", wait=True)
    run = evaluation.run(0)
    assert run.status == "completed"
    assert run.result().completed_nodes == ("start", "plan", "write")
    assert run["send"].outcome is None
    assert any("to execute it alone" in event.description for event in run.events())


def test_a_row_whose_run_never_reached_the_stage_is_unmeasured_and_says_why(stored, model):
    evaluation = Pipeline(SHORT, backend=model).evaluate(
        scorers=[short, latency()], runs=stored, only="write", wait=True, on_failure="stop"
    )
    assert [row.scores["short"][0].state for row in evaluation] == ["scored", "scored", "unmeasured"]
    score = evaluation[2].scores["latency"][0]
    assert (score.state, score.reason) == ("unmeasured", "the run never visited write")
    assert evaluation.check() == ["1 run unmeasured, and at most 0 allowed"]
    assert "resume_evaluation" not in str(evaluation)
    assert [row.id for row in evaluation.unmeasured] == [stored[2].run_id]
    assert evaluation.rescore(latency()).scores["latency"].unmeasured == 1


def test_rows_choose_runs_and_have_the_expected_answers(stored, model):
    rows = [{"id": stored[1].run_id, "expected": "short about refund", "ticket": "refund"}]
    evaluation = Pipeline(SHORT, backend=model).evaluate(rows, scorers=equals(), runs=stored, only="write", wait=True)
    assert [(row.id, row.scores["equals"][0].value) for row in evaluation] == [(stored[1].run_id, True)]
    assert model.asked == {"write": 1}


def test_an_evaluation_gives_its_rows_with_all_their_columns(model):
    rows = [
        {"id": "p", "ticket": "pay", "expected": "short about pay"},
        {"id": "r", "ticket": "refund", "expected": "other"},
    ]
    whole = Pipeline(TEXT, backend=model).evaluate(rows, equals(), wait=True, repeat=2)
    model.asked.clear()
    again = Pipeline(SHORT, backend=model).evaluate(scorers=equals(), runs=whole, only="write", wait=True)
    assert [row.id for row in again] == ["p, run 0", "r, run 0", "p, run 1", "r, run 1"]
    assert [row.row.group for row in again] == ["p", "r", "p", "r"]
    assert [row.scores["equals"][0].value for row in again] == [True, False, True, False]
    assert again.scores["equals"].estimate.groups == 2  # repeats of a row are one piece of evidence
    assert model.asked == {"write": 4}
    scored = Pipeline(TEXT, backend=model).evaluate(scorers=equals(), runs=whole)
    assert [row.row.expected for row in scored][:2] == ["short about pay", "other"]


def test_repeats_execute_the_stage_again(stored, model):
    evaluation = Pipeline(SHORT, backend=model).evaluate(
        scorers=short, runs=stored[:2], only="write", wait=True, repeat=3
    )
    assert model.asked == {"write": 6}
    assert [len(row.results) for row in evaluation] == [3, 3]


def test_the_cache_answers_a_second_evaluation(stored, model, tmp_path):
    for expected in ({"write": 2}, {"write": 2}):
        evaluation = Pipeline(SHORT, backend=model).evaluate(
            scorers=[short, cost()], runs=stored[:2], only="write", wait=True, cache=tmp_path / "cache"
        )
        assert model.asked == expected
        assert evaluation.scores["cost"].estimate.value == 1.0
    assert evaluation.usage.cost_usd in (None, 0.0)


def test_a_bound_stops_it_and_a_resume_pays_for_the_rest_alone(stored, model):
    pipeline = Pipeline(SHORT, backend=model)
    first = pipeline.evaluate(
        scorers=short, runs=stored[:2], only="write", wait=True, max_parallel=1, max_budget_usd_all=0.5
    )
    assert (model.asked, first.status) == ({"write": 1}, "interrupted")
    second = pipeline.resume_evaluation(first.directory, short, wait=True, max_budget_usd_all=10)
    assert (model.asked, second.status) == ({"write": 2}, "success")
    assert (second.only, second.scores["short"].estimate.value) == ("write", 1.0)


@pytest.mark.parametrize("kept", ["before the stage", "before the end"])
def test_a_row_that_was_killed_is_resumed_and_ends_after_the_stage(stored, model, kept):
    pipeline = Pipeline(SHORT, backend=model)
    place = pipeline.evaluate(scorers=short, runs=stored[:1], only="write", wait=True).directory
    log = place / "row-00000" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    name = b'"PipelineForked"' if kept == "before the stage" else b'"StageCompleted"'
    last = max(number for number, line in enumerate(lines) if name in line)
    log.write_bytes(b"".join(lines[: last + 1]))
    for path in (place / "row-00000").glob("checkpoint*.json"):
        path.unlink()
    for path in (place / "row-00000").glob("manifest*.json"):
        path.unlink()
    model.asked.clear()
    again = pipeline.resume_evaluation(place, short, wait=True)
    assert model.asked == ({"write": 1} if kept == "before the stage" else {})
    assert again.run(0).result().completed_nodes == ("start", "plan", "write")
    assert again.scores["short"].estimate.value == 1.0


def test_a_checkpoint_keeps_that_the_run_is_of_one_stage(stored, model, tmp_path):
    pipeline = Pipeline(SHORT, backend=model)
    place = pipeline.evaluate(scorers=short, runs=stored[:1], only="write", wait=True).directory / "row-00000"
    log = place / "events.jsonl"
    ends = b'"PipelineCompleted"'
    log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(keepends=True) if ends not in line))
    for path in (*place.glob("checkpoint*.json"), *place.glob("manifest*.json")):
        path.unlink()
    model.asked.clear()
    result = Pipeline(SHORT, backend=model).resume(place, wait=True, on_graph_change="accept")
    assert (result.status, model.asked) == ("success", {})


def test_a_stage_that_fails_fails_its_row_and_can_be_retried_alone(stored, model):
    refuses = Pipeline(SHORT, backend=lambda node, prompt, context: Outcome.fail("no"))
    failed = refuses.evaluate(scorers=short, runs=stored[:1], only="write", wait=True)
    assert [(row.scores["short"][0].state, row.results[0].reason) for row in failed] == [("failed", "no")]
    again = Pipeline(SHORT, backend=model).resume_evaluation(failed.directory, short, wait=True, failed="retry")
    assert model.asked == {"write": 1}
    assert again.scores["short"].estimate.value == 1.0


def test_what_was_set_by_hand_in_the_stored_run_does_not_hold(model, tmp_path):
    pipeline = Pipeline(TEXT, backend=model, runs_dir=tmp_path / "runs")
    parent = pipeline.run(params={"ticket": "pay"})
    parent.result(20)
    edited = parent.fork("write", prompt="Write it in verse")
    pinned = parent.fork("plan", pins={"write": "short and pinned"})
    for run in (edited, pinned):
        run.result(20)
    model.asked.clear()
    model.prompts.clear()
    evaluation = pipeline.evaluate(scorers=short, runs=[edited, pinned], only="write", wait=True)
    assert [row.outputs[0] for row in evaluation] == ["a long text about pay"] * 2
    assert all("Write it" in prompt and "verse" not in prompt for prompt in model.prompts)
    assert model.asked == {"write": 2}


LOOP = """digraph loop {
    inputs="ticket"
    start [shape=Mdiamond]
    write [prompt="Write"]
    check [shape=parallelogram, tool_command="test -e again && rm again"]
    done [shape=Msquare]
    start -> write
    write -> check [condition="outcome=success"]
    write -> done [condition="outcome=fail"]
    check -> write [condition="outcome=success"]
    check -> done [condition="outcome=fail"]
}"""


@pytest.mark.parametrize("output", [None, "write.response"])
def test_the_latest_visit_is_executed_and_an_earlier_answer_never_judged(tmp_path, output):
    (tmp_path / "again").touch()
    said = iter(["first", "second"])
    run = Pipeline(LOOP, backend=lambda prompt: next(said)).run(params={"ticket": "x"}, wait=True)
    assert run.visits["write"] == 2
    evaluation = Pipeline(LOOP, backend=lambda prompt: Outcome.fail("no")).evaluate(
        scorers={"said": lambda output: True, "route": route("write", "way")},
        rows=[{"id": run.run_id, "way": "done"}],
        runs=run,
        only="write",
        output=output,
        wait=True,
    )
    (row,) = evaluation
    assert row.outputs == [None]
    assert [scores[0].state for scores in row.scores.values()] == ["unmeasured", "scored"]
    assert row.scores["route"][0].value is True
    assert evaluation.confusion("write", "way")["done", "done"] == (run.run_id,)


def test_a_command_is_executed_alone(tmp_path):
    run = Pipeline(LOOP, backend=lambda prompt: "x").run(params={"ticket": "x"}, wait=True)
    loud = LOOP.replace("test -e again && rm again", "echo loud")
    evaluation = Pipeline(loud, backend="simulated").evaluate(
        scorers={"loud": lambda output: output == "loud\n"}, runs=run, only="check", wait=True
    )
    assert evaluation[0].outputs == ["loud\n"]


BRANCHES = """digraph branches {
    start [shape=Mdiamond]
    fan [shape=component]
    a [prompt="A"]
    b [prompt="B"]
    join [shape=tripleoctagon]
    ask [shape=hexagon]
    done [shape=Msquare]
    start -> fan
    fan -> a
    fan -> b
    a -> join
    b -> join
    join -> ask
    ask -> done [label="Yes"]
}"""


@pytest.fixture
def branched():
    return Pipeline(BRANCHES, backend=lambda prompt: "x", interviewer="auto").run(wait=True)


def test_a_stage_of_a_branch_is_unmeasured_and_says_why(branched):
    evaluation = Pipeline(BRANCHES, backend=lambda prompt: "x").evaluate(
        scorers=latency(), runs=branched, only="a", wait=True
    )
    score = evaluation[0].scores["latency"][0]
    assert (score.state, score.reason) == (
        "unmeasured",
        "a was visited in a branch only, and a run goes back as a whole",
    )


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("wirte", "no node 'wirte'"),
        ("ask", "ask is a human gate"),
        ("fan", "fan is a fan-out"),
        ("start", "start is a start node"),
        ("done", "done is an exit node"),
        (7, "only must be the id of a node"),
    ],
)
def test_a_stage_that_cannot_be_evaluated_alone_is_refused(branched, node, words):
    with pytest.raises(Exception, match=words) as error:
        Pipeline(BRANCHES, backend=lambda prompt: "x").evaluate(scorers=latency(), runs=branched, only=node)
    assert type(error.value).__module__ == "attractor_nb.errors"


def test_a_run_of_another_pipeline_is_refused(stored, branched, model):
    with pytest.raises(OptionError, match="is of the pipeline branches, not of letter"):
        Pipeline(SHORT, backend=model).evaluate(scorers=short, runs=[*stored, branched], only="write")
    assert not model.asked


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": None}, "only needs stored runs"),
        ({"inputs": ["ticket"]}, "inputs would do nothing"),
        ({"params": {"ticket": "x"}}, "unknown option 'params'"),
        ({"runs": []}, "there are no runs"),
        ({"rows": [{"id": "missing"}]}, 'there is no run "missing"'),
        ({"rows": [{"ticket": "pay"}]}, "row 0: it has no id"),
        ({"rows": []}, "there are no rows"),
        ({"durability": "none"}, "an evaluation keeps its runs"),
        ({"stop_after": 1}, "stop_after is an option of a single run"),
        (
            {"ship": "rows"},
            r'the stored runs stay here, so ship="rows" cannot send them\n hint: ship="stages" sends the stage$',
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_makes_no_sense_is_refused(stored, model, options, words):
    given = {"scorers": short, "runs": stored, "only": "write", **options}
    with pytest.raises(OptionError, match=words):
        Pipeline(SHORT, backend=model).evaluate(**given)
    assert not model.asked


def test_a_row_with_another_input_than_its_run_is_refused(stored, model):
    rows = [{"id": stored[0].run_id, "ticket": "changed"}]
    with pytest.raises(OptionError, match='its "ticket" is not the one that the run'):
        Pipeline(SHORT, backend=model).evaluate(rows, scorers=short, runs=stored, only="write")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1}, "Object of type set is not JSON serializable"),
        (float("nan"), "Out of range float values are not JSON compliant"),
    ],
)
def test_a_row_with_a_value_that_is_not_json_is_refused_by_its_number(stored, model, value, words):
    rows = [{"id": stored[0].run_id}, {"id": stored[1].run_id, "expected": value}]
    with pytest.raises(OptionError) as error:
        Pipeline(SHORT, backend=model).evaluate(rows, scorers=short, runs=stored, only="write")
    assert error.value.message.startswith(f"row 1 is not a JSON value: {words}")
    assert error.value.hint == "use JSON values"
    assert not model.asked


def test_a_stage_that_finds_no_memory_for_its_run_is_left_for_a_resume(stored, model):
    disk = FaultyDisk(fail_at=1, counted=("rename", "row-00001"), error=errno.ENOMEM)
    pipeline = Pipeline(SHORT, backend=model)
    first = pipeline.evaluate(scorers=short, runs=stored[:2], only="write", wait=True, disk=disk)
    assert (first.status, [row.status for row in first.map.rows]) == ("interrupted", ["success", "interrupted"])
    assert first.map.reason.startswith("row 1 could not be run: StorageError: ")
    again = pipeline.resume_evaluation(first.directory, short, wait=True)
    assert [row.scores["short"][0].value for row in again] == [True, True]


def test_a_stored_run_that_is_gone_is_unmeasured_at_a_resume(stored, model, tmp_path):
    pipeline = Pipeline(SHORT, backend=model)
    first = pipeline.evaluate(
        scorers=short, runs=stored[:2], only="write", wait=True, max_parallel=1, max_budget_usd_all=0.5
    )
    stored[1].logs_root.rename(tmp_path / "elsewhere")
    again = pipeline.resume_evaluation(first.directory, short, wait=True, max_budget_usd_all=10)
    assert [row.scores["short"][0].state for row in again] == ["scored", "unmeasured"]
    assert "there is no run directory" in again[1].scores["short"][0].reason


def test_rows_of_runs_that_a_list_shows_are_taken(stored, model, tmp_path):
    listed = runs(tmp_path / "runs").where(status="completed")
    evaluation = Pipeline(SHORT, backend=model).evaluate(scorers=short, runs=listed, only="write", wait=True)
    assert len(evaluation) == 2


VARIANTS = {"short": {"write.prompt": "Write it shortly"}}


def test_variants_of_one_stage_are_compared_on_its_stored_inputs(stored, model, tmp_path):
    pipeline = Pipeline(TEXT, backend=model)
    comparison = pipeline.compare(
        VARIANTS, scorers=short, runs=stored[:2], only="write", directory=tmp_path / "comparison"
    )
    assert model.asked == {"write": 4}
    assert comparison["short"]["short"].wins == tuple(run.run_id for run in stored[:2])
    again = pipeline.compare(VARIANTS, scorers=short, runs=stored[:2], only="write", directory=tmp_path / "comparison")
    assert model.asked == {"write": 4}
    assert again.words == comparison.words


def test_a_variant_and_the_baseline_lack_the_same_row(stored, model):
    comparison = Pipeline(TEXT, backend=model).compare(VARIANTS, scorers=short, runs=stored, only="write")
    assert len(comparison["short"]["short"].wins) == 2
    assert comparison["short"]["short"].difference.count == 2
    assert any("not compared" in problem for problem in comparison.check(at_most_worse_by=0.1))


@pytest.mark.parametrize(
    ("variants", "options", "words"),
    [
        ({"plan": {"plan.prompt": "Plan it"}}, {}, "the variant plan does not change write"),
        (VARIANTS, {"runs": None}, "only needs stored runs"),
        (VARIANTS, {"only": None}, "runs need only"),
        (VARIANTS, {"inputs": ["ticket"]}, "inputs would do nothing"),
        ({"other": Pipeline(TEXT.replace("write", "compose"))}, {}, "other: the pipeline has no node 'write'"),
    ],
    ids=["another stage", "no runs", "no stage", "inputs", "another pipeline"],
)
def test_a_comparison_that_makes_no_sense_is_refused(stored, model, variants, options, words):
    given = {"scorers": short, "runs": stored[:1], "only": "write", **options}
    with pytest.raises(OptionError, match=words):
        Pipeline(TEXT, backend=model).compare(variants, **given)
    assert not model.asked


def test_a_comparison_of_another_stage_or_of_other_runs_does_not_continue(stored, model, tmp_path):
    pipeline, place = Pipeline(TEXT, backend=model), tmp_path / "comparison"
    pipeline.compare(VARIANTS, scorers=short, runs=stored[:1], only="write", directory=place)
    with pytest.raises(OptionError, match="holds the evaluation of other rows"):
        pipeline.compare(VARIANTS, scorers=short, runs=stored[1:2], only="write", directory=place)
    changed = {"short": {"send.prompt": "Send it now"}}
    with pytest.raises(OptionError, match="holds the evaluation of another stage"):
        pipeline.compare(changed, scorers=short, runs=stored[:1], only="send", directory=place)


def test_a_comparison_of_one_stage_can_be_awaited(stored, model):
    comparing = Pipeline(TEXT, backend=model).compare_async(VARIANTS, scorers=short, runs=stored[:2], only="write")
    comparison = asyncio.run(comparing)
    assert len(comparison["short"]["short"].wins) == 2


TALK = """digraph talk { goal="Ship" default_fidelity=full thread_id=t start [shape=Mdiamond] done [shape=Msquare]
a [prompt="Name a colour."] b [prompt="Name another."] start -> a -> b -> done }"""


class Local(LocalModelBackend):
    """The backend without its server."""

    async def address(self):
        return "http://nowhere"


def test_a_stage_continues_the_conversation_that_it_had(monkeypatch):
    requests = []

    async def complete(address, request, on_text, **options):
        requests.append([message["content"] for message in request["messages"]])
        return Completion(f"answer {len(requests)}", is_truncated=False, usage=Usage(1, 1, None, 1))

    monkeypatch.setattr("attractor_nb.backends.local_model.complete_chat", complete)
    run = Pipeline(TALK, backend=Local()).run(wait=True)
    other = Pipeline(TALK.replace("Name another.", "Name a darker one."), backend=Local())
    other.evaluate(scorers=latency(), runs=run, only="b", wait=True, repeat=2)
    assert requests[2] == requests[3] == [*requests[1][:-1], "Name a darker one."]
    assert "Name a colour." in " ".join(requests[1])


EVALUATE = """
import sys, time
from pathlib import Path
from attractor_nb import Pipeline

def answer(node, prompt, context):
    with open("paid.txt", "a") as file:
        file.write(context["ticket"] + "\\n")
    if context["ticket"] == "refund":
        Path("reached").touch()
        time.sleep(600)
    return "short"

answer.version = "1"
def short(output):
    return output == "short"

Pipeline(Path("short.dot"), backend=answer).evaluate(
    scorers=short, runs=sys.argv[1:], only="write", wait=True, max_parallel=1, map_dir="evaluation", is_shown=False
)
"""


def test_after_a_kill_no_row_is_paid_twice(model, tmp_path):
    pipeline = Pipeline(TEXT, backend=model, runs_dir=tmp_path / "runs")
    given = [pipeline.run(params={"ticket": ticket}, wait=True) for ticket in ("pay", "refund", "crash")]
    (tmp_path / "short.dot").write_text(SHORT)
    before = files_of(tmp_path / "runs")
    places = [str(run.logs_root) for run in given]
    process = subprocess.Popen([sys.executable, "-c", EVALUATE, *places], cwd=tmp_path)
    wait_until(lambda: (tmp_path / "reached").exists() or process.poll() is not None, "the second row")
    assert process.poll() is None, "it evaluates"
    process.kill()
    process.wait(60)
    assert (tmp_path / "paid.txt").read_text().split() == ["pay", "refund"]
    model.asked.clear()
    again = Pipeline(tmp_path / "short.dot", backend=model).resume_evaluation(
        tmp_path / "evaluation", short, wait=True, on_interrupted="rerun"
    )
    assert model.asked == {"write": 2}, "the row that ended is not run again"
    assert (again.status, again.scores["short"].estimate.value) == ("success", 1.0)
    assert files_of(tmp_path / "runs") == before


COMMAND = """digraph command { start [shape=Mdiamond]
first [prompt="x"] where [shape=parallelogram, tool_command="pwd"] done [shape=Msquare]
start -> first -> where -> done }"""


@pytest.mark.parametrize("at_resume", [False, True], ids=["start", "resume"])
def test_what_the_directory_of_a_strangers_run_chooses_needs_trust(tmp_path, at_resume):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pipeline = Pipeline(COMMAND, backend=lambda prompt: "x")
    run = pipeline.run(wait=True, workdir=elsewhere)
    copied = tmp_path / "of-a-stranger"
    given = {"scorers": {"here": lambda output: output.strip() == str(tmp_path)}, "wait": True}
    if at_resume:
        shutil.copytree(run.logs_root, copied)
        place = pipeline.evaluate(**given, runs=copied, only="where", trust=True).directory
        shutil.rmtree(place / "row-00000")
        refused = lambda **more: pipeline.resume_evaluation(place, **given, **more)  # noqa: E731
    else:
        shutil.copytree(run.logs_root, copied)
        refused = lambda **more: pipeline.evaluate(**given, runs=copied, only="where", **more)  # noqa: E731
    with pytest.raises(UntrustedSource, match="elsewhere"):
        refused()
    assert refused(trust=True).scores["here"].estimate.value == 1.0
    assert pipeline.evaluate(**given, runs=run, only="where").scores["here"].estimate.value == 1.0, "one's own run"


def test_the_directory_of_an_evaluation_of_a_stage_has_the_stage_and_its_own_responses(stored, tmp_path):
    def failing(node, prompt, context):
        return Outcome.fail("no answer") if context["ticket"] == "refund" else "short, anew"

    better = Pipeline(SHORT, backend=failing)
    place = tmp_path / "alone"
    evaluation = better.evaluate(scorers=short, runs=stored[:2], only="write", map_dir=place, wait=True)
    read = read_evaluation(place)
    assert read.headline() == evaluation.headline()
    assert "of write alone" in read.headline()
    assert [row.outputs for row in read] == [row.outputs for row in evaluation] == [["short, anew"], [None]]
