"""A map that was stopped goes on: finished rows are read, interrupted ones resumed, missing ones started."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, load_pipeline
from attractor_nb.errors import CheckpointCorrupt, GraphChanged, InputsChanged, OptionError, RunLocked, RunNotFound
from attractor_nb.maps.map_launch import MapResult
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.storage.map_directory import MapDirectory, read_map
from attractor_nb.storage.stored_run import read_run
from tests import warm

TWO_STAGES = """digraph demo {
    start [shape=Mdiamond]
    plan [prompt="Plan"]
    write [prompt="Write"]
    done [shape=Msquare]
    start -> plan -> write -> done
}"""


def rows(count):
    return [{"n": number} for number in range(count)]


class Counting:
    """A backend that notes each stage it is asked for; it can be told to fail or to stop at one."""

    def __init__(self, stop_at=None, stop=None):
        self.asked = Counter()
        self.stop_at = stop_at
        self.stop = stop

    async def run(self, node, prompt, context):
        self.asked[context["n"], node.id] += 1
        if (context["n"], node.id) == self.stop_at:
            self.stop_at = None
            self.stop()
            await asyncio.Event().wait()
        return f"{node.id} {context['n']}"


def stopped_map(count, at, **options):
    """A map of so many rows that was cancelled at a stage of a row."""
    began = threading.Event()
    backend = Counting(at, began.set)
    handle = Pipeline(TWO_STAGES, backend=backend).map(rows(count), max_parallel=1, **options)
    assert began.wait(30)
    handle.cancel()
    return handle.result(30), backend


def test_a_resume_waits_when_it_is_asked_to():
    result, backend = stopped_map(3, (1, "write"))
    resumed = Pipeline(TWO_STAGES, backend=backend).resume_map(result, wait=True)
    assert isinstance(resumed, MapResult)
    assert resumed.is_success


def test_a_resume_that_waits_does_not_block_its_own_loop():
    result, backend = stopped_map(2, (1, "write"))

    async def wait_here():
        Pipeline(TWO_STAGES, backend=backend).resume_map(result, wait=True, host="kernel")

    with pytest.raises(OptionError, match='host="kernel" runs in this event loop'):
        asyncio.run(wait_here())


def test_no_recorded_stage_is_run_again():
    result, backend = stopped_map(6, (3, "write"))
    assert result.counts == {"success": 3, "fail": 0, "interrupted": 1, "not_started": 2}
    resumed = Pipeline(TWO_STAGES, backend=backend).resume_map(result).result(30)
    assert resumed.is_success
    assert [row.was_finished for row in resumed] == [True] * 3 + [False] * 3
    asked = {(row, stage): 1 for row in range(6) for stage in ("plan", "write")}
    assert backend.asked == {**asked, (3, "write"): 2}  # cut off, and never recorded
    assert [resumed[row].run_id for row in range(4)] == [result[row].run_id for row in range(4)]
    assert resumed.run(3)["write"].response == "write 3"
    assert read_map(result.directory)["status"] == "completed"


def test_a_finished_map_is_read_and_nothing_runs():
    done = Pipeline(TWO_STAGES, backend=Counting()).map(rows(3), wait=True, outputs=["last_response"])
    nobody = Counting()
    again = Pipeline(TWO_STAGES, backend=nobody).resume_map(done.directory).result(30)
    assert nobody.asked == {}
    assert again.is_success
    assert [row.outputs for row in again] == [row.outputs for row in done]
    assert [row.stages for row in again] == [4, 4, 4]


def test_rows_that_failed_for_good_stay_failed():
    backend = FunctionBackend(lambda node, prompt, context: Outcome.fail("no"))
    failed = Pipeline(TWO_STAGES, backend=backend).map(rows(2), wait=True)
    again = Pipeline(TWO_STAGES, backend=Counting()).resume_map(failed).result(30)
    assert again.status == "fail"
    assert [row.reason for row in again] == [row.reason for row in failed]
    assert all(row.was_finished for row in again)


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_rows_that_failed_are_tried_again_from_the_stage_that_failed(durability):
    broken = {1, 3}
    asked = Counter()

    def answer(node, prompt, context):
        asked[context["n"], node.id] += 1
        is_broken = node.id == "write" and context["n"] in broken
        return Outcome.fail("no paper") if is_broken else f"{node.id} {context['n']}"

    pipeline = Pipeline(TWO_STAGES, backend=FunctionBackend(answer))
    failed = pipeline.map(rows(4), wait=True, durability=durability)
    assert failed.counts["fail"] == 2
    broken.remove(1)
    again = pipeline.resume_map(failed, failed="retry", durability=durability).result(30)
    assert [row.status for row in again] == ["success", "success", "success", "fail"]
    assert [row.was_finished for row in again] == [True, False, True, False]
    assert {key: count for key, count in asked.items() if count > 1} == {(1, "write"): 2, (3, "write"): 2}
    assert again.run(1)["write"].response == "write 1"
    assert [row.run_id for row in again] == [row.run_id for row in failed]
    broken.clear()
    assert pipeline.resume_map(again, failed="retry").result(30).is_success
    assert pipeline.resume_map(again).result(30).is_success


def test_what_becomes_of_failed_rows_is_keep_or_retry():
    done = Pipeline(TWO_STAGES).map(rows(1), wait=True)
    with pytest.raises(OptionError, match="failed must be keep or retry, not 'again'"):
        Pipeline(TWO_STAGES).resume_map(done, failed="again")


def test_rows_that_a_bound_ended_go_on_with_a_higher_one():
    backend = Counting()
    ended = Pipeline(TWO_STAGES, backend=backend).map(rows(2), wait=True, max_steps=2)
    assert ended.counts["fail"] == 2
    again = Pipeline(TWO_STAGES, backend=backend)
    assert not again.resume_map(ended).result(30).is_success, "the bound holds until another is given"
    assert again.resume_map(ended, max_steps=30).result(30).is_success
    assert set(backend.asked.values()) == {1}


def test_a_row_that_was_made_and_never_began_is_started(tmp_path):
    result, backend = stopped_map(3, (1, "plan"))
    empty = result.directory / "row-00002"
    empty.mkdir()
    for name in ("owner.lock", "events.jsonl"):
        (empty / name).touch()
    assert Pipeline(TWO_STAGES, backend=backend).resume_map(result).result(30).is_success


def test_the_same_inputs_may_be_given_again_and_others_are_refused():
    result, backend = stopped_map(4, (2, "plan"))
    pipeline = Pipeline(TWO_STAGES, backend=backend)
    with pytest.raises(InputsChanged, match=r"params\[3\] is not what the map began with"):
        pipeline.resume_map(result, params=[*rows(3), {"n": 9}])
    with pytest.raises(InputsChanged, match="5 rows, and the map has 4"):
        pipeline.resume_map(result, params=rows(5))
    assert pipeline.resume_map(result, params=rows(4)).result(30).is_success


def test_another_graph_is_refused_unless_told_to():
    result, backend = stopped_map(3, (1, "plan"))
    other = Pipeline(TWO_STAGES.replace("Write", "Write well"), backend=backend)
    with pytest.raises(GraphChanged, match="not the one that the map ran"):
        other.resume_map(result)
    with pytest.raises(OptionError, match="error, warn, accept"):
        other.resume_map(result, on_graph_change="maybe")
    assert other.resume_map(result, on_graph_change="accept").result(30).is_success


def test_what_cannot_be_resumed_says_why(tmp_path):
    pipeline = Pipeline(TWO_STAGES)
    with pytest.raises(RunNotFound, match="holds no map"):
        pipeline.resume_map(tmp_path)
    with pytest.raises(RunNotFound, match="holds no map"):
        pipeline.resume_map(tmp_path / "nowhere")
    run = pipeline.run(wait=True, logs_root=tmp_path / "run")
    with pytest.raises(RunNotFound, match="holds no map"):
        pipeline.resume_map(run.logs_root)
    unkept = pipeline.map(rows(1), wait=True, durability="none")
    with pytest.raises(OptionError, match="nothing of the map is kept"):
        pipeline.resume_map(unkept)
    kept = pipeline.map(rows(1), wait=True, map_dir=tmp_path / "map")
    with pytest.raises(OptionError, match="in its own directory"):
        pipeline.resume_map(kept, durability="none")
    with pytest.raises(RunNotFound, match="is a map"):
        pipeline.resume(kept.directory)


def test_a_backend_of_ones_own_must_be_given_again():
    result, _ = stopped_map(3, (1, "plan"))
    with pytest.raises(OptionError, match="no backend is given"):
        Pipeline(TWO_STAGES).resume_map(result)


def test_damaged_files_are_refused_and_say_what_to_do():
    result, backend = stopped_map(3, (1, "plan"))
    pipeline = Pipeline(TWO_STAGES, backend=backend)
    inputs = result.directory / "inputs.jsonl"
    text = inputs.read_text()
    inputs.write_text(text.replace('{"n":2}', '{"n":3}'))
    with pytest.raises(CheckpointCorrupt, match=r"row 2 is not what map\.json knows"):
        pipeline.resume_map(result)
    inputs.write_text(text.splitlines()[0] + "\n")
    with pytest.raises(CheckpointCorrupt, match="has 1 rows"):
        pipeline.resume_map(result)
    inputs.unlink()
    assert pipeline.resume_map(result, params=rows(3)).result(30).is_success
    for name in ("map.json", "map.previous.json"):
        (result.directory / name).write_text("{}")
    with pytest.raises(CheckpointCorrupt, match=r"map\.json"):
        pipeline.resume_map(result)


def test_a_torn_manifest_falls_back_to_the_one_before():
    result, backend = stopped_map(3, (1, "plan"))
    manifest = result.directory / "map.json"
    manifest.write_bytes(manifest.read_bytes()[:-40])
    assert Pipeline(TWO_STAGES, backend=backend).resume_map(result).result(30).is_success


def test_a_map_has_one_owner_and_its_rows_can_be_taken_over():
    began = threading.Event()
    backend = Counting((0, "plan"), began.set)
    pipeline = Pipeline(TWO_STAGES, backend=backend)
    first = pipeline.map(rows(3), max_parallel=1)
    assert began.wait(30)
    with pytest.raises(RunLocked):
        pipeline.resume_map(first)
    second = pipeline.resume_map(first, take_over=True)
    assert second.result(30).is_success
    with pytest.raises(RunLocked):
        first.result(30)
    assert first.status == "interrupted"


def test_whoever_lost_the_map_writes_nothing_more_there(tmp_path):
    from attractor_nb.engine.time_limits import SystemClock

    made = {"durability": "fast", "clock": SystemClock()}
    first = MapDirectory.create(tmp_path / "map", source_text="", facts={}, rows=[{}], **made)
    second = MapDirectory.open(tmp_path / "map", take_over=True, **made)
    with pytest.raises(RunLocked):
        first.check_owner()
    with pytest.raises(RunLocked):
        first.finish("completed", "", ResultMarks())
    second.finish("interrupted", "x", ResultMarks())
    assert read_map(tmp_path / "map")["status"] == "interrupted"
    first.close()
    second.close()


PROGRAM = """
import sys
from pathlib import Path
from attractor_nb import Pipeline, FunctionBackend

