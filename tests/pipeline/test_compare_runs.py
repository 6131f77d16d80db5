"""``diff``: two runs beside each other."""

from __future__ import annotations

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Run, StageStatus, Usage, diff, redact_also
from attractor_nb.errors import OptionError, RunNotFound

ENDS = "start [shape=Mdiamond] done [shape=Msquare] "
TEXT = f"""digraph release {{ {ENDS}
  plan [prompt="Plan"] write [prompt="Write"] check
  start -> plan -> write -> check
  check -> done [condition="context.score=GOOD"]
  check -> write [condition="context.score!=GOOD"] }}"""


def run(tmp_path, name, score, *, good="2", text=TEXT, words="a plan"):
    left = [score, "2"]

    def answer(node, prompt, context):
        if node.id == "check":
            return Outcome(
                StageStatus.SUCCESS, context_updates={"score": left.pop(0)}, usage=Usage(90, 10, 0.5, 1)
            )
        return words if node.id == "plan" else "text"

    pipeline = Pipeline(text.replace("GOOD", good), backend=FunctionBackend(answer))
    return pipeline.run(wait=True, logs_root=tmp_path / name)


def test_path_outcome_texts_context_and_cost_are_compared(tmp_path):
    a = run(tmp_path, "a", "1")
    b = run(tmp_path, "b", "2", words="another plan")
    found = diff(a, b)
    assert not found.is_same
    assert [pair.node for pair in found.steps if pair.b is None] == ["write", "check"]
    assert found.first_difference.node == "plan"
    assert found.first_difference.differences == ("response",)
    assert [(change.name, change.lines) for change in found.texts("plan")] == [
        ("response", ("-a plan", "+another plan"))
    ]
    assert (found.a.usage.cost_usd, found.b.usage.cost_usd) == (1.0, 0.5)
    assert found.graph == ()
    assert "plan.response" in {change.key for change in found.context}


def test_runs_results_and_directories_are_the_same_to_it(tmp_path):
    a, b = run(tmp_path, "a", "1"), run(tmp_path, "b", "2")
    whole = str(diff(a, b))
    assert str(diff(Run.load(a.logs_root), str(b.logs_root))) == whole
    assert diff(a, str(a.logs_root)).is_same
    assert diff(a, a).to_plain()["is_same"] is True


def test_the_same_pipeline_run_twice_is_alike_though_ids_and_directories_are_in_its_prompts(tmp_path):
    text = TEXT.replace('prompt="Write"', 'prompt="Write", fidelity="summary:high"')
    found = diff(run(tmp_path, "a", "2", text=text), run(tmp_path, "b", "2", text=text))
    assert found.is_same, found
    assert "no step differs" in str(found)


def test_a_fork_differs_from_its_parent_only_where_it_went_another_way(tmp_path):
    """Its copied stages were asked in the parent, whose id is in their prompts."""
    text = TEXT.replace('prompt="Write"', 'prompt="Write", fidelity="truncate"').replace("GOOD", "2")
    a = Pipeline(text, backend=FunctionBackend(lambda node, prompt, context: scored(node))).run(
        logs_root=tmp_path / "a"
    )
    a.result(20)
    fork = a.fork("check", context={"more": 1}, logs_root=tmp_path / "fork")
    fork.result(20)
    again = fork.fork("check", logs_root=tmp_path / "again")
    again.result(20)
    assert a.id in (fork["write"].prompt or "")
    assert diff(a, fork).is_same is False  # the value that was given
    assert [pair.differences for pair in diff(a, fork).steps if pair.node != "check"] == [()] * 4
    assert [pair.differences for pair in diff(a, again).steps if pair.node != "check"] == [()] * 4


def scored(node):
    return Outcome(StageStatus.SUCCESS, context_updates={"score": "2"}) if node.id == "check" else "text"


def test_changed_graphs_are_told_in_words_and_drawn_as_one(tmp_path):
    changed = TEXT.replace('"context.score=GOOD"', '"context.score=GOOD", label="ok"').replace(
        "Plan", "Plan more"
    )
    b = run(
        tmp_path, "b", "2", text=changed.replace("-> done", "-> polish").replace("}", "polish -> done }", 1)
    )
    found = diff(run(tmp_path, "a", "2"), b)
    assert "node polish only in B" in found.graph
    assert "node plan: prompt" in found.graph
    assert any(
        words.startswith("edge check -> done, when") and words.endswith("only in A") for words in found.graph
    )
    svg = found.to_svg()
    assert 'class="node type-codergen state-success only-b" data-node="polish"' in svg


