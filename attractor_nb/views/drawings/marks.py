"""The small signs of a drawing as path data around (0, 0), and letters for texts; those of states are theirs.

Paths, not glyphs: emoji fonts differ from machine to machine. A live view takes the path of a status
from ``MARK_PATHS`` when a status changes.
"""

from __future__ import annotations

from typing import Final

from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.states import NodeStatus

MARK_PATHS: Final = {
    NodeStatus.PENDING: "",
    NodeStatus.RUNNING: "M-1.8-3L3 0L-1.8 3Z",
    NodeStatus.WAITING: "M-2-1.6A2.1 2.1 0 1 1 .9.3Q0 .8 0 1.6M0 4V4.1",
    NodeStatus.RETRYING: "M2.9 1.5A3.3 3.3 0 1 1 2.6-2.1M3.2-4.3V-1.7H.6",
    NodeStatus.SUCCESS: "M-3.4.3L-1.1 2.7L3.4-2.6",
    NodeStatus.PARTIAL_SUCCESS: "M-4.2-.6L-2.6 1.2L.4-2.8M-.6 3.2Q.6 1.6 1.8 2.7T4.2 2.2",
    NodeStatus.FAIL: "M-2.7-2.7L2.7 2.7M2.7-2.7L-2.7 2.7",
    NodeStatus.SKIPPED: "M-2.8 0H2.8",
    NodeStatus.CACHED: "M.9-4L-2.4.6H0L-.9 4L2.4-.6H0Z",
}
"""Sign of each status, drawn as a stroke inside a disc of radius 8."""

AGAIN_PATH: Final = "m2.6-1.6a3.1 3.1 0 1 0 .5 2.3m-.3-4.6v2.4h-2.4"
"""Before a number of visits: a circle that closes, from the place where it stands."""
STAR_PATH: Final = "M0-5.2L1.5-1.9L5.1-1.5L2.4 .9L3.2 4.4L0 2.6L-3.2 4.4L-2.4 .9L-5.1-1.5L-1.5-1.9Z"
"""The badge of a goal gate."""
WARNING_PATHS: Final = ("M0-7L7.4 5.7H-7.4Z", "M0-2.4V1.2M0 3.5V3.6")
"""The triangle of a finding and the sign in it."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"
"""Before a number of attempts or passes."""
AGAIN: Final = "\N{CLOCKWISE OPEN CIRCLE ARROW}"
"""Before a number of visits, in texts; drawings have the path."""

SEVERITY_LETTERS: Final = {Severity.ERROR: "\N{MULTIPLICATION X}", Severity.WARNING: "!", Severity.INFO: "i"}
