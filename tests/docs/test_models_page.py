"""The claims of docs/models.md are true: providers, attributes, defaults, and the table of failures."""

import inspect
import re
from pathlib import Path

import pytest

from attractor_nb import ProviderBackend
from attractor_nb.decisions.retries import MAX_ASKED_DELAY_SECONDS
from attractor_nb.model.calls.providers import PROVIDERS
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.attributes import attribute

PAGE = (Path(__file__).resolve().parents[2] / "docs/models.md").read_text("utf-8")


@pytest.mark.parametrize("provider", [entry.name for entry in PROVIDERS])
def test_the_page_names_each_provider(provider):
    assert f"`{provider}`" in PAGE


def test_the_attributes_on_the_page_exist_where_it_says():
    table = PAGE.split("## Which model", 1)[1].split("\n\n", 2)[1]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    assert len(rows) == 9
    for names, scopes in rows:
        for name in re.findall(r"`([^`]+)`", names):
            assert attribute(Scope.NODE, name), name
            assert ("graph" in scopes) == (attribute(Scope.GRAPH, name) is not None), name


def test_the_numbers_on_the_page_are_those_of_the_code():
    defaults = {name: entry.default for name, entry in inspect.signature(ProviderBackend).parameters.items()}
    assert f"silence for {defaults['read_timeout_seconds']:g} s" in PAGE
    assert f"more than {defaults['request_timeout_seconds'] / 60:g} min" in PAGE
    assert f"`max_requests={defaults['max_requests']}`" in PAGE
    assert MAX_ASKED_DELAY_SECONDS == 600
    assert "at most ten minutes" in PAGE
