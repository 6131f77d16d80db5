"""An answer of an earlier run counts only when everything that decided it is the same today (ruling 44)."""

import asyncio
import sys
import types

import pytest
from pydantic import BaseModel, field_validator

from attractor_nb import CommandLineBackend, Outcome, Pipeline
from attractor_nb.backends.agents import ClaudeBackend, CodexBackend, GeminiBackend
from attractor_nb.backends.llm.provider_backend import ProviderBackend
from attractor_nb.backends.llm.tools.mcp_servers import McpServers
from attractor_nb.model.allowed_tools import ServerDeclaration
from attractor_nb.model.graph import Node
from attractor_nb.storage.sealed_file import seal, unseal

FRAME = "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"
BILL = FRAME.format(body='a [prompt="bill", response_schema="Bill", goal_gate=true] start -> a -> done')


def versioned(answer):
    def ask(prompt):
        ask.count += 1
        return answer

    ask.version, ask.count = "1", 0
    return ask


class Loose(BaseModel):
    total: float


class Strict(BaseModel):
    total: float

    @field_validator("total")
    @classmethod
    def positive(cls, value):
        if value < 0:
            raise ValueError("it is negative")
        return value


Strict.__name__ = Strict.__qualname__ = "Bill"
Loose.__name__ = Loose.__qualname__ = "Bill"


def test_ruling_44_a_validator_that_was_added_judges_a_cached_answer(tmp_path):
    Strict.model_rebuild(force=True)
    ask = versioned('{"total": -5}')
    seen = [
        Pipeline(BILL, backend=ask, schemas={"Bill": model}).run(wait=True, cache=tmp_path / "cache", durability="none")
        for model in (Loose, Loose, Strict)
    ]
    assert [(result.status, result.cached_nodes) for result in seen] == [
        ("success", ()),
        ("success", ("a",)),
        ("fail", ()),
    ]
    assert ask.count == 2


def test_ruling_44_a_cached_id_without_an_edge_is_no_answer(tmp_path):
    body = 'a [prompt="x", verdict=json] b [prompt=b] {other} [prompt=c] start -> a; a -> b; a -> {other}'
    body += "; b -> done; {other} -> done"
    ask = versioned('{"outcome": "success", "suggested_next_ids": ["c"]}')
    results = [
        Pipeline(FRAME.format(body=body.replace("{other}", other)), backend=ask).run(
            wait=True, cache=tmp_path / "cache", durability="none"
        )
        for other in ("c", "d")
    ]
    assert [result.status for result in results] == ["success", "fail"]
    assert "'c', which no outgoing edge leads to" in results[1].reason


def test_ruling_44_a_verdict_that_reads_otherwise_today_is_no_answer(tmp_path):
    class Stamped(BaseModel):
        total: float

        @field_validator("total")
        @classmethod
        def doubled(cls, value):
            return value * 2

    Stamped.__name__ = Stamped.__qualname__ = "Bill"
    Stamped.model_rebuild(force=True)
    ask = versioned('{"total": 5}')
    totals = [
        Pipeline(BILL, backend=ask, schemas={"Bill": model})
        .run(wait=True, cache=tmp_path / "cache", durability="none")
        .context["a.verdict"]["total"]
        for model in (Loose, Stamped)
    ]
    assert totals == [5.0, 10.0]


def test_ruling_44_a_function_of_another_module_is_another_answer(tmp_path):
    text = "def ask(prompt): return __name__\nask.version = '1'"
    responses = []
    for name in ("one", "two", "one"):
        module = types.ModuleType(name)
        exec(text, module.__dict__)
        result = Pipeline(FRAME.format(body="a [prompt=x] start -> a -> done"), backend=module.ask).run(
            wait=True, cache=tmp_path / "cache", durability="none"
        )
        responses.append((result.context["a.response"], result.cached_nodes))
    assert responses == [("one", ()), ("two", ()), ("one", ("a",))]


def test_ruling_44_a_handler_of_another_module_is_another_answer(tmp_path):
    text = "def own(node, context, graph, logs_root): return Outcome.success(__name__)\nown.version = '1'"
    notes = []
    for name in ("one", "two", "one"):
        module = types.ModuleType(name)
        module.Outcome = Outcome
        exec(text, module.__dict__)
        result = Pipeline(FRAME.format(body="a [type=own] start -> a -> done"), handlers={"own": module.own}).run(
            wait=True, cache=tmp_path / "cache", durability="none"
        )
        notes.append((result.outcomes["a"].notes, result.cached_nodes))
    assert notes == [("one", ()), ("two", ()), ("one", ("a",))]


