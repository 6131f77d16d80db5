"""A class has a name of its own, and so has a module, whichever folder it stands in."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "attractor_nb"
TWICE = {
    "Answer",  # the model of a request, by its name in the server's document
    "Checkpoint",  # the specification's name for what ``storage`` reads
}
THE_SAME_SHAPE = {"parser.py", "syntax.py", "mistakes.py", "notices.py"}  # each language has one


def test_no_two_classes_have_one_name():
    homes = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(homes) > 500
    assert {name: places for name, places in homes.items() if len(places) > 1 and name not in TWICE} == {}


def test_no_two_modules_have_one_name():
    homes = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.name.startswith("__"):
            homes[path.name].append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1 and name not in THE_SAME_SHAPE} == {}
