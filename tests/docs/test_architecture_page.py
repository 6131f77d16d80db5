"""The page about the architecture names files and folders that are there."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "attractor_nb"


def test_every_file_and_folder_that_it_names_is_there():
    text = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"[\w./]+/[\w.]*|\b\w+\.py\b", text)) - {"I/O.", "I/O"}
    places = (REPOSITORY, PACKAGE, PACKAGE / "views" / "web")
    paths = {name.rstrip(".") for name in named if not name.startswith(("..", "/"))}
    assert len(paths) > 60
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []
