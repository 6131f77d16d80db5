"""Stages that are run once for each item of a list, as child runs side by side (spec 4.8, 9.4; ruling 22)."""

import asyncio
import json
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus, Usage
from attractor_nb.decisions.log_history import open_questions
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError, UntrustedSource
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ChildEnded, ChildStarted
from attractor_nb.runtime.parked_answers import record_answer
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock

FRAME = "digraph top {{ {graph} start [shape=Mdiamond]\n done [shape=Msquare]\n {body}\n }}"
FILES = ["a.py", "b.py", "c.py"]


def repeated(attributes='prompt="Review ${item}"', each="item in files", graph=""):
    """A pipeline text with a stage ``review`` that is run for each item."""
    return FRAME.format(graph=graph, body=f'review [for_each="{each}", {attributes}] start -> review -> done')


class PerItem:
    """A backend that answers by the item, and counts how many it answers at a time.

    Attributes:
        asked: The items, as they were asked.
        most: How many at the same time.
    """

    def __init__(self, answers=None, pause=0, usage=None):
        self.answers, self.pause, self.usage = answers or {}, pause, usage
        self.asked, self.prompts = [], []
        self.now = self.most = 0

    def call_inputs(self, node, context):
        """The values beside the prompt that its answers depend on."""
        return {"model": "own"}

    async def run(self, node, prompt, context):
        """Answer for the item."""
        item = context.get("item")
        self.asked.append(item)
        self.prompts.append(prompt)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(self.pause):
            await asyncio.sleep(0)
        self.now -= 1
        answer = self.answers.get(item if isinstance(item, str) else json.dumps(item), f"read {item}")
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Outcome) else Response(answer, usage=self.usage)


def run(text, directory=None, backend=None, made=None, **options):
    """Run a pipeline over ``files`` to its end."""
    options = {"params": {"files": FILES}, "durability": "none" if directory is None else "fast", **options}
    if directory is not None:
        options["logs_root"] = directory
    return Pipeline(text, **(made or {})).run(wait=True, backend=backend or PerItem(), **options)


def results(result, *names):
    """The named entries of each item in ``review.results``."""
    return [tuple(entry[name] for name in names) for entry in result.context["review.results"]]


def notes_of(result):
    """The notes of the stage."""
    return result.outcomes["review"].notes


def events_of(directory, kind):
    """Events of one kind in a run's log."""
    return [event for event in read_run(Path(directory)).events if isinstance(event, kind)]


@pytest.fixture
def directory(tmp_path):
    """A run directory to be."""
    return tmp_path / "run"


# -- what an item is given, and what comes of all ------------------------------------------------------


def test_the_outputs_are_in_the_order_of_the_list_whatever_ends_first():
    class Backwards(PerItem):
        async def run(self, node, prompt, context):
            for _ in range(100 * (3 - context["item_index"])):
                await asyncio.sleep(0)
            return await super().run(node, prompt, context)

    backend = Backwards()
    result = run(repeated(), backend=backend)
    assert result.status == "success"
    assert backend.asked == ["c.py", "b.py", "a.py"]
    assert result.context["review.outputs"] == ["read a.py", "read b.py", "read c.py"]
    assert results(result, "index", "status", "reason") == [(0, "success", ""), (1, "success", ""), (2, "success", "")]


def test_item_its_fields_and_its_index_are_in_prompts():
    backend = PerItem()
    text = repeated('prompt="${item_index}: ${item.path} of ${item} for $goal"', graph='goal="speed"')
    run(text, backend=backend, params={"files": [{"path": "a.py"}]})
    assert '0: a.py of {"path": "a.py"} for speed' in backend.prompts[0]


def test_a_label_is_the_prompt_of_an_item_where_there_is_no_other():
    backend = PerItem()
    run(repeated('label="Read ${item}"'), backend=backend)
    assert [prompt.splitlines()[-1] for prompt in backend.prompts] == [f"Read {name}" for name in FILES]


