"""An evaluation in a test: ``evaluate(…, wait=True)`` and ``check``; a failure shows the reasons."""

pytest_plugins = ["pytester"]

TESTS = '''
from attractor_nb import Pipeline

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ROWS = [
    {"id": "pay", "ticket": "I cannot pay", "expected": "billing"},
    {"id": "crash", "ticket": "It crashes", "expected": "support"},
]

def answer(node, prompt, context):
    return "billing"

def correct(output, expected):
    return output == expected

def test_good_enough(cassette, tmp_path):
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(ROWS, correct, cassette=cassette, wait=True)
    assert evaluation.check(at_least={"correct": 0.5}) == []

def test_perfect(cassette, tmp_path):
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(ROWS, correct, cassette=cassette, wait=True)
    assert evaluation.check(at_least={"correct": 1.0}) == []
'''
PLUGIN = ("-p", "attractor_nb.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider")


def test_a_test_that_is_not_good_enough_fails_with_the_reason_and_replays_its_calls(pytester, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_triage=TESTS)
    first = pytester.runpytest_inprocess(*PLUGIN)
    first.assert_outcomes(passed=1, failed=1)
    first.stdout.fnmatch_lines(["*one more item: 'correct is 0.5, and at least 1 is asked for'*"])
    pytester.makepyfile(test_triage=TESTS.replace('return "billing"', 'raise AssertionError("called")'))
    pytester.runpytest_inprocess(*PLUGIN, "--cassette-mode=replay").assert_outcomes(passed=1, failed=1)
