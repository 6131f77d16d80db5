"""DOT files on the server's own page: listed, edited beside their graph, saved; a conflict keeps both texts."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

TOKEN = "s" * 43
TEXT = """digraph release {
    start [shape=Mdiamond]
    plan  [label="Plan it", prompt="Plan it"]
    done  [shape=Msquare]
    start -> plan -> done
}
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "work"
    (place / "sub").mkdir(parents=True)
    (place / "release.dot").write_text(TEXT)
    (place / "sub" / "<img src=x onerror=hit()>.gv").write_bytes(TEXT.replace("\n", "\r\n").encode())
    return place


@pytest.fixture
def open_files(driver, serve_page, tmp_path, folder):
    """Opens the list of files of a server that may save them, or may not."""

    @contextmanager
    def open_(*, is_editing=True, **options):
        (tmp_path / "runs").mkdir(exist_ok=True)
        line = serve_page(tmp_path / "runs", TOKEN, documents=folder, is_editing=is_editing)
        with driver.quiet_page(width=1400, but="^(?!error)|status of 4", **options) as page:
            page.goto(line)
            page.get_by_role("link", name="Files").click()
            page.get_by_role("link", name="release.dot").wait_for()
            yield page

    return open_


def text_of(page):
    return page.get_by_label("DOT text")


@pytest.mark.parametrize(
    "dark", [pytest.param(False, marks=pytest.mark.kind("a browser")), pytest.param(True, marks=pytest.mark.campaign)]
)
def test_a_file_is_edited_by_clicks_and_typing_and_saved(open_files, folder, pictures, dark):
    with open_files(dark=dark) as page:
        page.screenshot(path=str(pictures / f"files_{'dark' if dark else 'light'}.png"))
        page.get_by_role("link", name="release.dot").click()
        page.locator("[data-node=plan]").click()
        assert text_of(page).evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)") == "plan"
        field = page.locator(".ae-form [data-name=prompt]")
        field.fill("Plan it well")
        field.press("Control+Enter")
        page.locator(".ap-file-said", has_text="changed").wait_for()
        changed = TEXT.replace('prompt="Plan it"', 'prompt="Plan it well"')
        assert text_of(page).input_value() == changed
        page.screenshot(path=str(pictures / f"file_edited_{'dark' if dark else 'light'}.png"))
        page.get_by_role("button", name="Undo", exact=True).last.click()
        page.wait_for_function("text => document.querySelector('#an-text').value === text", arg=TEXT)
        page.get_by_role("button", name="Redo").click()
        page.wait_for_function("text => document.querySelector('#an-text').value === text", arg=changed)
        page.keyboard.press("Control+s")
        page.locator(".ap-file-said", has_text=re.compile("^saved$")).wait_for()
        page.get_by_role("button", name="Save").wait_for()
        assert (folder / "release.dot").read_text() == changed


def test_a_conflict_is_refused_and_both_texts_are_kept(open_files, folder, pictures):
    with open_files() as page:
        page.get_by_role("link", name="release.dot").click()
        page.locator("[data-node=plan]").wait_for()
        text_of(page).fill(TEXT + "// mine\n")
        (folder / "release.dot").write_text("// theirs\n" + TEXT)
        page.get_by_role("button", name="Save").click()
        conflict = page.get_by_role("region", name="Conflict")
        conflict.locator("pre", has_text="// theirs").wait_for()
        page.screenshot(path=str(pictures / "file_conflict.png"))
        assert (folder / "release.dot").read_text() == "// theirs\n" + TEXT
        assert text_of(page).input_value() == TEXT + "// mine\n"
        conflict.get_by_role("button", name="Take the file's text").click()
        assert text_of(page).input_value() == "// theirs\n" + TEXT
        page.locator(".ap-file-said", has_text=re.compile("^saved$")).wait_for()
        page.get_by_role("button", name="Undo", exact=True).last.click()
        assert text_of(page).input_value() == TEXT + "// mine\n"
        page.get_by_role("button", name="Save").click()
        page.locator(".ap-file-said", has_text=re.compile("^saved$")).wait_for()
        assert (folder / "release.dot").read_text() == TEXT + "// mine\n"


def test_line_ends_stay_and_hostile_names_are_text(open_files, folder):
    with open_files() as page:
        page.get_by_role("link", name="onerror").click()
        page.locator("[data-node=plan]").wait_for()
        assert page.locator("img[src=x]").count() == 0
        text_of(page).fill(TEXT + "// mine\n")
        page.get_by_role("button", name="Save").click()
        page.locator(".ap-file-said", has_text=re.compile("^saved$")).wait_for()
        (file,) = (folder / "sub").iterdir()
        assert file.read_bytes() == (TEXT + "// mine\n").replace("\n", "\r\n").encode()


def test_a_new_file_is_begun_and_saved(open_files, folder):
    with open_files() as page:
        page.get_by_label("Name of a new file").fill("sub/new")
        page.get_by_role("button", name="New file").click()
        page.get_by_role("button", name="Begin with three stages").click()
        page.locator("[data-node=plan]").wait_for()
        page.keyboard.press("Control+s")
        page.locator(".ap-file-said", has_text=re.compile("^saved$")).wait_for()
        assert "digraph pipeline" in (folder / "sub" / "new.dot").read_text()


def test_without_edit_it_is_read_only_and_a_run_is_shown_on_the_drawing(open_files, folder):
    with open_files(is_editing=False) as page:
        assert page.get_by_role("button", name="New file").is_hidden()
        page.get_by_role("link", name="release.dot").click()
        page.get_by_text("It is only shown here").wait_for()
        assert not text_of(page).is_editable()
        assert page.get_by_role("button", name="Save").is_hidden()
        page.locator("[data-node=plan]").click()
        assert page.locator(".ae-form").is_hidden()
        page.get_by_role("button", name="Run…").click()
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("[data-node=done].state-success").wait_for()
