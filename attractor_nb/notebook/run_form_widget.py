"""The form of a pipeline's inputs in a cell: a field for each, and a button that starts the run.

The output of the cell is the form in words; the fields stand in for it, and what they start is kept below.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from os import urandom
from typing import TYPE_CHECKING, Any, cast

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from attractor_nb.errors import AttractorError
from attractor_nb.notebook.pictures import placed
from attractor_nb.redaction import redacted
from attractor_nb.studio.inspect.stage_records import error_text
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.markup import element

if TYPE_CHECKING:
    from attractor_nb.model.inputs import Input
    from attractor_nb.notebook.live.live_run import LiveRun
    from attractor_nb.notebook.live.live_runs import LiveRuns
    from attractor_nb.studio.edit.run_form import RunForm


class RunFormView(anywidget.AnyWidget):
    """The fields. What they start appears below them, and is ``form.run``."""

    _esm = script("run_form")
    _css = widget_styles()
    fields = traitlets.List().tag(sync=True)  #: The inputs, as ``gate_form.js`` shows fields.
    caption = traitlets.Unicode().tag(sync=True)  #: Name of the pipeline, for screen readers.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the place in a static output where it stands in.

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
