"""A run and the engine that drives it: from the first effect to the result."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from attractor_nb.errors import RunLocked
from attractor_nb.logs import own_logger
from attractor_nb.model.branch import enclosing
from attractor_nb.runtime.answers_from_elsewhere import LOOK_SECONDS, AnswerCollector
from attractor_nb.runtime.chosen_plugs import CHILD_OF, Recording
from attractor_nb.runtime.handles.recorded_state import StoredValues, ended_context
from attractor_nb.runtime.stored_execution import result_of
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.run_store import DirectoryRunStore

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.engine.gates import Gate, Gates
    from attractor_nb.engine.runner import Runner
    from attractor_nb.model.events import Event
    from attractor_nb.model.instruction import InstructionReceipt
    from attractor_nb.protocols import EventSink
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.handle import HandleJob
    from attractor_nb.runtime.handles.run_result import FollowedRun, RunResult


OWNER_CHECK_SECONDS = 1.0
"""Interval at which an inactive log is checked for a take-over."""


def _no_children(waiting: Collection[str], within: str) -> Mapping[str, bool]:
    del waiting, within
    return {}


class RunningEngine(Struct):
    """A run and the engine that will drive it."""

    run: Execution
    behind: HandleJob[RunResult]
    followed: FollowedRun
    runner: Runner
    gates: Gates
    recording: Recording | None = None
    is_child: bool = False
    children_at_gates: Callable[[Collection[str], str], Mapping[str, bool]] = _no_children
    """By branch in which child runs are active: whether all that is active in them waits at gates."""

    async def work(self) -> RunResult:
        """Run to the end, and bind the result."""
        try:
            with self._watched(), self._gates_open(), self._told_from_elsewhere(), self._paused_at_gates():
                ended = await self.runner.run()
        except BaseException:  # an interrupt, too: what was recorded until then is kept
            if self.recording is not None:
                self.recording.keep()
            raise
        setup = self.runner.setup
        self.run.logs_root = setup.store.logs_root
        is_in_memory = isinstance(setup.store, MemoryRunStore)
        values = setup.store.values if is_in_memory else StoredValues(self.run.logs_root)
        context = ended_context(*setup.context.committed(), values)
        manifest = setup.store.manifest if isinstance(setup.store, DirectoryRunStore) else None
        result = result_of(self.run, self.followed, setup.state, context, ended, manifest)
        if self.recording is not None:
            result = replace(result, cassette=self.recording.end(ended.status))
        self.behind.result = result
        return result

    def is_at_gates(self, waiting: Collection[str], within: str = "") -> bool:
        """True if all that is active in the run, its branches and its children waits at gates.

        Args:
            waiting: Ids of the questions that wait at the gates of the run above all others. A child has asked a
                question, too, to which the run above it has the answer already.
            within: What those ids begin with for the questions of this run.
        """
        walking = self.runner.setup.walking
        innermost = {"", *walking} - {enclosing(path) for path in walking}
        asked = [gate.question for gate in self.gates.pending if CHILD_OF not in gate.question.metadata]
        own = {question.branch for question in asked if f"{within}{question.id}" in waiting}
        children = self.children_at_gates(waiting, within)
        return all(path in own or children.get(path, False) for path in innermost)

    def _gates_open(self) -> contextlib.AbstractContextManager[None]:
        """The gates of a child run are its parent's, which are open for it."""
        return contextlib.nullcontext() if self.is_child else gates_open(self.run, self.gates)

    def listen(self, sinks: Iterable[EventSink]) -> None:
        """Send our sinks every event from now on."""
        for sink in sinks:
            self.runner.setup.stream.add_sink(sink)

    @contextlib.contextmanager
    def _watched(self) -> Generator[None]:
        """Stop a run that was taken over while it waited or a stage continued: nothing else would tell it.

        The stage is cancelled, its commands end, and the first record that is refused says why.
        """
        task = asyncio.current_task()

        def look() -> bool:
            try:
                self.runner.setup.store.check_owner()
            except RunLocked:
                if task is not None:
                    task.cancel()
                return False
            return True

        with _repeated(look, OWNER_CHECK_SECONDS):
            yield

    def _paused_at_gates(self) -> contextlib.AbstractContextManager[None]:
        """Pause the run once all that is active in it waits at gates, if that is how they are to be answered."""
        task, setup = asyncio.current_task(), self.runner.setup

        def look() -> bool:
            setup.is_paused = self.is_at_gates({gate.id for gate in self.gates.pending})
            if setup.is_paused and task is not None:
                task.cancel()
            return not setup.is_paused

        is_paused = self.gates.pauses_run and not self.is_child
        return _repeated(look, LOOK_SECONDS) if is_paused else contextlib.nullcontext()

    def _tell(self, node: str, text: str, given_by: str) -> InstructionReceipt:
        from attractor_nb.runtime.telling import tell  # noqa: PLC0415 - most runs are told nothing

        return tell(self.run, node, text, given_by)

    def _told_from_elsewhere(self) -> contextlib.AbstractContextManager[None]:
        """Take answers and messages of other processes; those to a child run its parent takes."""
        collector = AnswerCollector(self.gates, self._tell)

        def look() -> bool:
            collector.look(self.runner.setup.store)
            return True

        return contextlib.nullcontext() if self.is_child else _repeated(look, LOOK_SECONDS)


@contextlib.contextmanager
def _repeated(look: Callable[[], bool], seconds: float) -> Generator[None]:
    """Look now and every N seconds, in the running loop, until a look says that it was the last."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def look_again() -> None:
        nonlocal timer
        if look():
            timer = loop.call_later(seconds, look_again)

    look_again()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


# The gates of all runs that are under way in this process, for callers that show or answer them together.

LOGGER = own_logger(__name__)
ENDED: Final = "the run has ended; if it was stopped, run.resume() resumes it"
Listener = Callable[["Execution", "Gate | None", "Event | None"], None]
"""Told of a run, one of its gates, and what became of it (``Gates.on_change``); no gate: the run ended."""

_lock = threading.Lock()
_under_way: dict[int, Execution] = {}
_listeners: list[Listener] = []


@contextmanager
def gates_open(run: Execution, gates: Gates) -> Generator[None]:
    """While this lasts the gates of the run are among those of the process; then they are closed."""
    with _lock:
        _under_way[id(run)] = run
    try:
        yield
    finally:
        gates.close(ENDED)
        with _lock:
            _under_way.pop(id(run), None)
        tell(run, None, None)


def runs_under_way() -> tuple[Execution, ...]:
    """The runs whose engine works here, oldest first."""
    with _lock:
        return tuple(_under_way.values())


def run_under_way(logs_root: Path) -> Execution | None:
    """The run of a directory whose engine works here; None if it is stored alone."""
    place = logs_root.absolute()
    return next((run for run in runs_under_way() if run.logs_root.absolute() == place), None)


def tell(run: Execution, gate: Gate | None, event: Event | None) -> None:
    """Tell all listeners of a change, in the engine's thread; a fault of theirs is never the run's."""
    for listener in tuple(_listeners):
        try:
            listener(run, gate, event)
        except Exception:  # a fault of who shows gates is never the run's
            LOGGER.exception("a view of gates could not follow one")


def listen(listener: Listener) -> Callable[[], None]:
    """Hear of every gate that opens or is over, from now on; returns how to stop that.

    The listener is called in the thread of the engine, or of the answering caller, and must not wait.
    """
    _listeners.append(listener)

    def stop() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return stop
