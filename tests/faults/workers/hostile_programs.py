"""Programs that do not want to end, one a name: ``hostile_programs.py NAME TAG``.

Each says ``ready`` on its output once it does its worst. The tag stands in the command line of whatever
they start, so that a test finds all of it in the process table, by no means of ours.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TAG = sys.argv[2]
LONG_SECONDS = 300
SLEEPER = [sys.executable, "-ISc", f"import time; time.sleep({LONG_SECONDS})", TAG]


def ready():
    os.write(1, b"ready\n")


def last():
    """Go on for longer than any test."""
    time.sleep(LONG_SECONDS)


def ignore_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def ignores_term():
    ignore_term()
    ready()
    last()


def ignores_every_signal():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    ready()
    last()


def forks_a_child_that_ignores_term():
    if os.fork() == 0:
        ignore_term()
        ready()
    last()


def leaves_its_session():
    if os.fork() == 0:
        os.setsid()
        ready()
    last()


def daemonises():
    """Fork, new session, fork again, and the parents end: init adopts what is left."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            ignore_term()
            os.chdir("/")
            ready()
            last()
        os._exit(0)
    os.wait()


def daemonises_and_waits():
    daemonises()
    last()


def hides_its_environment():
    """A child in a session of its own that inherits nothing: no mark finds it."""
    subprocess.Popen(SLEEPER, env={}, start_new_session=True)
    ready()
    last()


def hides_within_its_session():
    """As above, but adopted by init: its session alone tells where it came from."""
    if os.fork() == 0:
        subprocess.Popen(SLEEPER, env={}, process_group=0)
        os._exit(0)
    os.wait()
    ready()
    last()


def flees_when_told_to_end():
    """Its TERM handler starts its successor."""

    def flee(*_):
        if os.fork() == 0:
            os.setsid()
        else:
            os._exit(0)

    signal.signal(signal.SIGTERM, flee)
    ready()
    while True:
        last()


def tidies_up_when_told_to_end():
    """Its TERM handler needs a moment before it ends."""

    def tidy_up(*_):
        Path(os.environ["ATTRACTOR_STAGE_DIR"], "tidied").touch()
        os._exit(0)

    signal.signal(signal.SIGTERM, tidy_up)
    ready()
    last()


def floods_its_output():
    ready()
    piece = b"x" * (1 << 16)
    while True:
        os.write(1, piece)


def floods_its_error_output():
    ready()
    piece = b"x" * (1 << 16)
    while True:
        os.write(2, piece)


def waits_for_input():
    """Reads past the end, for ever."""
    ready()
    while True:
        time.sleep(0.01) if sys.stdin.read() == "" else None


def writes_bytes():
    ready()
    os.write(1, bytes(range(256)) * 100 + b"\xff\xfe\xed\xa0\x80")
    os.write(2, b"\x80\x81")
    last()


def closes_its_outputs():
    ready()
    os.close(1)
    os.close(2)
    last()


def leaves_a_child_with_the_pipe():
    """Ends at once; what it started holds its outputs and writes on."""
    if os.fork() == 0:
        ready()
        while True:
            os.write(1, b"still here\n")
            time.sleep(0.01)


def becomes_another_program():
    ready()
    os.execv(SLEEPER[0], SLEEPER)


def changes_its_group():
    if os.fork() == 0:
        os.setpgid(0, 0)
        ready()
    last()


def starts_many_children():
    for _ in range(200):
        if os.fork() == 0:
            ignore_term()
            last()
    ready()
    last()


def stops_itself():
    ready()
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def fills_its_directory():
    place = Path(os.environ["ATTRACTOR_STAGE_DIR"])
    ready()
    for number in range(20_000):
        (place / str(number)).write_text("x")
    last()


def plants_a_pipe_for_its_status():
    os.mkfifo(os.environ["ATTRACTOR_STAGE_DIR"] + "/status.json")
    ready()
    last()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
