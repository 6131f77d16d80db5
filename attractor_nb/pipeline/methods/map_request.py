"""What a call asks of a map: its keywords parted into the map's own options and those of each row.

It knows no rows and starts nothing.
"""

from __future__ import annotations

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
    pipeline: Definition, given: Mapping[str, Any], interrupt: HeldInterrupt, *, is_waited_for: bool
) -> MapRequest:
    """The wish of a caller who gave these options.

    Args:
        pipeline: What is mapped.
        given: The options that were given, by name.
        interrupt: Whether an interrupt came meanwhile.
        is_waited_for: The caller blocks until the end.

    Raises:
        OptionError: A keyword is unknown or belongs to a single run, or a value is out of its range.
    """
    own, of_rows = map_options.split_options(given)
    return map_launch.MapRequest(own, launch.options_for(pipeline, of_rows), interrupt, is_waited_for=is_waited_for)
