"""What a pipeline's text can become; the work is done by an ``Editor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from attractor_nb.runtime.definition import Definition

if TYPE_CHECKING:
    from attractor_nb.studio.edit.editor import Editor


class Mendable(Definition):
    """A pipeline whose text can be changed; the changed one is another pipeline."""

    def edit(self) -> Editor:
        """An editor of the text: each change is the smallest one, is linted, and can be taken back."""
        from attractor_nb.studio.edit.editor import Editor  # noqa: PLC0415 - for who edits

        return Editor(self)

    def fixed(self, *rules: str) -> Self:
        """This pipeline with the fixes of all findings, or of those of some rules, applied.

        ``lint().fix()`` shows what they change; a fix may lay bare the next finding.

        Args:
            *rules: Names of rules; those of all findings without any.
        """
        made = self.edit().fix(*rules).pipeline()
        assert isinstance(made, type(self)), "a definition of another text is of the same kind"
        return made
