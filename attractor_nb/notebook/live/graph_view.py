"""The live graph as a widget: the picture once, then only what changes.

The browser loads the widget's code after the widget was made, and a message that comes before is
lost; a trait is not. So until the browser says ``ready`` the synced trait ``states`` is set whole, at
a slow rate, and from then on changes go as small messages. In between the trait is changed in place,
silently, so that a view which is made later, in another cell or after the page was loaded again,
starts from the truth.
"""

from __future__ import annotations

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
import time
from typing import TYPE_CHECKING, Any, Final

import traitlets

from attractor_nb.notebook.live.gate_card import ClickedAnswer, GateCards
from attractor_nb.notebook.view_actions import ActingView
from attractor_nb.views.folding import take_delta
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.views.state import Delta

WHOLE_INTERVAL_SECONDS: Final = 0.2
TAIL_CHARS: Final = 2000
"""Characters of a node's latest output that are kept."""
TAILS: Final = 8
"""Of how many nodes words are kept: those that spoke last."""
_PARTS: Final = ("nodes", "edges", "children")


class GraphView(ActingView, GateCards):
    """A drawing that follows a run, with the cards of its questions beside it."""

    _esm = script("live_view")
    _css = widget_styles()
    svg = traitlets.Unicode().tag(sync=True)  #: The drawing, by ``views.drawings.svg``.
    marks = traitlets.Dict().tag(sync=True)  #: Path of the sign of each status.
    caption = traitlets.Unicode().tag(sync=True)  #: Name of the pipeline, for screen readers.
    directory = traitlets.Unicode().tag(sync=True)  #: The run directory, for use after the kernel is lost.
    #: True if the kernel says now and then that it lives.
    has_beats = traitlets.Bool(default_value=False).tag(sync=True)
    has_output = traitlets.Bool(default_value=False).tag(sync=True)  #: True if room is reserved for streamed output.
    #: The whole truth: ``nodes``, ``edges``, ``children`` (the same of child runs), ``line`` (the status line),
    #: ``tails`` (the latest words of nodes, who spoke last at the end), ``debugger`` (``Debugger.to_plain``),
    #: ``others`` (``beside``), ``answer`` (``FinalAnswer``, at the end).
    states = traitlets.Dict().tag(sync=True)
    #: True if it can open its replay, its timeline and other runs beside itself.
    has_beside = traitlets.Bool(default_value=True).tag(sync=True)
    has_parent = traitlets.Bool(default_value=False).tag(sync=True)  #: True for a fork whose parent is stored.

    def __init__(
        self,
        *,
        on_answer: Callable[[ClickedAnswer], object],
        on_stop: Callable[[], None],
        on_inspect: Callable[[dict[str, Any]], dict[str, Any]],
        on_debug: Callable[[dict[str, Any]], dict[str, Any]],
        on_beside: Callable[[dict[str, Any]], dict[str, Any]],
        known: Delta,
        **traits: Any,
    ) -> None:
        """Make the widget, in the cell that shows it.

        Args:
            on_answer: Hands in an answer of a card. Raises our errors.
            on_stop: Called when Stop is clicked.
            on_inspect: Answers a question of the inspector; see ``studio.inspect.inspect_run.answer_inspection``.
            on_debug: Does what the debugger's bar asks for; see ``studio.debugger``.
            on_beside: Opens what is asked for beside the run; see ``Beside``.
            known: The initial state, as for ``show``.
            traits: Initial values.
        """
        states: dict[str, Any] = {**{part: {} for part in (*_PARTS, "line", "tails", "answer")}, "others": []}
        _take(states, known)
        super().__init__(on_answer, states=states, **traits)
        self._on_stop = on_stop
        self._on_inspect = on_inspect
        self._on_debug = on_debug
        self._on_beside = on_beside
        self._is_ready = False
        self._whole_at = 0.0

    def show(self, delta: Delta) -> None:
        """Show a change: parts of ``states``; ``tails`` are words to append."""
        _take(self.states, delta)  # the trait's value is changed in place: kept, but not sent
        if self._is_ready:
            self.send({"kind": "delta", **delta})
        elif time.monotonic() >= self._whole_at + WHOLE_INTERVAL_SECONDS:
            self.show_whole()

    def beat(self) -> None:
        """Say that the kernel lives, when nothing else was to be said."""
        if self._is_ready:
            self.send({"kind": "beat"})

    def show_whole(self) -> None:
        """Send the truth once more, whole; it is also the last thing that a run does."""
        self._whole_at = time.monotonic()
        self.states = dict(self.states)
        self.send_state("states")  # equal values would not be sent by the assignment alone

    def _on_message(self, widget: object, content: dict[str, Any], buffers: object) -> None:
        match content.get("kind"):
            case "ready":
                self._is_ready = True
                self.show_whole()
            case "stop":
                self._on_stop()
            case "inspect":
                self.send(self.with_actions(self._on_inspect(content)))
            case "debug":
                self.send(self._on_debug(content))
            case "act":
                self.act(content)
            case "beside":
                self.send(self._on_beside(content))
            case _:
                super()._on_message(widget, content, buffers)


def _take(states: dict[str, Any], delta: Delta) -> None:
    """Change a whole state by a delta, in place."""
    for part in _PARTS:
        if part in delta:
            take_delta(states, {part: delta[part]})
    for part in ("line", "debugger", "others", "answer"):
        if part in delta:
            states[part] = delta[part]
    tails: dict[str, str] = states["tails"]
    for node_id, text in delta.get("tails", {}).items():
        tails[node_id] = (tails.pop(node_id, "") + text)[-TAIL_CHARS:]
    for node_id in [*tails][:-TAILS]:
        del tails[node_id]
