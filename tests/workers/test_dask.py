"""Stages on a Dask cluster: a scheduler and workers as processes, lost workers, stops, a dead scheduler."""

import os
import re
import threading

import pytest
from distributed import Client

from attractor_nb.errors import OptionError
from attractor_nb.interviewers import RefusingInterviewer
from attractor_nb.model.events import RunWarning, StageOutput, StageStarted
from attractor_nb.storage.stored_run import read_run
from tests.waiting import wait_until

TOOL = 'b [shape=parallelogram, tool_command="{command}"{more}] start -> b -> done'
MODEL = 'a [prompt="Say it"{more}] start -> a -> done'
# It says who runs it, and then waits to be killed; the second worker finds that and goes on.
MORTAL = (
    "echo $PPID >> {folder}/begun; [ $(wc -l < {folder}/begun) -gt 1 ] || {{ echo $PPID > {folder}/pid; {endless}; }}"
)


def tool(command, more=""):
    return TOOL.format(command=command, more=more)


@pytest.fixture(scope="module")
def cluster(start_dask):
    """Two workers, for all tests but those that end their cluster."""
    return start_dask(2)


@pytest.fixture
def client(cluster):
    with Client(scheduler_file=cluster.file, timeout="60s", set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def events(result):
    return read_run(result.logs_root).events


@pytest.mark.kind("a Dask worker")
def test_stages_are_done_by_the_workers_and_their_files_come_back(make, cluster, client):
    def answer(prompt):
        return f"{os.getpid()}: {prompt}"

    body = 'a [prompt="Say it"] b [shape=parallelogram, tool_command="mkdir out; echo $PPID > out/who"] start -> a -> b -> done'
    pipeline = make(body, backend=answer, executor=client.get_executor())
    result = pipeline.run(wait=True, logs_root="run")
    assert (result.status, result.reason) == ("success", "")
    workers = {worker.pid for worker in cluster.workers}
    assert int(result["a"].response.split(":")[0]) in workers
    assert int((result.logs_root / "b/out/who").read_text()) in workers


def stage_keys(client):
    """The tasks of stages that the scheduler knows."""
    return client.run_on_scheduler(lambda dask_scheduler: [key for key in dask_scheduler.tasks if "stage" in key])


@pytest.mark.campaign
def test_tasks_that_have_ended_are_let_go_of_together(make, client, monkeypatch):
    monkeypatch.setattr("attractor_nb.workers.shipping.HELD_SECONDS", 60)
    said = []
    send = client._send_to_scheduler
    monkeypatch.setattr(client, "_send_to_scheduler", lambda message: said.append(str(message)) or send(message))
    way = [f"n{number}" for number in range(5)]
    body = " ".join(f'{name} [prompt="Say it"]' for name in way) + f" start -> {' -> '.join(way)} -> done"
    result = make(body, backend=str.upper, executor=client.get_executor()).run(wait=True, durability="none")
    assert (result.status, result.reason) == ("success", "")
    ours = ["release" if "releases-keys" in text else "task" for text in said if "attractor-stage" in text]
    assert ours[:5] == ["task"] * 5, "a task waited behind a message about another one"
    wait_until(lambda: not stage_keys(client))


@pytest.mark.campaign
def test_a_task_that_has_ended_is_let_go_of_when_no_other_follows(make, client):
    body = 'a [prompt="Say it"] b [shape=hexagon, label="Go on?"] start -> a -> b b -> done [label="Yes"]'
    pipeline = make(body, backend=str.upper, executor=client.get_executor())
    run = pipeline.run(durability="none", interviewer="deferred")
    run.wait_for_gate(timeout=30)
    wait_until(lambda: not stage_keys(client))
    run.answer("b", "Yes")
    assert run.result(30).status == "success"


@pytest.mark.campaign
def test_output_arrives_while_the_worker_is_at_work(make, client, tmp_path):
    heard = threading.Event()
    said = []

    def hear(event):
        if isinstance(event, StageOutput):
            said.append(event.text)
            heard.set()

    command = f"echo begun; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo over"
    run = make(tool(command), executor=client.get_executor()).run(logs_root="run", observers=[hear])
    assert heard.wait(30), "nothing was heard before the end"
    (tmp_path / "go").touch()
    result = run.result(30)
    assert result.context["tool.output"] == "begun\nover\n"


@pytest.mark.campaign
def test_stopping_a_run_ends_its_command_on_the_worker(make, client, tmp_path, endless, commands_with):
    command = f"touch {tmp_path}/begun; {endless}"
    run = make(tool(command), executor=client.get_executor()).run(logs_root="run")
    wait_until((tmp_path / "begun").exists)
    run.cancel()
    assert run.result(60).status == "interrupted"
    wait_until(lambda: not commands_with(endless), "the end of the command")


def killed(make, cluster, client, folder, more, pid_file, endless, **options):
    """Run a command whose worker is killed in the middle of it, once it was heard."""
    heard = threading.Event()
    command = "echo hello; " + MORTAL.format(folder=folder, endless=endless)
    run = make(tool(command, more), executor=client.get_executor()).run(
        logs_root="run", observers=[lambda event: isinstance(event, StageOutput) and heard.set()], **options
    )
    pid = pid_file(folder / "pid")
    assert heard.wait(30)
    cluster.replace_worker(pid)
    return run.result(60)


@pytest.mark.campaign
def test_a_killed_workers_stage_is_run_again_where_its_rule_says_so(
    make, cluster, client, tmp_path, pid_file, endless, commands_with
):
    result = killed(make, cluster, client, tmp_path, ", idempotent=true", pid_file, endless)
    assert (result.status, result.reason) == ("success", "")
    assert len((tmp_path / "begun").read_text().split()) == 2
    (warning,) = [event.message for event in events(result) if isinstance(event, RunWarning)]
    assert re.fullmatch(r"b: worker \S+ was lost, and \S+ began it anew \(on_interrupted=rerun\)", warning)
    wait_until(lambda: not commands_with(endless), "the end of what the killed worker ran")


@pytest.mark.campaign
def test_a_killed_workers_command_is_begun_once_unless_somebody_wants_it_again(
    make, cluster, client, tmp_path, pid_file, endless
):
    """Dask runs a task of a lost worker again by itself; the second worker finds it claimed."""
    result = killed(make, cluster, client, tmp_path, ", on_interrupted=fail", pid_file, endless)
    assert result.status == "fail"
    reason = result.outcomes["b"].failure_reason
    assert "another worker had begun it before, and was lost" in reason
    assert len((tmp_path / "begun").read_text().split()) == 1
    assert [event.attempt for event in events(result) if isinstance(event, StageStarted) and event.name == "b"] == [1]


@pytest.mark.kind("a Dask worker")
def test_a_killed_workers_command_that_nobody_is_asked_about_stops_the_run_resumable(
    make, cluster, client, tmp_path, pid_file, endless
):
    result = killed(make, cluster, client, tmp_path, "", pid_file, endless, interviewer=RefusingInterviewer())
    assert result.status in {"fail", "interrupted"}
    assert len((tmp_path / "begun").read_text().split()) == 1
    command = "echo hello; " + MORTAL.format(folder=tmp_path, endless=endless)
    pipeline = make(tool(command), executor=client.get_executor())
    resumed = pipeline.resume(result.logs_root, on_interrupted="rerun").result(60)
    assert resumed.status == "success"


@pytest.mark.campaign
def test_a_client_in_place_of_its_executor_is_told_what_to_give(make, client):
    with pytest.raises(OptionError, match="executor= received a Dask client") as caught:
        make(MODEL.format(more=""), executor=client).run(wait=True, durability="none")
    assert caught.value.hint == "pass client.get_executor()"


@pytest.mark.campaign
def test_a_dead_scheduler_ends_the_run_in_bounded_time_and_no_run_begins_on_it(
    make, start_dask, tmp_path, endless, commands_with
):
    cluster = start_dask(1)
    with Client(scheduler_file=cluster.file, timeout="60s", set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        executor = client.get_executor()
        options = {"logs_root": "run", "worker_wait": "3s"}
        make(MODEL.format(more=""), executor=executor).run(wait=True, durability="none")  # imports what it takes
        command = f"touch {tmp_path}/begun; {endless}"
        run = make(tool(command, ", idempotent=true"), executor=executor).run(**options)
        wait_until((tmp_path / "begun").exists)
        cluster.stop_scheduler()
        result = run.result(60)
        assert result.status == "fail"
        assert "stage b has no worker" in result.reason or "takes no task" in result.reason
        wait_until(lambda: not commands_with(endless), "the end of the command")
        again = make(MODEL.format(more=""), executor=executor).run(logs_root="again", worker_wait="1s")
        assert "the executor did not start" in again.result(60).reason


@pytest.mark.campaign
def test_all_workers_gone_in_the_middle_end_the_run_in_bounded_time(make, start_dask, tmp_path, pid_file, endless):
    cluster = start_dask(1)
    with Client(scheduler_file=cluster.file, timeout="60s", set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        executor = client.get_executor()
        make(MODEL.format(more=""), executor=executor).run(wait=True, durability="none")  # imports what it takes
        pipeline = make(tool(MORTAL.format(folder=tmp_path, endless=endless), ", idempotent=true"), executor=executor)
        run = pipeline.run(logs_root="run", worker_wait="3s")
        cluster.kill_worker(pid_file(tmp_path / "pid"))
        result = run.result(60)
        assert result.status == "fail"
        assert "the cluster has no workers" in result.reason
