"""Completion in ``%%attractor`` cells, as an IPython matcher; what fits is decided in ``completion``."""

from __future__ import annotations

# IPython leaves its decorator untyped.
# pyright: reportUnknownVariableType=false, reportUntypedFunctionDecorator=false
from typing import TYPE_CHECKING

from IPython.core.completer import SimpleCompletion, context_matcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from IPython.core.completer import CompletionContext, SimpleMatcherResult


@context_matcher(identifier="attractor_nb.cell", priority=200)
def cell_matcher(context: CompletionContext) -> SimpleMatcherResult:
    """Options, node ids, attributes and their values; Python names are left out of such cells."""
    if not context.full_text.startswith("%%"):
        return {"completions": []}
    from attractor_nb.notebook.completion import MAGIC, suggest  # noqa: PLC0415 - %load_ext stays light

    if not context.full_text.startswith(MAGIC):
        return {"completions": []}
    lines = context.full_text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: context.cursor_line]) + context.cursor_position
    found = suggest(context.full_text, offset, _listed_models)
    return {
        "completions": [SimpleCompletion(text=item.text, type=item.kind) for item in found.items],
        "matched_fragment": found.fragment,
        "ordered": True,
        "suppress": context.cursor_line > 0 or bool(found.items),
    }


def _listed_models(provider: str) -> Sequence[str]:
    from attractor_nb.backends.llm.prices import listed_models  # noqa: PLC0415 - a list of a megabyte

    return listed_models(provider)