def test_a_failure_of_one_is_a_changed_outcome(tmp_path):
    def fails(node, prompt, context):
        return Outcome.fail("no money") if node.id == "plan" else "text"

    text = f"digraph {{ {ENDS} plan start -> plan -> done }}"
    a = Pipeline(text, backend="simulated").run(wait=True, logs_root=tmp_path / "a")
    b = Pipeline(text, backend=FunctionBackend(fails)).run(wait=True, logs_root=tmp_path / "b")
    found = diff(a, b)
    assert found.first_difference.differences[0] == "outcome"
    assert "B ✕ fail, 2 stages: no money" in str(found)
    assert "state-fail changed" in found.to_svg()
    assert found.to_plain()["steps"][1]["b"]["reason"] == "no money"


def test_the_static_form_says_nothing_that_differs_from_day_to_day(tmp_path):
    bundles = []
    for day in ("one", "two"):
        a, b = run(tmp_path / day, "a", "1"), run(tmp_path / day, "b", "2")
        bundles.append(diff(a, b)._repr_mimebundle_())
    assert bundles[0] == bundles[1]
    assert set(bundles[0]) == {"text/html", "text/plain"}
    assert " s" not in bundles[0]["text/plain"].splitlines()[4]


def test_details_have_times_and_all_texts(tmp_path):
    found = diff(run(tmp_path, "a", "1"), run(tmp_path, "b", "2"))
    assert "time" in found.details()
    assert "time" not in str(found)


def test_each_visit_has_its_own_texts(tmp_path):
    """A second visit's directory is the stage's; the first one's texts were moved under visits/."""

    def write(words):
        told = iter(words)
        scores = iter(["1", "2"])

        def answer(node, prompt, context):
            if node.id == "check":
                return Outcome(StageStatus.SUCCESS, context_updates={"score": next(scores)})
            return next(told) if node.id == "write" else "text"

        return FunctionBackend(answer)

    text = TEXT.replace("GOOD", "2")
    a = Pipeline(text, backend=write(["one", "two"])).run(wait=True, logs_root=tmp_path / "a")
    b = Pipeline(text, backend=write(["one", "three"])).run(wait=True, logs_root=tmp_path / "b")
    (change,) = diff(a, b).texts("write")
    assert (change.visit, change.lines) == (2, ("-two", "+three"))


def test_what_is_no_run_is_refused_with_its_name(tmp_path):
    a = run(tmp_path, "a", "2")
    with pytest.raises(
        OptionError, match="the second run must be a run, its result or its directory, not int"
    ):
        diff(a, 3)
    with pytest.raises(RunNotFound):
        diff(tmp_path / "nowhere", a)


def test_a_run_that_was_not_stored_cannot_be_compared(tmp_path):
    unstored = Pipeline(f"digraph {{ {ENDS} start -> done }}").run(durability="none")
    unstored.result()
    with pytest.raises(RunNotFound, match="nothing of run"):
        diff(unstored, unstored)


def test_no_secret_comes_out_that_was_made_known_later(tmp_path):
    a = run(tmp_path, "a", "1", words="the key is planted-9f8e7d6c5b4a3210")
    b = run(tmp_path, "b", "2", words="no key")
    redact_also("planted-9f8e7d6c5b4a3210")
    found = diff(a, b)
    for shown in (str(found), found.details(), found.to_html(), found.to_svg(), repr(found.to_plain())):
        assert "planted" not in shown
    assert "[redacted]" in str(found)


def test_hostile_texts_stay_text(tmp_path):
    hostile = '</pre><script>alert(1)</script><img src=x onerror="alert(2)">'
    found = diff(run(tmp_path, "a", "1", words=hostile), run(tmp_path, "b", "2", words="tame"))
    assert "<script" not in found.to_html()
    assert "<img src=x" not in found.to_html()
    assert found.to_html().count("<img") == 1, "the drawing's own"
    assert "&lt;script&gt;" in found.to_html()
