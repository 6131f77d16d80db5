"""The editor of a pipeline's text: changes, lint at once, undo, and files that are not overwritten blindly."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import DotSyntaxError, OptionError
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.studio.edit.editor import value_problem

TEXT = """digraph review {
    graph [goal="Ship", model_stylesheet="* { llm_model: small; } #plan { llm_model: big; }"]
    start [shape=Mdiamond]
    plan  [label="Plan", prompt="Plan it"]   // think first
    look  [shape=hexagon, label="Good?", human.default_choice=plan]
    done  [shape=Msquare]

    start -> plan -> look
    look -> done [label="[Y] Yes"]
    look -> plan [label="[N] No"]
}
"""


@pytest.fixture
def editor():
    return Pipeline(TEXT).edit()


def test_each_change_is_linted_and_compiled_and_the_first_pipeline_stays(editor):
    editor.set("plan", prompt="Plan it well").set("look -> done", weight=2).set(goal="Ship it")
    made = editor.pipeline()
    assert made.graph.nodes["plan"].prompt == "Plan it well"
    assert made.graph.edges[2].weight == 2
    assert made.graph.goal == "Ship it"
    assert made.diagnostics == ()
    editor.set("look -> done", condition="outcome=")
    assert [found.rule for found in editor.diagnostics if found.is_error] == ["condition_syntax"]
    assert editor.pipeline().source.text == editor.source
    assert Pipeline(TEXT).source.text == TEXT


def test_a_changed_pipeline_has_what_the_first_one_has():
    first = Pipeline(TEXT, params={"who": "me"}, handlers={"mine": lambda node, context: "x"}, name="named")
    made = first.edit().set("plan", type="mine").pipeline()
    assert (made.params, made.name, list(made.handlers)) == ({"who": "me"}, "named", ["mine"])
    assert made.diagnostics == ()


def test_a_new_id_reaches_edges_attributes_and_stylesheet(editor):
    editor.rename("plan", "think")
    assert "#think { llm_model: big; }" in editor.source
    assert "human.default_choice=think]" in editor.source
    assert editor.source.count("plan") == 0
    assert editor.pipeline().graph.nodes["think"].llm_model == "big"
    assert editor.diagnostics == ()


def test_undo_gives_the_same_bytes_back_and_redo_the_change(editor):
    texts = [editor.source]
    for change in (
        lambda: editor.add_node("test", {"tool_command": "make test"}, shape="parallelogram", after="plan"),
        lambda: editor.add_edge("plan", "test"),
        lambda: editor.remove("plan -> look"),
        lambda: editor.remove("plan", "label"),
        lambda: editor.remove("look"),
    ):
        change()
        texts.append(editor.source)
    assert len(set(texts)) == 6
    for text in reversed(texts[:-1]):
        assert editor.undo().source == text
    assert not editor.can_undo
    for text in texts[1:]:
        assert editor.redo().source == text
    assert not editor.can_redo
    with pytest.raises(OptionError, match="no change to redo"):
        editor.redo()
    editor.undo().set("start", label="Go")
    assert not editor.can_redo


def test_the_diff_and_the_changed_lines_say_what_was_touched(editor):
    assert (editor.diff(), editor.changed_lines(), str(editor)) == ("", (), "nothing was changed")
    editor.set("plan", prompt="Think").add_node("test", after="done", shape="parallelogram")
    assert editor.changed_lines() == (4, 7)
    assert [line for line in editor.diff().splitlines() if line[0] in "+-"][2:] == [
        '-    plan  [label="Plan", prompt="Plan it"]   // think first',
        '+    plan  [label="Plan", prompt="Think"]   // think first',
        "+    test  [shape=parallelogram]",
    ]
    assert "+    test  [shape=parallelogram]" in str(editor)
    assert "tool_command" in str(editor)
    assert set(editor._repr_mimebundle_()) == {"text/html", "image/svg+xml", "text/plain"}


def test_what_cannot_be_changes_nothing(editor):
    for refused, words in [
        (lambda: editor.set("plam", label="x"), 'no node "plam"; did you mean "plan"'),
        (lambda: editor.set("plan -> done", label="x"), "no edge plan -> done"),
        (lambda: editor.set("look -> plan -> done", label="x"), "names no part of a graph"),
        (lambda: editor.set(("look", "plan", 1), label="x"), "no edge look -> plan"),
        (lambda: editor.set(9, label="x"), "no edge number 9"),
        (lambda: editor.set("plan", label=object()), "cannot be a object"),
        (lambda: editor.set("plan", label="\0"), "U\\+0000|NUL|character"),
        (lambda: editor.remove(""), "graph itself cannot be removed"),
        (lambda: editor.remove("plan", "timeout"), "plan itself has no attribute timeout"),
        (editor.undo, "no change to undo"),
    ]:
        with pytest.raises((OptionError, DotSyntaxError), match=words):
            refused()
    with pytest.raises(DotSyntaxError, match="never closed"):
        editor.replace('digraph { a [label="x] }')
    assert editor.source == TEXT


def test_an_edge_beside_another_one_is_named_by_its_number():
    text = TEXT.replace("look -> plan", 'look -> done [label="[L] Later"]\n    look -> plan')
    editor = Pipeline(text).edit().set(("look", "done", 1), label="[M] Much later")
    assert '"[M] Much later"' in editor.source
    assert '"[Y] Yes"' in editor.source


def test_fixes_are_changes_like_others():
    text = TEXT.replace("prompt=", "promt=").replace("[shape=Msquare]", '[shape=Msquare, timeot="5m"]')
    pipeline = Pipeline(text)
    editor = pipeline.edit()
    findings = [found for found in editor.diagnostics if found.rule == "attribute_typo"]
    editor.fix_one(findings[0])
    assert "prompt=" in editor.source
    assert "timeot=" in editor.source
    assert editor.undo().fix("attribute_typo").diagnostics == ()
    assert pipeline.fixed().source.text == editor.source
    assert Pipeline(TEXT).fixed().source.text == TEXT
    with pytest.raises(OptionError, match="not in the report"):
        editor.fix_one(findings[1])


def test_a_graph_without_a_text_is_edited_as_its_canonical_one():
    editor = Pipeline(Pipeline(TEXT).parsed).edit().set("plan", label="Think")
    assert editor.pipeline().graph.nodes["plan"].label == "Think"
    assert len(editor.changed_lines()) == 1


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT], ids=["lf", "crlf", "bom"])
def test_a_file_gets_the_change_and_keeps_its_other_bytes(tmp_path, text):
    place = tmp_path / "review.dot"
    place.write_bytes(text.encode())
    editor = Pipeline(place).edit().set("plan", label="Think")
    assert editor.save() == place
    assert place.read_bytes() == text.replace('"Plan"', '"Think"').encode()
    editor.undo().save()
    assert place.read_bytes() == text.encode()


def test_a_file_that_changed_meanwhile_is_shown_and_not_overwritten(tmp_path):
    place = tmp_path / "review.dot"
    place.write_text(TEXT)
    editor = Pipeline(place).edit().set("plan", label="Think")
    place.write_text(TEXT.replace("Ship", "Sell"))
    with pytest.raises(OptionError, match="has changed since it was read") as caught:
        editor.save()
    assert '-    graph [goal="Ship"' in str(caught.value)
    assert "Sell" in place.read_text()
    editor.save(overwrite=True)
    assert "Think" in place.read_text()
    editor.set("plan", label="Again").save()
    assert "Again" in place.read_text()


def test_another_file_is_not_overwritten_either(tmp_path):
    place = tmp_path / "other.dot"
    editor = Pipeline(TEXT).edit().set("plan", label="Think")
    with pytest.raises(OptionError, match="came from no file"):
        editor.save()
    assert editor.save(place) == place
    assert editor.save(place) == place  # what it would write is there
    place.write_text("something else")
    with pytest.raises(OptionError, match="is there already"):
        editor.save(str(place))
    place.write_bytes(b"\xff")
    with pytest.raises(OptionError, match="not UTF-8"):
        editor.save(place)


def test_the_exercise_of_notebook_14(editor):
    editor.rename("plan", "think").rename("look", "implement")
    before = editor.source.splitlines()
    editor.add_node("review", prompt="Look for gaps in the plan", after="think")
    editor.remove("think -> implement")
    editor.add_edge("think", "review").add_edge("review", "implement")
    after = editor.source.splitlines()
    assert [line.strip() for line in after if line not in before] == [
        'review [prompt="Look for gaps in the plan"]',
        "start -> think",
        "think -> review",
        "review -> implement",
    ]
    assert [line.strip() for line in before if line not in after] == ["start -> think -> implement"]


def test_ruling_34_a_renamed_stage_keeps_its_name_in_prompts():
    source = """digraph {
    node [llm.system_prompt="Before: ${plan.response}"]
    start [shape=Mdiamond]
    plan [prompt="Plan"]
    work [prompt="Do \\"${plan.response:tail 40}\\", ${planner.response} $plan $${plan.response}\\n${context.plan.response}"]
    done [shape=Msquare]
    start -> plan -> work -> done
}"""
    changed = Pipeline(source).edit().rename("plan", "outline").source
    assert changed == (
        source.replace('{plan.response}"]', '{outline.response}"]')
        .replace("{plan.response:", "{outline.response:")
        .replace("context.plan.", "context.outline.")
        .replace("    plan [", "    outline [")
        .replace("-> plan ->", "-> outline ->")
        .replace("$${outline.response}", "$${plan.response}")
    )


def test_a_stylesheet_that_nobody_can_read_is_left_as_it_is(editor):
    broken = "#plan { llm_model: big"
    renamed = editor.set(model_stylesheet=broken).rename("plan", "think")
    assert f'model_stylesheet="{broken}"' in renamed.source
    assert "think" in renamed.pipeline().graph.nodes
    assert "stylesheet_syntax" in {found.rule for found in renamed.diagnostics}


@pytest.mark.parametrize(
    ("scope", "name", "text", "words"),
    [
        (Scope.EDGE, "condition", "outcome=", "outcome="),
        (Scope.GRAPH, "model_stylesheet", "#plan { llm_model: big", "#plan { llm_model: big"),
        (Scope.EDGE, "condition", "outcome=success", ""),
        (Scope.EDGE, "condition", " ", ""),
    ],
)
def test_what_is_wrong_with_a_value_is_said_while_it_is_typed(scope, name, text, words):
    problem = value_problem(scope, name, text)
    assert (words in problem, bool(problem)) == (True, bool(words))
