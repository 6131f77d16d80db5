"""Load, as a small sample: what 1,000 runs and 1,000 clients are to show, a few dozen show here (part 8 of issue 7).

``python tests/benchmarks --only L1`` is the whole of it. No time is judged.
"""

import gc
import json
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.server import serve, serving
from attractor_nb.server.event_channel import RunChannel
from attractor_nb.server.event_streams import Stream

LOAD = Path(__file__).parents[1] / "benchmarks" / "workers" / "load.py"
RUNS, CLIENTS, WAVES = 24, 72, 2


@pytest.fixture(scope="module")
def load():
    """The figures of a small load."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say what a process has open")
    command = [sys.executable, str(LOAD), *map(str, (RUNS, CLIENTS, WAVES))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.campaign
def test_every_client_that_drops_and_comes_back_has_the_whole_log_once(load):
    assert load["problems"] == []
    assert (load["missing"], load["repeated"], load["different"]) == (0, 0, 0)
    assert load["events"] > 15 * CLIENTS * WAVES
    assert load["connections"] > CLIENTS * WAVES * 4 // 3  # a third of them hung up while the runs waited


@pytest.mark.campaign
def test_behind_the_load_the_server_has_as_many_files_and_threads_open_as_before(load):
    assert load["peak_files"] > load["files"][0] + CLIENTS  # all were there at once
    assert load["files"][-1] <= load["files"][0]
    assert load["peak_threads"] <= load["pool_threads"] < RUNS + CLIENTS  # none for a run, none for a stream


def test_the_comparison_sees_what_is_missing_repeated_or_changed(root, client, sources):
    """Of the benchmark itself: a check that sees nothing would call everything right."""
    sys.path.insert(0, str(LOAD.parent))
    try:
        from load_checking import Checked, logged
        from load_sources import KINDS
        from load_watching import Received, Watched, Watcher
    finally:
        sys.path.remove(str(LOAD.parent))
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    whole = [Received(event_id, json.dumps(plain).encode(), 0.0, 0.0) for event_id, plain in logged(root / run_id)]

    def checked(had, status="completed"):
        run = Watched(run_id, KINDS[0])
        run.watchers = [Watcher(run, None, None, None, had=had, status=status)]
        found = Checked()
        found.take(run, root)
        return found

    assert checked(whole).wrong == 0
    assert checked(whole[:-1]).missing == 1
    assert checked([*whole, whole[-1]]).repeated == 1
    assert checked([whole[1], whole[0], *whole[2:]]).different == 1
    assert checked([whole[0]._replace(data=b"{}"), *whole[1:]]).different == 1
    assert checked(whole, "failed").wrong == 1


@pytest.mark.campaign
def test_a_server_keeps_nothing_of_streams_that_have_ended(client, root, sources):
    def watch(number):
        run_id = client.submit(sources.plain)
        if number % 2:
            return len(client.events(run_id)) > 1
        with client.stream(run_id) as found:  # it hangs up, and does not come back
            return next(found)["id"] == "0.1"

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(watch, range(12)))
    streams = client.server.state.streams
    while streams.open_count or streams._channels:  # the server has yet to see the last of them go
        client.get("/pipelines")
    gc.collect()
    kept = [one for one in gc.get_objects() if isinstance(one, RunChannel | Stream)]
    places = [one._trail._first if isinstance(one, RunChannel) else root / one._run_id for one in kept]
    assert not [place for place in places if place.parent == root]


# -- what a server takes ---------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"max_runs": 0}, {"max_streams": -1}, {"max_runs": True}])
def test_a_limit_that_is_none_is_refused(root, limits):
    with pytest.raises(OptionError, match="must be 1 or more"):
        serve(root, **limits)


class Limits:
    """The number of files that the system lets a process open."""

    RLIMIT_NOFILE, RLIM_INFINITY = resource.RLIMIT_NOFILE, resource.RLIM_INFINITY

    def __init__(self, soft, hard, *, refuses=False):
        self.now, self.refuses = (soft, hard), refuses

    def getrlimit(self, _):
        return self.now

    def setrlimit(self, _, wanted):
        if self.refuses:
            raise ValueError("not that many")
        self.now = wanted


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (Limits(1024, 20_000), 7_256),
        (Limits(1024, 4096), 4096),
        (Limits(1024, resource.RLIM_INFINITY), 7_256),
        (Limits(9_000, 20_000), 9_000),
        (Limits(256, resource.RLIM_INFINITY, refuses=True), 256),
        (Limits(resource.RLIM_INFINITY, resource.RLIM_INFINITY), 7_256),
    ],
)
def test_a_server_may_open_what_it_needs_as_far_as_the_system_lets_it(monkeypatch, limits, allowed):
    monkeypatch.setitem(sys.modules, "resource", limits)
    hard = limits.now[1]
    assert serving.raise_limit(serving.needed_files(1_000, 2_000)) == allowed
    assert limits.now[1] == hard  # what everybody may raise again later


def test_nothing_is_said_where_there_is_room(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setitem(sys.modules, "resource", Limits(1024, 20_000))
    serving.make_room(10, 10)
    assert not caplog.messages
    serving.make_room(10_000, 10)
    assert "10000 runs and 10 streams may need" in caplog.messages[0]
