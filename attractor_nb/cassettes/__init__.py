"""Recording the calls of a run and replaying them: models, commands, people (docs/cassettes.md).

Each wrapper stands before one seam and knows the tape; none knows a run or another wrapper.
"""

from attractor_nb.cassettes.backends import (
    AbsentBackend,
    DescribedCalls,
    OnDemandBackend,
    RecordedBackend,
)
from attractor_nb.cassettes.commands import NoProcesses, RecordedProcesses
from attractor_nb.cassettes.people import PresetInterviewer, RecordedPeople
from attractor_nb.cassettes.tape import AUTO, MODES, RECORD, REPLAY, CassetteReport, Tape

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
