"""Completion in an %%attractor cell; | marks the cursor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.completer import CompletionContext, provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from pydantic import BaseModel, Field, computed_field

from attractor_nb import Pipeline
from attractor_nb.backends import NAMED
from attractor_nb.cli.option_choices import BackendName
from attractor_nb.notebook import extension
from attractor_nb.notebook.cell_completion import OPTIONS, suggest
from attractor_nb.notebook.extension import AttractorMagics, cell_matcher_of
from attractor_nb.studio.edit.text_outline import node_ids

PLAN = '%%attractor\ndigraph g {\n  plan [label="Plan"]\n  build [label="Build"]\n  '


SCHEMA = """{\\"properties\\": {\\"level\\": {}, \\"score\\": {}, \\"files\\": {\\"items\\":
    {\\"properties\\": {\\"name\\": {}, \\"size\\": {\\"properties\\": {\\"bytes\\": {}}}}}}}}"""
RATED = f'%%attractor\ndigraph g {{ rate [prompt="Rate", response_schema="{SCHEMA}"]\n'
RATED_FIELDS = ["${rate.verdict.level}", "${rate.verdict.score}", "${rate.verdict.files}"]


def offered(marked):
    text = marked.replace("|", "", 1)
    found = suggest(text, marked.index("|"))
    return [item.text for item in found.items]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("%%attractor --b|", ["--backend"], id="an option"),
        pytest.param("%%attractor x --backend |", list(NAMED), id="an option's value"),
        pytest.param("%%attractor rev|", [], id="a new name"),
        pytest.param("%%attractor|", [], id="the magic itself"),
        pytest.param(PLAN + "bu|", ["build"], id="a node"),
        pytest.param(PLAN + "plan -> b|", ["build"], id="a target"),
        pytest.param(PLAN + "sub|", ["subgraph"], id="a keyword"),
        pytest.param(PLAN + "x [goal_g|", ["goal_gate"], id="a node's attribute"),
        pytest.param(PLAN + "x [label=a, goal_g|", ["goal_gate"], id="a second attribute"),
        pytest.param(PLAN + "x [human.ti|", ["human.timeout"], id="a dotted attribute"),
        pytest.param(PLAN + "plan -> build [wei|", ["weight"], id="an edge's attribute"),
        pytest.param(PLAN + "edge [loop|", ["loop_restart"], id="an edge default"),
        pytest.param(PLAN + "graph [model_s|", ["model_stylesheet"], id="a graph attribute"),
        pytest.param(PLAN + "rankdir=L|", ["LR"], id="a graph attribute's choice"),
        pytest.param(PLAN + "x [shape=hex|", ["hexagon"], id="a shape"),
        pytest.param(PLAN + 'x [shape="hex|', ["hexagon"], id="a quoted shape"),
        pytest.param(PLAN + 'x [type="wait|', ["wait.human"], id="a handler type"),
        pytest.param(PLAN + "x [goal_gate=t|", ["true"], id="a boolean"),
        pytest.param(PLAN + "x [retry_target=pl|", ["plan"], id="a node id as value"),
        pytest.param(PLAN + 'x [prompt="write a goal_g|', [], id="free text is left alone"),
        pytest.param('%%attractor\ndigraph g { a [label="x ] y"] b [sha|', ["shape"], id="brackets in a string"),
        pytest.param("%%attractor\ndigraph g { // a [\n  b [sha|", ["shape"], id="brackets in a comment"),
        pytest.param("print('x|", [], id="another cell"),
        pytest.param(RATED + 'x [prompt="${rate.verdict.|"]', RATED_FIELDS, id="fields of an answer in a prompt"),
        pytest.param(
            RATED + 'rate -> x [condition="context.rate.verdict.l|"]',
            ["context.rate.verdict.level"],
            id="a field of an answer in a condition",
        ),
        pytest.param(
            RATED + 'x [shape=house, manager.guard="context.rate.verdict.l|"]',
            ["context.rate.verdict.level"],
            id="a field of an answer in a guard",
        ),
        pytest.param(
            RATED + 'x [carry="rate.verdict.sc|"]', ["rate.verdict.score"], id="a field of an answer to carry"
        ),
        pytest.param(
            RATED + 'x [for_each="item in rate.verdict.files", prompt="${item.|"]',
            ["${item.name}", "${item.size}", "${item.size.bytes}"],
            id="fields of an item",
        ),
        pytest.param(
            RATED + 'x [for_each="item in names", prompt="${it|"]', ["${item}", "${item_index}"], id="an item"
        ),
        pytest.param(RATED + 'x [prompt="${item.|"]', [], id="no item without a list"),
        pytest.param(
            RATED + 'x [for_each="item in rate.verdict.files"] y [prompt="${x.|"]',
            ["${x.outputs}", "${x.results}"],
            id="what the items came to",
        ),
        pytest.param(
            '%%attractor\ndigraph g { rate [response_schema="{oops"] x [prompt="${rate.verdict|"]',
            ["${rate.verdict}"],
            id="a schema that cannot be read",
        ),
    ],
)
def test_what_fits_at_the_cursor_is_offered(marked, expected):
    assert offered(marked) == expected


def test_the_fragment_is_what_the_word_replaces():
    text = PLAN + "x [human.t"
    assert suggest(text, len(text)).fragment == "human.t"


def test_nodes_are_listed_once_in_order_without_attributes_and_keywords():
    body = 'digraph g { rankdir=LR goal="x -> y" node [shape=box] b -> a -> b subgraph s { c } }'
    assert node_ids(body, "") == ["b", "a", "c"]


@given(st.text(alphabet='ab_ [](){}"=,;->#/*\n\\.', max_size=60))
def test_completion_of_unfinished_text_replaces_only_text_before_the_cursor(body):
    text = f"%%attractor\n{body}"
    for cursor in range(len(text) + 1):
        assert text[:cursor].endswith(suggest(text, cursor).fragment)


def test_the_matcher_leaves_python_names_out_of_the_body():
    text = PLAN + "x [goal_g"
    lines = text.split("\n")
    context = CompletionContext(
        token="goal_g", full_text=text, cursor_position=len(lines[-1]), cursor_line=len(lines) - 1, limit=None
    )
    result = cell_matcher_of(SimpleNamespace(user_ns={}))(context)
    assert [item.text for item in result["completions"]] == ["goal_gate"]
    assert result["suppress"] is True


def test_the_matcher_says_nothing_in_other_cells():
    context = CompletionContext(token="pr", full_text="pr", cursor_position=2, cursor_line=0, limit=None)
    assert cell_matcher_of(SimpleNamespace(user_ns={}))(context) == {"completions": []}


def test_a_backend_has_one_name_everywhere():
    assert [name.value for name in BackendName] == list(NAMED)


HEAD = (
    "%%attractor x\n"
    "digraph g {\n"
    '  graph [inputs="ticket, tone=plain", mcp.files.command="serve"]\n'
    '  plan [prompt="p", llm_model="house-7b", class="hard"]\n'
    "  measure [shape=parallelogram, tool_command=true]\n"
    "  ask [shape=hexagon]\n"
    '  ask -> plan [label="Ship it"]\n'
    '  ask -> measure [label="again"]\n'
)
SHEET = '%%attractor x\ndigraph g {\n  plan [class="hard"]\n  graph [model_stylesheet="'


@pytest.fixture(scope="module")
def completed():
    """The offers of a real shell's completer at |: the words, and the text that they replace."""
    shell = InteractiveShell.instance() if InteractiveShell.initialized() else InteractiveShell()
    extension.load(shell)
    shell.user_ns["planet"] = shell.user_ns["outcomes"] = 1

    def complete(marked):
        text = marked.replace("|", "", 1)
        with provisionalcompleter():
            found = list(shell.Completer.completions(text, marked.index("|")))
        return [(each.text, text[each.start : each.end]) for each in found]

    complete.names = shell.user_ns
    yield complete
    extension.unload(shell)


