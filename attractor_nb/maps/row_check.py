"""Checks of the rows and outputs of a map, before the first row is run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.lint.unfilled_variables import first_unfilled, key_that_nothing_sets, open_variables
from attractor_nb.model.nearest_name import suggestion
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs, registered_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.runtime.definition import Definition

_MOST_SHOWN = 20


class RowCheck:
    """Gives the values that the run of a row begins with.

    Where the graph declares no inputs, a row takes any values. A prompt whose ``$ticket`` none of them fills would
    still be sent as it is written, for each row.
    """

    def __init__(self, pipeline: Definition) -> None:
        self._pipeline = pipeline
        self._open = () if pipeline.inputs else open_variables(_survey(pipeline))
        self._filled: set[frozenset[str]] = set()

    def __call__(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values."""
        values = checked_inputs(self._pipeline, given)
        names = frozenset(values)
        if self._open and names not in self._filled:  # nearly always, all rows have the same names
            self._check(names)
            self._filled.add(names)
        return values

    def _check(self, names: frozenset[str]) -> None:
        found = first_unfilled(self._open, sorted(names))
        if found is None:
            return
        variable, near = found
        shown = f"${variable.name}" if "." not in variable.name else f"${{{variable.name}}}"
        listed = ", ".join(sorted(names)[:_MOST_SHOWN]) or "none"
        raise OptionError(
            f'no value for {shown} in {variable.attribute} of "{variable.node_id}"{suggestion(near)}',
            hint=f"the values of this row: {listed}. ${shown} stands for a dollar sign and the name, "
            f"${{{variable.name}:default …}} for a text in its place",
        )


def check_outputs(pipeline: Definition, outputs: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Check that something can set each output."""
    given = sorted({key for row in rows for key in row})
    found = key_that_nothing_sets(_survey(pipeline), outputs, given)
    if found is None:
        return
    key, near = found
    listed = ", ".join([*given, "last_response"][:_MOST_SHOWN])
    raise OptionError(
        f'no stage and no row sets the output "{key}"{suggestion(near)}',
        hint=f"an output is a key of the context: {listed}, or what a stage sets, such as NODE.response or tool.output",
    )


def _survey(pipeline: Definition) -> Survey:
    return Survey(pipeline.graph, LintOptions(schema_inputs=partial(registered_inputs, pipeline.schemas)))
