"""Whole rows of a map on workers: what comes back, lost workers, what stays here, secrets, damage."""

import asyncio
import json
import multiprocessing
import os
import signal
import threading
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.errors import OptionError, RunLocked
from attractor_nb.maps import row_run
from attractor_nb.maps.row_run import ships_rows
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Usage
from attractor_nb.model.row_result import RowResult
from attractor_nb.redaction import MARK, learn
from attractor_nb.runtime.prepare.run_options import RunOptions
from attractor_nb.storage import map_directory as brought_rows
from attractor_nb.storage.log.event_lines import decode_line
from attractor_nb.storage.stored_run import read_run
from tests.waiting import wait_until

MODEL = 'a [prompt="Say $n"] start -> a -> done'
TOOL = 'b [shape=parallelogram, tool_command="{command}"{more}] start -> b -> done'
AGAIN = ", idempotent=true"
ROWS = [{"n": "1"}, {"n": "2"}, {"n": "3"}]


def tool(command, more=AGAIN):
    return TOOL.format(command=command, more=more)


class Counting(Executor):
    """Counts what it is given, and may change what comes back."""

    def __init__(self, pool, change=lambda report: report):
        self.pool, self.change, self.names = pool, change, []

    def submit(self, function, /, *args, **kwargs):
        self.names.append(function.__name__)
        return self.pool.submit(lambda: self.change(function(*args, **kwargs)))


def say_pid(prompt):
    return str(os.getpid())


# -- what comes back ----------------------------------------------------------------------------------


def test_whole_rows_are_run_by_the_workers_and_their_directories_come_back(make, processes):
    body = 'a [prompt="Say $n"] b [shape=parallelogram, tool_command="mkdir -p x; pwd > x/where", idempotent=true] start -> a -> b -> done'
    pipeline = make(body, backend=say_pid, executor=processes)
    result = pipeline.map(ROWS, wait=True, map_dir="map", outputs=["a.response", "n"])
    assert [row.reason for row in result.failures.values()] == []
    assert [row.outputs["n"] for row in result] == ["1", "2", "3"]
    for row in range(3):
        run = result.run(row)
        assert run.id == f"{result.map_id}-{row:05}"
        stored = read_run(result.directory / f"row-{row:05}")
        assert stored.events[0].run_id == run.id
        where = (stored.logs_root / "b/x/where").read_text().strip()
        assert where.endswith("/b")
        assert not where.startswith(str(result.directory))
        assert int(result[row].outputs["a.response"]) != os.getpid()


def test_rows_that_came_back_are_read_and_not_run_again(make, threads):
    pipeline = make(MODEL, executor=Counting(threads))
    first = pipeline.map(ROWS, wait=True, map_dir="map")
    counting = Counting(threads)
    again = pipeline.resume_map(first, executor=counting).result()
    assert all(row.was_finished and row.is_success for row in again)
    assert "perform_row" not in counting.names


@pytest.mark.parametrize(("ship", "tasks"), [("rows", 3), ("stages", 3)])
def test_one_probe_is_sent_and_one_socket_opened_for_all_rows(make, threads, monkeypatch, ship, tasks):
    opened = []
    start = asyncio.start_unix_server

    async def counted(*args, **options):
        opened.append(args)
        return await start(*args, **options)

    monkeypatch.setattr(asyncio, "start_unix_server", counted)
    counting = Counting(threads)
    result = make(MODEL, executor=counting).map(ROWS, wait=True, map_dir="map", ship=ship)
    assert result.status == "success"
    name = "perform_row" if ship == "rows" else "perform"
    assert sorted(counting.names) == sorted(["probe", *[name] * tasks])
    assert len(opened) == 1


def test_nothing_is_brought_when_nothing_is_kept(make, threads):
    result = make(MODEL, executor=Counting(threads)).map(ROWS, wait=True, durability="none", outputs=["a.response"])
    assert [row.outputs["a.response"] for row in result] == ["[Simulated] Response for stage: a"] * 3
    assert result.directory is None


def test_a_failed_row_and_a_failed_command_are_as_they_would_be_here(make, threads):
    pipeline = make(tool("echo no >&2; exit 3"))
    here = pipeline.map(ROWS[:1], wait=True, map_dir="here")
    there = pipeline.map(ROWS[:1], wait=True, map_dir="there", executor=threads)
    assert there[0].status == here[0].status == "fail"
    assert there[0].reason == here[0].reason