@pytest.mark.shows("IPython", "completion")
@pytest.mark.parametrize(
    ("marked", "words", "replaced"),
    [
        pytest.param(HEAD + '  plan -> ask [condition="|"]', ["outcome", "preferred_label", "context.ticket"], "", id="a condition"),
        pytest.param(HEAD + '  plan -> ask [condition="outcome=f|"]', ["fail"], "f", id="an outcome"),
        pytest.param(HEAD + '  plan -> ask [condition="outcome!=|"]', ["success", "partial_success"], "", id="not an outcome"),
        pytest.param(HEAD + '  plan -> ask [condition="outcome=fail && context.tool.e|"]', ["context.tool.exit_code"], "context.tool.e", id="a key that a tool leaves"),
        pytest.param(HEAD + '  plan -> ask [condition="plan.|"]', ["plan.response"], "plan.", id="a key without its prefix"),
        pytest.param(HEAD + '  plan -> ask [condition="preferred_label=a|"]', ["again"], "a", id="a label"),
        pytest.param(HEAD + '  plan -> ask [condition="preferred_label=|"]', ['\\"Ship it\\"', "again"], "", id="a label of two words"),
        pytest.param(HEAD + '  sum [prompt="of $t|"]', ["$ticket", "$tone", "${tool.output}"], "$t", id="a variable"),
        pytest.param(HEAD + '  sum [prompt="of ${plan|"]', ["${plan.response}"], "${plan", id="a variable in braces"),
        pytest.param(HEAD + '  sum [prompt="of ${plan|}"]', ["${plan.response"], "${plan", id="braces that are closed"),
        pytest.param(HEAD + '  sum [prompt="${tool.output:t|}"]', [":tail 4000"], ":t", id="a filter"),
        pytest.param(HEAD + '  sum [attach="${ti|}"]', ["${ticket"], "${ti", id="an attachment"),
        pytest.param(HEAD + '  sum [llm_model="house|"]', ["house-7b"], "house", id="a model of the cell"),
        pytest.param(HEAD + '  sum [llm_provider=anthropic, llm_model="claude-haiku-4|"]', ["claude-haiku-4-5"], "claude-haiku-4", id="a model of the price list"),
        pytest.param(HEAD + '  sum [llm_provider="anth|"]', ["anthropic"], "anth", id="a provider"),
        pytest.param(HEAD + '  sum [llm_fallback="house-7b, house|"]', ["house-7b"], "house", id="the next model"),
        pytest.param(HEAD + '  sum [llm_fallback_on="overlong, r|"]', ["refusal"], "r", id="a reason to fall back"),
        pytest.param(HEAD + '  sum [fidelity="summary:h|"]', ["summary:high"], "summary:h", id="fidelity"),
        pytest.param(HEAD + "  sum [shape=tri|", ["tripleoctagon"], "tri", id="a shape"),
        pytest.param(HEAD + '  sum [type="pip|"]', ["pipeline"], "pip", id="a type"),
        pytest.param(HEAD + '  sum [allowed_tools="read, w|"]', ["write"], "w", id="a tool"),
        pytest.param(HEAD + '  sum [allowed_tools="mcp|"]', ["mcp:files/*"], "mcp", id="a tool of a server"),
        pytest.param(HEAD + "  sum [on_interrupted=|]", ["rerun", "ask", "fail"], "", id="an interruption"),
        pytest.param(HEAD + "  sum [error_policy=fail|]", ["fail_fast"], "fail", id="an error policy"),
        pytest.param(HEAD + "  sum -> mea|", ["measure"], "mea", id="the end of an edge"),
        pytest.param(HEAD + "  sum [retry_target=mea|", ["measure"], "mea", id="a retry target"),
        pytest.param(HEAD + '  sum [carry="ticket, plan|"]', ["plan.response"], "plan", id="a key to carry"),
        pytest.param(HEAD + '  sum [pipeline.inputs="topic=context.ti|"]', ["context.ticket"], "context.ti", id="an input of a child"),
        pytest.param(HEAD + '  sum [human.review="pl|"]', ["plan/response.md"], "pl", id="what is reviewed"),
        pytest.param(HEAD + '  ask [human.default_choice="ag|"]', ["again"], "ag", id="a choice"),
        pytest.param(SHEET + '|"]', ["*", "box", ".hard", "#plan"], "", id="a selector"),
        pytest.param(SHEET + '#pl|"]', ["#plan"], "#pl", id="a node's selector"),
        pytest.param(SHEET + '* { llm_m|"]', ["llm_model"], "llm_m", id="a property"),
        pytest.param(SHEET + '* { reasoning_effort: low; } .h|"]', [".hard"], ".h", id="the next selector"),
        pytest.param(SHEET + '* { reasoning_effort: l|"]', ["low"], "l", id="a property's value"),
        pytest.param("%%attractor x --p|\ndigraph g { }", ["--param"], "--p", id="an option"),
        pytest.param('%%attractor x --param ti|\ndigraph g { inputs="ticket" }', ["ticket="], "ti", id="an input"),
        pytest.param("%%attractor x --live |", ["auto", "on", "off"], "", id="an option's value"),
        pytest.param("%%attractor x --gate w|", ["widgets"], "w", id="who answers"),
    ],
)  # fmt: skip
def test_a_shell_offers_what_fits_first(completed, marked, words, replaced):
    found = completed(marked)
    assert {text for _, text in found} == {replaced}
    offered = [text for text, _ in found]
    assert [word for word in offered if word in words] == words
    assert not {"planet", "outcomes", "print"} & {*offered}


def test_our_options_come_alone(completed):
    assert [text for text, _ in completed("%%attractor x --|\ndigraph g { }")] == list(OPTIONS)


def test_the_options_that_are_offered_are_those_of_the_magic():
    actions = [*AttractorMagics.attractor.parser._actions]
    named = {flag for action in actions for flag in action.option_strings if flag.startswith("--")}
    assert set(OPTIONS) == named - {"--help"}


def test_a_file_after_write_is_left_to_the_shell(completed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.dot").touch()
    assert "draft.dot" in [text for text, _ in completed("%%attractor x --write dra|")]


def test_what_is_behind_an_open_string_is_known_too(completed):
    text = '%%attractor x\ndigraph g {\n  sum [prompt="of ${la|\n  last [prompt="p"]\n}'
    assert [text for text, _ in completed(text)] == ["${last.response}", "${last_response}", "${last_stage}"]


class Cause(BaseModel):
    place: str


class Review(BaseModel):
    level: str
    cause: Cause | None = None
    files: list[Cause]


NAMING = """digraph g {
  start [shape=Mdiamond] done [shape=Msquare]
  rate [prompt="Rate", response_schema=Review]
  start -> rate -> done
"""


@pytest.mark.parametrize("line", ["%%attractor named", "%%attractor"], ids=["its variable", "the graph's name"])
@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ('x [prompt="${rate.verdict.|"]', ["${rate.verdict.level}", "${rate.verdict.cause}", "${rate.verdict.cause.place}", "${rate.verdict.files}"]),
        ('rate -> done [condition="context.rate.verdict.cau|"]', ["context.rate.verdict.cause", "context.rate.verdict.cause.place"]),
        ('x [for_each="item in rate.verdict.files", prompt="${item.|"]', ["${item.place}"]),
    ],
    ids=["a prompt", "a condition", "an item of a list"],
)  # fmt: skip
def test_the_fields_of_a_model_that_the_pipeline_has_are_offered(completed, line, marked, expected):
    pipeline = Pipeline(f"{NAMING}}}", schemas={"Review": Review})
    names = completed.names
    names["named"] = names["g"] = pipeline
    try:
        assert [word for word, _ in completed(f"{line}\n{NAMING}{marked}")] == expected
    finally:
        del names["named"], names["g"]


def test_the_fields_that_a_model_stores_are_offered(completed):
    class Sized(BaseModel):
        kind: str = Field(serialization_alias="sort")

        @computed_field
        def size(self) -> int:
            return len(self.kind)

    completed.names["Review"] = Sized
    try:
        found = completed("%%attractor\n" + NAMING + 'x [prompt="${rate.verdict.s|"]')
        assert [word for word, _ in found] == ["${rate.verdict.sort}", "${rate.verdict.size}"]
    finally:
        del completed.names["Review"]


def test_the_fields_of_a_model_of_the_notebook_are_offered_and_a_faulty_one_has_none(completed):
    class Faulty(BaseModel):
        @classmethod
        def model_json_schema(cls, *_, **__):
            raise OSError

    text = "%%attractor\n" + NAMING + 'x [prompt="${rate.verdict.l|"]'
    names = completed.names
    for model, expected in ((Review, ["${rate.verdict.level}"]), (Faulty, []), (7, []), (None, [])):
        names["Review"] = model
        assert [word for word, _ in completed(text)] == expected
    del names["Review"]
    assert completed(text) == []