def test_an_item_has_the_context_of_the_run_and_its_prompt_the_inputs_without_the_list():
    text = FRAME.format(
        graph="",
        body="""plan [prompt="Plan"]
            review [for_each="item in files", prompt="Review ${item} by this: ${plan.response}"]
            start -> plan -> review -> done""",
    )
    backend = PerItem({"null": "the plan"})
    run(text, backend=backend, params={"files": ["a.py"], "tone": "dry"})
    own = backend.prompts[1]
    assert own.endswith("Review a.py by this: the plan")
    assert "- tone: dry" in own
    assert "- item: a.py" in own
    assert "files" not in own
    assert own.count("the plan") == 1


def test_the_next_stage_can_read_outputs_and_results():
    text = FRAME.format(
        graph="",
        body="""review [for_each="item in files", prompt="Review ${item}"]
            sum_up [prompt="Sum up ${review.outputs}; the second was ${review.results.1.status}"]
            start -> review -> sum_up -> done""",
    )
    backend = PerItem()
    run(text, backend=backend)
    assert 'Sum up ["read a.py", "read b.py", "read c.py"]; the second was success' in backend.prompts[-1]


def test_commands_get_the_item_in_their_environment_and_as_json(directory):
    body = r"""review [shape=parallelogram, for_each="item in files",
        tool_command="printf '%s %s ' $ATTRACTOR_ITEM_INDEX $ATTRACTOR_ITEM; grep -c item_index $ATTRACTOR_CONTEXT_FILE"]
        start -> review -> done"""
    result = run(FRAME.format(graph="", body=body), directory, params={"files": ["a.py", {"n": 1}]})
    assert result.context["review.outputs"] == ["0 a.py 1\n", '1 {"n":1} 1\n']


@pytest.mark.parametrize("item", ["x" * 200_000, "a\0b"], ids=["too long", "with a NUL"])
def test_an_item_that_no_variable_can_hold_reaches_a_command_as_json_alone(item, directory):
    body = """review [shape=parallelogram, for_each="item in files",
        tool_command="echo ${ATTRACTOR_ITEM-none} $ATTRACTOR_ITEM_INDEX"] start -> review -> done"""
    result = run(
        FRAME.format(graph="", body=body.replace("{", "{").replace("}", "}")), directory, params={"files": [item]}
    )
    assert result.context["review.outputs"] == ["none 0\n"]


def test_functions_and_custom_handlers_are_repeated():
    def count(inputs):
        return {"length": len(inputs["item"])}

    class Shout:
        def execute(self, node, context, graph, logs_root):
            return Outcome.success(context_updates={"said": context["item"].upper()})

    functions = run(repeated("function=count"), made={"functions": {"count": count}})
    assert functions.context["review.outputs"] == [{"length": 4}] * 3
    handled = run(repeated('type="shout"'), made={"handlers": {"shout": Shout()}})
    assert handled.context["review.outputs"] == [{"said": "A.PY"}, {"said": "B.PY"}, {"said": "C.PY"}]
    assert "said" not in handled.context


def test_an_item_changes_neither_the_context_of_the_run_nor_that_of_another():
    class Setting:
        def execute(self, node, context, graph, logs_root):
            seen = context.get("mark")
            context.set("mark", context["item"])
            return Outcome.success(context_updates={"saw": seen})

    result = run(repeated('type="set", max_parallel=1'), made={"handlers": {"set": Setting()}})
    assert [entry["saw"] for entry in result.context["review.outputs"]] == [None, None, None]
    assert "mark" not in result.context


def test_a_verdict_of_an_item_is_in_its_result():
    result = run(
        repeated('prompt="Judge ${item}", verdict=json'),
        backend=PerItem(dict.fromkeys(FILES, '{"outcome": "success"}')),
    )
    assert result.status == "success"
    assert result.context["review.outputs"][0] == '{"outcome": "success"}'


# -- lists that are none, too long or empty ------------------------------------------------------------


