"""Section 11.10 of the specification, row by row."""

import pytest

from attractor_nb import Pipeline


def model_of(dot, sheet, attrs=""):
    sheet = sheet.replace('"', '\\"')
    pipeline = Pipeline(dot(f'model_stylesheet="{sheet}" a [{attrs}] start -> a -> done'))
    assert not pipeline.lint().errors
    return pipeline.graph.nodes["a"]


@pytest.mark.parametrize(
    ("sheet", "attrs", "model"),
    [
        pytest.param("* { llm_model: any; }", "", "any", id="from_the_graph_attribute"),
        pytest.param('box { model = "claude-opus-4-6" }', "shape=box", "claude-opus-4-6", id="by_shape"),
        pytest.param(
            '.fast { model = "gemini-3-flash-preview" }', "class=fast", "gemini-3-flash-preview", id="by_class"
        ),
        pytest.param("#a { llm_model: mine; }", "", "mine", id="by_id"),
        pytest.param("box { llm_model: s; } * { llm_model: u; }", "", "s", id="shape_over_universal"),
        pytest.param(".c { llm_model: c; } box { llm_model: s; }", "class=c", "c", id="class_over_shape"),
        pytest.param("#a { llm_model: i; } .c { llm_model: c; }", "class=c", "i", id="id_over_class"),
        pytest.param("* { llm_model: x; } * { llm_model: y; }", "", "y", id="the_later_of_equals"),
        pytest.param("#a { llm_model: i; }", "llm_model=own", "own", id="explicit_attribute_wins"),
    ],
)
def test_11_10_the_stylesheet_gives_a_node_its_model(dot, sheet, attrs, model):
    assert model_of(dot, sheet, attrs).llm_model == model


def test_11_10_by_id_with_the_syntax_of_the_checklist(dot):
    assert model_of(dot, '#a { reasoning_effort = "low" }').reasoning_effort == "low"
