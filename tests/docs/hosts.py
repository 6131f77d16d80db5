"""The tables of hosts in docs/platforms.md and of extras in docs/install.md: what tests show of each, and what is known or does not work.

A test names its cells by ``@pytest.mark.shows(host, *features)``. A cell that no test names has a verdict and a reason here.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

from attractor_nb.extras import EXTRAS
from tests.structure.test_optional_packages import COMMANDS, FUNCTIONS

TESTS: Final = Path(__file__).resolve().parents[1]
FEATURES: Final = (
    "picture",
    "live view",
    "gate by click",
    "gate by ipywidgets",
    "inspector",
    "completion",
    "lint",
    "stored output",
)
HOSTS: Final = (
    "JupyterLab",
    "JupyterLab 4.4",
    "Notebook 7",
    "marimo",
    "Voila",
    "JupyterLite",
    "VS Code",
    "Colab",
    "IPython",
    "nbclient",
    "nbconvert",
    "papermill",
)
_KNOWN: Final = "known"
_NO: Final = "no"
_SAME_EXTENSION: Final = "the same files as in the newest one"
_INLINE: Final = "the view is inline, as `ATTRACTOR_LIVE=inline` shows it in JupyterLab"
_NOBODY: Final = "nobody looks while it runs"
UNTESTED: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "JupyterLab 4.4": {
        "gate by click": (_KNOWN, _SAME_EXTENSION),
        "gate by ipywidgets": (_KNOWN, "ipywidgets serves it"),
        "inspector": (_KNOWN, _SAME_EXTENSION),
        "completion": (_KNOWN, "the kernel answers"),
        "stored output": (_KNOWN, "HTML with an image"),
    },
    "marimo": {
        "gate by ipywidgets": (_NO, "marimo shows anywidgets alone; the view has the buttons"),
        "completion": (_NO, "a pipeline is a Python string there: its magics need IPython"),
        "lint": (_KNOWN, "a pipeline's value lists its findings, as does `pipeline.lint()`"),
        "stored output": (_NO, "marimo's files store none"),
    },
    "Voila": {
        "gate by click": (_NO, "the card needs a person before the page appears; `run.widget()` has buttons"),
        "inspector": (_NO, "`run.widget()` has none"),
        "completion": (_NO, "there is no editor"),
        "lint": (_KNOWN, "a cell's finding table is HTML"),
        "stored output": (_NO, "a page stores none"),
    },
    "VS Code": {
        "picture": (_KNOWN, "HTML with an image"),
        "live view": (_KNOWN, _INLINE),
        "gate by click": (_KNOWN, _INLINE),
        "gate by ipywidgets": (_KNOWN, "VS Code shows ipywidgets"),
        "inspector": (_KNOWN, _INLINE),
        "completion": (_KNOWN, "the kernel answers"),
        "lint": (_KNOWN, "below the cell; in `.dot` files by [the language server](editors.md)"),
        "stored output": (_KNOWN, "HTML with an image"),
    },
    "Colab": {
        "picture": (_KNOWN, "HTML with an image"),
        "live view": (_KNOWN, _INLINE + ", after `google.colab.output.enable_custom_widget_manager()`"),
        "gate by click": (_KNOWN, "as the live view"),
        "gate by ipywidgets": (_KNOWN, "Colab shows ipywidgets"),
        "inspector": (_KNOWN, "as the live view"),
        "completion": (_KNOWN, "the kernel answers"),
        "lint": (_KNOWN, "below the cell"),
        "stored output": (_KNOWN, "HTML with an image"),
    },
    "IPython": {
        "picture": (_NO, "a terminal shows the text; `pipeline.to_svg()` has the picture"),
        "live view": (_NO, "`attractor-nb run` and `watch` show a run in a terminal"),
        "gate by click": (_NO, "the question is asked in the terminal"),
        "gate by ipywidgets": (_NO, "a terminal has no widgets"),
        "inspector": (_NO, "`run.inspect(…)` returns what it shows"),
        "stored output": (_NO, "a terminal stores none"),
    },
    "nbclient": {
        "live view": (_NO, _NOBODY),
        "gate by click": (_NO, '`run.answer(…)`, or `interviewer="auto"`'),
        "gate by ipywidgets": (_KNOWN, "`interviewer.wait_for(…)` and `button.click()` in a cell"),
        "inspector": (_NO, _NOBODY),
        "completion": (_NO, "there is no editor"),
        "lint": (_KNOWN, "below the cell"),
    },
    "nbconvert": {
        "live view": (_NO, _NOBODY),
        "gate by click": (_NO, _NOBODY),
        "gate by ipywidgets": (_NO, _NOBODY),
        "inspector": (_NO, "an exported run has one: `run.export_html()`"),
        "completion": (_NO, "there is no editor"),
        "lint": (_KNOWN, "below the cell"),
    },
    "papermill": {
        "picture": (_KNOWN, "it executes by nbclient"),
        "live view": (_NO, _NOBODY),
        "gate by click": (_NO, '`run.answer(…)`, or `interviewer="auto"`'),
        "gate by ipywidgets": (_KNOWN, "as with nbclient"),
        "inspector": (_NO, _NOBODY),
        "completion": (_NO, "there is no editor"),
        "lint": (_KNOWN, "below the cell"),
        "stored output": (_KNOWN, "it executes by nbclient"),
    },
    "JupyterLite": {
        "gate by ipywidgets": (_KNOWN, "ipywidgets serves it"),
        "completion": (_KNOWN, "the kernel answers"),
        "stored output": (_KNOWN, "HTML with an image"),
    },
}
"""The verdict on each cell that no test shows, and its reason."""


def shown_cells() -> dict[tuple[str, str], list[str]]:
    """The cells that tests name: by host and feature, the tests."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.shows(" not in text:
            continue
        for test in ast.walk(ast.parse(text)):
            if not isinstance(test, ast.FunctionDef):
                continue
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.shows":
                    host, *features = (ast.literal_eval(each) for each in mark.args)
                    for feature in features:
                        cells[host, feature].append(f"{path.relative_to(TESTS)}::{test.name}")
    return dict(cells)


def hosts_rows() -> list[list[str]]:
    """A row for each host: its name, and for each feature ``tested``, ``known`` or ``no``, with the number of its reason."""
    cells, reasons = shown_cells(), reason_numbers()

    def verdict(host: str, feature: str) -> str:
        if (host, feature) in cells:
            return "tested"
        word, reason = UNTESTED[host][feature]
        return f"{word} ({reasons[reason]})"

    return [[host, *(verdict(host, feature) for feature in FEATURES)] for host in HOSTS]


def extras_rows() -> list[list[str]]:
    """A row for each extra: its name, what needs it, and calls that name it where it is missing, as a test shows."""
    calls = {**COMMANDS, **FUNCTIONS}

    def shown(extra: str) -> str:
        words = [
            f"attractor-nb {call}" if call in COMMANDS else call for call, needed in calls.items() if needed == extra
        ]
        return ", ".join(f"`{each}`" for each in words)

    return [[f"`{name}`", extra.purpose, shown(name)] for name, extra in EXTRAS.items()]


def reason_numbers() -> dict[str, int]:
    """The reasons, numbered in the order of the table."""
    found = (UNTESTED.get(host, {}).get(feature) for host in HOSTS for feature in FEATURES)
    return {reason: at for at, reason in enumerate(dict.fromkeys(each[1] for each in found if each), 1)}
