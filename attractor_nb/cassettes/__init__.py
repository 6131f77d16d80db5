"""Recording the calls of a run and replaying them: models, commands, users (docs/cassettes.md).

Each wrapper is in front of one seam and knows the tape; none knows a run or another wrapper.
"""

from typing import TYPE_CHECKING

from attractor_nb.lazy_imports import deferred

if TYPE_CHECKING:
    from attractor_nb.cassettes.recorded_backends import AbsentBackend as AbsentBackend
    from attractor_nb.cassettes.recorded_backends import DescribedCalls as DescribedCalls
    from attractor_nb.cassettes.recorded_backends import OnDemandBackend as OnDemandBackend
    from attractor_nb.cassettes.recorded_backends import RecordedBackend as RecordedBackend
    from attractor_nb.cassettes.recorded_commands import NoProcesses as NoProcesses
    from attractor_nb.cassettes.recorded_commands import RecordedProcesses as RecordedProcesses
    from attractor_nb.cassettes.tape import AUTO as AUTO
    from attractor_nb.cassettes.tape import MODES as MODES
    from attractor_nb.cassettes.tape import RECORD as RECORD
    from attractor_nb.cassettes.tape import REPLAY as REPLAY
    from attractor_nb.cassettes.tape import CassetteReport as CassetteReport
    from attractor_nb.cassettes.tape import PresetInterviewer as PresetInterviewer
    from attractor_nb.cassettes.tape import RecordedPeople as RecordedPeople
    from attractor_nb.cassettes.tape import Tape as Tape
else:
    __getattr__ = deferred(
        __name__,
        {
            "AbsentBackend": "cassettes.recorded_backends",
            "DescribedCalls": "cassettes.recorded_backends",
            "OnDemandBackend": "cassettes.recorded_backends",
            "RecordedBackend": "cassettes.recorded_backends",
            "NoProcesses": "cassettes.recorded_commands",
            "RecordedProcesses": "cassettes.recorded_commands",
            "PresetInterviewer": "cassettes.tape",
            "RecordedPeople": "cassettes.tape",
            "AUTO": "cassettes.tape",
            "MODES": "cassettes.tape",
            "RECORD": "cassettes.tape",
            "REPLAY": "cassettes.tape",
            "CassetteReport": "cassettes.tape",
            "Tape": "cassettes.tape",
        },
    )

__all__ = [
    "AUTO",
    "MODES",
    "RECORD",
    "REPLAY",
    "AbsentBackend",
    "CassetteReport",
    "DescribedCalls",
    "NoProcesses",
    "OnDemandBackend",
    "PresetInterviewer",
    "RecordedBackend",
    "RecordedPeople",
    "RecordedProcesses",
    "Tape",
]
