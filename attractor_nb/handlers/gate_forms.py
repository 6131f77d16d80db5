"""Forms that gates name: ``human.form`` is the name of a registered pydantic model (spec 4.6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.answers.form_answers import form_of
from attractor_nb.decisions.answers.response_schemas import MAX_COMPLAINT_CHARACTERS
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.form import Form
from attractor_nb.model.nearest_name import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from attractor_nb.model.graph import Node

ATTRIBUTE: Final = "human.form"


def named_form(node: Node, schemas: Mapping[str, type[BaseModel]]) -> Form | None:
    """The form that a gate names, judged by its model; None for none.

    Raises:
        TerminalError: Nothing is registered under the name, or the model is not a form.
    """
    name = node.get(ATTRIBUTE, str, "").strip()
    if not name:
        return None
    if name not in schemas:
        raise TerminalError(
            f"{ATTRIBUTE} of node {node.id!r} names {name!r}, which is not registered"
            f"{did_you_mean(name, schemas)}",
            hint=f'Pipeline(…, schemas={{"{name}": {name}}}) with a pydantic model',
        )
    try:
        form = form_of(name, schemas[name].model_json_schema())
    except OptionError as error:
        raise TerminalError(f"{ATTRIBUTE} of node {node.id!r}: {error.message}", hint=error.hint) from None
    return Form(form.name, form.fields, lambda values: _judged(schemas[name], values))


def form_problems(schemas: Mapping[str, type[BaseModel]]) -> dict[str, str]:
    """Why registered models cannot be filled in as forms, by name; those that can are left out."""
    problems: dict[str, str] = {}
    for name, model in schemas.items():
        try:
            form_of(name, model.model_json_schema())
        except OptionError as error:
            problems[name] = error.message
    return problems


def _judged(
    model: type[BaseModel], values: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, dict[str, str]]:
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
        return None, {
            "": f"model {model.__name__} cannot judge it: {type(error).__name__}: {_words(str(error))}"
        }
    return judged, {}


def _words(message: str) -> str:
    """What a person reads at the field."""
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return (message.splitlines() or [""])[0][:MAX_COMPLAINT_CHARACTERS]
