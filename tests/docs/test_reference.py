"""The reference is complete: each public name, parameter, command, request, event and variable has its meaning."""

import re

import msgspec
import pytest

import attractor_nb
from attractor_nb.model.events import EVENT_TYPES
from attractor_nb.model.vocabulary import environment_variables
from tests.docs import api_pages, reference_pages
from tests.docs.blocks import REPOSITORY

PACKAGE = REPOSITORY / "attractor_nb"


def test_each_public_name_is_on_one_page():
    listed = [name for page in api_pages.GROUPS for name in api_pages.names(page)]
    assert sorted(listed) == sorted(attractor_nb.__all__)


ENTRIES = [each for page in api_pages.GROUPS for top in api_pages.entries(page) for each in (top, *top.members)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_call_and_each_parameter_has_a_meaning(entry):
    assert entry.prose
    assert [name for name, _, meaning in entry.parameters if not meaning] == []


def test_internal_names_exist():
    for kind, names in api_pages.INTERNAL.items():
        assert [name for name in names.split() if not hasattr(getattr(attractor_nb, kind), name)] == []


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=EVENT_TYPES)
def test_each_field_of_an_event_has_a_meaning(kind):
    meanings = reference_pages.field_meanings(kind)
    fields = {field.name for field in msgspec.structs.fields(kind)} - set(reference_pages.COMMON)
    assert fields - set(meanings) == set()


def test_each_variable_of_the_environment_is_in_the_table_that_the_code_reads():
    """No other module writes the name of one."""
    table = PACKAGE / "model" / "vocabulary" / "environment_variables.py"
    known = {*environment_variables.SETTINGS, *environment_variables.OF_COMMANDS}
    named = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        named |= set(re.findall(r"environment_variables\.([A-Z_]+)", text))
        if path != table:
            assert re.findall(r"""["'](?:ATTRACTOR_|XDG_)\w+["']""", text) == [], path
    unused = {name for name in known if not any(getattr(environment_variables, each) == name for each in named)}
    assert unused == set()


def test_variables_that_pages_name_exist():
    known = {*environment_variables.SETTINGS, *environment_variables.OF_COMMANDS}
    for page in (REPOSITORY / "docs").glob("*.md"):
        named = set(re.findall(r"\b(ATTRACTOR_[A-Z_]*[A-Z])\b", page.read_text("utf-8")))
        of_tests = {"ATTRACTOR_CAMPAIGN", "ATTRACTOR_FIGURES"}
        assert named - known - of_tests == set(), page.name
