"""The site of the documentation: built without a warning, from this machine alone, the same each time, legible everywhere."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.site.sources import DeadLink, notebook_with_links, outside_code, sections, with_links

REPOSITORY = Path(__file__).resolve().parents[2]
SITE = REPOSITORY / "tests" / "docs" / "site"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "link": "href", "video": "src"}
ELSEWHERE = re.compile(r"^\s*(?:https?:)?//")


def build(target):
    return subprocess.run([sys.executable, SITE, target], capture_output=True, text=True, cwd=REPOSITORY)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    done = build(target)
    assert done.returncode == 0, done.stderr
    return target / "html"


class Loads(HTMLParser):
    """The addresses that a page loads scripts, styles, pictures and frames from."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == LOADED.get(tag) and value]


@pytest.mark.kind("the site")
def test_the_site_loads_nothing_from_another_host(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text("utf-8"))
        assert [address for address in loads.found if ELSEWHERE.match(address)] == [], page.name
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"""(?:url\(|@import\s)["']?([^"')\s]+)""", sheet.read_text("utf-8"))
        assert [address for address in addresses if ELSEWHERE.match(address)] == [], sheet.name


@pytest.mark.kind("the site")
def test_each_page_of_the_repository_is_a_page_of_the_site(site):
    expected = {f"{path.stem}.html" for path in (REPOSITORY / "docs").glob("*.md")}
    expected |= {f"tutorials/{path.stem}.html" for path in (REPOSITORY / "notebooks").glob("*.ipynb")}
    assert {name for name in expected if not (site / name).is_file()} == set()
    drawing = (site / "tutorials" / "02_human_gates.html").read_text("utf-8")
    assert "<svg" in drawing  # a stored output
    assert '<span class="nt">start</span>' in drawing  # a cell of DOT in its colours


@pytest.mark.campaign
def test_the_site_is_the_same_each_time(site, tmp_path):
    assert build(tmp_path).returncode == 0

    def contents(folder):
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".buildinfo"]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    first, second = contents(site), contents(tmp_path / "html")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


FAULTS = {
    "a dead link": "[there](nowhere.md)",
    "a dead anchor": "[there](other.md#nowhere)",
    "a dead anchor of the page": "[there](#nowhere)",
    "a picture that is missing": "![picture](nowhere.png)",
    "an unknown directive": "```{nowhere}\n```",
}


@pytest.mark.parametrize("fault", ["", "an orphan", *FAULTS])
@pytest.mark.campaign
def test_a_warning_fails_the_build(fault, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "other.md").write_text("# Other\n\n## Known\n")
    toctree = "" if fault == "an orphan" else "```{toctree}\nother\n```\n"
    (source / "index.md").write_text(f"# Index\n\n{toctree}\n[known](other.md#known)\n{FAULTS.get(fault, '')}\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-c", SITE, source, tmp_path / "html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode != 0) == bool(fault), done.stderr


def test_a_link_leads_to_the_place_of_its_page_on_the_site():
    downloads = set()
    text = (
        "[a](gates.md#forms) [b](../notebooks/02_human_gates.ipynb) ![c](images/page.png) [d](https://x.y) `[e](../f)`"
    )
    assert with_links(text, "docs/runs.md", downloads) == text.replace("../notebooks", "tutorials")
    assert (
        with_links("[a](docs/gates.md) [b](LICENSE)", "CONTRIBUTING.md", downloads)
        == "[a](gates.md) [b](path:files/LICENSE)"
    )
    assert downloads == {"LICENSE"}
    cell = '{"metadata": {}, "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["[a](../docs/gates.md)"]}]}'
    assert "[a](../gates.md)" in notebook_with_links(cell, "notebooks/02_human_gates.ipynb", downloads)
    with pytest.raises(DeadLink, match="nowhere"):
        with_links("[a](nowhere.md)", "docs/runs.md", downloads)


def test_code_is_not_changed():
    text = "a `b` ``c ` d`` e\n```python\nf\n```\ng\n````\n```\nh\n```\n````\ni"
    assert outside_code(text, str.upper) == text.translate({ord(char): char.upper() for char in "aegi"})


def test_a_page_belongs_to_the_section_of_its_first_link():
    index = "# T\n[z](z.md)\n\n## A\n\n- [a](a.md), [b](b.md)\n\n## B\n\n- [a](a.md#x), [n](t/n.ipynb)\n"
    made = sections(index)
    assert made["index.md"].endswith("```{toctree}\n:hidden:\n\na\nb\n```\n")
    assert made["a.md"].endswith(":hidden:\n\na\nb\n```\n")
    assert made["b.md"].endswith(":hidden:\n\nt/n\n```\n")


# -- in Chromium, opened from the disk without a network ---------------------------------------------

PAGES = ("index.html", "tutorials/02_human_gates.html", "gates.html", "language.html", "rules.html")


@pytest.fixture(scope="module")
def driver():
    spec = importlib.util.spec_from_file_location("site_driver", REPOSITORY / "tests/browser/driver.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    module.close_chromium()


@pytest.mark.browser
@pytest.mark.campaign
def test_search_finds_a_page_from_the_disk(driver, site):
    with driver.quiet_page(offline=True) as page:
        page.goto(f"file://{site / 'index.html'}")
        page.fill("input[name=q]", "freeform")
        page.press("input[name=q]", "Enter")
        page.click("#search-results li a[href^='gates.html']")
        assert page.inner_text("h1").startswith("Human gates")


@pytest.mark.browser
@pytest.mark.campaign
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name, driver, site):
    with driver.quiet_page(offline=True, width=390, height=844) as page:
        page.goto(f"file://{site / name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
@pytest.mark.campaign
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_follows_the_colours_of_the_system_and_prints_its_text_alone(dark, driver, site):
    with driver.quiet_page(offline=True, dark=dark) as page:
        page.goto(f"file://{site / 'gates.html'}")
        red, *_ = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (red < 60) == dark
        page.emulate_media(media="print")
        assert page.is_visible("article h1")
        assert not page.is_visible(".sidebar-drawer")
