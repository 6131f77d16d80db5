"""In the coordinator: what a stage takes in of the worker that does its work, meanwhile and at the end.

It does not know how the work was sent, nor what its end means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.events import RunWarning, event_from_plain

if TYPE_CHECKING:
    from attractor_nb.stage import StageScope
    from attractor_nb.workers.lifelines import TaskListener
    from attractor_nb.workers.task import StageReport


class TaskClaims:
    """Hears which workers have a task: from the second on, the one before was lost."""

    def __init__(self, scope: StageScope) -> None:
        self._scope = scope
        self._workers: list[str] = []

    def __call__(self, worker: str) -> None:
        """Hear that a worker has it; warn when another one had it before."""
        if worker in self._workers:
            return
        if self._workers:
            node_id, lost = self._scope.node_id, self._workers[-1]
            message = f"{node_id}: worker {lost} was lost, and {worker} began it anew (on_interrupted=rerun)"
            self._scope.announce(RunWarning(message=message, node=node_id))
        self._workers.append(worker)


def take_in(report: StageReport, scope: StageScope, listener: TaskListener) -> None:
    """Give out what was not heard yet, calls of models among it, and write the files."""
    listener.on_worker(report.worker)
    for channel, text in report.output.items():
        scope.stream(text[listener.received.get(channel, 0) :], channel)
    for call_ended in report.calls:
        scope.announce(event_from_plain(call_ended))
    for path, data in report.files.items():
        scope.files.write_bytes(path, data)
    if report.conversation is not None and scope.conversation is not None:
        scope.conversation.save(report.conversation)
    if report.left_out:
        message = f"{scope.node_id}: files that stayed on worker {report.worker}: {'; '.join(report.left_out)}"
        scope.announce(RunWarning(message=message, node=scope.node_id))
