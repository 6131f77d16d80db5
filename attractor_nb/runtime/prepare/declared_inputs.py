"""The inputs that a pipeline declares, and the values that a run of it begins with (ruling 34)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from attractor_nb.context import Context
from attractor_nb.errors import InputsSyntaxError, OptionError
from attractor_nb.given_files import read_bytes
from attractor_nb.handlers.named_models import validated
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.messages import MAX_ATTACHMENT_BYTES, Attachment
from attractor_nb.model.inputs import (
    INPUTS_SCHEMA,
    RESERVED_PREFIXES,
    Input,
    completed,
    inputs_of,
    inputs_of_schema,
    sets_engine_key,
)
from attractor_nb.redaction import redacted_value

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from pydantic import BaseModel

    from attractor_nb.model.graph import Graph


class Declaring(Protocol):
    """A definition, as far as it declares inputs."""

    @property
    def graph(self) -> Graph:
        """Its graph."""
        ...

    @property
    def schemas(self) -> Mapping[str, type[BaseModel]]:
        """The models that are registered, by name."""
        ...

    @property
    def name(self) -> str:
        """Its name, for messages."""
        ...

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that its graph declares."""
        ...


def registered_inputs(schemas: Mapping[str, type[BaseModel]], name: str) -> tuple[Input, ...] | None:
    """The inputs that a registered model declares; None when nothing is registered under the name."""
    return inputs_of_schema(schemas[name].model_json_schema()) if name in schemas else None


def declared_inputs(graph: Graph, schemas: Mapping[str, type[BaseModel]]) -> tuple[Input, ...]:
    """The inputs that a graph declares; none for a graph that takes any values."""
    return inputs_of(graph, partial(registered_inputs, schemas))


def plain_inputs(pipeline: Declaring) -> list[dict[str, Any]]:
    """The inputs that a source declares; none where it takes any values, or the declaration is wrong."""
    try:
        return redacted_value([each.to_plain() for each in pipeline.inputs])
    except InputsSyntaxError:  # a finding tells it
        return []


def checked_inputs(pipeline: Declaring, given: Mapping[str, Any], *, is_whole: bool = True) -> Mapping[str, Any]:
    """The values that a run begins with: those that it is given, and the defaults of the others.

    Args:
        pipeline: What runs.
        given: The values by name.
        is_whole: What is missing is refused, and a registered model has to take the values.
    """
    for key in given:
        if str(key).startswith(RESERVED_PREFIXES):
            prefixes = " and ".join(f"{prefix}*" for prefix in RESERVED_PREFIXES)
            raise OptionError(f"parameter {key!r}: {prefixes} keys are the engine's own", hint="name it otherwise")
    given = {key: _as_attachment(key, value) for key, value in given.items()}
    Context(given)
    values = completed(pipeline.name, pipeline.inputs, given, is_whole=is_whole)
    for key, value in values.items():
        if sets_engine_key(key, value, pipeline.graph.nodes):
            raise OptionError(f"parameter {key!r} is a key that the engine sets for a stage", hint="name it otherwise")
    named = pipeline.graph.get(INPUTS_SCHEMA, str, "").strip()
    if named not in pipeline.schemas or not is_whole:
        return values
    model = pipeline.schemas[named]
    typed = {field.alias or name for name, field in model.model_fields.items()}
    own = {name: value for name, value in values.items() if name in typed}
    return values | _typed(pipeline.name, model, own)


def input_of_text(declared: Input | None, given: object) -> Any:
    """The value of an input that a form or a CSV file gives as text: JSON for arrays and objects, else unchanged."""
    if not isinstance(given, str) or declared is None or declared.type not in {"array", "object"}:
        return given
    try:
        return read_bounded_json(given)
    except ValueError:
        raise OptionError(
            f"{declared.name} is not a JSON {declared.type}: {given[:80]}",
            hint='for example ["a", "b"]' if declared.type == "array" else 'for example {"a": 1}',
        ) from None


def later_inputs(pipeline: Declaring, known: Container[str]) -> dict[str, Any]:
    """The defaults of inputs that a resumed run does not know: its graph has declared them since.

    Args:
        pipeline: The pipeline that continues.
        known: The keys of its context.
    """
    absent = [each for each in pipeline.inputs if each.name not in known]
    missing = [f'"{each.name}"' for each in absent if each.is_required]
    if missing:
        raise OptionError(
            f"inputs of {pipeline.name}: the run began without {', '.join(missing)}, which the graph asks for now",
            hint='give them to a fork: run.fork(node, context={"name": …}); or give them defaults',
        )
    return {each.name: each.default for each in absent}


def _as_attachment(key: str, value: object) -> object:
    """A value as it is kept: bytes, and the file of a path, as an attachment."""
    if isinstance(value, bytes):
        return Attachment(value, key).to_plain()
    if isinstance(value, Attachment):
        return value.to_plain()
    if isinstance(value, list):
        return [_as_attachment(key, each) for each in cast("list[object]", value)]
    if not isinstance(value, Path):
        return value
    try:
        data = read_bytes(value, max_bytes=MAX_ATTACHMENT_BYTES)
    except OptionError as error:
        hint = f"{error.hint}; a Path is an attachment: give the path as text to name it only"
        raise OptionError(f"parameter {key!r}: {error.message}", hint=hint) from None
    return Attachment(data, value.name).to_plain()


def _typed(pipeline: str, model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    found, complaint = validated(model, values)
    if complaint:
        raise OptionError(
            f"inputs of {pipeline}: they do not match {model.__name__}: {complaint}",
            hint="text that stands for a number or a truth value is read as one",
        )
    return found