def answer(node, prompt, context):
    with open("asked.txt", "a") as file:
        file.write(f"{context['n']} {node.id}\\n")
    return f"{node.id} {context['n']}"

pipeline = Pipeline(Path("demo.dot"), backend=FunctionBackend(answer))
options = {"durability": "fast", "max_parallel": 3}
if sys.argv[1] == "start":
    handle = pipeline.map([{"n": n} for n in range(20)], map_dir="map", **options)
else:
    handle = pipeline.resume_map("map", **options)
print("going", flush=True)
print(handle.result().status, flush=True)
"""


@pytest.mark.parametrize("kill_after", [1, 7, 18, 33])
@pytest.mark.campaign
def test_killed_in_the_middle_and_resumed_no_recorded_stage_runs_again(tmp_path, kill_after):
    """Kill -9 after so many prompts of 40; how each stage stood then is what the rows' logs say."""
    (tmp_path / "demo.dot").write_text(TWO_STAGES)
    killer = f"""
count = 0
before = answer
def answer(node, prompt, context):
    global count
    count += 1
    if count > {kill_after}:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    return before(node, prompt, context)
"""
    program = PROGRAM.replace("\npipeline = ", killer + "\npipeline = ")
    killed = warm.run([sys.executable, "-c", program, "start"], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL
    recorded = Counter()
    for log in (tmp_path / "map").glob("row-*/events.jsonl"):  # the kill may have left a row's directory empty
        directory = log.parent
        for event in read_run(directory).events:
            if event.type == "StageCompleted" and event.name in {"plan", "write"}:
                recorded[int(directory.name[-5:]), event.name] += 1
    asked_before = _asked(tmp_path)
    resumed = warm.run([sys.executable, "-c", PROGRAM, "resume"], capture_output=True, text=True)
    assert resumed.stdout.splitlines() == ["going", "success"], resumed.stderr
    asked = _asked(tmp_path)
    assert set(asked) == {(row, stage) for row in range(20) for stage in ("plan", "write")}
    assert {stage: asked[stage] for stage in recorded} == dict.fromkeys(recorded, 1)
    assert all(asked[stage] - asked_before[stage] == 1 for stage in asked if stage not in recorded)
    assert len(recorded) < 40


def _asked(directory: Path) -> Counter:
    path = directory / "asked.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter((int(line.split()[0]), line.split()[1]) for line in lines)


@pytest.mark.campaign
def test_ctrl_c_leaves_everything_resumable(tmp_path):
    (tmp_path / "demo.dot").write_text(TWO_STAGES)
    program = PROGRAM.replace(
        '    return f"{node.id}',
        '    import time\n    Path("began").touch()\n    if not Path("quick").exists(): time.sleep(60)\n    return f"{node.id}',
    )
    waiting = program.replace('map_dir="map",', 'map_dir="map", wait=True,')
    process = warm.Popen(
        [sys.executable, "-c", waiting, "start"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not (tmp_path / "began").exists() and process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode != 0
    assert "RunInterrupted: the map was stopped after 0 of 20 rows" in err
    assert 'resume_map("' in err
    assert read_map(tmp_path / "map")["status"] == "interrupted"
    (tmp_path / "quick").touch()
    resumed = warm.run([sys.executable, "-c", program, "resume"], capture_output=True, text=True)
    assert resumed.stdout.splitlines() == ["going", "success"], resumed.stderr


def test_a_map_directory_holds_its_own_pipeline(tmp_path):
    done = Pipeline(TWO_STAGES).map(rows(1), wait=True, map_dir=tmp_path / "map")
    assert load_pipeline(done.directory).graph.content_hash == done.pipeline.graph.content_hash
    assert json.loads((done.directory / "map.json").read_text())["pipeline_name"] == "demo"
    assert done.directory.stat().st_mode & 0o777 == 0o700
