"""The static picture of a pipeline, run or result: what a saved notebook shows."""

from __future__ import annotations

from typing import Any


def bundle_of(shown: Any) -> dict[str, str]:
    """The bundle that an object of ours gives Jupyter: SVG and plain text, no widget, nothing volatile."""
    bundle: dict[str, str] = shown._repr_mimebundle_()
    return bundle