def test_an_empty_list_is_a_success_without_a_run_and_says_so():
    backend = PerItem()
    result = run(repeated("join_policy=k_of_n, join_k=2"), backend=backend, params={"files": []})
    assert result.status == "success"
    assert not backend.asked
    assert (result.context["review.outputs"], result.context["review.results"]) == ([], [])
    assert "the list is empty, so nothing was run" in notes_of(result)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a.py\nb.py", 'is not a list, but a text, "a.py\\nb.py"'),
        (7, "is not a list, but a number, 7"),
        (True, "is not a list, but a boolean, true"),
        (None, "is not a list, but null"),
        ({"a": 1}, 'is not a list, but an object, {"a": 1}'),
        ("x" * 500, 'is not a list, but a text, "' + "x" * 59 + "…"),
    ],
    ids=["text", "number", "boolean", "null", "object", "long text"],
)
def test_a_value_that_is_no_list_fails_the_stage_with_what_it_was(value, said):
    backend = PerItem()
    result = run(repeated(), backend=backend, params={"files": value})
    assert result.status == "fail"
    assert said in result.reason
    assert not backend.asked


def test_an_input_that_is_no_list_is_told_how_it_is_given():
    text = repeated().replace("{", "{ inputs=files ", 1)
    result = run(text, backend=PerItem(), params={"files": "a.py, b.py"})
    assert """give the input as a list: --param 'files:=["…"]', or params={"files": […]} in Python""" in result.reason


def test_a_key_that_is_missing_fails_the_stage_and_names_the_nearest():
    result = run(repeated(each="item in fils"), backend=PerItem())
    assert result.status == "fail"
    assert 'the context has no "fils"; did you mean "files"?' in result.reason


def test_a_list_of_an_answer_that_was_simulated_is_missing_for_that_reason():
    text = r"""digraph { start [shape=Mdiamond] plan [prompt=p, response_schema="{\"type\": \"object\"}"]
        each [for_each="item in plan.verdict.files", prompt="$item"] done [shape=Msquare] start -> plan -> each -> done }"""
    result = Pipeline(text, backend="simulated").run(wait=True)
    assert '"plan" has left no answer, as a simulated stage leaves none' in result.reason


def test_more_items_than_max_items_fail_before_the_first_with_the_count_and_the_remedy():
    backend = PerItem()
    result = run(repeated('prompt="${item}", max_items=2'), backend=backend)
    assert result.status == "fail"
    assert (
        '"files" has 3 items, and max_items=2 are allowed; make the list shorter, or raise max_items' in result.reason
    )
    assert not backend.asked


def test_max_items_is_100_by_default():
    backend = PerItem()
    assert "has 101 items, and max_items=100" in run(repeated(), backend=backend, params={"files": [0] * 101}).reason
    assert run(repeated(), params={"files": ["x"] * 100}).status == "success"


# -- policies, as for branches -------------------------------------------------------------------------


def failing(*names):
    """A backend that fails for these items."""
    return PerItem({name: Outcome.fail(f"no {name}") for name in names})


@pytest.mark.parametrize("most", [1, 2, 3])
def test_at_most_max_parallel_items_run_at_the_same_time(most):
    backend = PerItem(pause=200)
    run(repeated(f'prompt="${{item}}", max_parallel={most}'), backend=backend, params={"files": ["x"] * 6})
    assert backend.most == most


@pytest.mark.parametrize(
    ("policies", "failed", "status", "outputs"),
    [
        ("", ["b.py"], "partial_success", ["read a.py", None, "read c.py"]),
        ("", FILES, "fail", [None, None, None]),
        ("error_policy=ignore", ["b.py"], "success", ["read a.py", "read c.py"]),
        ("join_policy=k_of_n, join_k=2", ["b.py"], "success", ["read a.py", None, "read c.py"]),
        ("join_policy=k_of_n, join_k=3", ["b.py"], "fail", ["read a.py", None, "read c.py"]),
        ("join_policy=quorum, join_quorum=0.5", ["b.py"], "success", ["read a.py", None, "read c.py"]),
        ("join_policy=first_success, max_parallel=1", ["a.py"], "success", [None, "read b.py", None]),
        ("error_policy=fail_fast, max_parallel=1", ["b.py"], "fail", ["read a.py", None, None]),
    ],
    ids=["some fail", "all fail", "ignore", "k_of_n", "k_of_n unmet", "quorum", "first_success", "fail_fast"],
)
def test_policies_mean_what_they_mean_for_branches_ruling_22(policies, failed, status, outputs):
    result = run(repeated(f'prompt="${{item}}"{", " * bool(policies)}{policies}'), backend=failing(*failed))
    assert result.node_outcomes["review"] == status
    assert result.context["review.outputs"] == outputs


