"""What the handle of a run keeps for runs that go on from it: its backend, answers pinned after its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from attractor_nb.runtime.prepare.run_options import as_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.decisions.overrides import Pin
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.prepare.run_options import BackendSpec


class KeptOptions(Struct):
    """What forks, rewinds and resumes of a handle have, unless they are given something else.

    Attributes:
        pins: What was pinned since the run has ended, by node.
        backend: What answered its prompts, where that is an object of the caller's.
    """

    pins: dict[str, Pin] = field(default_factory=dict[str, "Pin"])
    backend: BackendSpec = None


_KEPT: WeakKeyDictionary[Execution, KeptOptions] = WeakKeyDictionary()


def kept_of(run: Execution) -> KeptOptions:
    """What a handle keeps."""
    return _KEPT.setdefault(run, KeptOptions())


def with_what_is_kept(run: Execution, options: Mapping[str, Any], pipeline: Definition) -> dict[str, Any]:
    """Options of a call by which a pipeline goes on from a run; a pin that is given as None is taken out."""
    kept = kept_of(run)
    given = as_dict("pins", options.get("pins") or {}, hint='pins={"plan": "the text of its response"}')
    pins = {node: pin for node, pin in {**kept.pins, **given}.items() if pin is not None}
    whole: dict[str, Any] = {**options, "pins": pins} if pins or "pins" in options else dict(options)
    is_its_own = pipeline is run.pipeline or pipeline.run_defaults.get("backend") is None
    if kept.backend is not None and options.get("backend") is None and is_its_own:
        whole["backend"] = kept.backend
    return whole
