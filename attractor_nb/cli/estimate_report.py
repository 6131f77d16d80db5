"""``estimate`` and ``models``: what a run would ask of which models, and at what price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.source_inputs import read_params, read_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.decisions.model_choices import ValueChoice


def show_estimate(file: str, *, params: Iterable[str], bounds: Mapping[str, Any], is_json: bool) -> ExitCode:
    """Print what a run will consume."""
    found = read_pipeline(file).estimate(read_params(params), **bounds)
    if is_json:
        print_json(found.to_plain())
    else:
        print(found)
    return ExitCode.SUCCESS


def show_models(file: str, *, is_json: bool) -> ExitCode:
    """Print who answers each prompt, and which rule says so."""
    found = read_pipeline(file).models()
    if is_json:
        plain = [
            {
                "node": choice.node_id,
                "model": _plain(choice.model, choice.name.model),
                "provider": _plain(choice.provider, choice.name.provider),
                "reasoning_effort": _plain(choice.effort, choice.effort.value),
            }
            for choice in found
        ]
        print_json({"file": file, "nodes": plain})
    else:
        print(found)
    return ExitCode.SUCCESS


def _plain(choice: ValueChoice, value: str) -> dict[str, Any]:
    plain = {"value": value or None, "from": choice.giver, "selector": choice.selector or None}
    return {**plain, "line": choice.line}