def test_a_failure_names_the_items_and_their_reasons():
    result = run(repeated(), backend=failing(*FILES))
    assert result.reason == "0 of 3 items succeeded (item 0: no a.py; item 1: no b.py; item 2: no c.py)"
    assert results(result, "status", "reason") == [("fail", f"no {name}") for name in FILES]


def test_items_that_fail_fast_cancels_are_skipped_with_the_reason_and_their_runs_are_stopped(directory):
    class Hanging(PerItem):
        async def run(self, node, prompt, context):
            if context["item"] == "a.py":
                await asyncio.Event().wait()
            return await super().run(node, prompt, context)

    backend = Hanging({"b.py": Outcome.fail("no b.py")})
    result = run(repeated('prompt="${item}", error_policy=fail_fast, max_parallel=2'), directory, backend)
    assert results(result, "status", "reason") == [
        ("skipped", "cancelled: item 1 failed"),
        ("fail", "no b.py"),
        ("skipped", "cancelled: item 1 failed"),
    ]
    assert "c.py" not in backend.asked
    assert {event.item: event.status for event in events_of(directory, ChildEnded)} == {0: "interrupted", 1: "failed"}


def test_a_policy_that_the_items_cannot_meet_fails_before_the_first():
    backend = PerItem()
    result = run(repeated('prompt="${item}", join_policy=k_of_n, join_k=5'), backend=backend)
    assert "join_k=5 of 3 items cannot be reached" in result.reason
    assert not backend.asked


def test_each_item_has_the_retries_of_the_node_and_the_stage_is_tried_once():
    backend = PerItem({"b.py": [Outcome.retry("again"), Outcome.retry("again"), "at last"]})
    result = run(repeated('prompt="${item}", max_retries=2'), backend=backend, clock=ManualClock())
    assert result.context["review.outputs"][1] == "at last"
    assert sorted(backend.asked) == ["a.py", "b.py", "b.py", "b.py", "c.py"]


def test_a_stage_whose_items_all_failed_is_not_tried_again_as_a_whole():
    backend = failing(*FILES)
    run(repeated('prompt="${item}", max_retries=1'), backend=backend, clock=ManualClock())
    assert sorted(backend.asked) == sorted(FILES * 2)


def test_the_timeout_of_the_node_holds_for_each_item(directory):
    body = """review [shape=parallelogram, for_each="item in files", timeout=1s, max_parallel=1,
        tool_command="test $ATTRACTOR_ITEM = b.py && sleep 60 || true"] start -> review -> done"""
    result = run(FRAME.format(graph="", body=body), directory)
    assert [status for (status,) in results(result, "status")] == ["success", "fail", "success"]
    assert "timed out after 1s" in results(result, "reason")[1][0]


def test_an_item_that_was_partly_successful_is_so():
    backend = PerItem({"a.py": Outcome(StageStatus.PARTIAL_SUCCESS, notes="half")})
    assert results(run(repeated(), backend=backend), "status", "notes")[0] == ("partial_success", "half")


def test_the_stage_routes_by_the_policy_and_not_by_an_item():
    text = FRAME.format(
        graph="",
        body="""review [for_each="item in files", prompt="${item}", error_policy=fail_fast] mend [prompt="Mend"]
            start -> review  review -> done [condition="outcome=success"]  review -> mend [condition="outcome=fail"]
            mend -> done""",
    )
    assert run(text, backend=failing("b.py")).completed_nodes == ("start", "review", "mend", "done")


