"""Schemas by name: pydantic models that ``response_schema`` of a node may name (ruling 26).

The model's JSON Schema takes the place of its name before anything else reads the node; what the model
demands beyond that, its validators, is asked of a value that satisfies the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.decisions.answers.response_schemas import MAX_COMPLAINT_CHARACTERS, is_schema_name
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.nearest_name import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from attractor_nb.model.graph import Node

SchemaModels = dict[str, "type[BaseModel]"]
ATTRIBUTE = "response_schema"


def checked_schemas(schemas: Mapping[Any, Any]) -> SchemaModels:
    """Models that can stand for a schema, by name.

    Raises:
        OptionError: A name is none, or what it names is no pydantic model or has no JSON Schema.
    """
    for name, model in schemas.items():
        if not isinstance(name, str) or not is_schema_name(name):
            raise OptionError(
                f"a schema's name must be a word, not {name!r}", hint='schemas={"Review": Review}'
            )
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


def with_named_schema(
    node: Node, schemas: Mapping[str, type[BaseModel]]
) -> tuple[Node, type[BaseModel] | None]:
    """A node whose ``response_schema`` is a JSON Schema, and the model that it named.

    Raises:
        TerminalError: Nothing is registered under the name.
    """
    name = node.get(ATTRIBUTE, str, "").strip()
    if not name or not is_schema_name(name):
        return node, None
    if name not in schemas:
        raise TerminalError(
            f"response_schema of node {node.id!r} names {name!r}, which is not registered"
            f"{did_you_mean(name, schemas)}",
            hint=f'Pipeline(…, schemas={{"{name}": {name}}}) with a pydantic model',
        )
    model = schemas[name]
    return node.with_attrs({ATTRIBUTE: schema_text(model)}), model


def validated(model: type[BaseModel], value: Any) -> tuple[Any, str]:
    """A value as the model has it, defaults filled in, and what the model has against it, or empty."""
    from pydantic import ValidationError  # noqa: PLC0415 - only where a node names a model

    try:
        return model.model_validate(value).model_dump(mode="json", by_alias=True), ""
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in ("$", *first["loc"]))
        return None, f"{first['msg'][:MAX_COMPLAINT_CHARACTERS]} (at {place})"
