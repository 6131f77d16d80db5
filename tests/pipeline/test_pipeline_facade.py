"""``Pipeline``: sources, lint and fixes, exports, registration, options."""

import subprocess

import networkx as nx
import pytest

from attractor_nb import Context, Edge, Outcome, Pipeline, Severity, ValidationError, parse_dot, write_dot
from attractor_nb.errors import ContextValueError, DotSyntaxError, OptionError
from attractor_nb.model.diagnostic import Diagnostic


def test_a_pipeline_is_made_of_text_path_or_graph(dot, tmp_path):
    text = dot("a start -> a -> done")
    (tmp_path / "g.dot").write_text(text)
    made = [Pipeline(text), Pipeline(tmp_path / "g.dot"), Pipeline("g.dot"), Pipeline(parse_dot(text))]
    assert len({pipeline.graph.content_hash for pipeline in made}) == 1


@pytest.mark.parametrize(
    ("source", "words"), [(42, "not of int"), ("missing.dot", "cannot be read"), (b"digraph g {}", "not of bytes")]
)
def test_what_is_no_source_is_refused_in_words(source, words):
    with pytest.raises(OptionError, match=words):
        Pipeline(source)


def test_a_file_that_is_not_utf_8_names_its_line(tmp_path):
    (tmp_path / "g.dot").write_bytes(b'digraph g {\n a [label="\xff"] }')
    with pytest.raises(OptionError, match="line 2"):
        Pipeline(tmp_path / "g.dot")


def test_a_syntax_error_names_the_file(tmp_path):
    (tmp_path / "g.dot").write_text("digraph g { a -- b }")
    with pytest.raises(DotSyntaxError, match=r"g\.dot:1:"):
        Pipeline(tmp_path / "g.dot")


BROKEN = """digraph G {
  plan [label="Plan", promt="Plan", goal_gate=yes]
  work [prompt: "Do it"]
  start -- plan
  plan -> wrk [condition="outcome=sucess"]
  sub [label="Sub"
}"""


def test_a_text_with_syntax_errors_has_the_findings_of_its_other_statements():
    with pytest.raises(DotSyntaxError) as caught:
        Pipeline(BROKEN)

    error = caught.value
    assert error.span is not None
    assert error.span.line == 3
    assert [(found.place, found.rule) for found in error.others] == [
        ("2:23", "attribute_typo"),
        ("2:47", "bad_value"),
        ("4:9", "syntax"),
        ("5:35", "outcome_unknown"),
        ("6:7", "syntax"),
    ], "start, exit and the target wrk may be in the statements that were set aside"
    assert not any(found.fix.edits for found in error.others if found.fix)
    assert "did you mean" in str(error)


def test_texts_in_files_are_read_for_the_findings_of_a_broken_text(tmp_path):
    (tmp_path / "models.css").write_text("* { llm_model: gpt-5 }")
    (tmp_path / "g.dot").write_text('digraph { model_stylesheet="@models.css"\na [prompt="@gone.md"]\nb -- c }')
    with pytest.raises(DotSyntaxError) as caught:
        Pipeline(tmp_path / "g.dot")

    assert [(found.place, found.rule) for found in caught.value.others] == [("2:11", "text_file")]


def test_severities_hold_for_the_findings_of_a_broken_text():
    with pytest.raises(DotSyntaxError) as caught:
        Pipeline(BROKEN, severity={"bad_value": "off", "attribute_typo": "error"})

    found = {each.rule: each.severity for each in caught.value.others}
    assert found["attribute_typo"] == "error"
    assert "bad_value" not in found


def test_strict_refuses_generous_readings(dot):
    text = dot("a [label=x; prompt=y] start -> a -> done")
    assert "attr_separator" in {found.rule for found in Pipeline(text).lint()}
    with pytest.raises(DotSyntaxError):
        Pipeline(text, strict=True)


def test_ruling_7_many_exits_may_be_allowed(dot):
    text = dot("other [shape=Msquare] a start -> a a -> done a -> other")
    assert Pipeline(text).lint().errors
    assert not Pipeline(text, allow_many_exits=True).lint().errors
    assert not Pipeline(text.replace("{", "{ allow_many_exits=true ", 1)).lint().errors


def test_lint_reports_are_sequences_that_read_well(dot):
    report = Pipeline(dot("a orphan start -> a -> done")).lint()
    assert len(report) == len(list(report))
    assert report[0] is next(iter(report))
    assert report[:1] == (report[0],)
    assert [found.rule for found in report.errors] == ["reachability"]
    assert all(found.severity is Severity.WARNING for found in report.warnings)
    assert "unreachable" in str(report)
    assert repr(report) == str(report)


def test_fixes_are_shown_as_a_diff_and_mend_the_text(dot):
    pipeline = Pipeline(dot('a [prompt="x"; label="y"] start -> a -> done'))
    preview = pipeline.lint().fix()
    assert "attr_separator" in {found.rule for found in preview.fixed}
    assert str(preview).startswith("--- ")
    mended = {found.rule for found in Pipeline(preview.text).lint()}
    assert "attr_separator" not in mended


def test_a_fix_can_be_asked_for_by_rule(dot):
    pipeline = Pipeline(dot('a [prompt="x"; label="y"] start -> a -> b b -> done # end\n'))
    assert {found.rule for found in pipeline.lint().fix("attr_separator").fixed} == {"attr_separator"}


def test_errors_are_mended_before_their_consequences(dot):
    pipeline = Pipeline(dot("outline [prompt=x] draft [prompt=y] start -> outline -> darft -> done"))
    preview = pipeline.lint().fix()
    assert all(found.is_error for found in preview.fixed)
    assert "start -> outline -> draft -> done" in preview.text
    assert "draft -> done\n" not in preview.text.replace("outline -> draft -> done", "")


def test_nothing_to_fix_says_so(dot):
    assert str(Pipeline(parse_dot(dot("start -> done"))).lint().fix()) == "nothing to fix"
    assert str(Pipeline(dot('a [prompt="x"] start -> a -> done')).lint().fix()) == "nothing to fix"


def test_a_custom_rule_is_asked_and_can_refuse(dot):
    class NoCats:
        name = "no_cats"

        def apply(self, graph):
            return [
                Diagnostic("no_cats", Severity.ERROR, "a cat", node_id=name) for name in graph.nodes if name == "cat"
            ]

    with pytest.raises(ValidationError, match="a cat"):
        Pipeline(dot("cat start -> cat -> done"), rules=[NoCats()]).run(wait=True)


def test_severities_may_be_overridden(dot):
    text = dot("a orphan start -> a -> done")
    result = Pipeline(text, severity={"reachability": "warning"}).run(wait=True, durability="none")
    assert result.status == "success"


class Suffix:
    """A transform that adds a word to every prompt."""

    def __init__(self, word):
        self.word = word

    def apply(self, graph):
        return graph.with_nodes(
            node.with_attrs({"prompt": f"{node.prompt} {self.word}"}) for node in graph.nodes.values() if node.prompt
        )


def test_transforms_run_after_the_built_in_ones_in_their_order(dot):
    pipeline = Pipeline(dot('goal=G a [prompt="$goal"] start -> a -> done'), transforms=[Suffix("one")])
    pipeline.register_transform(Suffix("two"))
    assert pipeline.graph.nodes["a"].prompt == "G one two"
    assert pipeline.parsed.nodes["a"].prompt == "$goal"


def test_a_transform_that_returns_no_graph_is_named(dot):
    class Forgetful:
        def apply(self, graph):
            return None

    with pytest.raises(OptionError, match="transform Forgetful returned NoneType"):
        Pipeline(dot("start -> done"), transforms=[Forgetful()])


def test_params_of_pipeline_and_run_reach_the_context(make):
    pipeline = make("start -> done", params={"a": 1, "b": 1})
    result = pipeline.run(wait=True, durability="none", params={"b": 2})
    assert (result.context["a"], result.context["b"]) == (1, 2)


def test_a_param_that_json_cannot_keep_is_refused_before_anything_is_made(make, tmp_path):
    with pytest.raises(ContextValueError, match="'bad'"):
        make("start -> done").run(params={"bad": object()}, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("durabilty", "none", "did you mean .?durability"),
        ("durability", "never", "unknown durability"),
        ("on_interrupted", "perhaps", "on_interrupted must be"),
        ("stop_after", 0, "at least 1"),
        ("host", "moon", "unknown host"),
        ("host", "kernel", "event loop"),
        ("params", ["a"], "params must be a dict"),
        ("max_steps", -1, "max_steps"),
        ("max_duration", "soon", "max_duration"),
        ("backend", "oracle", "no backend"),
        ("interviewer", "oracle", "no interviewer"),
    ],
)
def test_a_bad_option_is_refused_in_words_and_leaves_no_run_behind(make, tmp_path, option, value, words):
    with pytest.raises(OptionError, match=words):
        make("start -> done").run(wait=True, **{option: value})
    assert not list((tmp_path / ".attractor").rglob("events.jsonl"))


def test_the_source_comes_back_as_written(dot):
    text = dot("// kept\n a start -> a -> done")
    assert Pipeline(text).to_dot() == text
    graph = parse_dot(text)
    assert Pipeline(graph).to_dot() == write_dot(graph)


def test_the_canonical_text_is_accepted_by_graphviz(dot):
    written = write_dot(parse_dot(dot('a [prompt="x\\ny"] start -> a -> done')))
    done = subprocess.run(["dot", "-Tplain"], input=written, text=True, capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = [line.split()[:3] for line in done.stdout.splitlines()]
    assert sorted(line[1:] for line in drawn if line[0] == "edge") == [["a", "done"], ["start", "a"]]


def test_networkx_has_every_node_edge_and_attribute(make):
    graph = make(
        'goal=G a [timeout=90s, max_retries=2] start -> a a -> done [weight=2] a -> done [label="again"]'
    ).to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.graph["goal"] == "G"
    assert graph.nodes["a"]["max_retries"] == 2
    assert graph.nodes["a"]["timeout"] == "90s"
    assert graph.nodes["start"]["handler_type"] == "start"
    assert sorted(data.get("label", "") for _, _, data in graph.out_edges("a", data=True)) == ["", "again"]
    assert nx.has_path(graph, "start", "done")


def test_mermaid_svg_and_text_show_every_node(make):
    pipeline = make('plan [label="Plan it"] start -> plan -> done')
    for shown in (pipeline.to_mermaid(), pipeline.to_svg(), str(pipeline)):
        assert "Plan it" in shown
    assert pipeline.to_mermaid().startswith("flowchart")
    assert pipeline.to_svg().startswith("<svg")
    assert pipeline._repr_mimebundle_().keys() == {"text/html", "image/svg+xml", "text/plain"}


def test_a_name_may_be_given(dot):
    assert Pipeline(dot("start -> done")).name == "demo"
    assert Pipeline(dot("start -> done"), name="mine").name == "mine"
    assert Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").name == "pipeline"


def test_observers_of_a_pipeline_hear_every_run(make):
    pipeline, seen = make("start -> done"), []
    pipeline.on_event(lambda event: seen.append(event.run_id))
    ids = {pipeline.run(wait=True, durability="none").run_id for _ in range(2)}
    assert set(seen) == ids


def test_a_custom_handler_may_replace_a_built_in_one(make):
    pipeline = make("a start -> a -> done", handlers={"codergen": lambda *_: Outcome.success("mine")})
    assert pipeline.run(wait=True, durability="none").outcomes["a"].notes == "mine"


def test_params_are_copied_and_runs_do_not_share_a_context(make):
    pipeline = make("a start -> a -> done", {"a": Outcome.success(context_updates={"x": 1})}, params={"list": []})
    first = pipeline.run(wait=True, durability="none").context
    second = pipeline.run(wait=True, durability="none").context
    first.set("x", 2)
    assert second["x"] == 1
    assert isinstance(second, Context)


def test_ruling_9_transforms_run_before_lint(dot):
    """The transform declares what lint would miss; the attributes of the graph are in the first context."""

    class Joins:
        def apply(self, graph):
            return graph.with_edges([*graph.edges, Edge("a", "orphan"), Edge("orphan", "done")])

    text = dot("goal=G a orphan start -> a -> done")
    assert Pipeline(text).lint().errors
    pipeline = Pipeline(text, transforms=[Joins()])
    assert not pipeline.lint().errors
    assert pipeline.run(wait=True, durability="none").context["graph.goal"] == "G"
