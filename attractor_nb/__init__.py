"""AI pipelines as directed graphs in Graphviz DOT: author, lint, draw, run, ask, resume.

    from pathlib import Path
    from attractor_nb import Pipeline

    pipeline = Pipeline(Path("review.dot"))
    result = pipeline.run(wait=True)
    result["plan"].response

In a notebook: ``%load_ext attractor_nb``, then a ``%%attractor`` cell. Names are imported when they
are first used, so that loading the extension costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attractor_nb.lazy_imports import deferred

if TYPE_CHECKING:
    from attractor_nb.backends import ClaudeBackend as ClaudeBackend
    from attractor_nb.backends import CodexBackend as CodexBackend
    from attractor_nb.backends import CommandLineBackend as CommandLineBackend
    from attractor_nb.backends import FunctionBackend as FunctionBackend
    from attractor_nb.backends import GeminiBackend as GeminiBackend
    from attractor_nb.backends import LocalModelBackend as LocalModelBackend
    from attractor_nb.backends import ProviderBackend as ProviderBackend
    from attractor_nb.backends import SimulatedBackend as SimulatedBackend
    from attractor_nb.context import Context as Context
    from attractor_nb.errors import AttractorError as AttractorError
    from attractor_nb.errors import RetryableError as RetryableError
    from attractor_nb.errors import TerminalError as TerminalError
    from attractor_nb.errors import ValidationError as ValidationError
    from attractor_nb.interviewers import AutoApproveInterviewer as AutoApproveInterviewer
    from attractor_nb.interviewers import CallbackInterviewer as CallbackInterviewer
    from attractor_nb.interviewers import ConsoleInterviewer as ConsoleInterviewer
    from attractor_nb.interviewers import QueueInterviewer as QueueInterviewer
    from attractor_nb.interviewers import RecordingInterviewer as RecordingInterviewer
    from attractor_nb.languages.dot import parse_dot as parse_dot
    from attractor_nb.languages.dot import write_dot as write_dot
    from attractor_nb.lint import validate as validate
    from attractor_nb.lint import validate_or_raise as validate_or_raise
    from attractor_nb.model.calls.messages import Attachment as Attachment
    from attractor_nb.model.diagnostic import Diagnostic as Diagnostic
    from attractor_nb.model.diagnostic import Severity as Severity
    from attractor_nb.model.graph import Edge as Edge
    from attractor_nb.model.graph import Graph as Graph
    from attractor_nb.model.graph import Node as Node
    from attractor_nb.model.outcome import Outcome as Outcome
    from attractor_nb.model.outcome import StageStatus as StageStatus
    from attractor_nb.model.outcome import Usage as Usage
    from attractor_nb.model.question import Answer as Answer
    from attractor_nb.model.question import AnswerValue as AnswerValue
    from attractor_nb.model.question import Option as Option
    from attractor_nb.model.question import Question as Question
    from attractor_nb.model.question import QuestionType as QuestionType
    from attractor_nb.pipeline.compare import diff as diff
    from attractor_nb.pipeline.load_pipeline import load_pipeline as load_pipeline
    from attractor_nb.pipeline.pipeline import Pipeline as Pipeline
    from attractor_nb.pipeline.run import Run as Run
    from attractor_nb.pipeline.runs import runs as runs
    from attractor_nb.pipeline.spec_names import load_checkpoint as load_checkpoint
    from attractor_nb.pipeline.spec_names import run_pipeline as run_pipeline
    from attractor_nb.runtime.handles.run_result import RunResult as RunResult
    from attractor_nb.runtime.prepare.known_secrets import redact_also as redact_also
    from attractor_nb.stage import current_stage as current_stage
    from attractor_nb.studio.history.diagnosis import diagnose_run as diagnose_run
    from attractor_nb.studio.history.lineage import lineage as lineage
    from attractor_nb.studio.history.waiting_gates import gates as gates
    from attractor_nb.studio.timeline.heat_view import heat as heat
    from attractor_nb.tracing import Tracing as Tracing
else:
    __getattr__ = deferred(
        __name__,
        {
            "ClaudeBackend": "backends",
            "CodexBackend": "backends",
            "CommandLineBackend": "backends",
            "FunctionBackend": "backends",
            "GeminiBackend": "backends",
            "LocalModelBackend": "backends",
            "ProviderBackend": "backends",
            "SimulatedBackend": "backends",
            "Context": "context",
            "AttractorError": "errors",
            "RetryableError": "errors",
            "TerminalError": "errors",
            "ValidationError": "errors",
            "AutoApproveInterviewer": "interviewers",
            "CallbackInterviewer": "interviewers",
            "ConsoleInterviewer": "interviewers",
            "QueueInterviewer": "interviewers",
            "RecordingInterviewer": "interviewers",
            "parse_dot": "languages.dot",
            "write_dot": "languages.dot",
            "validate": "lint",
            "validate_or_raise": "lint",
            "Attachment": "model.calls.messages",
            "Diagnostic": "model.diagnostic",
            "Severity": "model.diagnostic",
            "Edge": "model.graph",
            "Graph": "model.graph",
            "Node": "model.graph",
            "Outcome": "model.outcome",
            "StageStatus": "model.outcome",
            "Usage": "model.outcome",
            "Answer": "model.question",
            "AnswerValue": "model.question",
            "Option": "model.question",
            "Question": "model.question",
            "QuestionType": "model.question",
            "diff": "pipeline.compare",
            "diagnose_run": "studio.history.diagnosis",
            "heat": "studio.timeline.heat_view",
            "runs": "pipeline.runs",
            "gates": "studio.history.waiting_gates",
            "lineage": "studio.history.lineage",
            "load_pipeline": "pipeline.load_pipeline",
            "Pipeline": "pipeline.pipeline",
            "Run": "pipeline.run",
            "RunResult": "runtime.handles.run_result",
            "redact_also": "runtime.prepare.known_secrets",
            "load_checkpoint": "pipeline.spec_names",
            "run_pipeline": "pipeline.spec_names",
            "current_stage": "stage",
            "Tracing": "tracing",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AnswerValue",
    "Attachment",
    "AttractorError",
    "AutoApproveInterviewer",
    "CallbackInterviewer",
    "ClaudeBackend",
    "CodexBackend",
    "CommandLineBackend",
    "ConsoleInterviewer",
    "Context",
    "Diagnostic",
    "Edge",
    "FunctionBackend",
    "GeminiBackend",
    "Graph",
    "LocalModelBackend",
    "Node",
    "Option",
    "Outcome",
    "Pipeline",
    "ProviderBackend",
    "Question",
    "QuestionType",
    "QueueInterviewer",
    "RecordingInterviewer",
    "RetryableError",
    "Run",
    "RunResult",
    "Severity",
    "SimulatedBackend",
    "StageStatus",
    "TerminalError",
    "Tracing",
    "Usage",
    "ValidationError",
    "current_stage",
    "diagnose_run",
    "diff",
    "gates",
    "heat",
    "lineage",
    "load_checkpoint",
    "load_ipython_extension",
    "load_pipeline",
    "parse_dot",
    "redact_also",
    "run_pipeline",
    "runs",
    "unload_ipython_extension",
    "validate",
    "validate_or_raise",
    "write_dot",
]


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(ipython: Any) -> None:
    """Load the magics, the completion and the live view: ``%load_ext attractor_nb``.

    Args:
        ipython: The shell.
    """
    import_module("attractor_nb.notebook").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Take them away again: ``%unload_ext attractor_nb``.

    Args:
        ipython: The shell.
    """
    import_module("attractor_nb.notebook").unload_ipython_extension(ipython)
