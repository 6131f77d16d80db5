"""The command that installs an extra names where this installation came from."""

import json
from importlib import metadata

import pytest

from attractor_nb.extras import install_command

CLONE = {"url": "file:///home/ann/attractor%20nb", "dir_info": {}}
ARCHIVE = {"url": "https://example.org/attractor_nb-0.1.0.tar.gz", "archive_info": {}}
REPOSITORY = {"url": "https://ann:secret@example.org/attractor_nb.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (CLONE | {"dir_info": {"editable": True}}, "pip install -e '/home/ann/attractor nb[llm]'"),
        (CLONE, "pip install '/home/ann/attractor nb[llm]'"),
        (ARCHIVE, "pip install 'attractor_nb[llm] @ https://example.org/attractor_nb-0.1.0.tar.gz'"),
        (REPOSITORY, "pip install 'attractor_nb[llm] @ git+https://example.org/attractor_nb.git'"),
        ({}, "pip install 'attractor_nb[llm]'"),
        ({"url": "file://[", "dir_info": {}}, "pip install 'attractor_nb[llm]'"),
        ([], "pip install 'attractor_nb[llm]'"),
        (None, "pip install 'attractor_nb[llm]'"),
    ],
    ids=["editable", "clone", "archive", "repository", "empty", "a broken URL", "a list", "from an index"],
)
def test_an_extra_is_installed_from_where_the_package_was(record, expected, monkeypatch):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if record is None else json.dumps(record)

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())
    assert install_command("llm") == expected


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert install_command("llm") == "pip install 'attractor_nb[llm]'"