def answer_with_tokens(node, prompt, context):
    return Response("x", usage=Usage(6, 6, 0.0, 1))


def test_bounds_of_all_rows_and_of_each_row_hold(make, threads):
    pipeline = make(MODEL, backend=answer_with_tokens, executor=threads)
    result = pipeline.map(ROWS, wait=True, map_dir="map", max_parallel=1, max_tokens_all=20)
    assert [row.status for row in result] == ["success", "success", "not_started"]
    bounded = pipeline.map(ROWS[:1], wait=True, map_dir="bounded", max_steps=1)
    assert "max_steps" in bounded[0].reason
    assert pipeline.resume_map(bounded, max_steps=9).result().status == "success"


def own_handler():
    class Where:
        is_shippable = True

        def execute(self, node, context, graph, logs_root):
            return Outcome.success(context_updates={"pid": os.getpid(), "nodes": len(graph.nodes)})

    return Where()


def test_a_shippable_handler_travels_with_its_row(make, processes):
    pipeline = make("c [type=own] start -> c -> done", handlers={"own": own_handler()}, executor=processes)
    result = pipeline.map(ROWS[:2], wait=True, map_dir="map", outputs=["pid", "nodes"], ship="rows")
    assert [row.reason for row in result] == ["", ""]
    assert os.getpid() not in {row.outputs["pid"] for row in result}
    assert result[0].outputs["nodes"] == 3


# -- what stays here ----------------------------------------------------------------------------------


class Renames:
    def apply(self, graph):
        return graph.with_nodes([graph.nodes["a"].with_attrs({"prompt": "other"})])


class Silent:
    def execute(self, node, context, graph, logs_root):
        return Outcome.success()


def observe(event):
    pass


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        ('g [shape=hexagon, label="Go?"] start -> g -> done [label="Yes"]', {}, "a gate is answered here"),
        ("c [type=own] start -> c -> done", {"handlers": {"own": Silent()}}, "is_shippable"),
        (MODEL, {"transforms": [Renames()]}, "another graph"),
    ],
    ids=["gate", "handler", "transform"],
)
def test_what_needs_the_coordinator_has_its_stages_shipped(make, threads, body, options, reason):
    pipeline = make(body, executor=threads, **options)
    with pytest.raises(OptionError, match=reason) as caught:
        pipeline.map(ROWS, map_dir="map", ship="rows")
    assert caught.value.hint == 'use ship="stages"'
    assert not Path("map").exists()
    counting = Counting(threads)
    assert len(pipeline.map(ROWS, wait=True, map_dir="map", executor=counting)) == 3
    assert "perform_row" not in counting.names


def test_observed_rows_and_those_that_must_not_run_twice_have_their_stages_shipped(make, threads):
    for number, (body, options) in enumerate([(MODEL, {"observers": [observe]}), (tool("true", ""), {})]):
        counting = Counting(threads)
        pipeline = make(body, executor=counting)
        assert pipeline.map(ROWS, wait=True, map_dir=f"map{number}", **options).status == "success"
        assert set(counting.names) == {"probe", "perform"}


