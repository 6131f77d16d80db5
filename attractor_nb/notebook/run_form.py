"""The form of a pipeline's inputs in a cell: a field for each, and a button that starts the run."""

from __future__ import annotations

# ipywidgets has no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from attractor_nb.errors import AttractorError
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from attractor_nb.model.inputs import Input
    from attractor_nb.pipeline.run_form import RunForm

_WIDE = {"width": "min(100%, 42em)"}


def run_form(form: RunForm) -> widgets.Widget:
    """The widget of a form. What it starts appears below it, and is ``form.run``."""
    fields = {each.name: _field(each) for each in form.inputs}
    button = widgets.Button(description="Run", button_style="primary", icon="play")
    said, below = widgets.HTML(), widgets.Output()

    def submit(_: Any) -> None:
        said.value = ""
        below.clear_output()
        with below:
            try:
                form.submit({name: field.value for name, field in fields.items()})
            except AttractorError as error:
                text = error.message if not error.hint else f"{error.message}\n{error.hint}"
                said.value = f'<pre role="alert" style="white-space:pre-wrap">{escape(redacted(text))}</pre>'

    button.on_click(submit)
    rows = [_row(each, fields[each.name]) for each in form.inputs]
    return widgets.VBox([*rows, button, said, below])


def _field(declared: Input) -> Any:
    default = "" if declared.is_required else declared.default
    if declared.type == "boolean":
        return widgets.Checkbox(value=default is True, indent=False)
    kind = widgets.Textarea if declared.type in {"array", "object", "string"} else widgets.Text
    return kind(placeholder="" if default == "" else str(default), layout=_WIDE)


def _row(declared: Input, field: Any) -> Any:
    mark = " *" if declared.is_required else ""
    label = f"<b>{escape(declared.name)}</b>{mark}"
    if declared.description:
        label += f" <span>{escape(declared.description)}</span>"
    return widgets.VBox([widgets.HTML(label), field])
