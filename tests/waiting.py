"""Waits for changes that send no notice: other processes, and files that they write.

No deadline here is a promise of speed, since the machine may be slow: it ends a test that would wait for ever.
"""

import os
import time
from pathlib import Path

PATIENCE_SECONDS = 60.0
STEP_SECONDS = 0.02


def wait_until(look, what="it"):
    """The result of ``look``, once it finds something."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < give_up, f"{what} did not happen within {PATIENCE_SECONDS:.0f} s"
        time.sleep(STEP_SECONDS)
    return found


def is_alive(pid):
    """True if a process runs; one that has ended does not, even if it is not reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(*pids):
    """Wait until processes have ended."""
    wait_until(lambda: not any(map(is_alive, pids)), f"the end of {pids}")


def read_until(end, *expected):
    """The text that a process writes to the other end of a terminal, up to the one that has all expected parts."""
    text = ""
    while not all(part in text for part in expected):
        try:
            chunk = os.read(end, 65536)
        except OSError:  # Linux says so when the other end is closed
            chunk = b""
        assert chunk, text
        text += chunk.decode(errors="replace")
    return text
