"""Each page has one kind, the section of the front page that lists it, and keeps the rules of its kind."""

import ast
import builtins
import re

import pytest

from tests.docs.blocks import REPOSITORY, blocks_of
from tests.docs.site.sources import kinds

DOCS = REPOSITORY / "docs"
KINDS = {name: title for title, _, names in kinds((DOCS / "index.md").read_text("utf-8")) for name in names}
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.name != "index.md")
FOR_USERS = [page for page in PAGES if KINDS.get(page) != "Contributing"]
SCREEN = 50
"""Lines of a page that fit one screen, with its code and without scrolling far."""
INTERNAL = re.compile(
    r"\btests/\w+|\btest_\w+\.py|`[a-z_]+/[a-z_/]+\.(?:py|js)`|\brulings? \d|\bspec \d|\bappendix [a-d]\b|"
    r"[Mm]easured on 20\d\d|\bCPU seconds\b|\bat a load of\b"
)
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2$|<!--.*?-->", re.DOTALL | re.MULTILINE)


def test_each_page_has_a_kind():
    assert [page for page in PAGES if page not in KINDS] == []
    assert list(dict.fromkeys(KINDS.values())) == [
        *("Start", "Tutorials", "How-to", "Guides", "Reference", "Explanation", "Help", "Contributing")
    ]


@pytest.mark.parametrize("page", KINDS)
def test_a_tutorial_is_a_notebook_and_a_how_to_is_in_its_folder(page):
    assert page.endswith(".ipynb") == (KINDS[page] == "Tutorials")
    assert page.startswith("how-to/") == (KINDS[page] == "How-to")


@pytest.mark.parametrize("page", [page for page in PAGES if KINDS.get(page) == "How-to"])
def test_a_how_to_is_one_question_on_one_screen(page):
    text = (DOCS / page).read_text("utf-8")
    assert len(text.splitlines()) <= SCREEN
    assert len(re.findall(r"^#+ ", CODE.sub("", text), re.MULTILINE)) == 1


@pytest.mark.parametrize("page", FOR_USERS)
def test_the_first_program_of_a_page_imports_what_it_uses(page):
    programs = [block.text for block in blocks_of(DOCS / page) if block.language == "python"]
    first = next((text for text in programs if not text.startswith("%")), "")
    names = [node for node in ast.walk(ast.parse(first)) if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in ast.walk(ast.parse(first)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.alias):
            made.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            made.add(node.arg)
    assert {node.id for node in names} <= made


@pytest.mark.parametrize("page", FOR_USERS)
def test_a_page_for_users_names_no_test_source_file_ruling_or_measurement(page):
    assert INTERNAL.findall(CODE.sub("", (DOCS / page).read_text("utf-8"))) == []
