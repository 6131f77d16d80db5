"""The example of docs/functions.md runs as it is written."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "functions.md").read_text()


def test_the_example_counts_the_words():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    variables = {}
    exec(compile(block, "functions.md", "exec"), variables)
    result = variables["result"]
    assert (result.status, result.context["size.words"]) == ("success", 1)
    assert "short" in result.node_outcomes
