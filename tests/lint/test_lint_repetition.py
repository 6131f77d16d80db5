"""Lint of stages that are run once for each item of a list."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import apply_edits
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.value_forms import UNREPEATABLE

FRAME = "digraph top {{ {graph} start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def lint(body, graph="", **made):
    """The findings of a text that are about items and lists."""
    found = Pipeline(FRAME.format(graph=graph, body=body), **made).lint()
    return [each for each in found if each.rule in {"for_each", "item_variable", "variable_unknown", "fan_out_policy"}]


def each(attributes, graph=""):
    """The findings of a stage with these attributes."""
    return lint(f"review [{attributes}] start -> review -> done", graph)


@pytest.mark.parametrize(
    "written", ["item in files", "item in context.files", " item  in  plan.verdict.files.0 "], ids=str
)
def test_the_form_is_item_in_key(written):
    assert not each(f'for_each="{written}", prompt="Review ${{item.path}} ${{item_index}} $item"')


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("files", "item in files"),
        ("${plan.verdict.files}", "item in plan.verdict.files"),
        ("file in files", "item in files"),
        ("item in ${files}", "item in files"),
        ("", None),
        ("item in 1..3", None),
        ("item of files", None),
    ],
)
def test_another_form_is_an_error_with_the_text_that_was_meant(written, mended):
    text = FRAME.format(graph="", body=f'review [for_each="{written}", prompt="x"] start -> review -> done')
    pipeline = Pipeline(text)
    (found,) = [each for each in pipeline.lint() if each.rule == "for_each"]
    assert found.is_error
    assert f'"{written}", not of the form "item in KEY"' in found.message
    if mended is None:
        assert not found.fix.edits
    else:
        assert f'for_each="{mended}"' in apply_edits(pipeline.source, found.fix.edits)


@pytest.mark.parametrize("kind", sorted(UNREPEATABLE))
def test_starts_exits_gates_diamonds_fan_outs_and_fan_ins_cannot_be_repeated(kind):
    shape = next(shape for shape, named in SHAPE_TO_TYPE.items() if named == kind)
    body = f'x [shape={shape}, for_each="item in files"] a [prompt=a] start -> x -> a -> done'
    found = [each for each in lint(body) if each.rule == "for_each"]
    assert [each.message for each in found if each.is_error] == [
        f'"x" is a {kind} node, which cannot be run for each item of a list'
    ]


def test_a_key_that_nothing_sets_is_a_warning_with_the_nearest():
    (found,) = each('for_each="item in fils", prompt="$item"', 'inputs="files"')
    assert (found.rule, str(found.severity)) == ("for_each", "warning")
    assert 'for_each: "fils" names nothing; did you mean "files"?' in found.message
    assert found.fix.title == 'write "item in files"'


def test_a_field_of_a_verdict_that_its_schema_does_not_have_is_a_warning():
    schema = r"{\"properties\": {\"files\": {}}}"
    body = f"""plan [prompt=p, response_schema="{schema}"] review [for_each="item in plan.verdict.file", prompt="$item"]
        start -> plan -> review -> done"""
    (found,) = lint(body)
    assert 'did you mean "plan.verdict.files"?' in found.message


def test_an_item_outside_of_such_a_stage_is_a_warning_that_names_the_outputs():
    body = """review [for_each="item in files", prompt="$item"] last [prompt="Sum up ${item.path}"]
        start -> review -> last -> done"""
    (found,) = lint(body, 'inputs="files"')
    assert found.rule == "item_variable"
    assert '${item.path} names nothing: "last" is not run for each item of a list' in found.message
    assert "${review.outputs}" in found.fix.title


@pytest.mark.parametrize("graph", ['inputs="files, item"', ""], ids=["an input of that name", "no such stage"])
def test_an_item_may_be_an_input(graph):
    stage = "" if not graph else 'review [for_each="item in files", prompt="$item"] start -> review -> last'
    assert not lint(f'{stage} last [prompt="Read $item"] {"" if stage else "start -> last"} last -> done', graph)


def test_what_such_a_stage_leaves_is_known_and_its_response_is_not():
    body = """review [for_each="item in files", prompt="$item"]
        last [prompt="${review.outputs} ${review.results.0.status} ${review.output}"] start -> review -> last -> done"""
    (found,) = lint(body)
    assert 'did you mean "review.outputs"?' in found.message


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("join_policy=k_of_n", "join_policy=k_of_n needs join_k"),
        ("join_policy=k_of_n, join_k=8, max_items=5", "join_k=8 of 5 items cannot be reached"),
        ("join_policy=quorum, join_quorum=2", "join_quorum=2 is not a fraction of the items"),
        ("join_k=2", 'join_k of "review" changes nothing: its join_policy is wait_all'),
    ],
)
def test_the_policies_are_judged_as_those_of_fan_outs(attributes, message):
    (found,) = each(f'for_each="item in files", prompt="$item", {attributes}')
    assert found.rule == "fan_out_policy"
    assert message in found.message


def test_max_items_without_a_list_changes_nothing():
    (found,) = each("prompt=x, max_items=5")
    assert 'max_items of "review" changes nothing' in found.message


def test_a_stage_is_judged_by_what_runs_an_item():
    found = Pipeline(
        FRAME.format(
            graph="",
            body='x [shape=parallelogram, for_each="item in files"] y [type=mine, for_each="item in files"]'
            " start -> x -> y -> done",
        )
    ).lint()
    judged = {(each.node_id, each.rule) for each in found}
    assert {("x", "tool_without_command"), ("y", "handler_missing")} <= judged


def test_a_field_of_an_item_without_braces_is_a_warning():
    body = 'x [prompt="Read $item.path", for_each="item in files"] start -> x -> done'
    found = [each for each in Pipeline(FRAME.format(graph="", body=body)).lint() if each.rule == "variable_form"]
    assert "write ${item.path}" in found[0].message
