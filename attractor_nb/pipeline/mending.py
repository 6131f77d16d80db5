"""What a definition's text can become: ``Definition`` inherits it, the work is elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from attractor_nb.pipeline.editor import Editor
    from attractor_nb.pipeline.pipeline import Pipeline


class Mendable:
    """A pipeline whose text can be changed; the changed one is another pipeline."""

    def edit(self) -> Editor:
        """An editor of the text: each change is the smallest one, is linted, and can be taken back."""
        from attractor_nb.pipeline.editor import Editor  # noqa: PLC0415 - for who edits

        return Editor(cast("Pipeline", self))

    def fixed(self, *rules: str) -> Self:
        """This pipeline with the fixes of all findings, or of those of some rules, applied.

        ``lint().fix()`` shows what they change; a fix may lay bare the next finding.

        Args:
            *rules: Names of rules; those of all findings without any.
        """
        return cast("Self", self.edit().fix(*rules).pipeline())