OF_THE_CALLER = {
    *("params", "interviewer", "trust", "logs_root", "runs_dir", "is_shown", "executor", "worker_wait", "host"),
    *("on_interrupted", "take_over", "secrets", "session", "backend", "durability"),
}
ARRIVING = {
    "max_steps": 9,
    "max_node_visits": 8,
    "max_restarts": 7,
    "max_goal_gate_redirects": 6,
    "max_budget_usd": 5.0,
    "max_tokens_total": 4,
    "max_duration": "15m",
    "checkpoint_every_stage": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerOptions(RunOptions):
    """Those of a later version, which has one more."""

    ticket: str = ""
    ballast: int | None = None


@pytest.mark.parametrize("name", [entry.name for entry in fields(NewerOptions) if entry.name not in OF_THE_CALLER])
def test_an_option_reaches_the_row_on_its_worker_or_keeps_it_here(make, threads, monkeypatch, name):
    pipeline = make(MODEL)
    value = ARRIVING.get(name, 0 if name == "ballast" else ["given"])
    options, plan = NewerOptions(executor=threads, **{name: value}), compile_plan(pipeline.graph)
    if name not in ARRIVING:
        with pytest.raises(OptionError, match=f"whole rows cannot be sent to workers: {name}= holds in this process"):
            ships_rows(pipeline, options, plan, "rows")
        assert not ships_rows(pipeline, options, plan, None)
        return
    arrived = []

    async def noted(pipeline, task, options, plugs):
        arrived.append(getattr(options, name))
        return RowResult(task.row, "success")

    monkeypatch.setattr(row_run, "run_row", noted)
    given = {name: value}
    assert pipeline.map(ROWS[:1], wait=True, durability="none", executor=threads, ship="rows", **given).is_success
    assert arrived == [value]


def test_ship_is_rows_or_stages_and_needs_an_executor(make, threads):
    with pytest.raises(OptionError, match="ship must be rows or stages, not 'all'"):
        make(MODEL, executor=threads).map(ROWS, ship="all")
    with pytest.raises(OptionError, match='ship="rows" needs an executor'):
        make(MODEL).map(ROWS, ship="rows")


# -- secrets ------------------------------------------------------------------------------------------


def test_no_secret_of_an_input_or_the_environment_is_in_a_task(make, losing, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "q" * 40)
    secret = "row-" + "k" * 20
    executor = losing(0)
    result = make(MODEL, executor=executor).map([{"n": secret}], wait=True, map_dir="map", secrets=[secret])
    assert result.status == "success"
    (task,) = executor.stages
    text = json.dumps(task)  # plain data, all of it
    assert MARK in text
    assert secret not in text
    assert "qqqq" not in text


def test_rows_whose_source_holds_a_secret_are_not_shipped(make, losing):
    secret = "src-" + "j" * 20
    executor = losing(0)
    pipeline = make(tool(f"curl -H {secret}"), executor=executor)
    with pytest.raises(OptionError, match="the source holds a secret"):
        pipeline.map(ROWS, map_dir="map", secrets=[secret], ship="rows")
    result = pipeline.map(ROWS[:1], wait=True, map_dir="map", secrets=[secret])
    assert "stage b holds a secret, and secrets are not sent to workers" in result[0].reason
    assert executor.stages == []


def leak(prompt):
    return "the token is " + "-".join(["walrus", "v" * 20])


def test_a_secret_that_only_the_coordinator_knows_is_taken_out_of_what_comes_back(make, processes):
    pipeline = make(MODEL, backend=leak, executor=processes)
    result = pipeline.map(ROWS[:1], wait=True, map_dir="map", secrets=["walrus-" + "v" * 20])
    assert result.status == "success"
    for path in (result.directory / "row-00000").rglob("*"):
        assert not path.is_file() or b"walrus-" not in path.read_bytes(), path
    assert result.run(0)["a"].response == f"the token is {MARK}"


def test_a_log_line_is_sealed_anew_without_the_secret(make):
    result = make(MODEL, backend=lambda prompt: "a penguin-" + "w" * 20).run(wait=True, logs_root="run")
    data = (result.logs_root / "events.jsonl").read_bytes()
    assert b"penguin-" in data
    learn(["penguin-" + "w" * 20])
    clean = brought_rows.clean_file("events.jsonl", data)
    assert b"penguin-" not in clean
    assert len(clean.splitlines()) == len(data.splitlines())
    assert all(decode_line(line) for line in clean.splitlines())


# -- damage -------------------------------------------------------------------------------------------


def without_log(report):
    return {**report, "files": {k: v for k, v in report["files"].items() if k != "events.jsonl"}}


def of_another_run(report):
    files = {k: v for k, v in report["files"].items() if "manifest" not in k and "checkpoint" not in k}
    line = files["events.jsonl"]
    files["events.jsonl"] = line[: len(line) // 2] + b"?" + line[len(line) // 2 + 1 :]
    return {**report, "files": files}


def leading_out(report):
    return {**report, "files": {**report["files"], "../planted": b"x"}}


@pytest.mark.parametrize("change", [without_log, of_another_run, leading_out])
def test_what_is_no_whole_run_is_not_kept_and_the_row_fails(make, threads, change):
    def changed(report):
        return change(report) if report.get("files") else report

    result = make(MODEL, executor=Counting(threads, changed)).map(ROWS[:1], wait=True, map_dir="map")
    assert result[0].status == "fail"
    assert result[0].reason
    assert sorted(path.name for path in result.directory.iterdir() if path.is_dir()) == []
    assert not (result.directory.parent / "planted").exists()


def test_a_run_that_is_too_large_to_travel_fails_with_the_remedy(make, threads, monkeypatch):
    monkeypatch.setattr(brought_rows, "MAX_RUN_FILES", 3)
    result = make(MODEL, executor=threads).map(ROWS[:1], wait=True, map_dir="map")
    assert 'files, too much to be sent together (ship="stages" brings the files of each stage)' in result[0].reason


def test_what_a_killed_coordinator_had_begun_to_write_is_swept(make, threads):
    pipeline = make(MODEL, executor=threads)
    result = pipeline.map(ROWS[:1], wait=True, map_dir="map")
    left = result.directory / ".attractor-tmp-left"
    left.mkdir()
    (left / "events.jsonl").write_bytes(b"")
    assert pipeline.resume_map(result).result().status == "success"
    assert not left.exists()


# -- lost workers -------------------------------------------------------------------------------------


def test_a_row_whose_worker_was_lost_is_run_again_under_the_same_key(make, losing):
    executor = losing(2)
    result = make(MODEL, executor=executor).map(ROWS[:1], wait=True, map_dir="map")
    assert result.status == "success"
    assert len({task["work"]["run_id"] for task in executor.stages}) == 1
    assert len(executor.stages) == 3


def test_a_row_that_ends_every_worker_fails_for_good(make, losing):
    executor = losing(99)
    result = make(MODEL, executor=executor).map(ROWS[:1], wait=True, map_dir="map")
    assert len(executor.stages) == 3
    assert result[0].reason.startswith("3 workers were lost with it; the last: the worker of row 0 was lost")


def test_a_lost_row_that_must_not_run_twice_is_failed_now_and_when_the_map_goes_on(make, losing):
    executor = losing(1)
    pipeline = make(tool("true", ""), executor=executor)
    result = pipeline.map(ROWS[:1], wait=True, map_dir="map", ship="rows")
    assert result[0].status == "fail"
    assert "its effects are unknown" in result[0].reason
    again = pipeline.resume_map(result).result()
    assert again[0].status == "fail"
    assert len(executor.stages) == 1
    wanted = pipeline.resume_map(result, on_interrupted="rerun", ship="rows").result()
    assert wanted[0].status == "success"
    assert len(executor.stages) == 2
    assert not list(result.directory.glob("*.sent"))


# The second row says who runs it, and waits to be killed; begun again, it goes on.
MORTAL = "echo $ATTRACTOR_RUN_ID >> {folder}/begun; case $ATTRACTOR_RUN_ID in *-00001) [ -e {folder}/pid ] || {{ echo $PPID > {folder}/pid; {endless}; }};; esac"


@pytest.mark.campaign
def test_a_worker_killed_in_the_middle_of_a_map_costs_no_row(make, tmp_path, pid_file, endless, commands_with):
    made = []

    def executor():
        made.append(ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")))
        return made[-1]

    rows = [{"n": str(number)} for number in range(6)]
    pipeline = make(tool(MORTAL.format(folder=tmp_path, endless=endless)), executor=executor)
    run = pipeline.map(rows, map_dir="map", max_parallel=3, worker_wait="4m")
    os.kill(pid_file(tmp_path / "pid"), signal.SIGKILL)
    result = run.result()
    assert [(row.row, row.status, row.reason) for row in result] == [(number, "success", "") for number in range(6)]
    assert len(made) == 2
    assert sorted(path.name for path in result.directory.glob("row-*")) == [f"row-{n:05}" for n in range(6)]
    assert (tmp_path / "begun").read_text().split().count(f"{result.map_id}-00001") == 2
    assert commands_with(endless) == []
    for pool in made:
        pool.shutdown()


def test_cancelling_a_map_ends_its_rows_on_the_workers_and_a_resume_finishes_it(
    make, threads, tmp_path, endless, commands_with
):
    body = tool(f"[ -e {tmp_path}/go ] || {{ touch {tmp_path}/begun; {endless}; }}")
    pipeline = make(body, executor=threads)
    run = pipeline.map(ROWS[:1], map_dir="map")
    wait_until((tmp_path / "begun").exists)
    run.cancel()
    result = run.result()
    assert (result.status, result[0].status) == ("interrupted", "interrupted")
    wait_until(lambda: not commands_with(endless), "the end of the command")
    (tmp_path / "go").touch()
    assert pipeline.resume_map(result).result().status == "success"


class BreaksOnce(Executor):
    """Refuses the second task as a pool does that another task broke."""

    def __init__(self, pool, given):
        self.pool, self.given = pool, given

    def submit(self, function, /, *args, **kwargs):
        self.given.append(self)
        if len(self.given) == 2:
            raise BrokenExecutor("a process ended abruptly")
        return self.pool.submit(function, *args, **kwargs)


def test_a_task_that_comes_to_a_broken_pool_goes_to_the_next_one(make, threads):
    given = []
    result = make(MODEL, executor=lambda: BreaksOnce(threads, given)).run(wait=True, logs_root="run")
    assert (result.status, result.reason) == ("success", "")
    assert len(given) == 3
    assert len(set(map(id, given))) == 2


# -- branches -----------------------------------------------------------------------------------------

FAN = """fan [shape=component] join [shape=tripleoctagon]
    l [shape=parallelogram, tool_command="true"{more}] r [prompt="Say it"]
    start -> fan -> l -> join fan -> r -> join join -> done"""


class LosesOne(Executor):
    """Loses the first worker that is given one node; does all else."""

    def __init__(self, node):
        self.node, self.tasks, self._lock = node, [], threading.Lock()

    def submit(self, function, /, *args, **kwargs):
        from concurrent.futures import Future

        future = Future()
        with self._lock:
            node = args[0]["scope"]["node_id"] if args else ""
            is_lost = node == self.node and node not in self.tasks
            self.tasks.append(node)
        if is_lost:
            future.set_exception(BrokenExecutor("a process ended abruptly"))
        else:
            future.set_result(function(*args))
        return future


@pytest.mark.parametrize(
    ("more", "times", "status"), [(AGAIN, 2, "success"), (", on_interrupted=fail", 1, "fail")], ids=["rerun", "fail"]
)
def test_a_worker_lost_in_a_branch_follows_the_rule_of_its_stage(make, more, times, status):
    executor = LosesOne("l")
    result = make(FAN.format(more=more), executor=executor).run(wait=True, logs_root="run")
    assert result.visits["done"] == 1
    assert executor.tasks.count("l") == times
    assert executor.tasks.count("r") == 1
    found = {entry["id"]: entry for entry in result.context["parallel.results"]}
    assert found["l"]["status"] == status
    if status == "fail":
        assert "is not run again (on_interrupted=fail)" in found["l"]["failure_reason"]


def test_a_row_that_comes_back_without_a_record_is_not_kept(make, threads):
    def emptied(report):
        return {**report, "files": {"events.jsonl": b""}} if report.get("files") else report

    result = make(MODEL, executor=Counting(threads, emptied)).map(ROWS[:1], wait=True, map_dir="map")
    assert "the returned run is not run " in result[0].reason
    assert [path for path in result.directory.iterdir() if path.is_dir()] == []


def test_a_map_that_was_taken_over_while_a_worker_had_a_row_is_lost_and_no_failure_of_the_row(
    make, threads, monkeypatch
):
    def refuse(*_):
        raise RunLocked("the map was taken over", owner={})

    monkeypatch.setattr("attractor_nb.storage.map_directory.MapDirectory.put_row", refuse)
    with pytest.raises(RunLocked, match="the map was taken over"):
        make(MODEL, executor=threads).map(ROWS[:1], wait=True, map_dir="map")


class Particular(Pipeline):
    """A pipeline class of a user, which takes no text."""

    def __init__(self, source, **options):
        if not isinstance(source, str):
            raise OptionError("a Particular is made of a str")
        super().__init__(source, **options)


def test_a_pipeline_that_cannot_be_made_of_its_text_alone_has_its_stages_shipped(make, threads):
    pipeline = Particular(make(MODEL).to_dot(), executor=threads)
    with pytest.raises(OptionError, match="the source alone makes no pipeline: a Particular is made of a str") as told:
        pipeline.map(ROWS, map_dir="map", ship="rows")
    assert told.value.hint == 'use ship="stages"'
    assert not Path("map").exists()
