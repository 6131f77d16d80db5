"""The editor, and the findings of a cell, as widgets: what they ask is done by an ``Editor``.

The findings have no output of their own. The table below the cell is static and marked with a key; in the
browser the widget stands in for it (``views/web/place.js``). So a saved notebook has the table and nothing
that needs a kernel.
"""

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from os import urandom
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

import anywidget
import traitlets
from IPython.display import DisplayHandle, display
from markupsafe import Markup

from attractor_nb.errors import AttractorError
from attractor_nb.notebook.saved_output import placed
from attractor_nb.redaction import redacted
from attractor_nb.studio.edit.editor_requests import EditorRequests, RunForm
from attractor_nb.studio.inspect.stage_records import error_text
from attractor_nb.views.drawings.svg import picture_html
from attractor_nb.views.findings_table import can_fix
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.markup import element

if TYPE_CHECKING:
    from attractor_nb.model.inputs import Input
    from attractor_nb.notebook.live.live_run import LiveRun
    from attractor_nb.notebook.live.live_runs import LiveRuns
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.studio.edit.editor import Editor


MOST_VIEWS: Final = 24
"""Most live views of a session; earlier ones keep their last display."""


class EditorRequestsView(anywidget.AnyWidget):
    """A view whose requests ``EditorRequests`` answers, in the place of a static output."""

    state = traitlets.Dict().tag(sync=True)  #: All that it shows, as of ``EditorRequests.state``.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.

    def __init__(self, editor: Editor, place: str) -> None:
        self._requests = EditorRequests(editor)
        super().__init__(state=self._requests.state(), place=place)
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        replies, is_changed = self._requests.answer(content)
        if is_changed:
            self.state = self._requests.state()
        for reply in replies:
            self.send(reply)


class EditorView(EditorRequestsView):
    """The editor."""

    _esm = script("editor")
    _css = widget_styles()


class FindingsView(EditorRequestsView):
    """The findings below a cell."""

    _esm = script("findings")
    _css = widget_styles()


class EditorViews:
    """The views of one shell, the newest of them alive: each keeps a pipeline and a connection."""

    def __init__(self) -> None:
        self._views: OrderedDict[str, EditorRequestsView] = OrderedDict()
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

    def _keep(self, key: str, view: EditorRequestsView) -> None:
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
    """True if a finding has a fix that a click can apply."""
    return pipeline.source is not None and any(map(can_fix, pipeline.diagnostics))


# The form of a pipeline's inputs in a cell: a field for each, and a button that starts the run.
#
# The output of the cell is the form in words; the fields replace it, and the started runs are kept below.


class RunFormView(anywidget.AnyWidget):
    """The fields. What they start appears below them, and is ``form.run``."""

    _esm = script("run_form")
    _css = widget_styles()
    fields = traitlets.List().tag(sync=True)  #: The inputs, as ``gate_form.js`` shows fields.
    caption = traitlets.Unicode().tag(sync=True)  #: Name of the pipeline, for screen readers.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the place in a static output where it is in.

    def __init__(self, form: RunForm, runs: LiveRuns) -> None:
        """Make it, in the cell that shows it."""
        super().__init__(
            fields=[_field(each) for each in form.inputs],
            caption=redacted(form.pipeline.graph.label),
            place=urandom(8).hex(),
        )
        self._form = form
        self._runs = runs
        self._handle: DisplayHandle | None = None
        self._shown: LiveRun | None = None
        self.on_msg(self._on_message)

    def show(self) -> None:
        """Display it in the current cell's output."""
        self._handle = display(self._bundle(), raw=True, display_id=True)

    def update(self, below: dict[str, str], **_: Any) -> None:
        """Keep the output of the run that was started last below the form; as of a display handle."""
        if self._handle is not None:
            self._handle.update(self._bundle(below), raw=True)

    def _bundle(self, below: dict[str, str] | None = None) -> dict[str, str]:
        words = str(self._form)
        html = placed(self.place, str(element("pre", None, words)))
        if below is None:
            return {"text/html": html, "text/plain": words}
        return {"text/html": html + below["text/html"], "text/plain": f"{words}\n\n{below['text/plain']}"}

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        if content.get("kind") != "submit":
            return
        given = content.get("values")
        values = cast("dict[str, str | bool]", given) if isinstance(given, dict) else {}
        words = ""
        try:
            with self._runs.caught() as started:
                self._form.submit(values)
        except AttractorError as error:
            words = redacted(error_text(error))
        else:
            if self._shown is not None:
                self._shown.leave(self)
            self._shown = started[-1] if started else None
            if self._shown is not None:
                self._shown.show_in(self)
        self.send({"kind": "said", "words": words})


def _field(declared: Input) -> dict[str, Any]:
    """An input as a field; all but truth values are texts, which the form reads."""
    is_truth = declared.type == "boolean"
    otherwise = "" if declared.is_required or is_truth else f"otherwise: {declared.default}"
    return {
        "name": declared.name,
        "title": redacted(declared.name),
        "is_required": declared.is_required,
        "kind": "yes_no" if is_truth else "text",
        "words": redacted(" · ".join(part for part in (declared.description, otherwise) if part)),
        "default": declared.default if is_truth and not declared.is_required else None,
        "is_nullable": False,
    }
