"""The one opt-in use of nest-asyncio, in an interpreter of its own because it patches asyncio."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.notebook.run_in_loop import run_sync_on_current_loop

INSIDE_A_LOOP = """
import asyncio, sys
from attractor_nb.notebook.run_in_loop import run_sync_on_current_loop
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


def test_a_loop_that_cannot_be_entered_twice_is_refused_and_the_coroutine_is_closed(monkeypatch):
    def apply(loop):
        raise ValueError(f"can't patch loop of type {type(loop)}")

    async def inner():
        return 3

    async def outer():
        coroutine = inner()
        with pytest.raises(OptionError, match=r"the running loop \(\w+\) cannot be entered twice") as refused:
            run_sync_on_current_loop(coroutine)
        assert refused.value.hint == "await the coroutine, or run it in a thread"
        return coroutine.cr_frame

    monkeypatch.setitem(sys.modules, "nest_asyncio", SimpleNamespace(apply=apply))
    assert asyncio.run(outer()) is None, "nothing says later that it was never awaited"
