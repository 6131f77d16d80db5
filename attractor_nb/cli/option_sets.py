"""A set of options as one parameter of a command.

typer reads options from a command's signature, and knows no parameter that stands for several. So the set is
the signature of a function that makes a value of them, and ``spread`` writes that into the command's own.
"""

import inspect
from collections.abc import Callable, Collection
from typing import Any


def spread(
    parameter: str, source: Callable[..., object], *, without: Collection[str] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a command take the options of ``source``, and give it what ``source`` makes of them.

    Args:
        parameter: The command's parameter, keyword-only, in whose place the options stand.
        source: Makes its value; all its parameters are options with defaults.
        without: Options that this command does not have: they keep their defaults.
    """
    options = {
        name: each for name, each in inspect.signature(source).parameters.items() if name not in without
    }

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        def invoke(**given: Any) -> int:
            value = source(**{name: given.pop(name) for name in options})
            return command(**given, **{parameter: value})

        parameters: list[inspect.Parameter] = []
        for name, each in inspect.signature(command).parameters.items():
            parameters += options.values() if name == parameter else [each]
        invoke.__name__, invoke.__doc__, invoke.__module__ = (
            command.__name__,
            command.__doc__,
            command.__module__,
        )
        invoke.__annotations__ = {each.name: each.annotation for each in parameters}
        invoke.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess] - inspect asks for it
        return invoke

    return decorate