def test_another_visit_runs_the_items_again(directory):
    text = FRAME.format(
        graph="max_node_visits=5",
        body="""review [for_each="item in files", prompt="${item}", max_parallel=1] check [type=twice]
            start -> review -> check  check -> review [condition="outcome=fail"]  check -> done""",
    )

    class Twice:
        count = 0

        def execute(self, node, context, graph, logs_root):
            self.count += 1
            return Outcome.fail("once more") if self.count == 1 else Outcome.success()

    backend = PerItem()
    run(text, directory, backend, made={"handlers": {"twice": Twice()}})
    assert backend.asked == FILES * 2
    assert {path.name for path in (directory / "children/review/item-0").iterdir()} == {"1", "2"}


# -- each item is a run of its own ---------------------------------------------------------------------


def test_the_run_of_an_item_is_a_child_run_that_can_be_opened(directory):
    result = run(repeated(), directory)
    child = Run.load(directory / "children" / "review" / "item-1" / "1")
    assert child.result().completed_nodes == ("start", "review", "exit")
    assert child["review"].response == "read b.py"
    opened = Run.load(directory).children
    assert list(opened) == ["review/0", "review/1", "review/2"]
    assert opened["review/1"].id == child.id == results(result, "run_id")[1][0]
    started = events_of(directory, ChildStarted)
    assert sorted((event.item, event.item_count) for event in started) == [(0, 3), (1, 3), (2, 3)]


def test_the_usage_of_the_items_is_the_stages(directory):
    result = run(repeated(), directory, PerItem(usage=Usage(10, 5, 0.01, 1)))
    assert result.usage == Usage(30, 15, 0.03, 3)


def test_the_graph_of_an_item_is_beside_the_runs_and_part_of_its_hash():
    pipeline = Pipeline(repeated())
    (child,) = pipeline.graph.children.values()
    assert (list(child.nodes), child.name) == (["start", "review", "exit"], "review")
    assert "for_each" not in child.nodes["review"].attrs
    other = Pipeline(repeated('prompt="Read ${item}"'))
    assert other.graph.content_hash != pipeline.graph.content_hash


def test_an_item_has_a_start_and_an_exit_of_other_names_where_its_node_has_theirs():
    body = 'exit [for_each="item in files", prompt="Leave ${item}"] start -> exit -> done'
    result = run(FRAME.format(graph="", body=body))
    assert result.context["exit.outputs"] == ["read a.py", "read b.py", "read c.py"]


def test_a_command_that_is_repeated_is_listed_once_for_trust():
    text = FRAME.format(
        graph="",
        body='review [shape=parallelogram, for_each="item in files", tool_command="true"] start -> review -> done',
    )
    assert [entry.text for entry in executable_surface(Pipeline(text).graph).commands] == ["true"]


