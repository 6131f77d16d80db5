"""The one opt-in use of nest-asyncio, in an interpreter of its own because it patches asyncio."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from attractor_nb.notebook.nest import run_sync_on_current_loop

INSIDE_A_LOOP = """
import asyncio, sys
from attractor_nb.notebook.nest import run_sync_on_current_loop
import attractor_nb.notebook.extension
assert "nest_asyncio" not in sys.modules
async def inner():
    await asyncio.sleep(0)
    return id(asyncio.get_running_loop())
async def outer():
    return run_sync_on_current_loop(inner()) == id(asyncio.get_running_loop())
print(asyncio.run(outer()))
"""


def test_without_a_running_loop_it_is_asyncio_run():
    async def value():
        await asyncio.sleep(0)
        return 3

    assert run_sync_on_current_loop(value()) == 3


def test_inside_a_running_loop_the_coroutine_runs_on_that_loop_and_nothing_was_patched_before():
    finished = subprocess.run([sys.executable, "-c", INSIDE_A_LOOP], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "True"
