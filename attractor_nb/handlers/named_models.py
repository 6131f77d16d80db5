"""pydantic models that a node names: its ``response_schema`` (ruling 26), its ``human.form`` (spec 4.6).

The model's JSON Schema takes the place of its name before anything else reads the node; what the model
demands beyond that, its validators, is asked of a value that satisfies the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.gate_choices import form_of
from attractor_nb.decisions.response_schemas import MAX_COMPLAINT_CHARACTERS, is_schema_name
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.question import Form
from attractor_nb.model.texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from attractor_nb.model.graph import Node

SchemaModels = dict[str, "type[BaseModel]"]
SCHEMA_ATTRIBUTE: Final = "response_schema"
FORM_ATTRIBUTE: Final = "human.form"


def checked_schemas(schemas: Mapping[Any, Any]) -> SchemaModels:
    """Models that can stand for a schema, by name."""
    for name, model in schemas.items():
        if not isinstance(name, str) or not is_schema_name(name):
            raise OptionError(f"a schema's name must be a word, not {name!r}", hint='schemas={"Review": Review}')
        if not isinstance(model, type) or not hasattr(model, "model_json_schema"):
            raise OptionError(
                f"schema {name!r} is {type(model).__name__} {model!r}, not a pydantic model",
                hint="class Review(pydantic.BaseModel): …",
            )
        try:
            schema_text(cast("type[BaseModel]", model))
        except Exception as error:  # noqa: BLE001 - whatever the model's own hooks raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise OptionError(f"schema {name!r} has no JSON Schema: {reason}") from None
    return dict(schemas)


def schema_text(model: type[BaseModel]) -> str:
    """A model's JSON Schema, in one line."""
    return json.dumps(model.model_json_schema(), ensure_ascii=False)


def stored_schema(schemas: Mapping[str, type[BaseModel]], name: str) -> dict[str, Any] | None:
    """The JSON Schema of what a registered model leaves of a value; None where it is unknown.

    Aliases and computed fields make it another one than the schema that an answer has to satisfy.
    """
    if name not in schemas:
        return None
    try:
        return schemas[name].model_json_schema(mode="serialization")
    except Exception:  # noqa: BLE001 - whatever the model's own hooks raise
        return None


def with_named_schema(node: Node, schemas: Mapping[str, type[BaseModel]]) -> tuple[Node, type[BaseModel] | None]:
    """A node whose ``response_schema`` is a JSON Schema, and the model that it named."""
    name = node.get(SCHEMA_ATTRIBUTE, str, "").strip()
    if not name or not is_schema_name(name):
        return node, None
    if name not in schemas:
        raise TerminalError(
            f"response_schema of node {node.id!r} names {name!r}, which is not registered{did_you_mean(name, schemas)}",
            hint=f'Pipeline(…, schemas={{"{name}": {name}}}) with a pydantic model',
        )
    model = schemas[name]
    return node.with_attrs({SCHEMA_ATTRIBUTE: schema_text(model)}), model


def validated(model: type[BaseModel], value: Any) -> tuple[Any, str]:
    """A value as the model reads it, defaults filled in, and the model's complaint about it, or empty."""
    from pydantic import ValidationError  # noqa: PLC0415 - only where a node names a model

    try:
        return model.model_validate(value).model_dump(mode="json", by_alias=True), ""
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in ("$", *first["loc"]))
        return None, f"{first['msg'][:MAX_COMPLAINT_CHARACTERS]} (at {place})"


def named_form(node: Node, schemas: Mapping[str, type[BaseModel]]) -> Form | None:
    """The form that a gate names, judged by its model; None for none."""
    name = node.get(FORM_ATTRIBUTE, str, "").strip()
    if not name:
        return None
    if name not in schemas:
        raise TerminalError(
            f"{FORM_ATTRIBUTE} of node {node.id!r} names {name!r}, which is not registered"
            f"{did_you_mean(name, schemas)}",
            hint=f'Pipeline(…, schemas={{"{name}": {name}}}) with a pydantic model',
        )
    try:
        form = form_of(name, schemas[name].model_json_schema())
    except OptionError as error:
        raise TerminalError(f"{FORM_ATTRIBUTE} of node {node.id!r}: {error.message}", hint=error.hint) from None
    return Form(form.name, form.fields, lambda values: _judged(schemas[name], values))


def form_problems(schemas: Mapping[str, type[BaseModel]]) -> dict[str, str]:
    """The reasons why registered models cannot be filled in as forms, by name; those that can are left out."""
    problems: dict[str, str] = {}
    for name, model in schemas.items():
        try:
            form_of(name, model.model_json_schema())
        except OptionError as error:
            problems[name] = error.message
    return problems


def _judged(model: type[BaseModel], values: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Values as the model has them, and what it has against them, by field."""
    from pydantic import ValidationError  # noqa: PLC0415 - only where a gate has a form

    try:
        judged = model.model_validate(dict(values)).model_dump(mode="json", by_alias=True)
        json.dumps(judged, allow_nan=False)
    except ValidationError as error:
        problems: dict[str, str] = {}
        for found in error.errors(include_url=False, include_context=False, include_input=False):
            name = str(found["loc"][0]) if found["loc"] else ""
            problems.setdefault(name, _words(found["msg"]))
        return None, problems
    except Exception as error:  # noqa: BLE001 - a validator of the user's own; its fault must not end the run
        return None, {"": f"model {model.__name__} cannot judge it: {type(error).__name__}: {_words(str(error))}"}
    return judged, {}


def _words(message: str) -> str:
    """The message that a person reads at the field."""
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return (message.splitlines() or [""])[0][:MAX_COMPLAINT_CHARACTERS]
