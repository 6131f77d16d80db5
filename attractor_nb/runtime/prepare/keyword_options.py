"""What a method with written-out options was called with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_RUN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_OPTIONS = OF_A_RUN.keys() | OF_A_MAP.keys()


def given_options(
    scope: Mapping[str, Any], *, own: Collection[str] = (), of: Collection[str] = _OPTIONS
) -> dict[str, Any]:
    """The options among a method's locals, with the keywords that are none; None stands for not given.

    Args:
        scope: ``locals()`` of the method, asked for in its first line.
        own: Parameters of the method that have the name of an option and are none.
        of: The names of the options.
    """
    options = {
        name: value for name, value in scope.items() if name in of and name not in own and value is not None
    }
    return {**options, **scope["unknown"]}
