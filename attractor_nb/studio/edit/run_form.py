"""A form for the declared inputs of a pipeline, and the run that it starts: `pipeline.form()` (ruling 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.runtime.launch import options_for, start_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.inputs import Input
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution


class RunForm:
    """The inputs that a pipeline declares, to be filled in. A notebook shows fields and a button.

    Attributes:
        options: Options of the run; see ``RunOptions``.
        run: The run that was started last; None before the first.

    >>> from attractor_nb.pipeline.pipeline import Pipeline
    >>> ends = "start [shape=Mdiamond] done [shape=Msquare]"
    >>> pipeline = Pipeline(f'digraph {{ inputs="ticket, tone=plain" {ends} start -> done }}')
    >>> form = pipeline.form(durability="none")
    >>> print(form)
    ticket  required
    tone    plain
    run it with pipeline.run(params={"ticket": …})
    >>> form.submit({"ticket": "printer", "tone": ""}).result().context["tone"]
    'plain'
    """

    def __init__(self, pipeline: Definition, options: Mapping[str, Any]) -> None:
        """Make the form; nothing is started."""
        self.pipeline = pipeline
        self.options = dict(options)
        self.run: Execution | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The declared inputs, in their order."""
        return self.pipeline.inputs

    def submit(self, values: Mapping[str, str | bool]) -> Execution:
        """Start a run with what was filled in; a field that is empty is left to its default.

        Args:
            values: By input: the text of its field, JSON for arrays and objects; or a truth value.
        """
        declared = {each.name: each for each in self.inputs}
        params: dict[str, Any] = {
            name: _value(declared.get(name), given)
            for name, given in values.items()
            if not (isinstance(given, str) and not given.strip())
        }
        given: dict[str, Any] = {**self.options, "params": params}
        chosen = options_for(self.pipeline, **given)
        with held_interrupts() as interrupt:
            self.run = run = start_run(self.pipeline, chosen, interrupt, is_waited_for=False)
            return run

    def __str__(self) -> str:
        width = max((len(each.name) for each in self.inputs), default=0)
        lines = [f"{each.name:{width}}  {'required' if each.is_required else each.default}" for each in self.inputs]
        needed = ", ".join(f'"{each.name}": …' for each in self.inputs if each.is_required)
        return "\n".join([*lines, f"run it with pipeline.run(params={{{needed}}})"])

    __repr__ = __str__


def _value(declared: Input | None, given: object) -> Any:
    """The value of a field."""
    if not isinstance(given, str) or declared is None or declared.type not in {"array", "object"}:
        return given
    try:
        return read_bounded_json(given)
    except ValueError:
        raise OptionError(
            f"{declared.name} is not a JSON {declared.type}: {given[:80]}",
            hint='for example ["a", "b"]' if declared.type == "array" else 'for example {"a": 1}',
        ) from None
