"""Results from the cache: what is executed again and what is not, and what is never kept."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus
from attractor_nb.errors import StorageError
from attractor_nb.model.calls.call_content import InputChange, Response
from attractor_nb.model.events import RunWarning, StageEnd
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import NodeStatus
from attractor_nb.stage import current_stage
from attractor_nb.storage.cache_store import CacheStore
from attractor_nb.views.summary_line import status_line
from attractor_nb.views.text_table import text_table
from tests import warm

SPENT = Usage(input_tokens=100, output_tokens=20, cost_usd=0.5, calls=1)
PLANTED = "sk-ant-api03-" + "a1B2c3D4" * 11 + "-Qw4xYzAA"


class Asked:
    """A backend that knows who asked it, and answers by the node alone unless it is told how."""

    def __init__(self, answers=None, *, usage=SPENT, **described):
        self.nodes = []
        self.answers = answers or {}
        self.usage = usage
        self.described = described
        self.lock = threading.Lock()

    def call_inputs(self, node, context):
        return {"model": node.llm_model or "m", "temperature": node.get("llm.temperature", float), **self.described}

    async def run(self, node, prompt, context):
        with self.lock:
            self.nodes.append(node.id)
        answer = self.answers.get(node.id, f"answer of {node.id}")
        answer = answer(node, prompt, context) if callable(answer) else answer
        return Response(answer, usage=self.usage) if isinstance(answer, str) else answer


class Place:
    """A cache, and run directories one after the other."""

    def __init__(self, root):
        self.root = root
        self.cache = root / "cache"
        self.count = 0

    def run(self, source, backend, *, handlers=None, **options):
        self.count += 1
        pipeline = Pipeline(source, handlers=handlers or {})
        options = {"cache": self.cache, "logs_root": self.root / f"run{self.count}", **options}
        return pipeline.run(wait=True, backend=backend, **options)

    def again(self, source, **options):
        """The nodes that are asked when this runs now."""
        backend = Asked()
        result = self.run(source, backend, **options)
        assert result.status == "success", result.reason
        return backend.nodes

    @property
    def entries(self):
        return sorted((self.cache / "entries").glob("*/*.json"))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


NAMES = ["plan", "design", "build", "test", "review", "ship"]


def six(fidelity="compact", goal="ship it", **prompts):
    nodes = "\n".join(f'{name} [prompt="{prompts.get(name, f"Do {name} for $goal.")}"]' for name in NAMES)
    return (
        f'digraph six {{ goal="{goal}" node [fidelity="{fidelity}"] start [shape=Mdiamond] done [shape=Msquare]\n'
        f"{nodes}\nstart -> {' -> '.join(NAMES)} -> done }}"
    )


def graph(body, attrs=""):
    return f"digraph g {{ {attrs} start [shape=Mdiamond] done [shape=Msquare]\n{body} }}"


LINE = graph('a [prompt="Do."] start -> a -> done')


def ends(root):
    return [event for event in Run.load(root).events() if isinstance(event, StageEnd)]


def warnings(root):
    return [event.message for event in Run.load(root).events() if isinstance(event, RunWarning)]


# -- what is executed again --------------------------------------------------------------------------


def test_nothing_is_paid_for_twice(place):
    first, second = Asked(), Asked()
    before, after = place.run(six(), first), place.run(six(), second)
    assert first.nodes == NAMES
    assert second.nodes == []
    assert (before.status, after.status) == ("success", "success")
    assert (before.usage.calls, after.usage) == (6, Usage())
    assert after.saved == before.usage == Usage(600, 120, 3.0, 6)
    assert after.cached_nodes == tuple(NAMES)
    assert {key: after.context[key] for key in after.context} == {key: before.context[key] for key in before.context}
    assert after["build"].response == "answer of build"
    assert after["build"].prompt.replace(after.run_id, before.run_id) == before["build"].prompt
    told = [(event.name, event.is_cached, event.saved, event.outcome.usage) for event in ends(after.logs_root)]
    assert told == [
        ("start", False, None, None),
        *[(name, True, SPENT, None) for name in NAMES],
        ("done", False, None, None),
    ]


@pytest.mark.parametrize(
    ("fidelity", "executed"),
    [
        ("truncate", ["build"]),  # the others carry only the goal
        ("compact", ["build", "test", "review", "ship"]),  # these carry what build had answered
    ],
)
def test_one_edited_prompt_executes_exactly_what_it_invalidates(place, fidelity, executed):
    place.run(six(fidelity), Asked())
    backend = Asked({"build": "another answer"})
    result = place.run(six(fidelity, build="Build it well."), backend)
    assert backend.nodes == executed
    assert result.cached_nodes == tuple(name for name in NAMES if name not in executed)
    assert place.again(six(fidelity, build="Build it well.")) == []
    assert place.again(six(fidelity)) == []  # the earlier results are still there


def test_an_edit_that_leads_to_the_same_answer_invalidates_nothing_after_it(place):
    place.run(six(), Asked())
    assert place.again(six(build="Build it well.")) == ["build"]


def test_a_backend_that_is_asked_otherwise_executes_all(place):
    place.run(LINE, Asked())
    assert Asked().described == {}
    backend = Asked(version="2")
    place.run(LINE, backend)
    assert backend.nodes == ["a"]


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("prompt", 'prompt="Do it."'),
        ("model", 'prompt="Do.", llm_model=n'),
        ("temperature", 'prompt="Do.", llm.temperature=0.5'),
        ("verdict", 'prompt="Do.", verdict=json'),
        ("response_schema", 'prompt="Do.", response_schema="{}"'),
    ],
)
def test_why_names_the_input_that_changed(place, name, attrs):
    place.run(LINE, Asked())
    result = place.run(graph(f"a [{attrs}] start -> a -> done"), Asked({"a": 'Yes.\n{"outcome": "success"}'}))
    why = result.why("a")
    assert not why.is_hit
    assert name in [change.name for change in why.changes]
    assert why.compared_with == Run.load(place.root / "run1").id


def test_why_of_a_live_run_of_a_result_and_of_a_loaded_run_is_the_same(place):
    first = place.run(LINE, Asked())
    pipeline = Pipeline(LINE.replace('"Do."', '"Do it."'))
    run = pipeline.run(backend=Asked(), cache=place.cache, logs_root=place.root / "b", wait=False)
    result = run.result(60)
    loaded = Run.load(place.root / "b")
    assert run.why("a") == result.why("a") == loaded.why("a")
    assert run.why("a").changes == (InputChange("prompt", "Do.", "Do it."),)
    assert str(run.why("a")) == (
        f"a: executed: prompt changed since run {first.run_id}\n  prompt\n    before  Do.\n    now     Do it."
    )
    hit = place.run(LINE, Asked())
    assert hit.why("a").is_hit
    assert str(hit.why("a")) == f"a: cached: run {first.run_id} had executed it with the same inputs"


def test_why_without_a_cache_and_of_stages_that_are_never_cached(place):
    result = Pipeline(LINE).run(wait=True, backend=Asked(), logs_root=place.root / "x")
    assert str(result.why("a")) == "a: executed: the run had no cache; give it one: run(cache=True)"
    assert str(result.why("start")) == "start: executed: a start does nothing"
    first = place.run(LINE, Asked())
    assert str(first.why("a")) == "a: executed: the cache had no result of it"


# -- loops, retries, resumes, branches, maps ---------------------------------------------------------


LOOP = graph(
    """ node [fidelity=truncate]
    draft [prompt="Draft."] judge [prompt="Judge.", verdict=json] gate [shape=diamond]
    start -> draft -> judge -> gate
    gate -> done [condition="preferred_label=good"] gate -> draft [condition="preferred_label=bad"]"""
)


def _judge(answers):
    left = iter(answers)
    return lambda *_: f'{{"outcome": "success", "preferred_next_label": "{next(left)}"}}'


def test_a_loop_that_comes_back_is_executed_anew_and_its_replay_is_not(place):
    first = Asked({"judge": _judge(["bad", "bad", "good"])})
    result = place.run(LOOP, first)
    assert result.status == "success", result.reason
    assert first.nodes == ["draft", "judge"] * 3
    second = Asked()
    assert place.run(LOOP, second).completed_nodes == result.completed_nodes
    assert second.nodes == []


def test_retries_are_no_part_of_the_key_and_failures_are_never_kept(place):
    source = graph('a [prompt="Do.", max_retries=1] b [prompt="Go on."] start -> a -> b -> done')
    left = iter([Outcome.retry("busy")])
    first = Asked({"a": lambda *_: next(left, "fine")})
    place.run(source, first, clock=None)
    assert first.nodes == ["a", "a", "b"]
    assert place.again(source) == []


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.fail("no", is_terminal=True),
        Outcome(StageStatus.PARTIAL_SUCCESS, notes="half"),
        Outcome(StageStatus.SKIPPED),
        "",
    ],
    ids=["fail", "partial", "skipped", "empty"],
)
def test_only_a_success_is_kept(place, outcome):
    result = place.run(LINE, Asked({"a": lambda *_: outcome}))
    assert place.entries == []
    assert "only a success is kept" in str(result.why("a"))


def test_a_resume_takes_from_the_cache_too(place):
    place.run(six(), Asked())
    backend = Asked()
    pipeline = Pipeline(six())
    stopped = pipeline.run(wait=True, backend=Asked(), logs_root=place.root / "r", stop_after=3)
    assert stopped.status == "paused"
    result = pipeline.resume(place.root / "r", backend=backend, cache=place.cache).result(60)
    assert result.status == "success"
    # The first two were executed without it; what they answered is what the others had carried.
    assert backend.nodes == []
    assert result.cached_nodes == ("build", "test", "review", "ship")
    assert Run.load(place.root / "r").result().cached_nodes == result.cached_nodes


def test_branches_and_their_fan_in_come_from_the_cache(place):
    source = graph(
        """ fan [shape=component] one [prompt="One."] two [prompt="Two."]
        join [shape=tripleoctagon, prompt="Choose."] last [prompt="Last."]
        start -> fan fan -> one fan -> two one -> join two -> join join -> last -> done"""
    )
    first = Asked({"join": "two"})
    before = place.run(source, first)
    assert before.status == "success", before.reason
    assert sorted(first.nodes) == ["join", "last", "one", "two"]
    second = Asked()
    after = place.run(source, second)
    assert second.nodes == []
    assert sorted(after.cached_nodes) == ["join", "last", "one", "two"]
    assert after.context["parallel.fan_in.best_id"] == before.context["parallel.fan_in.best_id"]


@pytest.mark.parametrize(("fidelity", "asked"), [("compact", ["a", "a"]), ("truncate", ["a"])])
def test_rows_of_a_map_share_the_cache_where_their_prompts_are_the_same(place, fidelity, asked):
    source = graph('a [prompt="Do $goal."] start -> a -> done', f'goal="it" default_fidelity={fidelity}')
    backend = Asked()
    pipeline = Pipeline(source)
    rows = [{"x": 1}, {"x": 2}, {"x": 1}]
    result = pipeline.map(
        rows, wait=True, backend=backend, cache=place.cache, map_dir=place.root / "map", max_parallel=1
    )
    assert [row.status for row in result.rows] == ["success"] * 3
    assert backend.nodes == asked  # what a row begins with is in its prompts, but under ``truncate``


def test_a_child_run_takes_from_its_parents_cache(place):
    (place.root / "child.dot").write_text(
        'digraph c { start [shape=Mdiamond] done [shape=Msquare] x [prompt="X."] start -> x -> done }'
    )
    source = f'digraph p {{ start [shape=Mdiamond] done [shape=Msquare] sub [type=pipeline, pipeline.dotfile="{place.root / "child.dot"}"] start -> sub -> done }}'
    first, second = Asked(), Asked()
    assert place.run(source, first).status == "success"
    result = place.run(source, second)
    assert (first.nodes, second.nodes) == (["x"], [])
    assert result.cached_nodes == ()  # the stage itself only ran its child


@pytest.mark.campaign
def test_two_processes_share_a_cache(place):
    program = (
        "import sys; from attractor_nb import Pipeline\n"
        f"result = Pipeline({LINE!r}).run(wait=True, cache={str(place.cache)!r}, logs_root=sys.argv[1], backend='simulated')\n"
        "print(result.status, len(result.cached_nodes))"
    )
    begun = [
        warm.Popen([sys.executable, "-c", program, str(place.root / f"p{number}")], stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    assert {one.communicate(timeout=60)[0].split()[0] for one in begun} == {"success"}
    third = warm.run(
        [sys.executable, "-c", program, str(place.root / "p3")], capture_output=True, text=True, timeout=60
    )
    assert third.stdout.split() == ["success", "1"]
    assert len(place.entries) == 1


# -- what a stage is made of -------------------------------------------------------------------------


def test_files_and_status_of_an_agent_come_back(place):
    def work(node, prompt, context):
        stage = current_stage()
        stage.files.write_text("notes.md", "thought")
        stage.files.write_bytes("out/plot.bin", b"\x00\xff")
        stage.files.write_text("status.json", json.dumps({"outcome": "success", "notes": "by the agent"}))
        return "done"

    before = place.run(LINE, Asked({"a": work}))
    after = place.run(LINE, Asked())
    stage = after.logs_root / "a"
    assert after.cached_nodes == ("a",)
    assert (stage / "notes.md").read_text() == "thought"
    assert (stage / "out" / "plot.bin").read_bytes() == b"\x00\xff"
    assert (stage / "response.md").read_text() == "done"
    assert after.outcomes["a"].notes == before.outcomes["a"].notes == "by the agent"
    assert json.loads((stage / "status.json").read_text())["outcome"] == "success"


def test_what_a_handler_sets_and_logs_comes_back(place):
    calls = []

    def count(node, context, graph, logs_root):
        calls.append(node.id)
        context.set("rows", 3)
        context.append_log("counted")
        return Outcome.success("counted", context_updates={"told": True})

    count.version = "1"
    source = graph("a [type=count] start -> a -> done")
    place.run(source, Asked(), handlers={"count": count})
    after = place.run(source, Asked(), handlers={"count": count})
    assert calls == ["a"]
    assert (after.context["rows"], after.context["told"]) == (3, True)
    assert any("counted" in event.logs for event in ends(after.logs_root))
    count.version = "2"
    why = place.run(source, Asked(), handlers={"count": count}).why("a")
    assert calls == ["a", "a"]
    assert why.changes == (InputChange("version", "1", "2"),)


def test_a_handler_without_a_version_is_never_cached(place):
    calls = []

    def count(node, context, graph, logs_root):
        calls.append(node.id)
        return Outcome.success()

    source = graph("a [type=count] start -> a -> done")
    for _ in range(2):
        result = place.run(source, Asked(), handlers={"count": count})
    assert calls == ["a", "a"]
    assert "has no version" in str(result.why("a"))


def test_a_function_is_cached_by_its_version(place):
    calls = []

    def ask(prompt):
        calls.append(prompt)
        return "fine"

    for _ in range(2):
        result = place.run(LINE, ask)
    assert len(calls) == 2
    assert "give it a version" in str(result.why("a"))
    ask.version = "1"
    for _ in range(2):
        place.run(LINE, ask)
    assert len(calls) == 3


@pytest.mark.parametrize("attrs", ["", ", cache=true", ", idempotent=true"])
def test_a_command_is_cached_only_where_the_node_says_so(place, attrs):
    counter = place.root / "count"
    command = f"echo x >> {counter}; cat > /dev/null; echo out"
    source = graph(f'a [shape=parallelogram, tool_command="{command}"{attrs}] start -> a -> done')
    results = [place.run(source, Asked(), trust=True) for _ in range(2)]
    assert [result.status for result in results] == ["success"] * 2
    assert counter.read_text().count("x") == (1 if attrs else 2)
    if attrs:
        assert results[1].context["tool.output"] == results[0].context["tool.output"]
        assert (results[1].logs_root / "a" / "stdout.txt").read_text() == "out\n"
        assert (results[1].logs_root / "a" / "context.json").exists()
    else:
        assert "write cache=true on the node" in str(results[1].why("a"))


def test_a_command_depends_on_the_context_that_it_declares(place):
    counter = place.root / "count"
    body = f'a [shape=parallelogram, cache=true, cache.context="{{reads}}", tool_command="echo x >> {counter}"] start -> a -> done'
    for other in (1, 2):
        place.run(graph(body.format(reads="ticket")), Asked(), trust=True, params={"ticket": 7, "other": other})
    assert counter.read_text().count("x") == 1
    result = place.run(graph(body.format(reads="ticket")), Asked(), trust=True, params={"ticket": 8})
    assert result.why("a").changes == (InputChange("context.ticket", "7", "8"),)
    for other in (1, 2):
        place.run(graph(body.format(reads="*")), Asked(), trust=True, params={"other": other})
    assert counter.read_text().count("x") == 4


def test_declared_files_are_in_the_key(place):
    folder = place.root / "src"
    folder.mkdir()
    (folder / "a.py").write_text("1")
    source = graph('a [prompt="Do.", cache.files="src/**/*.py, missing.txt"] start -> a -> done')
    options = {"workdir": place.root}
    place.run(source, Asked(), **options)
    assert place.again(source, **options) == []
    (folder / "a.py").write_text("2")
    result = place.run(source, Asked(), **options)
    assert [change.name for change in result.why("a").changes] == ["files.src/a.py"]
    (folder / "b.py").write_text("3")
    assert place.again(source, **options) == ["a"]
    (place.root / "missing.txt").write_text("there")
    assert place.again(source, **options) == ["a"]
    assert place.again(source, **options) == []


def test_a_declared_file_that_cannot_be_read_costs_the_cache_and_not_the_stage(place):
    os.mkfifo(place.root / "pipe")  # no process ever writes to it
    source = graph('a [prompt="Do.", cache.files="pipe"] start -> a -> done')
    for _ in range(2):
        backend = Asked()
        result = place.run(source, backend, workdir=place.root)
        assert (result.status, backend.nodes) == ("success", ["a"])
    assert re.search(r"cache\.files: .*pipe is not a plain file", str(result.why("a")))
    assert place.entries == []


def test_a_node_may_refuse_the_cache(place):
    source = LINE.replace('"Do."]', '"Do.", cache=false]')
    place.run(source, Asked())
    assert place.again(source) == ["a"]
    assert place.entries == []


def test_a_model_with_tools_and_an_agent_are_cached_only_where_the_node_says_so(place):
    tools = LINE.replace('"Do."]', '"Do.", allowed_tools="read"]')
    place.run(tools, Asked(), trust=True)
    assert place.again(tools, trust=True) == ["a"]
    declared = tools.replace('"Do."', '"Do.", cache=true')
    place.run(declared, Asked(), trust=True)
    assert place.again(declared, trust=True) == []

    class Agent(Asked):
        has_effects = True

    for _ in range(2):
        backend = Agent()
        place.run(LINE, backend)
        assert backend.nodes == ["a"]


def test_no_gate_is_ever_cached(place):
    asked = []

    def person(question):
        asked.append(question.stage)
        return "yes" if question.stage == "gate" else "y"

    source = graph(
        'gate [shape=hexagon, label="Ship?"] a [prompt="Do."] start -> gate gate -> a [label="[Y] Yes"] '
        'gate -> done [label="[N] No"] a -> done'
    )
    for _ in range(2):
        result = place.run(source, Asked(), interviewer=lambda question: asked.append(question.stage) or "Y")
        assert result.status == "success", result.reason
    assert asked == ["gate", "gate"]
    assert result.cached_nodes == ("a",)
    assert "the person is asked each time" in str(result.why("gate"))


def test_not_even_a_gate_handler_of_ones_own_with_a_version_is_cached(place):
    calls = []

    def gate(node, context, graph, logs_root):
        calls.append(node.id)
        return Outcome(StageStatus.SUCCESS, preferred_label="[Y] Yes")

    gate.version = "1"
    source = graph('gate [shape=hexagon] start -> gate gate -> done [label="[Y] Yes"]')
    for _ in range(2):
        place.run(source, Asked(), handlers={"wait.human": gate})
    assert calls == ["gate", "gate"]


def test_full_fidelity_goes_on_with_the_conversation_that_was_kept(place):
    def talk(node, prompt, context):
        conversation = current_stage().conversation
        said = conversation.read()
        conversation.save(f"{said}|{node.id}: {node.prompt}")
        return f"after {said}"

    def threads(second):
        return graph(
            f'node [fidelity=full, thread_id=t] a [prompt="A."] b [prompt="{second}"] c [prompt="C."] start -> a -> b -> c -> done'
        )

    def backend():
        return Asked(dict.fromkeys("abc", talk))

    first = place.run(threads("B."), backend())
    again = backend()
    assert place.run(threads("B."), again).context["c.response"] == first.context["c.response"]
    assert again.nodes == []
    edited = backend()
    result = place.run(threads("Be."), edited)
    assert edited.nodes == ["b", "c"]
    assert result.context["c.response"] == "after |a: A.|b: Be."
    assert [change.name for change in result.why("c").changes] == ["conversation"]


# -- money -------------------------------------------------------------------------------------------


def test_a_hit_counts_for_no_budget(place):
    source = six()
    place.run(source, Asked())
    result = place.run(source, Asked(), max_budget_usd=0.1, max_tokens_total=1)
    assert result.status == "success"
    assert warnings(result.logs_root) == []


def test_a_declared_price_is_not_paid_again(place):
    def priced(node, prompt, context):
        return Outcome.success(context_updates={"cost_usd": 0.25})

    place.run(LINE, Asked({"a": priced}))
    result = place.run(LINE, Asked())
    assert (result.usage, result.saved.cost_usd) == (Usage(), 0.25)


def test_what_was_saved_without_a_price_is_said_to_be_unpriced(place):
    place.run(LINE, Asked(usage=Usage(100, 20, None, 1)))
    result = place.run(LINE, Asked())
    assert "1 cached (saved 120 tokens, unpriced)" in str(result)


def test_a_hit_is_drawn_as_one(place):
    place.run(LINE, Asked())
    result = place.run(LINE, Asked())
    assert result.view.nodes["a"].status is NodeStatus.CACHED
    line = status_line(result.view, result.graph, started=0.0, now=1.0)
    assert line["cached"] == "1 cached (saved 120 tokens, $0.5)"
    assert "⚡ cached" in text_table(result.graph, result.view.nodes)
    assert "state-cached" in result.to_svg().split("</style>")[-1]
    assert "1 cached (saved 120 tokens, $0.5)" in str(result)


# -- what is wrong with a cache costs an execution, never a result ---------------------------------


def _torn(data):
    return data[: len(data) // 2]


def _altered(data):
    return data.replace(b"answer of a", b"answer of b")


@pytest.mark.parametrize(
    "spoil", [_torn, _altered, lambda _: b"", lambda _: b"{}"], ids=["torn", "altered", "empty", "foreign"]
)
def test_a_corrupt_entry_is_a_miss_with_a_warning(place, spoil):
    place.run(LINE, Asked())
    (entry,) = place.entries
    entry.write_bytes(spoil(entry.read_bytes()))
    backend = Asked()
    result = place.run(LINE, backend)
    assert backend.nodes == ["a"]
    assert result["a"].response == "answer of a"
    (message,) = warnings(result.logs_root)
    assert "of the cache" in message
    assert "a is executed instead" in message
    assert place.again(LINE) == []  # it was kept anew


def test_an_entry_that_cannot_be_read_is_a_miss_with_a_warning(place):
    place.run(LINE, Asked())
    (entry,) = place.entries
    entry.unlink()
    entry.symlink_to(entry.name)
    backend = Asked()
    result = place.run(LINE, backend)
    assert (result["a"].response, backend.nodes) == ("answer of a", ["a"])
    (message,) = warnings(result.logs_root)
    assert message.startswith("the cache cannot be read for a: cannot read ")
    assert place.again(LINE) == [], "it was kept anew"


def test_an_entry_under_another_key_is_no_answer(place):
    place.run(LINE, Asked())
    (entry,) = place.entries
    other = LINE.replace('"Do."', '"Do it."')
    place.run(other, Asked({"a": "another"}))
    (second,) = [path for path in place.entries if path != entry]
    second.write_bytes(entry.read_bytes())
    backend = Asked({"a": "another"})
    result = place.run(other, backend)
    assert backend.nodes == ["a"]
    assert "holds the result of other inputs" in warnings(result.logs_root)[0]


def test_a_cache_that_cannot_be_written_costs_a_warning(place):
    place.cache.write_text("a file")
    result = place.run(LINE, Asked())
    assert result.status == "success"
    assert any("cache" in message for message in warnings(result.logs_root))


@pytest.mark.parametrize("where", ["answer", "file", "prompt"])
def test_no_secret_gets_into_the_cache(place, where):
    def work(node, prompt, context):
        if where == "file":
            current_stage().files.write_text("notes.md", PLANTED)
        return PLANTED if where == "answer" else "fine"

    source = LINE.replace("Do.", f"Do {PLANTED}.") if where == "prompt" else LINE
    for _ in range(2):
        backend = Asked({"a": work})
        result = place.run(source, backend)
        assert backend.nodes == ["a"]
    assert place.entries == []
    assert "secret" in str(result.why("a"))
    for path in place.root.rglob("*"):
        assert not path.is_file() or PLANTED.encode() not in path.read_bytes()


def test_a_link_that_a_stage_left_is_not_kept(place):
    def work(node, prompt, context):
        (current_stage().files.directory / "link").symlink_to("/etc/hostname")
        return "fine"

    result = place.run(LINE, Asked({"a": work}))
    assert "not a plain file" in str(result.why("a"))
    assert place.entries == []


def test_a_description_that_fails_costs_the_cache_and_not_the_stage(place):
    class Broken(Asked):
        def call_inputs(self, node, context):
            raise ValueError("oh")

    result = place.run(LINE, Broken())
    assert result.status == "success"
    assert "its inputs could not be determined: ValueError: oh" in str(result.why("a"))


def test_a_run_that_keeps_nothing_uses_the_cache_too(place):
    for expected in (["a"], []):
        backend = Asked()
        result = Pipeline(LINE).run(wait=True, backend=backend, cache=place.cache, durability="none")
        assert (result.status, backend.nodes) == ("success", expected)
        assert result["a"].response == "answer of a"


def test_the_usual_place_is_beside_the_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Pipeline(LINE).run(wait=True, backend=Asked(), cache=True)
    assert CacheStore(".attractor/cache").size().entries == 1
    Pipeline(LINE).run(wait=True, backend=Asked(), cache=True, runs_dir="out/runs")
    assert CacheStore("out/cache").size().entries == 1


def test_runs_at_the_same_time_share_one_cache(place):
    async def both():
        runs = [
            Pipeline(six()).run(backend=Asked(), cache=place.cache, logs_root=place.root / f"c{number}", wait=False)
            for number in range(3)
        ]
        return [await asyncio.to_thread(run.result, 30) for run in runs]

    results = asyncio.run(both())
    assert [result.status for result in results] == ["success"] * 3
    assert place.again(six()) == []


def test_what_workers_answer_is_kept_here_and_not_asked_for_again(place):
    with ThreadPoolExecutor(1) as executor:
        first = place.run(LINE, "simulated", executor=executor)
        second = place.run(LINE, "simulated", executor=executor)
    here = place.run(LINE, "simulated")
    assert (first.cached_nodes, second.cached_nodes, here.cached_nodes) == ((), ("a",), ("a",))


def test_a_rewound_stage_is_executed(place):
    root = place.run(LINE, Asked()).logs_root
    backend = Asked()
    result = Run.load(root).rewind("a", backend=backend, cache=place.cache).result(60)
    assert (result.status, backend.nodes) == ("success", ["a"])


def test_beside_a_cassette_there_is_no_cache(place):
    for number in range(2):
        result = place.run(LINE, "simulated", cassette=place.root / "calls.json", logs_root=place.root / f"k{number}")
        assert result.status == "success"
        assert result.cached_nodes == ()
    assert place.entries == []


@pytest.mark.parametrize("value", [float("nan"), object()], ids=["nan", "object"])
def test_inputs_without_a_json_form_cost_the_cache_and_not_the_stage(place, value):
    result = place.run(LINE, Asked(odd=value))
    assert result.status == "success"
    assert "what goes into it has no JSON form" in str(result.why("a"))
    assert place.entries == []


def test_an_earlier_entry_of_another_shape_is_compared_with_nothing(place, monkeypatch):
    place.run(LINE, Asked())
    monkeypatch.setattr(CacheStore, "recent", lambda *_, **__: iter([{"of": "a later version"}]))
    result = place.run(LINE.replace('"Do."', '"Do it."'), Asked())
    assert result.status == "success", result.reason
    assert str(result.why("a")) == "a: executed: the cache had no result of it"


def test_a_use_that_cannot_be_noted_costs_a_warning_and_the_result_is_taken(place, monkeypatch):
    place.run(LINE, Asked())

    def refuse(*_, **__):
        raise StorageError("no space", path="groups")

    monkeypatch.setattr(CacheStore, "note", refuse)
    backend = Asked()
    result = place.run(LINE, backend)
    assert (result["a"].response, backend.nodes) == ("answer of a", [])
    assert "the use of a result could not be noted in the cache: no space" in warnings(result.logs_root)
