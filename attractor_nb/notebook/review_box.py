"""A review as a box of ipywidgets: one output after the other, to be called good or bad (``evaluation.review()``).

It needs nothing in the page but ipywidgets. Scores are not shown, and the expected answer only behind the person's
own: labels are worth something as long as they do not repeat what the judge or the row says.
"""

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ipywidgets import HTML, Button, HBox, Layout, Text, VBox

from attractor_nb.account import signed_here
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.evaluation.reviews import Review, ReviewLog
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.question import BY_CLICK
from attractor_nb.notebook.gate_controls import words_html
from attractor_nb.redaction import redacted
from attractor_nb.views.markup import element
from attractor_nb.views.output_styles import gate_css

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from markupsafe import Markup

    from attractor_nb.evaluation.evaluated_row import EvaluatedRow
    from attractor_nb.evaluation.evaluation import Evaluation

_FIELD: Final = {"width": "auto", "max_width": "640px"}
_WORDS: Final[Mapping[object, str]] = {True: "good", False: "bad"}
MAX_CHARACTERS: Final = 20_000
"""Of each text on the screen."""


class ReviewBox(VBox):
    """A review as a widget. Of repeats it shows the first run; rows without an output are left out.

    An answer is stored at once. A row with an expected answer then shows it and waits for ``next``; from others the
    box goes on by itself.

    Attributes:
        good: The button ``1 good``.
        bad: The button ``0 bad``.
        back: The button to the row before.
        next: The button to the next row.
        key_field: A field that takes keys: 1, 0, b for back, n for next.
        note: A field for a remark.
        tag: A field for a word that groups rows.
    """

    def __init__(self, evaluation: Evaluation, path: Path) -> None:
        """Make it in the cell that shows it.

        Args:
            evaluation: The evaluation to review.
            path: The file that gets the answers.

        Raises:
            OptionError: No row has an output, or a line of the file is no review.
        """
        self._evaluation = evaluation
        self._log = ReviewLog(path)
        self._reviews = self._log.latest()
        self._rows = [row for row in evaluation if row.results[0].status == "success"]
        if not self._rows:
            raise OptionError("no row of the evaluation has an output to review", hint="evaluate rows that succeed")
        self._drafts: dict[str, tuple[str, str]] = {}
        self._line, self._material, self._expected, self._problem = HTML(), HTML(), HTML(), HTML()
        self.good = self._button("1 good", partial(self._answer, value=True), "success")
        self.bad = self._button("0 bad", partial(self._answer, value=False), "danger")
        self.back, self.next = self._button("back", self._go_back), self._button("next", self._go_on)
        self.note = Text(description="note", layout=Layout(**_FIELD))
        self.tag = Text(description="tag", layout=Layout(**_FIELD))
        self.key_field = Text(description="keys", placeholder="1 good, 0 bad, b back, n next", layout=Layout(**_FIELD))
        self.key_field.observe(self._typed, "value")
        buttons = HBox([self.good, self.bad, self.back, self.next], layout=Layout(flex_flow="row wrap", grid_gap="6px"))
        parts = [
            self._line,
            self._material,
            self._expected,
            self.note,
            self.tag,
            buttons,
            self.key_field,
            self._problem,
        ]
        super().__init__(parts, layout=Layout(max_width="100%"))
        self._place = next((at for at, row in enumerate(self._rows) if row.id not in self._reviews), 0)
        self._show()

    @property
    def row(self) -> EvaluatedRow:
        """The row that is shown."""
        return self._rows[self._place]

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and for hosts without widgets the line above it."""
        bundle: Any = super()._repr_mimebundle_(**options)
        bundle["text/plain"] = self._words()
        return bundle

    def _button(self, words: str, act: Callable[[], None], style: str = "") -> Button:
        button = Button(description=words, button_style=style, layout=Layout(width="auto"))
        button.on_click(partial(self._clicked, act))
        return button

    def _clicked(self, act: Callable[[], None], _button: object) -> None:
        act()

    # -- what is shown ------------------------------------------------------------------------------------

    def _words(self) -> str:
        total = len(self._rows)
        done = sum(row.id in self._reviews for row in self._rows)
        left = f"{done:,} of {total:,} rows answered" if done < total else f"all {total:,} rows answered"
        return redacted(f"row {self.row.id}, {self._place + 1:,} of {total:,}   {left}")

    def _show(self) -> None:
        """Show the current row, with what was said of it."""
        row, review = self.row, self._reviews.get(self.row.id)
        stored = (review.note, review.tag) if review else ("", "")
        self.note.value, self.tag.value = self._drafts.get(row.id, stored)
        inputs = [part for name, value in row.row.inputs.items() for part in _shown(name, value)]
        self._material.value = words_html(*inputs, *_shown("output", self._output()))
        self.back.disabled, self.next.disabled = self._place == 0, self._place == len(self._rows) - 1
        self._show_answer()

    def _show_answer(self) -> None:
        """Show whether the row has an answer, and only then the expected one."""
        review, expected = self._reviews.get(self.row.id), self.row.row.expected
        said = "" if review is None else f"   answer: {_WORDS.get(review.value, value_text(review.value))}"
        self._line.value = words_html(element("div", {"class": "title"}, f"{self._words()}{said}"), css=gate_css())
        is_shown = review is not None and expected is not None
        self._expected.value = words_html(*_shown("expected", expected)) if is_shown else ""

    def _output(self) -> Any:
        """The judged output; a function of the run reads it."""
        if not callable(self._evaluation.output):
            return self.row.outputs[0]
        try:
            return self._evaluation.output(self._evaluation.run(self.row.id))
        except Exception as error:  # noqa: BLE001 - the caller's function; other rows can be reviewed
            return f"the output cannot be read: {error}"

    # -- what a person does -------------------------------------------------------------------------------

    def _answer(self, *, value: bool) -> None:
        if self._append(value) and self.row.row.expected is None:
            self._move(1)
        else:
            self._show_answer()

    def _go_on(self) -> None:
        self._move(1)

    def _go_back(self) -> None:
        self._move(-1)

    def _typed(self, change: Any) -> None:
        """Act on the last key, and be ready for the next one."""
        acts = {"1": self.good, "0": self.bad, "b": self.back, "n": self.next}
        if not change["new"]:
            return
        self.key_field.value = ""
        button = acts.get(change["new"][-1].lower())
        if button is not None and not button.disabled:
            button.click()

    def _append(self, value: Any) -> bool:
        """Store an answer; False if the disk refused it, which the box says."""
        by, now = signed_here(BY_CLICK), round(time.time(), 3)
        review = Review(
            self.row.id, value, redacted(self.note.value.strip()), redacted(self.tag.value.strip()), by, now
        )
        try:
            self._log.append(review)
        except AttractorError as error:
            words = element("div", {"class": "problem", "role": "alert"}, f"the answer is not stored: {error.message}")
            self._problem.value = words_html(words)
            return False
        self._reviews[review.id], self._problem.value = review, ""
        self._drafts.pop(review.id, None)
        return True

    def _remarks(self) -> tuple[str, str]:
        """Note and tag."""
        return redacted(self.note.value.strip()), redacted(self.tag.value.strip())

    def _move(self, by: int) -> None:
        """Go to another row; words that were typed since the answer are kept."""
        typed, review = self._remarks(), self._reviews.get(self.row.id)
        if review is None:
            self._drafts[self.row.id] = typed
        elif typed != (review.note, review.tag) and not self._append(review.value):
            return
        self._place = min(max(self._place + by, 0), len(self._rows) - 1)
        self._show()


def _shown(name: str, value: object) -> list[Markup]:
    """A text under its name."""
    text = redacted(value_text(value))
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters)"
    inner = element("div", {"class": "detail"}, text)
    return [element("div", {"class": "label"}, name), element("div", {"class": "material"}, inner)]
