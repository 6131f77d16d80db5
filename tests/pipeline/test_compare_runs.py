"""``diff``: two runs beside each other."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Run, StageStatus, Usage, diff, redact_also
from attractor_nb.errors import OptionError, RunNotFound
from attractor_nb.studio.compare import comparison_page
from attractor_nb.studio.compare.comparison_page import MAX_TEXTS, comparison_values
from attractor_nb.studio.timeline.run_timeline import timeline_values

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
            return Outcome(StageStatus.SUCCESS, context_updates={"score": left.pop(0)}, usage=Usage(90, 10, 0.5, 1))
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
    a.result(60)
    fork = a.fork("check", context={"more": 1}, logs_root=tmp_path / "fork")
    fork.result(60)
    again = fork.fork("check", logs_root=tmp_path / "again")
    again.result(60)
    assert a.id in (fork["write"].prompt or "")
    assert diff(a, fork).is_same is False  # the value that was given
    assert [pair.differences for pair in diff(a, fork).steps if pair.node != "check"] == [()] * 4
    assert [pair.differences for pair in diff(a, again).steps if pair.node != "check"] == [()] * 4


TELLING = f"""digraph telling {{ {ENDS}
  tool [shape=parallelogram, tool_command="echo run $ATTRACTOR_RUN_ID in $ATTRACTOR_STAGE_DIR"]
  plan [prompt="Plan with $context.tool.output", fidelity="truncate"]
  sub  [pipeline.name="child"]
  bad  [shape=parallelogram, tool_command="echo none in $ATTRACTOR_STAGE_DIR >&2; exit 3"]
  last [prompt="Last"]
  start -> tool -> plan -> sub -> bad
  bad -> last [condition="outcome=fail"]
  bad -> done [condition="outcome=success"]
  last -> done }}"""


@pytest.mark.parametrize("other", ["again", "fork", "fork of the fork", "failed"])
def test_no_form_of_a_comparison_names_a_run_or_its_directory(tmp_path, monkeypatch, other):
    """Prompts, responses, what commands have written, reasons and the ids of child runs differ by them alone."""
    monkeypatch.chdir(tmp_path)
    text = TELLING.replace('"outcome=fail"', '"context.x=1"') if other == "failed" else TELLING
    child = Pipeline(f"digraph child {{ {ENDS} in [prompt=In] start -> in -> done }}", name="child")
    pipeline = Pipeline(
        text, backend=FunctionBackend(lambda node, prompt, _: f"heard {prompt}"), pipelines={"child": child}
    )
    runs = [pipeline.run(logs_root="a")]
    runs[0].wait(60)
    if "fork" not in other:
        runs.append(pipeline.run(logs_root="b"))
    for name in ["b", "c"][: other.count("fork")]:
        runs.append(runs[-1].fork("bad", logs_root=name))
        runs[-1].wait(60)
    runs[-1].wait(60)
    found = diff(runs[0], runs[-1])
    assert found.is_same, found.details()
    shown = [str(found), found.details(), found.to_html(), found.to_svg()]
    shown += [str(found.steps), str(found.context), str(found.to_plain()["steps"])]
    for text in shown:
        assert not [word for run in runs for word in (run.id, str(run.logs_root.absolute())) if word in text]
    assert "\n".join(shown).count("<run directory>/bad") >= 2, "the reason of the failure on both sides"


def scored(node):
    return Outcome(StageStatus.SUCCESS, context_updates={"score": "2"}) if node.id == "check" else "text"


def test_changed_graphs_are_told_in_words_and_drawn_as_one(tmp_path):
    changed = TEXT.replace('"context.score=GOOD"', '"context.score=GOOD", label="ok"').replace("Plan", "Plan more")
    b = run(tmp_path, "b", "2", text=changed.replace("-> done", "-> polish").replace("}", "polish -> done }", 1))
    found = diff(run(tmp_path, "a", "2"), b)
    assert "node polish only in B" in found.graph
    assert "node plan: prompt" in found.graph
    assert any(words.startswith("edge check -> done, when") and words.endswith("only in A") for words in found.graph)
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
    assert "B ✕ failed, 2 stages: no money" in str(found)
    assert "state-fail changed" in found.to_svg()
    assert found.to_plain()["steps"][1]["b"]["reason"] == "no money"


@pytest.mark.parametrize("other", ["itself", "once more", "another text", "another graph"])
def test_a_legend_has_all_signs_of_the_drawing_and_only_them(tmp_path, other):
    a = run(tmp_path, "a", "1")
    more = TEXT.replace("-> done", "-> polish").replace("}", "polish -> done }", 1)
    found = {
        "itself": lambda: diff(a, a),
        "once more": lambda: diff(a, run(tmp_path, "b", "2")),
        "another text": lambda: diff(a, run(tmp_path, "b", "1", words="another plan")),
        "another graph": lambda: diff(a, run(tmp_path, "b", "2", text=more)),
    }[other]()
    root = ET.fromstring(found.to_svg())
    names = {name for part in root.iter() for name in (part.get("class") or "").split()}
    told = re.findall(r'class="entry ([a-z-]+)"', found.to_html())
    assert told == [name for name in ("only-a", "only-b", "changed", "varied", "both") if name in names]
    assert told


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


def test_no_view_of_a_past_run_is_given_a_secret(tmp_path):
    """The sender of the values of a view, a kernel or a server, sends them as they are made."""
    text = f"""digraph g {{ label="told hunter-seven" {ENDS} plan [label="by hunter-seven"]
      start -> plan -> done [label="hunter-seven"] }}"""
    backend = FunctionBackend(lambda node, prompt, context: Outcome.fail("no hunter-seven"))
    runs = [Pipeline(text, backend=backend).run(logs_root=tmp_path / name) for name in "ab"]
    for each in runs:
        each.wait(60)
    redact_also("hunter-seven")  # known later than it was stored
    values = {
        "replay": runs[0].replay().values(),
        "timeline": timeline_values(runs[0].timeline()),
        "comparison": comparison_values(diff(*runs).compared, text_chars=1000),
    }
    assert [name for name, value in values.items() if "hunter-seven" in repr(value)] == []


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
    with pytest.raises(OptionError, match="the second run must be a run, its result or its directory, not int"):
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


def test_ruling_52_the_page_of_a_long_comparison_compares_only_the_texts_that_it_shows(monkeypatch, tmp_path):
    compared = []
    original = comparison_page.word_diff
    monkeypatch.setattr(
        comparison_page, "word_diff", lambda *given, **more: compared.append(1) or original(*given, **more)
    )
    names = [f"n{number}" for number in range(60)]
    source = f"""digraph c {{ start [shape=Mdiamond] done [shape=Msquare] {" ".join(f'{name} [prompt="x"]' for name in names)}
        start -> {" -> ".join(names)} -> done }}"""
    sides = []
    for word in ("one", "two"):
        backend = FunctionBackend(lambda node, prompt, context, word=word: f"{word} {node.id}")
        sides.append(Pipeline(source).run(wait=True, backend=backend, logs_root=tmp_path / word))
    page = diff(*sides).to_html()
    assert len(compared) == MAX_TEXTS
    assert "79 more texts differ" in page  # 60 responses, and the prompts of all stages but the first
