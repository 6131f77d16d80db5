"""Test tools for a user's own handlers, backends and interviewers.

Nothing here uses the network, the real clock or real randomness. Each object replaces one protocol of
``protocols.py``:

- ``ScriptedBackend``: responses, outcomes and exceptions by node, and a record of all calls
- ``ScriptedInterviewer``: answers by gate, and a record of all questions
- ``FakeProcesses``: results of commands, and a record of what was run
- ``ManualClock``, ``SeededRandomness``: time that the test controls, randomness that repeats itself
- ``try_stage``: one attempt of one handler, outside a run, with its files and events
- ``verify_handler``, ``verify_backend``, ``verify_interviewer``: check that an implementation keeps
  the contract of its protocol
"""

from __future__ import annotations

from attractor_nb.testing.conformance import (
    FolderFiles,
    StageTrial,
    try_stage,
    verify_backend,
    verify_handler,
    verify_interviewer,
)
from attractor_nb.testing.fakes import (
    BackendCall,
    FakeCommand,
    FakeProcesses,
    FakeResult,
    ManualClock,
    ScriptedBackend,
    ScriptedInterviewer,
    SeededRandomness,
)

__all__ = [
    "BackendCall",
    "FakeCommand",
    "FakeProcesses",
    "FakeResult",
    "FolderFiles",
    "ManualClock",
    "ScriptedBackend",
    "ScriptedInterviewer",
    "SeededRandomness",
    "StageTrial",
    "try_stage",
    "verify_backend",
    "verify_handler",
    "verify_interviewer",
]
