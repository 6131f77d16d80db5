"""Each skipped test says why."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SKIPS = {"pytest.skip", "pytest.xfail", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}


def skips_without_reason(text):
    """The lines of calls and marks that skip a test, or expect it to fail, without a reason."""
    nodes = list(ast.walk(ast.parse(text)))
    calls = {node.func: node for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and (name := ast.unparse(node)) in SKIPS:
            call = calls.get(node)
            given = [] if call is None else [each.value for each in call.keywords if each.arg == "reason"]
            if call is not None and name != "pytest.mark.skipif":
                given += call.args[:1]
            if not any(ast.unparse(reason).strip("frb'\"") for reason in given):
                yield node.lineno


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("pytest.skip()\npytest.skip('')\npytest.skip(reason='')", [1, 2, 3]),
        ("@pytest.mark.skip\ndef test(): pass", [1]),
        ("pytestmark = pytest.mark.skipif(True)", [1]),
        ("pytestmark = pytest.mark.skipif('sys.platform')", [1]),
        ("pytestmark = pytest.mark.xfail(strict=True)", [1]),
        ("pytest.skip('not installed')\npytest.skip(reason=f'{name} is not installed')", []),
        ("pytestmark = pytest.mark.skipif(True,\n  reason='not installed')", []),
    ],
)
def test_a_skip_without_a_reason_is_found(text, lines):
    assert list(skips_without_reason(text)) == lines


def test_no_skip_is_without_a_reason():
    texts = {path: path.read_text("utf-8") for path in TESTS.rglob("*.py")}
    found = {
        str(path): list(skips_without_reason(text))
        for path, text in texts.items()
        if "pytest.skip" in text or "pytest.mark.skip" in text or "xfail" in text
    }
    assert {path: lines for path, lines in found.items() if lines} == {}
