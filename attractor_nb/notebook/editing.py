"""The editor, and the findings of a cell, as widgets: what they ask is done by an ``Editor``.

The findings have no output of their own. The table below the cell is static and marked with a key; in the
browser the widget stands in for it (``views/web/place.js``). So a saved notebook has the table and nothing
that needs a kernel.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from collections import OrderedDict
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import anywidget
import traitlets
from markupsafe import Markup

from attractor_nb.studio.edit.editor_desk import EditorDesk
from attractor_nb.views.drawings.still import picture_html
from attractor_nb.views.findings_table import can_fix
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.markup import element

if TYPE_CHECKING:
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.studio.edit.editor import Editor

MOST_VIEWS: Final = 24
"""How many views of a session stay alive; those before them show what they showed last."""


class DeskView(anywidget.AnyWidget):
    """A view at a desk, in the place of a static output."""

    state = traitlets.Dict().tag(sync=True)  #: All that it shows, as of ``EditorDesk.state``.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.

    def __init__(self, editor: Editor, place: str) -> None:
        self._desk = EditorDesk(editor)
        super().__init__(state=self._desk.state(), place=place)
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        replies, is_changed = self._desk.answer(content)
        if is_changed:
            self.state = self._desk.state()
        for reply in replies:
            self.send(reply)


class EditorView(DeskView):
    """The editor."""

    _esm = script("editor")
    _css = widget_styles()


class FindingsView(DeskView):
    """The findings below a cell."""

    _esm = script("findings")
    _css = widget_styles()


class Desks:
    """The views of one shell, the newest of them alive: each keeps a pipeline and a connection."""

    def __init__(self) -> None:
        self._views: OrderedDict[str, DeskView] = OrderedDict()
        self._keys: WeakKeyDictionary[Editor, str] = WeakKeyDictionary()

    def place_findings(self, pipeline: Pipeline) -> str:
        """Make the view of a pipeline's findings; the key of its place, empty if a click can mend none."""
        if not can_be_fixed(pipeline):
            return ""
        key = place_of(pipeline)
        self._keep(key, FindingsView(pipeline.edit(), key))
        return key

    def place_editor(self, editor: Editor) -> str:
        """Make the view of an editor, once; the key of its place."""
        key = self._keys.setdefault(editor, token_hex(8))
        if key not in self._views:
            self._keep(key, EditorView(editor, key))
        return key

    def _keep(self, key: str, view: DeskView) -> None:
        if old := self._views.pop(key, None):
            old.close()
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)[1].close()


def editor_html(editor: Editor, place: str) -> str:
    """The static output of an editor, which the view with that key stands in for."""
    words = element("pre", None, str(editor))
    return str(
        element(
            "div",
            {"data-attractor-place": place},
            Markup(picture_html(editor.to_svg(), "")),  # noqa: S704 - written by our own writer
            words,
        )
    )


def place_of(pipeline: Pipeline) -> str:
    """The key of a pipeline's findings; the same text with the same findings has the same."""
    parts = [pipeline.to_dot(), *(f"{found.rule} {found.place}" for found in pipeline.diagnostics)]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def can_be_fixed(pipeline: Pipeline) -> bool:
    """Whether a finding has a fix that a click can apply."""
    return pipeline.source is not None and any(map(can_fix, pipeline.diagnostics))
