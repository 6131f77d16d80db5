"""The one opt-in use of nest-asyncio2, in interpreters of their own: what it changes, and that it is changed back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.notebook.run_in_loop import run_sync_on_current_loop

PREPARE = """
import asyncio, sys, threading
from attractor_nb.notebook.run_in_loop import run_sync_on_current_loop
import attractor_nb.notebook.extension
assert not [name for name, module in sys.modules.items() if name.startswith("nest_asyncio") and module]
asyncio.get_event_loop_policy()
OWNERS = (asyncio, asyncio.events, asyncio.futures, asyncio.tasks, type(asyncio.get_event_loop_policy()))
def state():
    return [dict(vars(owner)) for owner in OWNERS], dict(vars(asyncio.SelectorEventLoop))
class Own(asyncio.SelectorEventLoop):
    pass
async def kind():
    return type(asyncio.get_running_loop()).__name__
async def inner():
    await asyncio.sleep(0)
    await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(int))
    return id(asyncio.get_running_loop())
"""
NESTED = """
async def deeper():
    return run_sync_on_current_loop(inner())
async def outer():
    own = id(asyncio.get_running_loop())
    beside = asyncio.create_task(asyncio.sleep(0))
    assert run_sync_on_current_loop(inner()) == own
    assert run_sync_on_current_loop(deeper()) == own
    assert beside.done(), "the loop goes on meanwhile"
    assert asyncio.current_task() is not None
    again = asyncio.sleep(0)
    try:
        asyncio.get_running_loop().run_until_complete(again)
    except RuntimeError as error:
        again.close()
        return str(error)
before = state()
print(asyncio.run(outer()))
assert state() == before, "asyncio was not left as it was"
"""
PACKAGES = ["nest_asyncio2", "nest_asyncio"]
AS_BEFORE = """
main = kind()
try:
    print(asyncio.run(main, loop_factory=Own))
except TypeError as error:
    main.close()
    print(error)
"""


def python(*parts: str, without: str = "") -> str:
    """What a fresh interpreter prints, or the last line of its error; ``without`` cannot be imported there."""
    blocked = f"import sys; sys.modules[{without!r}] = None\n" if without else ""
    finished = subprocess.run([sys.executable, "-c", blocked + "".join(parts)], capture_output=True, text=True)
    return (finished.stderr or finished.stdout).strip().rpartition("\n")[2]


def test_without_a_running_loop_it_is_asyncio_run():
    async def value():
        await asyncio.sleep(0)
        return 3

    assert run_sync_on_current_loop(value()) == 3


@pytest.mark.parametrize(("package", "other"), [PACKAGES, PACKAGES[::-1]], ids=PACKAGES)
def test_the_running_loop_is_entered_again_and_everything_is_as_before(package, other):
    used = f"assert {package!r} in sys.modules"
    assert python(PREPARE, NESTED, used, without=other) == "This event loop is already running"


def test_the_maintained_fork_goes_before_the_archived_original():
    assert (
        python(PREPARE, NESTED, "print([name for name in sys.modules if name.startswith('nest_')])")
        == "['nest_asyncio2']"
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio.run has no loop_factory")
class TestLoopFactory:
    @pytest.mark.parametrize("other", PACKAGES[::-1], ids=PACKAGES)
    def test_asyncio_run_takes_it_after_one_use(self, other):
        assert python(PREPARE, NESTED, AS_BEFORE, without=other) == "Own"

    def test_asyncio_run_does_not_take_it_after_the_originals_own_apply(self):
        applied = python(PREPARE, "import nest_asyncio; nest_asyncio.apply(asyncio.new_event_loop())", AS_BEFORE)
        assert "unexpected keyword argument 'loop_factory'" in applied


@pytest.mark.parametrize(("package", "other"), [PACKAGES, PACKAGES[::-1]], ids=PACKAGES)
def test_a_loop_that_cannot_be_entered_twice_is_refused_and_the_coroutine_is_closed(package, other, monkeypatch):
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

    monkeypatch.setitem(sys.modules, other, None)
    monkeypatch.setitem(sys.modules, package, SimpleNamespace(apply=apply))
    assert asyncio.run(outer()) is None, "nothing says later that it was never awaited"
