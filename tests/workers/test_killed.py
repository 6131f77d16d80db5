"""Pools of this machine whose processes are killed, and coordinators that are."""

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import loky
import pytest

from attractor_nb.model.events import StageStarted
from attractor_nb.storage.stored_run import read_run
from tests.waiting import wait_until

MORTAL = (
    "echo $PPID >> {folder}/begun; [ $(wc -l < {folder}/begun) -gt 1 ] || {{ echo $PPID > {folder}/pid; {endless}; }}"
)
BODY = 'a [prompt="Say it"] b [shape=parallelogram, tool_command="{command}", idempotent=true] start -> a -> b -> done'


def new_pool():
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def kill_in_the_middle(make, executor, folder, pid_file, endless):
    command = MORTAL.format(folder=folder, endless=endless)
    run = make(BODY.format(command=command), executor=executor).run(logs_root="run", worker_wait="4m")
    os.kill(pid_file(folder / "pid"), signal.SIGKILL)
    return run.result()


@pytest.mark.parametrize("make_pool", [new_pool, lambda: loky.get_reusable_executor(1)], ids=["processes", "loky"])
def test_a_killed_workers_stage_is_run_again_in_a_new_pool(make, tmp_path, pid_file, make_pool, endless, commands_with):
    made = []

    def executor():
        made.append(make_pool())
        return made[-1]

    result = kill_in_the_middle(make, executor, tmp_path, pid_file, endless)
    assert (result.status, result.reason) == ("success", "")
    assert len(made) == 2
    started = [event for event in read_run(result.logs_root).events if isinstance(event, StageStarted)]
    assert [event.attempt for event in started if event.name == "b"] == [1, 2]
    assert [event.attempt for event in started if event.name == "a"] == [1]
    assert commands_with(endless) == []
    for pool in made:
        pool.shutdown()


def test_a_broken_pool_without_a_function_that_makes_one_fails_the_stage_with_the_remedy(
    make, tmp_path, pid_file, endless
):
    with new_pool() as pool:
        result = kill_in_the_middle(make, pool, tmp_path, pid_file, endless)
    assert result.status == "fail"
    assert "the executor accepts no task" in result.reason
    assert "give a function that makes one" in result.reason


COORDINATOR = """
import sys
from concurrent.futures import ThreadPoolExecutor
import loky
from attractor_nb import Pipeline

if __name__ == "__main__":
    source = '''digraph demo { start [shape=Mdiamond] done [shape=Msquare]
        b [shape=parallelogram, tool_command="echo $PPID > worker; touch begun; endless"] start -> b -> done }'''
    executor = loky.get_reusable_executor(1, timeout=2)
    folder, endless = sys.argv[1:]
    source = source.replace("worker;", f"{folder}/worker;").replace("begun;", f"{folder}/begun;")
    source = source.replace("endless", endless)
    Pipeline(source, executor=executor).run(wait=True, logs_root=f"{folder}/run", worker_wait="4m")
"""


def test_a_killed_coordinator_leaves_no_command_with_the_workers(tmp_path, endless, commands_with):
    program = tmp_path / "coordinator.py"
    program.write_text(COORDINATOR)
    process = subprocess.Popen([sys.executable, program, tmp_path, endless], start_new_session=True)
    try:
        wait_until((tmp_path / "begun").exists, "the stage")
        assert commands_with(endless)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not commands_with(endless), "the end of the command")