def test_a_text_from_elsewhere_runs_no_repeated_command_without_trust(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = FRAME.format(
        graph="",
        body='review [shape=parallelogram, for_each="item in files", tool_command="touch made"] start -> review -> done',
    )
    with pytest.raises(UntrustedSource):
        Pipeline(text, origin="https://example.com/x.dot").run(wait=True, params={"files": ["a"]})
    assert not (tmp_path / "made").exists()


def test_a_text_that_begins_with_the_mark_of_files_stays_a_text():
    backend = PerItem()
    run(repeated('prompt="@@ada reads ${item}"'), backend=backend)
    assert backend.prompts[0].endswith("@ada reads a.py")


def test_the_stylesheet_of_the_graph_gives_an_item_its_model():
    seen = []

    def answer(node, prompt, context):
        seen.append(node.llm_model)
        return "ok"

    run(repeated(graph='model_stylesheet="#review { llm_model: tiny; }"'), backend=answer)
    assert seen == ["tiny"] * 3


def test_a_stage_in_a_branch_is_repeated_within_it(directory):
    text = FRAME.format(
        graph="",
        body="""fan [shape=component] join [shape=tripleoctagon]
            left [for_each="item in files", prompt="L ${item}"] right [for_each="item in files", prompt="R ${item}"]
            start -> fan  fan -> left -> join  fan -> right -> join  join -> done""",
    )
    result = run(text, directory)
    assert result.status == "success"
    changed = {entry["id"]: entry["context_updates"] for entry in result.context["parallel.results"]}
    assert changed["left"]["left.outputs"] == changed["right"]["right.outputs"] == [f"read {name}" for name in FILES]
    assert "fan/left/left/0" in Run.load(directory).children


# -- the cache -----------------------------------------------------------------------------------------


def test_each_item_is_taken_from_the_cache(tmp_path):
    first, second = PerItem(), PerItem()
    run(repeated(), tmp_path / "one", first, cache=tmp_path / "cache")
    result = run(
        repeated(), tmp_path / "two", second, cache=tmp_path / "cache", params={"files": ["a.py", "b.py", "new.py"]}
    )
    assert second.asked == ["new.py"]
    assert result.context["review.outputs"] == ["read a.py", "read b.py", "read new.py"]


def test_a_command_that_says_what_it_reads_reads_its_item_too(tmp_path):
    text = FRAME.format(
        graph="",
        body="""review [shape=parallelogram, for_each="item in files", cache=true, cache.context="tone",
            tool_command="echo $ATTRACTOR_ITEM"] start -> review -> done""",
    )
    result = run(text, tmp_path / "one", cache=tmp_path / "cache", params={"files": FILES, "tone": "dry"})
    assert result.context["review.outputs"] == [f"{name}\n" for name in FILES]


# -- the results of the items come from the engine alone -----------------------------------------------


@pytest.mark.parametrize(
    "updates", [{"review.outputs": ["forged"]}, {"review": {"results": []}}], ids=["flat", "nested"]
)
def test_no_status_file_says_what_the_items_came_to_rulings_42_50(updates, directory):
    text = FRAME.format(
        graph="",
        body="""forge [shape=parallelogram, tool_command="cat > $ATTRACTOR_STAGE_DIR/status.json < forged.json"]
            review [for_each="item in files", prompt="${item}"] start -> review -> forge -> done""",
    )
    workdir = directory.parent
    (workdir / "forged.json").write_text(json.dumps({"outcome": "success", "context_updates": updates}))
    result = run(text, directory, workdir=workdir)
    assert result.status == "success"
    assert result.context["review.outputs"] == [f"read {name}" for name in FILES]
    assert "review" not in result.context


def test_such_keys_are_anybodys_where_no_stage_is_repeated():
    assert (
        run(
            repeated('prompt="${item}"').replace("review [", "rev [").replace("-> review ->", "-> rev ->"),
            params={"files": [], "review.outputs": 3},
        ).context["review.outputs"]
        == 3
    )


def test_such_a_stage_cannot_be_pinned_for_no_item_would_be_run():
    with pytest.raises(OptionError, match="its items would not be run"):
        run(repeated(), pins={"review": "text"})


SKIPPED = Outcome(StageStatus.SKIPPED, notes="nothing to do")


@pytest.mark.parametrize(
    ("attributes", "answers", "status"),
    [
        ("", dict.fromkeys(FILES, SKIPPED), "skipped"),
        ("", {"a.py": SKIPPED}, "success"),
        (", join_policy=k_of_n, join_k=2", dict.fromkeys(FILES, SKIPPED), "fail"),
        (", join_policy=k_of_n, join_k=2", {"a.py": SKIPPED}, "success"),
        (", join_policy=k_of_n, join_k=3", {"a.py": SKIPPED}, "fail"),
    ],
)
def test_ruling_17a_an_item_that_was_skipped_is_no_success(attributes, answers, status):
    text = repeated(f'prompt="Review ${{item}}"{attributes}')
    result = Pipeline(text, backend=PerItem(answers)).run(wait=True, params={"files": FILES})
    assert result.node_outcomes.get("review", StageStatus.SKIPPED) == status
    assert result.context["review.results"][0]["status"] == "skipped"


def test_ruling_17a_a_strict_gate_whose_items_were_all_skipped_is_not_satisfied():
    text = repeated('prompt="Review ${item}", goal_gate=true', graph="strict_gates=true")
    answers = dict.fromkeys(FILES, SKIPPED)
    result = Pipeline(text, backend=PerItem(answers)).run(wait=True, params={"files": FILES})
    assert (result.status, result.reason[:21]) == ("fail", "goal_gate_unsatisfied")


# -- managers ----------------------------------------------------------------------------------------

WORKER = """digraph worker { start [shape=Mdiamond] work [prompt="Work", max_retries=3] done [shape=Msquare] start -> work -> done }"""
STEERED = """shape=house, stack.child_pipeline=worker, manager.actions="observe,steer,wait", manager.poll_interval=1s,
    manager.guard="context.stack.child.retries=0", manager.instructions="Mind ${item.name}", max_parallel=2"""


class FailsOnce:
    """A backend whose first answer in each child run is asked for again."""

    def __init__(self):
        self.prompts = []

    def run(self, node, prompt, context):
        """Ask for another attempt, or answer."""
        self.prompts.append(prompt)
        return Outcome.retry("not yet") if len(self.prompts) <= 2 else "done"


def test_each_manager_of_a_list_supervises_a_child_of_its_own_and_steers_it_with_its_item(tmp_path):
    pipeline = Pipeline(repeated(STEERED), pipelines={"worker": WORKER})
    assert not pipeline.diagnostics
    backend = FailsOnce()
    items = [{"name": "ada"}, {"name": "bob"}]
    options = {"params": {"files": items}, "backend": backend, "logs_root": tmp_path / "run", "durability": "fast"}
    result = pipeline.run(wait=True, **options)
    assert result.status == "success"
    homes = sorted((tmp_path / "run" / "children" / "review").glob("item-*/1/children/review/1"))
    assert [home.parts[-5] for home in homes] == ["item-0", "item-1"]
    for home, item in zip(homes, items, strict=True):
        assert f"Mind {item['name']}" in (home / "work" / "prompt.md").read_text()
    assert [one["status"] for one in result.context["review.results"]] == ["success", "success"]
    assert [one["stack.child.status"] for one in result.context["review.outputs"]] == ["completed", "completed"]


def test_one_manager_that_escalates_fails_its_item_alone(tmp_path):
    attributes = """shape=house, stack.child_pipeline=worker, manager.poll_interval=1s,
        manager.escalate="context.item=b.py" """
    pipeline = Pipeline(repeated(attributes), pipelines={"worker": WORKER})
    assert [found.rule for found in pipeline.diagnostics] == ["for_each"]
    assert "has no item" in pipeline.diagnostics[0].message
    result = pipeline.run(params={"files": FILES}, wait=True, logs_root=tmp_path / "run", durability="fast")
    statuses = [(one["status"], one["reason"]) for one in result.context["review.results"]]
    assert [status for status, _ in statuses] == ["success", "fail", "success"]
    assert "Escalated" in statuses[1][1]


def test_a_resume_takes_up_the_managers_of_items_where_they_were(tmp_path):
    worker = """digraph worker { start [shape=Mdiamond] work [prompt="Work"] ask [shape=hexagon] done [shape=Msquare]
        start -> work -> ask -> done }"""
    attributes = "shape=house, stack.child_pipeline=worker, manager.poll_interval=1s, max_parallel=2"
    backend = PerItem()
    pipeline = Pipeline(repeated(attributes), pipelines={"worker": worker})
    directory, options = tmp_path / "run", {"interviewer": "pause", "backend": backend}
    run = pipeline.run(params={"files": FILES[:2]}, logs_root=directory, **options)
    assert run.result(60).status == "paused"
    asked = open_questions(read_run(directory).events)
    assert len(asked) == 2
    for stage in [question.stage for question in asked.values()]:
        record_answer(directory, stage, "done", answered_by="a test")
    assert pipeline.resume(directory, **options).result(60).status == "success"
    assert len(backend.prompts) == 2, "what was committed is not asked again"
