"""What the handle of a run keeps for runs that go on from it: its backend, answers pinned after its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from attractor_nb.runtime.prepare.run_options import as_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.decisions.overrides import Pin
    from attractor_nb.runtime.prepare.run_options import BackendSpec


class KeptOptions(Struct):
    """What forks, rewinds and resumes of a handle have, unless they are given something else."""

    pins: dict[str, Pin] = field(default_factory=dict[str, "Pin"])  #: What was pinned since the run has ended, by node.
    backend: BackendSpec = None  #: What answered its prompts, where that is an object of the caller's.

    def added_to(self, options: Mapping[str, Any], *, has_own_backend: bool = False) -> dict[str, Any]:
        """Options of a call by which a run goes on, with what is kept.

        Args:
            options: As they were given; a pin that is given as None is taken out.
            has_own_backend: The pipeline that goes on is another one, with a backend of its own.
        """
        given = as_dict("pins", options.get("pins") or {}, hint='pins={"plan": "the text of its response"}')
        pins = {node: pin for node, pin in {**self.pins, **given}.items() if pin is not None}
        whole: dict[str, Any] = {**options, "pins": pins} if pins or "pins" in options else dict(options)
        if self.backend is not None and options.get("backend") is None and not has_own_backend:
            whole["backend"] = self.backend
        return whole
