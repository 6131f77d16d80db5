"""Fault 19: a session's status file under many writers that are killed at any point."""

import contextlib
import itertools
import random
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attractor_nb.errors import SessionDamaged
from attractor_nb.sessions import (
    SessionTracker,
    complete_session,
    create_session,
    get_active_session,
    load_session_status,
    start_agent,
)
from attractor_nb.sessions.fold import AgentUpdate
from tests.disks.faulty_disk import FaultyDisk

WORKER = Path(__file__).parent / "workers/session_writer.py"
SEED = 19


def operations_of_an_update(cwd, durability="full"):
    """The number of operations on the disk in an update; it can be killed at each of them."""
    session_dir = create_session(cwd, "orchestrate", "a.md", [{"id": "001"}])
    begin(SessionTracker(session_dir, durability=durability, disk=(counted := FaultyDisk())), "001")
    assert {"create", "write", "rename"} <= {name for name, _ in counted.operations}
    return len(counted.operations)


def begin(tracker, agent_id):
    tracker.change(AgentUpdate(agent_id, {"status": "running"}))


@contextlib.contextmanager
def worker(*arguments):
    command = [sys.executable, str(WORKER), *(str(argument) for argument in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


class Writer:
    """The process that counts for one agent, replaced whenever it was killed; and all that it acknowledged."""

    def __init__(self, session_dir, agent_id, goal, durability, kills, chance, operations):
        self.arguments = (session_dir, agent_id, goal, durability)
        self.goal, self.kills, self.chance, self.operations = goal, kills, chance, operations
        self.acknowledged = 0
        self.in_flight = 0
        self.killed = 0
        self.is_done = False
        self._start()

    def _start(self):
        """The next process: of those to be killed each second one kills itself in the middle of an update."""
        self._stack = contextlib.ExitStack()
        self._rest, self._kill_after, more = b"", None, ()
        if self.killed < self.kills:
            room = max(2, (self.goal - self.acknowledged) // (self.kills - self.killed + 1))
            updates = self.chance.randrange(1, room)
            if self.killed % 2:
                more = (self.operations * updates - self.chance.randrange(self.operations),)
            else:
                self._kill_after = self.acknowledged + updates
        self.process = self._stack.enter_context(worker("count", *self.arguments, *more))
        self.stdout = self.process.stdout

    def hear(self):
        """Take what the process acknowledged; False when it has gone for good."""
        data = self.stdout.read1(65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode())
        if data:
            if self._kill_after is not None and self.acknowledged >= self._kill_after:
                self.process.send_signal(signal.SIGKILL)
                self._kill_after = None
            return True
        code = self.process.wait()
        self._stack.close()
        if self.is_done:
            return False
        assert code == -signal.SIGKILL, f"a writer ended with {code}"
        self.killed += 1
        self._start()
        return True

    def _take(self, line):
        if line == "done":
            self.is_done = True
        elif line.startswith("from "):
            found = int(line.removeprefix("from "))
            # All that was acknowledged, and at most the one update that was under way.
            assert found - self.acknowledged in {0, 1}, f"{found} in the file, {self.acknowledged} acknowledged"
            self.in_flight += found - self.acknowledged
            self.acknowledged = found
        else:
            assert int(line) == self.acknowledged + 1
            self.acknowledged += 1

    def close(self):
        self._stack.close()


@pytest.mark.timeout(1800)
@pytest.mark.protects("attractor_nb/sessions/tracker.py", "lock.acquire(poll_interval=_POLL_SECONDS)", instead="pass")
@pytest.mark.campaign
def test_of_many_writers_killed_at_random_no_acknowledged_update_is_lost(tmp_path, campaign, figures):
    """Protected by the kernel lock around each read, fold and write: it excludes, and dies with its holder."""
    count = campaign.count(sample=4, full=16)
    goal = campaign.count(sample=50, full=1000)
    kills = campaign.count(sample=2, full=5)
    ids = [f"{number:03}" for number in range(1, count + 1)]
    session_dir = create_session(tmp_path, "orchestrate", "a.md", [{"id": name, "wave": 1} for name in ids])
    # The death of a process, other than a power loss, is survived without a flush, too.
    durabilities = ["full", "fast"]
    operations = {durability: operations_of_an_update(tmp_path, durability) for durability in durabilities}
    chance = random.Random(SEED)
    began = time.monotonic()
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        writers = []
        for name, durability in zip(ids, itertools.cycle(durabilities), strict=False):
            writer = Writer(session_dir, name, goal, durability, kills, chance, operations[durability])
            stack.callback(writer.close)
            writers.append(writer)
            selector.register(writer.stdout, selectors.EVENT_READ, writer)
        while selector.get_map():
            for key, _ in selector.select():
                writer, before = key.data, key.fileobj
                is_going = writer.hear()
                if not is_going or writer.stdout is not before:
                    selector.unregister(before)
                if is_going and writer.stdout is not before:
                    selector.register(writer.stdout, selectors.EVENT_READ, writer)
    seconds = time.monotonic() - began

    session = SessionTracker(session_dir).read()
    assert [agent.model_extra["count"] for agent in session.agents] == [goal] * count
    assert [writer.acknowledged for writer in writers] == [goal] * count
    assert [writer.killed for writer in writers] == [kills] * count
    assert session.summary.model_dump() == {
        "total": count,
        "queued": 0,
        "running": 0,
        "complete": count,
        "failed": 0,
        "cancelled": 0,
    }
    assert complete_session(session_dir).waves[0].status == "complete"
    assert not list(session_dir.glob(".attractor-tmp-*"))
    total, killed = count * goal, count * kills
    in_flight = sum(writer.in_flight for writer in writers)
    figures.record(
        19,
        "writers of one session, killed at random and replaced",
        f"{total:,} of {total:,} updates of {count} writers in the file after {killed} kills ({in_flight} of them "
        f"just before the acknowledgement); no hang, {seconds:.0f} s",
        updates=total,
        kills=killed,
        seconds=round(seconds, 1),
    )


@pytest.mark.protects(
    "attractor_nb/sessions/tracker.py",
    "write_whole(disk, directory.descriptor, STATUS_NAME, data, directory=directory.path, is_synced=is_synced)",
    instead="descriptor = disk.open_update(STATUS_NAME, directory.descriptor)\n"
    "    disk.truncate(descriptor, 0)\n    disk.write(descriptor, data)",
)
@pytest.mark.campaign
def test_killed_at_each_operation_of_an_update_the_next_writer_gets_through_at_once(tmp_path, campaign, figures):
    """Protected by the durable writer: what is under way lies in a file of its own until the rename."""
    points = campaign.pick(range(operations_of_an_update(tmp_path) + 1), sample=4)
    new = 0
    for kill_at in points:
        session_dir = create_session(tmp_path, "orchestrate", "a.md", [{"id": "001"}, {"id": "002"}])
        with worker("update", session_dir, "001", kill_at) as process:
            assert process.stdout.read() == b""
            assert process.wait() == -signal.SIGKILL
        left = SessionTracker(session_dir).read()
        assert left.summary.running in {0, 1}
        new += left.summary.running
        # Without patience: one look at the lock must be enough.
        begin(SessionTracker(session_dir, patience_seconds=0), "002")
        assert SessionTracker(session_dir).read().summary.running == left.summary.running + 1
        assert not list(session_dir.glob(".attractor-tmp-*"))
    assert 0 < new < len(points)
    figures.record(
        19,
        "a writer killed at each operation of an update, holding the lock",
        f"{len(points)} of {len(points)}: old ({len(points) - new}) or new ({new}) state, and the next writer got "
        "the lock at its first try",
    )


@pytest.mark.protects(
    "attractor_nb/sessions/tracker.py",
    "replace_link(disk, base, ACTIVE_NAME, target, directory=path, is_synced=is_synced)",
    instead="disk.remove(ACTIVE_NAME, base)\n        disk.make_link(target, ACTIVE_NAME, base)",
)
@pytest.mark.campaign
def test_a_creator_killed_at_any_operation_leaves_an_active_session(tmp_path, campaign, figures):
    """Protected by the rename of a new link over the old one; the schema's code removes the old one first."""
    first = create_session(tmp_path, "orchestrate", "a.md", [{"id": "001"}])
    SessionTracker.create(tmp_path, "orchestrate", "a.md", [{"id": "001"}], disk=(counted := FaultyDisk()))
    names = [name for name, _ in counted.operations]
    # The link comes last: its operations are always among the cases, the others are sampled.
    last = max(place for place, name in enumerate(names, 1) if name in {"make_link", "remove"})
    others = [number for number in range(1, len(names) + 1) if number < last]
    points = [*campaign.pick(others, sample=3), *range(last, len(names) + 1)]
    moved = 0
    for kill_at in points:
        before = get_active_session(tmp_path)
        with worker("begin", tmp_path, kill_at) as process:
            assert process.stdout.read() == b""
            assert process.wait() == -signal.SIGKILL
        active = get_active_session(tmp_path)
        assert active is not None
        assert load_session_status(active)["agents"][0]["id"] == "001"
        moved += active != before
    start_agent(first, "001")
    figures.record(
        19,
        "a creator killed at operations of a creation",
        f"{len(points)} of {len(points)}: active-session leads to a whole session, {moved} times to the new one",
    )


@pytest.mark.protects(
    "attractor_nb/sessions/tracker.py",
    "        values = unseal(data)\n",
    instead='        values = {key: value for key, value in values.items() if key != "checksum"}\n',
)
def test_each_flipped_byte_and_each_truncation_is_found(tmp_path, campaign, figures):
    """Protected by the checksum at the end of the file."""
    agents = [{"id": f"{number:03}", "name": f"agent {number}", "wave": 1} for number in range(1, 4)]
    session_dir = create_session(tmp_path, "orchestrate", "a.md", agents)
    start_agent(session_dir, "001", pid=12345)
    path = session_dir / "status.json"
    whole, values = path.read_bytes(), load_session_status(session_dir)
    masks = [1 << bit for bit in range(campaign.count(sample=1, full=8))]
    damaged = [
        whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
        for place in range(len(whole))
        for mask in masks
    ]
    flips = len(damaged)
    lengths = campaign.pick(range(len(whole)), sample=200)
    damaged += [whole[:length] for length in lengths]
    refused = unharmed = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            found = load_session_status(session_dir)
        except SessionDamaged:
            refused += 1
        else:
            # Only the name of the checksum was hit: an unknown key more, and the values are those written.
            assert {key: found[key] for key in values} == values
            assert len(found) == len(values) + 1
            unharmed += 1
    assert refused + unharmed == len(damaged)
    assert unharmed <= len("checksum") * len(masks)
    figures.record(
        19,
        "status.json of a session: each byte flipped, each length truncated",
        f"{flips:,} flips and {len(lengths):,} truncations: {refused:,} refused by SessionDamaged, {unharmed} hit only "
        "the name of the checksum and read as written",
    )
