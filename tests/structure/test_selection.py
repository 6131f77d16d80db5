"""The tests that `make test` runs, and those that it leaves to the campaign."""

import pytest

from tests.selection import is_in_share, kinds_of, parse_share

pytest_plugins = ["pytester"]
NAMES = [f"tests/a/test_b.py::test_{number}[{number % 7}]" for number in range(500)]


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_every_test_belongs_to_exactly_one_share(count):
    shares = [{name for name in NAMES if is_in_share(name, number, count)} for number in range(count)]
    assert set().union(*shares) == {*NAMES}
    assert sum(map(len, shares)) == len(NAMES)


def test_shares_are_of_similar_size():
    sizes = [sum(is_in_share(name, number, 8) for name in NAMES) for number in range(8)]
    assert min(sizes) > 30
    assert max(sizes) < 100


@pytest.mark.parametrize("text", ["", "1", "8/8", "-1/8", "1/0", "a/b", "1/8/9"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(pytest.UsageError, match="K/N"):
        parse_share(text)


@pytest.fixture
def suite(pytester):
    """Three tests: a plain one, one that represents a kind, and one of the campaign."""
    pytester.makeconftest('pytest_plugins = ["tests.selection"]')
    pytester.makeini("[pytest]\nmarkers =\n  campaign: left out\n  kind(name): a kind\n")
    pytester.makepyfile("""
        import pytest

        def test_plain(): pass

        @pytest.mark.kind("a kill")
        def test_killed(): pass

        @pytest.mark.campaign
        def test_thorough(): pass
    """)
    return pytester


@pytest.mark.parametrize("workers", [0, 2])
def test_the_summary_names_the_kinds_that_passed_and_counts_what_was_left_out(suite, workers):
    done = suite.runpytest_subprocess("-p", "no:randomly", "-m", "not campaign", "-n", str(workers))
    done.assert_outcomes(passed=2, deselected=0 if workers else 1)
    done.stdout.fnmatch_lines(
        ["protections: a kill 1", "1 tests of the campaign were left out: make test-all runs them"]
    )


def test_a_run_of_all_tests_leaves_nothing_out(suite):
    done = suite.runpytest_subprocess("-p", "no:randomly")
    done.assert_outcomes(passed=3)
    done.stdout.no_fnmatch_line("*left out*")


def test_a_test_that_represents_a_kind_is_not_in_the_campaign(suite):
    suite.makepyfile(
        test_other="""
        import pytest

        @pytest.mark.campaign
        @pytest.mark.kind("a server")
        def test_both(): pass
    """
    )
    done = suite.runpytest_subprocess("-p", "no:randomly")
    done.stderr.fnmatch_lines(["*one of the marks campaign and kind: test_other.py::test_both*"])
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_every_kind_of_protection_has_a_test_that_represents_it(request):
    whole = request.config.rootpath / "tests"
    is_whole = any(request.config.invocation_params.dir / argument == whole for argument in request.config.args)
    is_part = request.config.getoption("share") != "0/1" or request.config.getoption("-m") not in {"", "not campaign"}
    if not is_whole or is_part or request.config.getoption("ignore"):
        pytest.skip("only a part of the tests was collected")
    kinds = {kind for item in request.session.items for kind in kinds_of(item)}
    assert kinds == {
        *("a Dask worker", "a browser", "a failing disk", "a hostile file name", "a kill", "a killed server"),
        *("a lost kernel", "a pipeline over HTTP", "a planted key", "a power loss", "a process tree", "a provider"),
        *("a real model", "a restarted server", "a server", "an MCP server", "an interrupt", "hostile text"),
        *("JupyterLab", "the site"),
    }


def test_a_kind_whose_test_fails_is_not_named(suite):
    suite.makepyfile(
        test_other="""
        import pytest

        @pytest.mark.kind("a server")
        def test_broken(): raise ValueError
    """
    )
    done = suite.runpytest_subprocess("-p", "no:randomly")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["protections: a kill 1"])
