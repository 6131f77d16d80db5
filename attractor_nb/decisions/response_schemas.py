"""What ``response_schema`` holds, and whether a value satisfies it: JSON Schema alone, nothing is fetched."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_COMPLAINT_CHARACTERS: Final = 300
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


def is_schema_name(text: str) -> bool:
    """Whether the attribute names a registered schema; else it is one.

    >>> is_schema_name("Review"), is_schema_name('{"type": "object"}'), is_schema_name("true")
    (True, False, False)
    """
    return _NAME.match(text.strip()) is not None and text.strip() not in {"true", "false", "null"}


def schema_problem(text: str) -> str:
    """Why a text is no JSON Schema; empty when it is one.

    >>> schema_problem('{"type": "object"}')
    ''
    >>> schema_problem('{"type": "objekt"}')
    "'objekt' is not valid under any of the given schemas (at $.type)"
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and rarely needed
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - as above

    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError as error:
        return f"{error.message[:MAX_COMPLAINT_CHARACTERS]} (at {error.json_path})"
    except (ValueError, RecursionError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0][:MAX_COMPLAINT_CHARACTERS]
    return ""


def schema_complaint(text: str, value: Any) -> str:
    """What is wrong with a value by a schema that is one; empty when it satisfies it.

    Raises:
        ValueError: The schema refers to another document, which is never fetched.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415 - as above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    validator: Any = Draft202012Validator
    registry = cast("Callable[[], Any]", Registry)
    try:
        validator(json.loads(text), registry=registry()).validate(value)
    except ValidationError as found:
        return f"{found.message[:MAX_COMPLAINT_CHARACTERS]} (at {found.json_path})"
    except Unresolvable as error:
        raise ValueError(str(error).splitlines()[0]) from None
    return ""