def test_ruling_44_the_address_of_the_environment_is_part_of_the_key(monkeypatch):
    node = Node("a", {"prompt": "x", "llm_model": "openai:gpt-5.2"})
    found = []
    for address in ("", "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        found.append(ProviderBackend().cache_inputs(node))
    assert found == [{}, {"addresses": ["http://127.0.0.1:1/v1"]}, {"addresses": ["http://127.0.0.1:2/v1"]}]


def test_ruling_44_what_a_server_of_tools_is_given_is_part_of_the_key_and_not_in_it(monkeypatch):
    servers = McpServers({"files": ServerDeclaration("files", "serve", ("FILES_TOKEN",), 9.0)})
    found = []
    for value in ("one", "two"):
        monkeypatch.setenv("FILES_TOKEN", value)
        found.append(servers.cache_inputs("files"))
    assert found[0] != found[1]
    assert found[0]["command"] == "serve"
    assert "one" not in str(found[0]["environment"])
    asyncio.run(servers.close())


def test_ruling_44_the_variables_that_a_program_is_given_are_part_of_the_key(tmp_path, monkeypatch):
    code = "import os, sys; sys.stdin.read(); print('works for', os.environ['MY_TENANT'])"
    backend = CommandLineBackend([sys.executable, "-c", code], variables=["MY_TENANT"])
    source = FRAME.format(body="a [prompt=x, cache=true] start -> a -> done")
    answers = []
    for tenant in ("north", "north", "south"):
        monkeypatch.setenv("MY_TENANT", tenant)
        result = Pipeline(source, backend=backend).run(wait=True, cache=tmp_path / "cache", durability="none")
        answers.append((result["a"].response.strip(), result.cached_nodes))
    assert answers == [("works for north", ()), ("works for north", ("a",)), ("works for south", ())]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ClaudeBackend, "ANTHROPIC_BASE_URL"), (CodexBackend, "OPENAI_BASE_URL"), (GeminiBackend, "GEMINI_MODEL")],
)
def test_ruling_44_an_agent_of_another_address_or_model_is_another_answer_and_one_of_another_key_is_not(
    kind, name, monkeypatch
):
    backend, node = kind(executable=sys.executable), Node("a", {"prompt": "x"})
    found = []
    for value in ("https://one.example", "https://two.example"):
        monkeypatch.setenv(name, value)
        found.append(backend.cache_inputs(node))
        assert value not in str(found[-1])
    assert found[0] != found[1]
    monkeypatch.setenv(backend.dialect.keys[0], "another key of the same person")
    assert backend.cache_inputs(node) == found[1]


@pytest.mark.parametrize("text", ["not json", ""])
def test_ruling_44_a_validator_that_fails_in_its_own_way_is_a_miss(tmp_path, text):
    class Broken(BaseModel):
        total: float

        @field_validator("total")
        @classmethod
        def raising(cls, value):
            raise RuntimeError(text)

    Broken.__name__ = Broken.__qualname__ = "Bill"
    Broken.model_rebuild(force=True)
    ask = versioned('{"total": 5}')
    for model in (Loose, Broken):
        result = Pipeline(BILL, backend=ask, schemas={"Bill": model}).run(
            wait=True, cache=tmp_path / "cache", durability="none"
        )
    assert (result.status, ask.count) == ("fail", 2)


DEPLOY = FRAME.format(
    body="""test [shape=parallelogram, tool_command="exit 1"] a [prompt=hello] d [shape=diamond]
    deploy [shape=parallelogram, tool_command="touch deployed"] start -> test
    test -> a [condition="outcome=fail"] test -> a a -> d d -> deploy [condition="context.tool.exit_code=0"]
    d -> done deploy -> done"""
)


@pytest.mark.parametrize("place", ["changes", "outcome"])
def test_ruling_44_a_cached_result_sets_no_key_of_the_engine(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    ask = versioned("hello")
    assert Pipeline(DEPLOY, backend=ask).run(wait=True, cache="cache").status == "success"
    for path in (tmp_path / "cache").rglob("*.json"):
        plain = dict(unseal(path.read_bytes()))
        if plain.get("node") == "a":
            forged = {"tool.exit_code": 0}
            plain |= (
                {"changes": forged}
                if place == "changes"
                else {"outcome": {**plain["outcome"], "context_updates": forged}}
            )
            path.chmod(0o600)
            path.write_bytes(seal({name: value for name, value in plain.items() if name != "checksum"}))
    result = Pipeline(DEPLOY, backend=ask).run(wait=True, cache="cache")
    assert (result.status, result.cached_nodes, ask.count) == ("success", (), 2)
    assert not (tmp_path / "deployed").exists()
