"""What a call asks of a map: its keywords parted into the map's own options and those of each row.

It knows no rows and starts nothing.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attractor_nb.lazy_imports import later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.interrupts import HeldInterrupt
    from attractor_nb.maps import map_launch, map_options
    from attractor_nb.maps.map_launch import MapRequest
    from attractor_nb.runtime import launch
    from attractor_nb.runtime.definition import Definition
else:
    launch = later("attractor_nb.runtime.launch")
    map_launch = later("attractor_nb.maps.map_launch")
    map_options = later("attractor_nb.maps.map_options")


def request_of(
    pipeline: Definition,
    interrupt: HeldInterrupt,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    /,
    *,
    is_waited_for: bool,
    **given: Any,
) -> MapRequest:
    """The wish of a caller who gave these options.

    Args:
        pipeline: What is mapped.
        interrupt: Whether an interrupt came meanwhile.
        defaults: Options of the rows where none are given.
        is_waited_for: The caller blocks until the end.
        **given: The options that were given, by name.

    Raises:
        OptionError: A keyword is unknown or belongs to a single run, or a value is out of its range.
    """
    own = map_options.own_options(**given)
    for name in given.keys() & map_options.OWN:
        given.pop(name)
    options = launch.options_for(pipeline, defaults, **given)
    return map_launch.MapRequest(own, options, interrupt, is_waited_for=is_waited_for)
