"""Reviews: what persons say of the outputs of an evaluation, a line of JSON for each answer.

Lines are only appended; the latest line of an id counts. A line that a crash cut off is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.model.record import Record
from attractor_nb.storage.score_log import ScoreLog

if TYPE_CHECKING:
    from pathlib import Path

REVIEWS_NAME: Final = "reviews.jsonl"
_FORM: Final = '{"id": "41", "value": true}'


class Review(Record, frozen=True, omit_defaults=False):
    """One answer of a person."""

    id: str  #: Id of the row.
    value: bool | int | float | str  #: The person's judgement of the output.
    note: str = ""
    tag: str = ""  #: A word that groups rows, such as the kind of mistake.
    by: str = ""  #: Name of the person.
    time: float = 0.0  #: Time of the answer, in seconds since 1970 (UTC).


class ReviewLog:
    """A file of reviews."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = ScoreLog(path.parent, is_synced=True, name=path.name)

    def latest(self) -> dict[str, Review]:
        """The review of each row that has one, by id.

        Raises:
            OptionError: A line is no review.
        """
        found: dict[str, Review] = {}
        for plain in self._log.read():
            try:
                review = Review.from_plain(plain)
            except ValueError as error:
                raise OptionError(
                    f"{self.path}: {plain!r} is no review: {error}", hint=f"a review is {_FORM}"
                ) from None
            found[review.id] = review
        return found

    def append(self, review: Review) -> None:
        """Append a review; when this returns it is stored."""
        self._log.append([review.to_plain()])
