"""``Pipeline.form``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import ResumeKeywords, check_names, takes

if TYPE_CHECKING:
    from attractor_nb.studio.edit.run_form import RunForm


class FillingIn(Definition):
    """Runs of a pipeline whose inputs a person fills in."""

    @takes(ResumeKeywords)
    def form(self, **options: Unpack[ResumeKeywords]) -> RunForm:
        """A form for the inputs that the graph declares: in a notebook fields and a button that starts a run."""
        from attractor_nb.studio.edit.run_form import RunForm  # noqa: PLC0415 - for who fills in forms

        check_names(options)
        return RunForm(self, options)
