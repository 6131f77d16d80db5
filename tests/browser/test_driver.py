"""A failed test leaves nothing behind in Jupyter that the next one meets, whatever became of its page."""

import pytest

pytestmark = pytest.mark.browser
DARKEN = "() => jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })"
SILENCE = "() => { jupyterapp.commands.execute = () => new Promise(() => {}); }"


def break_page_and_fail(lab):
    with lab.browser(is_new=True) as browser:
        browser.open("left.ipynb")
        browser.page.evaluate(DARKEN)
        browser.page.evaluate(SILENCE)
        raise ZeroDivisionError


def test_a_page_that_never_answers_is_closed_and_the_next_one_is_light(lab, write_notebook):
    write_notebook(lab.root, "left.ipynb", "1")
    with pytest.raises(ZeroDivisionError):
        break_page_and_fail(lab)
    with lab.browser(is_new=True) as browser:
        browser.open("left.ipynb")
        assert browser.page.evaluate("() => document.body.dataset.jpThemeLight") == "true"
