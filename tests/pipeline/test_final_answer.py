"""The final answer of a run: the stage that spoke last, cut where a front-end would not show more."""

from attractor_nb import Pipeline
from attractor_nb.studio.inspect.final_answer import MAX_ANSWER_CHARS, final_answer

TEXT = """digraph g { start [shape=Mdiamond] plan [prompt="Plan"] write [prompt="Write"] done [shape=Msquare]
    start -> plan -> write -> done }"""


def ended(text, answer, tmp_path):
    run = Pipeline(text).run(backend=answer, logs_root=tmp_path / "run")
    run.result()
    return run


def test_it_is_the_response_of_the_stage_that_spoke_last(tmp_path):
    run = ended(TEXT, lambda prompt: f"To {prompt.splitlines()[-1]}", tmp_path)
    answer = final_answer(run, run.view)
    assert (answer.node, answer.text) == ("write", "To Write")
    assert answer.to_plain() == {"node": "write", "text": "To Write", "shown": [["p", "To Write"]]}


def test_a_long_one_says_where_its_whole_text_is(tmp_path):
    run = ended(TEXT, lambda prompt: "x" * 5_000, tmp_path)
    python, request = final_answer(run, run.view).text, final_answer(run, run.view, "GET /{run}/stages/{node}").text
    assert python == "x" * MAX_ANSWER_CHARS + '\n… 1,000 more characters: run["write"].response'
    assert request.endswith("… 1,000 more characters: GET /{run}/stages/write")


def test_a_run_in_which_no_stage_spoke_has_none(tmp_path):
    run = ended("digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }", None, tmp_path)
    assert final_answer(run, run.view) is None
