"""Makes the files of the extension of JupyterLab that say what other files say, before the wheel is built.

    python hatch_build.py

The words that the extension colours and explains come from the tables of attributes, shapes, keywords, rules and
context keys, the pipelines that it offers from examples/, and its icon is the server's. An isolated build has only
hatchling and msgspec, so nothing that needs more is imported here.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = Path(__file__).resolve().parent
sys.path.insert(0, str(REPOSITORY))

from attractor_nb.languages.dot.writer import KEYWORDS  # noqa: E402 - from this folder, in an environment without it
from attractor_nb.lint import BUILT_IN_RULES  # noqa: E402
from attractor_nb.model.vocabulary.attribute_table import TABLE  # noqa: E402
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE  # noqa: E402
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES  # noqa: E402
from attractor_nb.studio.edit.completion import CONDITIONS  # noqa: E402
from attractor_nb.studio.edit.word_meanings import CONTEXT_KEYS, SCOPES, TYPES, default_of, meaning_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

STATIC = REPOSITORY / "attractor_nb" / "labextension" / "static"
ICON = REPOSITORY / "attractor_nb" / "server" / "web" / "icon.svg"
EXAMPLES = REPOSITORY / "examples"
NEEDS_FILES = re.compile(r'="@|\.dot"')
"""A pipeline with such a text names files beside its own."""


def words_module() -> str:
    """The words of DOT."""
    attributes: dict[str, list[dict[str, str]]] = {}
    for spec in sorted(TABLE, key=lambda each: each.name):
        row = {"of": SCOPES[spec.scope], "value": ", ".join(spec.choices) or spec.type.value}
        attributes.setdefault(spec.name, []).append(row | {"default": default_of(spec), "meaning": meaning_of(spec)})
    return _module(
        "The words of DOT: attributes, shapes, keywords, rules and context keys.",
        ATTRIBUTES=attributes,
        SHAPES={shape: f"{kind}: {TYPES[kind]}" for shape, kind in SHAPE_TO_TYPE.items()},
        KEYWORDS=sorted(KEYWORDS),
        RULES={rule.name: rule.page.partition("\n")[0].replace("`", "") for rule in BUILT_IN_RULES},
        CONTEXT_KEYS=CONTEXT_KEYS,
        CONDITIONS=sorted(CONDITIONS),
        WITH_VARIABLES=sorted(NAMING_ATTRIBUTES),
    )


def examples_module() -> str:
    """The examples that stand alone: a wheel has no folder of examples."""
    to_keep = (EXAMPLES / "README.md").read_text("utf-8").partition("## From the specification")[0]
    listed = re.findall(r"^\| \[(\w+)\.dot\]\(\S+\) \| (.+) \|$", to_keep, re.MULTILINE)
    rows: list[dict[str, str]] = []
    for name, meaning in listed:
        text = (EXAMPLES / f"{name}.dot").read_text("utf-8")
        if "](" not in meaning and not NEEDS_FILES.search(text):
            rows.append({"name": name, "meaning": meaning.replace("`", ""), "text": text})
    assert rows
    return _module("Pipelines to begin with: the examples that need no other file.", EXAMPLES=rows)


def _module(subject: str, **tables: Any) -> str:
    constants = (
        f"\nexport const {name} = {json.dumps(values, indent=2, ensure_ascii=False)};\n"
        for name, values in tables.items()
    )
    return f"// {subject} Made by hatch_build.py.\n" + "".join(constants)


MADE: dict[str, Callable[[], str]] = {
    "words.js": words_module,
    "examples.js": examples_module,
    "icon.svg": lambda: ICON.read_text("utf-8"),
}
"""Each file of ``STATIC`` that is made, and what makes it."""


def make_files() -> None:
    """Write the files that are not there yet, or say something else."""
    for name, text_of in MADE.items():
        path, text = STATIC / name, text_of()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


class MakeFiles(BuildHookInterface[Any]):
    """The step of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files; the settings of the wheel take them up."""
        del version, build_data
        make_files()


if __name__ == "__main__":
    make_files()
