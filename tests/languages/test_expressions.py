"""Regular expressions of the package mean the same on each Python that the project claims."""

import re
from pathlib import Path

import attractor_nb

POSSESSIVE_GROUP = re.compile(r"\)[*+?]\+")


def test_no_group_is_possessive():
    """Python 3.11.0 to 3.11.4, Debian 12's among them, takes them wrongly; ``(?>(?:…)*)`` is the same."""
    package = Path(attractor_nb.__file__).parent
    found = [path.name for path in package.rglob("*.py") if POSSESSIVE_GROUP.search(path.read_text("utf-8"))]
    assert found == []
