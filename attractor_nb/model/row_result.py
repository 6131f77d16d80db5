"""How one row of a map stands at its end: a small value, so that thousands of them fit in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

RowStatus = Literal["success", "fail", "interrupted", "not_started"]
ROW_STATUSES: Final[tuple[RowStatus, ...]] = ("success", "fail", "interrupted", "not_started")


class RowResult(msgspec.Struct, frozen=True):
    """How one row of a map ended.

    Attributes:
        row: Its number, from 0, in the order of the inputs.
        status: ``success``, ``fail``, ``interrupted`` (a resume goes on with it) or ``not_started``.
        reason: Why, unless success.
        run_id: Its run, or empty when there was none.
        directory: Name of its run directory in the map's, or empty when nothing is kept.
        stages: How many stages are committed.
        duration: Running time in seconds.
        usage: What its model calls consumed.
        outputs: The context values that the map was asked to keep.
        was_finished: It had ended before, and was read from its directory.
    """

    row: int
    status: RowStatus
    reason: str = ""
    run_id: str = ""
    directory: str = ""
    stages: int = 0
    duration: float = 0.0
    usage: Usage = msgspec.field(default_factory=Usage)
    outputs: Mapping[str, Any] = {}
    was_finished: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the row's run succeeded."""
        return self.status == "success"

    def to_plain(self) -> dict[str, Any]:
        """JSON values, those that say nothing left out."""
        plain: dict[str, Any] = {"row": self.row, "status": self.status}
        for name in ("reason", "run_id", "directory"):
            if value := getattr(self, name):
                plain[name] = value
        plain["stages"] = self.stages
        plain["duration_seconds"] = round(self.duration, 3)
        if usage := self.usage.to_plain():
            plain["usage"] = usage
        if self.outputs:
            plain["outputs"] = dict(self.outputs)
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RowResult:
        """The inverse of ``to_plain``."""
        return cls(
            plain["row"],
            plain["status"],
            reason=plain.get("reason", ""),
            run_id=plain.get("run_id", ""),
            directory=plain.get("directory", ""),
            stages=plain["stages"],
            duration=plain["duration_seconds"],
            usage=Usage.from_plain(plain.get("usage", {})),
            outputs=plain.get("outputs", {}),
        )
