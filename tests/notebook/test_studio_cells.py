"""The cells of docs/studio.md, in a fresh kernel with a user who looks on: what they name appears."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "studio.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^display\((.*)\)(?:  # .*)?$", re.MULTILINE)

SHOWN = {
    'run.inspect("write")': ("data-attractor-place", "write"),
    "run.explain()": ("write", "gate"),
    "diff(run, fork)": ("data-attractor-place", "attractor-compare"),
    "fork.replay()": ("data-attractor-place", "replay of"),
    "runs()": ("data-attractor-place", "Review"),
    'heat(runs(), "time")': ("svg", "write"),
    "review.edit()": ("data-attractor-place", "data:image/svg+xml"),
}
"""Words that the output of each line has."""


def test_each_line_of_the_studio_shows_what_it_names(kernel):
    shown = {}
    for block in BLOCKS:
        cell = kernel.run(block)
        lines = LINE.findall(block)
        outputs = cell.outputs("display_data")
        assert len(outputs) == len(lines) or not lines, block
        shown |= {line: str(output["data"]) for line, output in zip(lines, outputs, strict=False)}
    assert shown.keys() == SHOWN.keys()
    for line, words in SHOWN.items():
        assert [word for word in words if word not in shown[line]] == [], line
