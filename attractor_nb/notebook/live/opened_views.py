"""What the live view of a run opens beside itself: replay, timeline, the run that goes on with it, another.

Each is a view of its own with a place of its own; the browser puts that place where it was asked for.
"""

from __future__ import annotations

from os import urandom
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.notebook.view_actions import OpenViews


class Beside:
    """What stands beside the view of one run."""

    def __init__(self, run: Any, views: OpenViews | None) -> None:
        self._run = run
        self._views = views
        self._opened: dict[str, Any] = {}

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Do what the browser asks for; the place of what was opened, or what is said against it."""
        what, name = str(asked.get("what", "")), str(asked.get("run", ""))
        reply = {"kind": "beside", "what": what, "run": name}
        try:
            return {**reply, "place": self._place(what, name)}
        except AttractorError as error:
            return {**reply, "problem": redacted(str(error))}

    def others(self) -> list[dict[str, str]]:
        """The other runs of the pipeline that wait for a person: ``run`` and ``words``."""
        return self._views.waiting_beside(self._run) if self._views else []

    def close(self) -> None:
        """Let go of what was opened."""
        for view in self._opened.values():
            view.close()
        self._opened.clear()

    def _place(self, what: str, name: str) -> str:
        match what:
            case "replay" | "timeline":
                return self._open(what)
            case "resume" if self._views is not None:
                with self._views.caught() as views:
                    self._run.resume()
                return views[-1].key if views else ""
            case "show" if self._views is not None:
                other = self._other(name)
                return (self._views.view_of(other) or self._views.open(other)).key
            case "stop" if self._views is not None:
                self._other(name).cancel()
            case _:
                pass
        return ""

    def _open(self, what: str) -> str:
        if what not in self._opened:
            self._opened[what] = _made(what, self._run, self._views)
        return self._opened[what].place

    def _other(self, name: str) -> Any:
        assert self._views is not None
        other = self._views.run_here(name)
        if other is None:
            raise RunNotFound(f"run {name} is no longer active", hint="runs() lists past runs")
        return other


def _made(what: str, run: Any, views: OpenViews | None) -> Any:
    from attractor_nb.notebook.past_widgets import ReplayView, TimelineView  # noqa: PLC0415 - most open neither

    key = urandom(8).hex()
    if what == "replay":
        return ReplayView(run.replay(), key, views)
    return TimelineView(run.timeline(), key)
