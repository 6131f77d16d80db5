"""Every signal of a run, as one typed value each (spec 9.6; ruling 29).

Events are both what observers see and what the run's log holds: the log *is* the durable events. A
stage ends in exactly one commit: a ``StageCompleted``, or a ``StageFailed`` whose ``will_retry`` is
false. It carries the outcome, the context changes and the chosen next node, so that a resumed run
knows all that a live one knew. ``StageStarted`` is the intent record before each attempt.

The stream stamps ``sequence``, ``time`` and ``run_id`` once, when the event is announced; otherwise
an event never changes. Durable events are numbered 1, 2, 3 … without gaps within a run directory;
an ephemeral event (``is_durable`` false) carries the number of the durable one before it.
"""

from attractor_nb.model.events.event import Event, EventObserver
from attractor_nb.model.events.pauses import (
    DebuggerChanged,
    DebuggerMoved,
    DebuggerStopped,
    InterviewCompleted,
    InterviewInformed,
    InterviewStarted,
    InterviewTimeout,
)
from attractor_nb.model.events.pipelines import (
    LOG_FORM,
    SESSION_ENDS,
    SESSION_STARTS,
    CheckpointSaved,
    ChildEnded,
    ChildStarted,
    ChildSteered,
    EventsDropped,
    GoalGateUnsatisfied,
    InstructionCarried,
    InstructionGiven,
    PipelineCompleted,
    PipelineFailed,
    PipelineForked,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    RunWarning,
    SessionStart,
)
from attractor_nb.model.events.reading import EVENT_TYPES, ChildEvent, UnknownEvent, event_from_plain, read_event
from attractor_nb.model.events.stages import (
    ModelCallEnded,
    ModelCallWaiting,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    StageCompleted,
    StageEnd,
    StageEvent,
    StageFailed,
    StageOutput,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)

__all__ = [
    "EVENT_TYPES",
    "LOG_FORM",
    "SESSION_ENDS",
    "SESSION_STARTS",
    "CheckpointSaved",
    "ChildEnded",
    "ChildEvent",
    "ChildStarted",
    "ChildSteered",
    "DebuggerChanged",
    "DebuggerMoved",
    "DebuggerStopped",
    "Event",
    "EventObserver",
    "EventsDropped",
    "GoalGateUnsatisfied",
    "InstructionCarried",
    "InstructionGiven",
    "InterviewCompleted",
    "InterviewInformed",
    "InterviewStarted",
    "InterviewTimeout",
    "ModelCallEnded",
    "ModelCallWaiting",
    "ParallelBranchCompleted",
    "ParallelBranchStarted",
    "ParallelCompleted",
    "ParallelStarted",
    "PipelineCompleted",
    "PipelineFailed",
    "PipelineForked",
    "PipelineInterrupted",
    "PipelineRestarted",
    "PipelineResumed",
    "PipelineRewound",
    "PipelineStarted",
    "RunWarning",
    "SessionStart",
    "StageCompleted",
    "StageEnd",
    "StageEvent",
    "StageFailed",
    "StageOutput",
    "StageRetrying",
    "StageStarted",
    "ToolCallEnded",
    "UnknownEvent",
    "event_from_plain",
    "read_event",
]
