"""Evaluators and datasets of pydantic-evals, which is no dependency: whoever gives one has it."""

# pydantic-evals is not installed here; what it returns is unknown.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Case(Protocol):
    """A row, as an evaluator sees it."""

    @property
    def id(self) -> str:
        """The id."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs."""
        ...

    @property
    def columns(self) -> Mapping[str, Any]:
        """All columns."""
        ...


def evaluator_context(row: Case, output: Any, seconds: float, metrics: Mapping[str, float]) -> Any:
    """The context that an evaluator of pydantic-evals takes.

    Args:
        row: The row.
        output: The output that is judged.
        seconds: Duration of the run.
        metrics: Tokens and cost of the run.
    """
    from pydantic_evals.evaluators import EvaluatorContext  # noqa: PLC0415 - the evaluator comes from it
    from pydantic_evals.otel import SpanTreeRecordingError  # noqa: PLC0415 - as above

    return EvaluatorContext(
        name=row.id,
        inputs=dict(row.inputs),
        metadata=row.columns.get("metadata"),
        expected_output=row.columns.get("expected"),
        output=output,
        duration=seconds,
        _span_tree=SpanTreeRecordingError("a run has no spans; scorers of their own read its log: run.events()"),
        attributes={},
        metrics=dict(metrics),
    )


def dataset_cases(path: Path) -> Sequence[object]:
    """The cases of a dataset in a YAML file.

    Raises:
        OptionError: pydantic-evals is not installed, or cannot read the file.
    """
    try:
        from pydantic_evals import Dataset  # noqa: PLC0415 - optional
    except ImportError:
        raise OptionError(
            f"{path}: a YAML dataset is read by pydantic-evals, which is not installed",
            hint="pip install pydantic-evals, or use a .jsonl file",
        ) from None
    try:
        return Dataset.from_file(path).cases
    except Exception as error:  # noqa: BLE001 - of the reader
        hint = "a list of cases with inputs"
        raise OptionError(f"{path} is not a dataset of pydantic-evals: {error}", hint=hint) from None
