"""A writer of one agent of a session, and ways for it to die.

count DIR AGENT GOAL DURABILITY [K]   one update at a time until the agent's own counter is GOAL; each is acknowledged on
                           stdout once the call has returned. With K the process kills itself at the K-th
                           operation on the disk.
update DIR AGENT K         one update, killed at operation K; 0: between reading and writing, with the lock held.
begin DIR K                begins another session in the working directory DIR, killed at operation K.
"""

import os
import signal
import sys
from pathlib import Path

from attractor_nb.sessions import SessionTracker
from attractor_nb.sessions.fold import AgentUpdate, apply_change


def killer(kill_at):
    sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
    from tests.disks.faulty_disk import FaultyDisk

    return FaultyDisk(kill_at=int(kill_at))


def say(text):
    os.write(1, f"{text}\n".encode())


def count(session_dir, agent_id, goal, durability, kill_at=None):
    disk = killer(kill_at) if kill_at else None
    tracker = SessionTracker(session_dir, durability=durability, disk=disk, patience_seconds=100)
    agent = tracker.read().known_agent(agent_id)
    say(f"from {agent.model_extra.get('count', 0)}")
    if agent.status == "queued":
        tracker.change(AgentUpdate(agent_id, {"status": "running", "pid": os.getpid()}))

    def add_one(session):
        before = session.known_agent(agent_id).model_extra.get("count", 0)
        return apply_change(session, AgentUpdate(agent_id, {"count": before + 1}), at=0.0)

    done = agent.model_extra.get("count", 0)
    while done < int(goal):
        done = tracker.update(add_one).known_agent(agent_id).model_extra["count"]
        say(done)
    if not agent.is_ended:
        tracker.change(AgentUpdate(agent_id, {"status": "complete", "exit_code": 0}))
    say("done")


def update(session_dir, agent_id, kill_at):
    tracker = SessionTracker(session_dir, disk=killer(kill_at))

    def fold(session):
        if kill_at == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return apply_change(session, AgentUpdate(agent_id, {"status": "running"}), at=0.0)

    tracker.update(fold)
    say("done")


def begin(cwd, kill_at):
    SessionTracker.create(Path(cwd), "orchestrate", "a.md", [{"id": "001"}], disk=killer(kill_at))
    say("done")


if __name__ == "__main__":
    {"count": count, "update": update, "begin": begin}[sys.argv[1]](*sys.argv[2:])
