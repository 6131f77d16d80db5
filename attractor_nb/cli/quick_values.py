"""Values of options, converted without pydantic where nothing has to be judged.

typer builds a pydantic adapter for every option of a command, even for one that is not given: 50 ms of each
command. Absent options, text, paths and choices are most of what is given, and need none.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast

import typer
import typer.core

from attractor_nb.model.nearest_name import did_you_mean

_UNKNOWN: Final = object()
_CONVERTER: Final = "_runtime_param"
"""Where an option keeps what converts its values, once typer has built that."""


class QuickValues:
    """A command or a group of them that asks typer to convert only what is not plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, ``--help`` included."""
        params: list[Any] = cast("Any", super()).get_params(ctx)
        for param in params:
            if getattr(param, _CONVERTER, None) is None:
                setattr(param, _CONVERTER, _QuickValue())
        return params


class QuickCommand(QuickValues, typer.core.TyperCommand):
    """A command that does."""


class _QuickValue:
    """Stands in for typer's converter of one option until a value needs that."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        annotation = param.type_descriptor.annotation
        plain = _plain(value, annotation)
        is_several = param.multiple or param.nargs == -1
        if plain is _UNKNOWN and isinstance(annotation, type) and issubclass(annotation, Enum):
            raise typer.BadParameter(_no_choice(str(value), annotation), ctx, param)
        if plain is not _UNKNOWN and not is_several:
            return plain
        if value is None:
            return ()
        setattr(param, _CONVERTER, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _no_choice(value: str, choices: type[Enum]) -> str:
    """What is wrong with a value that is none of an option's choices."""
    words = [str(each.value) for each in choices]
    return f'"{value}" is not one of {", ".join(words)}{did_you_mean(value, words)}'


def _plain(value: Any, annotation: object) -> Any:
    """The value as the option means it; ``_UNKNOWN`` where typer has to judge it."""
    if value is None or (annotation is str and isinstance(value, str)):
        return value
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next((each for each in annotation if value in (each, each.value)), _UNKNOWN)
    if annotation is Path and (not os.path.exists(value) or os.access(value, os.R_OK)):  # noqa: PTH110 - as given
        return Path(value)
    return _UNKNOWN
