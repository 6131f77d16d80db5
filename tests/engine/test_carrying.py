"""The values that reach a model stage of a real run: inputs everywhere, values of any size, what ``carry`` names."""

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.testing import ScriptedBackend
from tests.engine.carried import carried

TICKET = "### Inputs\n\n- ticket: printer broken"
LINE = """plan [prompt="Plan."] build [shape=parallelogram, tool_command="echo built; echo well"] look [prompt="Look."]
write [prompt="Write."] start -> plan -> build -> look -> write -> done"""


@pytest.fixture
def told(dot):
    """Run statements; by node what each of its prompts carried."""

    def start(body, replies=None, graph="", **options):
        backend = ScriptedBackend(replies or {})
        text = dot(f"{graph}\n{body}")
        result = Pipeline(text, backend=backend).run(
            wait=True, trust=True, params={"ticket": "printer broken"}, **{"durability": "none", **options}
        )
        assert result.status == "success", result.reason
        return {node: [carried(prompt) for prompt in sent] for node, sent in backend.prompts.items()}

    return start


def test_ruling_34_every_stage_is_told_the_inputs_from_the_first_on(told):
    assert all(TICKET in text for (text,) in told(LINE).values())


def test_ruling_34_under_truncate_inputs_are_not_carried(told):
    assert not any("printer" in text for (text,) in told(LINE, graph="default_fidelity=truncate").values())


def test_after_a_loop_restart_the_inputs_are_told_again(told, tmp_path):
    body = """plan [prompt="Plan."] judge [prompt="Judge.", verdict=json]
    start -> plan -> judge judge -> plan [condition="preferred_label=again", loop_restart=true]
    judge -> done [condition="preferred_label!=again"]"""
    verdicts = ['{"outcome": "success", "preferred_next_label": "again"}', '{"outcome": "success"}']
    texts = told(body, {"judge": verdicts}, logs_root=tmp_path / "run", durability="fast")
    assert [text.count(TICKET) for text in texts["plan"]] == [1, 1]
    assert texts["plan"][1] == TICKET  # and nothing else: the run starts over


def test_a_thread_is_told_the_inputs_at_its_beginning_and_not_again(told):
    texts = told(
        'plan [prompt="Plan."] write [prompt="Write."] start -> plan -> write -> done',
        graph="default_fidelity=full; thread_id=t",
    )
    assert texts["plan"] == [TICKET]


def test_carry_reaches_a_thread_as_well(told):
    body = """plan [prompt="Plan."] build [shape=parallelogram, tool_command="echo built; echo well"]
    write [prompt="Write.", carry="tool.output"] start -> plan -> build -> write -> done"""
    (text,) = told(body, graph="default_fidelity=full; thread_id=t")["write"]
    assert "- tool.output:\n\n```\nbuilt\nwell\n```" in text


def test_stages_of_branches_and_of_children_are_told_their_inputs(told, tmp_path):
    (tmp_path / "child.dot").write_text(
        'digraph c { start [shape=Mdiamond] done [shape=Msquare] deep [prompt="Deep."] start -> deep -> done }'
    )
    body = f"""fan [shape=component] one [prompt="One."] gather [shape=tripleoctagon]
    sub [type=pipeline, pipeline.dotfile="{tmp_path / "child.dot"}", pipeline.inputs="ticket=context.ticket, tone='plain'"]
    start -> fan fan -> one -> gather fan -> sub -> gather -> done"""
    texts = told(body)
    assert TICKET in texts["one"][0]
    assert f"{TICKET}\n- tone: plain" in texts["deep"][0]


@pytest.mark.parametrize("cut", range(1, 5))
def test_a_resumed_run_tells_what_an_uninterrupted_one_tells(cut, dot, tmp_path):
    replies = {"plan": "1. read\n2. write", "look": "All is well.\n\nReally."}

    def prompts(place, **options):
        backend = ScriptedBackend(replies)
        pipeline = Pipeline(dot(LINE), backend=backend)
        pipeline.run(wait=True, trust=True, params={"ticket": "printer broken"}, logs_root=place, **options)
        if options:
            pipeline.resume(place, trust=True).result(60)
        return backend.prompts

    assert prompts(tmp_path / "a") == prompts(tmp_path / "b", stop_after=cut)


def test_ruling_31_a_large_value_is_told_by_its_text(told, tmp_path):
    answer = "\n".join(f"{number}. step of the plan" for number in range(20_000))
    body = 'plan [prompt="Plan."] write [prompt="Write.", carry="plan.response"] start -> plan -> write -> done'
    (text,) = told(body, {"plan": answer}, logs_root=tmp_path / "run", durability="fast")["write"]
    assert "artifact_ref" not in text
    assert "- plan.response (the first " in text
    assert "\n9999. step of the plan\n" in text


def test_a_fan_in_that_asks_is_shown_its_candidates_once(told):
    body = """fan [shape=component] one [prompt="One."] two [prompt="Two."]
    gather [shape=tripleoctagon, prompt="Which is better?"] last [prompt="Go on."]
    start -> fan fan -> one -> gather fan -> two -> gather -> last -> done"""
    replies = {"one": "first way\nby road", "two": "second way\nby sea", "gather": "two"}
    texts = told(body, replies)
    assert "by road" not in texts["gather"][0]
    assert "- two (success):\n\n```\nsecond way\nby sea\n```" in texts["last"][0]


def test_a_stage_without_a_model_reads_no_value(dot, monkeypatch):
    monkeypatch.setattr("attractor_nb.decisions.carryover.build_preamble", None)
    text = dot('build [shape=parallelogram, tool_command="true"] start -> build -> done')
    assert Pipeline(text).run(wait=True, trust=True, durability="none").status == "success"


@pytest.mark.parametrize(
    ("body", "reply", "told_text"),
    [
        ('a [prompt="Find."] {route}', Outcome.success(context_updates={"found": "in cart.py"}), "- found: in cart.py"),
        ("a [type=own] {route}", None, "- found: in cart.py"),
        ('a [shape=parallelogram, tool_command="echo 41; {status}"] {route}', None, "41"),
    ],
    ids=["a backend's outcome", "a custom handler", "a command with a status file"],
)
def test_what_a_stage_without_notes_left_is_carried(dot, tmp_path, body, reply, told_text):
    def own(node, context, graph, logs_root):
        context.set("found", "in cart.py")
        return Outcome.success()

    status = 'echo \'{\\"outcome\\": \\"fail\\"}\' > $ATTRACTOR_STAGE_DIR/status.json'
    route = 'b [prompt="Repair."] start -> a; a -> b [condition="outcome!=skipped"]; b -> done'
    backend = ScriptedBackend({"a": reply} if reply else {})
    text = dot(body.replace("{route}", route).replace("{status}", status))
    Pipeline(text, backend=backend, handlers={"own": own}).run(wait=True, trust=True, logs_root=tmp_path / "run")
    assert told_text in carried(backend.prompts["b"][0])
