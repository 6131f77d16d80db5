"""Every error reads as a report, and the tree on the page is the tree in the code."""

import re

import pytest

from attractor_nb import errors
from attractor_nb.model.diagnostic import MOST_LISTED, Diagnostic, Fix, Severity
from attractor_nb.source import SourceText

SOURCE = SourceText('plan [label="Plan" prompt="Plan it"]', "review.dot")


def test_a_source_error_says_what_where_and_what_to_do():
    error = errors.DotSyntaxError(
        'expected "," between attributes', SOURCE.span(19, 25), hint="separate attributes with commas"
    )
    assert str(error).splitlines() == [
        'expected "," between attributes',
        "  --> review.dot:1:20",
        ' 1 |  plan [label="Plan" prompt="Plan it"]',
        "   |                     ^^^^^^",
        " hint: separate attributes with commas",
    ]


def test_ipython_shows_the_report_in_place_of_a_traceback():
    error = errors.OptionError("unknown backend 'lokal'", hint="use local")
    assert error._render_traceback_() == ["OptionError: unknown backend 'lokal'", " hint: use local"]


def test_our_syntax_errors_are_no_python_syntax_errors():
    assert not issubclass(errors.DotSyntaxError, SyntaxError)


def test_a_validation_error_shows_its_errors_and_carries_all_findings():
    found = [
        Diagnostic("start_node", Severity.ERROR, "no start node", span=SOURCE.span(0, 4), fix=Fix("add one")),
        Diagnostic("dead_end", Severity.WARNING, "plan leads nowhere"),
    ]
    error = errors.ValidationError(found)
    assert error.diagnostics == tuple(found)
    assert str(error).splitlines() == [
        "the pipeline has 1 error and was not run",
        "error[start_node]: no start node",
        "  --> review.dot:1:1",
        ' 1 |  plan [label="Plan" prompt="Plan it"]',
        "   |  ^^^^",
        " fix: add one",
    ]


def test_a_validation_error_lists_as_many_errors_as_a_table_of_findings():
    found = [Diagnostic("start_node", Severity.ERROR, "no start node") for _ in range(MOST_LISTED + 1200)]
    found.append(Diagnostic("dead_end", Severity.WARNING, "plan leads nowhere"))
    lines = str(errors.ValidationError(found)).splitlines()
    assert lines[0] == "the pipeline has 1700 errors and was not run"
    assert lines[1:-1] == ["error[start_node]: no start node"] * MOST_LISTED
    assert lines[-1] == "and 1,200 more errors"


def _tree(kind, depth=0):
    yield depth, kind.__name__
    for child in kind.__subclasses__():
        yield from _tree(child, depth + 1)


def test_the_docstring_draws_every_error_at_its_place():
    rows = (re.match(r"    ((?:│   |├── |└── |    )*)([A-Z]\w+)", line) for line in errors.__doc__.splitlines())
    drawn = [(len(found[1]) // 4, found[2]) for found in rows if found]
    ours = [(depth, name) for depth, name in _tree(errors.AttractorError) if hasattr(errors, name)]
    assert sorted(drawn) == sorted(ours)


@pytest.mark.parametrize("kind", [kind for _, kind in _tree(errors.AttractorError) if hasattr(errors, kind)])
def test_every_error_explains_itself(kind):
    assert getattr(errors, kind).__doc__
