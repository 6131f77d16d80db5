"""The page about the architecture names files and folders that are there, and each walk follows files that are."""

from __future__ import annotations

import re


def test_every_file_and_folder_that_the_page_names_is_there(repository):
    text = (repository / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"[\w./]+/[\w.]*|\b\w+\.py\b", text)) - {"I/O.", "I/O"}
    places = (repository, repository / "attractor_nb", repository / "attractor_nb" / "views" / "web")
    paths = {name.rstrip(".") for name in named if not name.startswith(("..", "/"))}
    assert len(paths) > 60
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []
