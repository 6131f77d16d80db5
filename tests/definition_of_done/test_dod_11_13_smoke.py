"""Section 11.13 of the specification: its program, word for word apart from syntax."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from attractor_nb import (
    Context,
    LocalModelBackend,
    ProviderBackend,
    Severity,
    load_checkpoint,
    parse_dot,
    run_pipeline,
    validate,
)

DOT = """
digraph test_pipeline {
    graph [goal="Create a hello world Python script"]

    start       [shape=Mdiamond]
    plan        [shape=box, prompt="Plan how to create a hello world script for: $goal"]
    implement   [shape=box, prompt="Write the code based on the plan", goal_gate=true]
    review      [shape=box, prompt="Review the code for correctness"]
    done        [shape=Msquare]

    start -> plan
    plan -> implement
    implement -> review [condition="outcome=success"]
    implement -> plan   [condition="outcome=fail", label="Retry"]
    review -> done      [condition="outcome=success"]
    review -> implement [condition="outcome=fail", label="Fix"]
}
"""


def edges_total(graph):
    return graph.edges


def artifacts_exist(logs_root, node_id, names):
    return all((Path(logs_root) / node_id / name).is_file() for name in names)


def goal_gate_satisfied(graph, outcome, node_id):
    return graph.nodes[node_id].goal_gate and outcome.node_outcomes[node_id].is_success


def smoke(llm_callback, logs_root):
    # 1. Parse
    graph = parse_dot(DOT)
    assert graph.goal == "Create a hello world Python script"
    assert len(graph.nodes) == 5
    assert len(edges_total(graph)) == 6

    # 2. Validate
    lint_results = validate(graph)
    assert not [result for result in lint_results if result.severity == Severity.ERROR]

    # 3. Execute with LLM callback
    context = Context()
    outcome = run_pipeline(graph, context, llm_callback=llm_callback, logs_root=logs_root)

    # 4. Verify
    assert outcome.status == "success"
    assert "implement" in outcome.completed_nodes
    assert artifacts_exist(logs_root, "plan", ["prompt.md", "response.md", "status.json"])
    assert artifacts_exist(logs_root, "implement", ["prompt.md", "response.md", "status.json"])
    assert artifacts_exist(logs_root, "review", ["prompt.md", "response.md", "status.json"])

    # 5. Verify goal gate
    assert goal_gate_satisfied(graph, outcome, "implement")

    # 6. Verify checkpoint
    checkpoint = load_checkpoint(logs_root)
    assert checkpoint.current_node == "done"
    assert "plan" in checkpoint.completed_nodes
    assert "implement" in checkpoint.completed_nodes
    assert "review" in checkpoint.completed_nodes
    return context


def test_11_13_the_smoke_test_runs_with_an_llm_callback(tmp_path):
    context = smoke(lambda prompt: f"An answer to: {prompt[:40]}", tmp_path / "run")
    assert context.get("last_stage") == "review"
    assert context.get("graph.goal") == "Create a hello world Python script"


@pytest.mark.real_llm
@pytest.mark.timeout(600)
@pytest.mark.campaign
def test_11_13_the_smoke_test_runs_with_a_real_model(tmp_path):
    backend = LocalModelBackend()
    smoke(backend, tmp_path / "run")
    assert (tmp_path / "run/plan/response.md").read_text().strip()


class LocalModelOverHttp:
    """The local model, asked over HTTP as any server is that speaks OpenAI's language."""

    def __init__(self):
        self._local = LocalModelBackend()
        self._asking = None

    async def open(self):
        await self._local.open()
        address = await self._local.address()
        os.environ["LOCAL_MODEL_KEY"] = self._local.key
        self._asking = ProviderBackend(
            "own:local",
            endpoints={"own": {"url": f"{address}/v1", "key_env": "LOCAL_MODEL_KEY"}},
            system_prompt="Answer in one short sentence.",
            max_tokens=320,
            temperature=0.0,
        )
        await self._asking.open()

    async def close(self):
        await self._asking.close()
        del os.environ["LOCAL_MODEL_KEY"]
        await self._local.close()

    async def run(self, node, prompt, context):
        return await self._asking.run(node, prompt, context)


@pytest.mark.real_llm
@pytest.mark.timeout(600)
@pytest.mark.campaign
def test_11_13_the_smoke_test_runs_with_a_real_model_over_the_provider_backend(tmp_path):
    smoke(LocalModelOverHttp(), tmp_path / "run")
    assert (tmp_path / "run/plan/response.md").read_text().strip()


def scripted_server():
    """The program of the tests of providers, as a module."""
    place = Path(__file__).parents[1] / "backends/llm/scripted_server.py"
    spec = importlib.util.spec_from_file_location("dod_scripted_server", place)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("shape", "model"), [("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-6")])
def test_11_13_the_smoke_test_runs_over_the_wire_of_each_provider(shape, model, tmp_path):
    program = scripted_server()
    answers = [program.Reply(text) for text in ("The plan", "print('hello world')", "It is correct")]
    with program.ScriptedServer(*answers) as server:
        smoke(ProviderBackend(model, base_url=server.base_url(shape)), tmp_path / "run")
        assert [asked.shape for asked in server.asked] == [shape] * 3
    assert (tmp_path / "run/implement/response.md").read_text() == "print('hello world')"
