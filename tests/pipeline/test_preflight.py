"""``pipeline.doctor()``: what a run would need, and whether it is there."""

import errno
import shutil
import socket
import sys
from collections import namedtuple
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Pipeline, platforms
from attractor_nb.backends import ProviderBackend
from attractor_nb.errors import OptionError
from attractor_nb.extras import EXTRAS, has_package, install_command
from attractor_nb.studio.estimate import preflight as machine
from attractor_nb.studio.estimate.preflight import examine_machine

ENDS = "start [shape=Mdiamond] done [shape=Msquare]"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL")
PLANTED = "sk-planted-0123456789abcdefghij"
Space = namedtuple("Space", "total used free")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch, tmp_path):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def pipeline(body, **options):
    return Pipeline(f"digraph checked {{ {ENDS} {body} }}", **options)


def by_subject(preflight):
    return {found.subject: found for found in preflight}


ASKING = 'a [prompt=x, llm_model="gpt-5.2"] start -> a -> done'


def test_a_key_that_is_missing_is_an_error_that_names_the_variable():
    found = pipeline(ASKING).doctor("llm")
    key = by_subject(found)["key for openai:gpt-5.2"]
    assert (key.state, key.remedy) == ("error", "set OPENAI_API_KEY in the environment")
    assert not found.is_ready
    assert str(found).startswith("✕ checked is not ready: 1 error\n")


def test_a_key_that_is_set_is_named_and_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    found = pipeline(ASKING).doctor("llm")
    assert by_subject(found)["key for openai:gpt-5.2"].message == "OPENAI_API_KEY is set"
    assert found.is_ready
    assert str(found).startswith("✓ checked is ready")
    shown = f"{found} {found._repr_mimebundle_()} {found.to_plain()} {list(found)}"
    assert PLANTED not in shown


def test_any_of_a_provider_s_variables_will_do(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", PLANTED)
    found = pipeline('a [prompt=x, llm_model="gemini-2.5-pro"] start -> a -> done').doctor("llm")
    assert by_subject(found)["key for google:gemini-2.5-pro"].state == "ok"


def test_a_fallback_without_a_key_is_a_warning(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    found = pipeline('a [prompt=x, llm_model="gpt-5.2", llm_fallback="claude-opus-4-6"] start -> a -> done').doctor(
        "llm"
    )
    assert by_subject(found)["key for anthropic:claude-opus-4-6"].state == "warn"
    assert found.is_ready


@pytest.mark.parametrize(
    "attributes", ['llm_model="gpt-5.2", llm.base_url="http://127.0.0.1:9/v1"', 'llm_model="ollama:qwen3"']
)
def test_a_server_of_one_s_own_needs_no_key(attributes):
    assert pipeline(f"a [prompt=x, {attributes}] start -> a -> done").doctor("llm").is_ready


def test_a_node_without_a_model_is_an_error_of_that_node():
    found = by_subject(pipeline("a [prompt=x] start -> a -> done").doctor("llm"))["model of a"]
    assert found.state == "error"
    assert "llm_model" in found.remedy
    assert pipeline("a [prompt=x] start -> a -> done").doctor(ProviderBackend("ollama:qwen3")).is_ready


def test_models_of_child_pipelines_count():
    outer = pipeline(
        "s [type=pipeline, pipeline.name=inner] start -> s -> done",
        pipelines={"inner": f"digraph {{ {ENDS} {ASKING} }}"},
    )
    assert "key for openai:gpt-5.2" in by_subject(outer.doctor("llm"))


def test_a_budget_that_cannot_hold_is_found():
    found = pipeline('max_budget_usd=1 a [prompt=x, llm_model="ollama:qwen3"] start -> a -> done').doctor("llm")
    assert by_subject(found)["budget"].state == "error"
    assert "max_tokens_total" in by_subject(found)["budget"].remedy


def test_without_a_backend_it_says_that_nothing_is_asked():
    found = by_subject(pipeline(ASKING).doctor())["backend"]
    assert (found.state, found.message) == ("warn", "simulated: no model is asked")


def test_the_pipeline_s_own_backend_is_looked_at():
    assert by_subject(pipeline(ASKING, backend=lambda prompt: "ok").doctor())["backend"].state == "ok"


def test_a_backend_that_there_is_not_is_an_error():
    assert by_subject(pipeline(ASKING).doctor("lllm"))["backend"].state == "error"


def test_an_agent_that_is_not_installed_is_an_error_with_its_command(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = by_subject(pipeline(ASKING).doctor("codex"))["backend"]
    assert found.state == "error"
    assert "npm install" in found.remedy


def test_the_local_model_is_looked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert not pipeline(ASKING).doctor("local").is_ready
    found = machine.local_model()
    assert (found.state, found.subject) == ("note", "local model"), "other pipelines do without it"
    assert "not installed" in found.message
    assert found.remedy.startswith("pip install")


def test_lint_errors_are_told():
    found = by_subject(Pipeline("digraph lonely { start end start -> b }").doctor())["lint"]
    assert found.state == "error"


def test_programs_that_tools_begin_with_are_looked_for():
    body = "".join(
        f"{name} [shape=parallelogram, tool_command='{command}'] ".replace("'", '"')
        for name, command in [
            ("a", "sh -c true"),
            ("b", "no-such-program x"),
            ("c", "cd x && make"),
            ("d", "A=1 no-such-two"),
        ]
    )
    found = by_subject(pipeline(f"{body} start -> a -> b -> c -> d -> done").doctor())
    assert found["program sh"].state == "ok"
    assert found["program no-such-program"].state == "warn"
    assert found["program no-such-two"].state == "warn"
    assert "program cd" not in found


def test_a_runs_directory_that_cannot_be_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    found = by_subject(pipeline(ASKING).doctor(runs_dir=tmp_path / "file" / "runs"))
    assert found["runs directory"].state == "error"
    assert by_subject(pipeline(ASKING).doctor(runs_dir=tmp_path / "new"))["runs directory"].state == "ok"
    assert not (tmp_path / "new").exists()


def test_without_the_calls_of_posix_no_run_directory_can_be_made_and_what_works_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(platforms, "HAS_POSIX", False)
    found = by_subject(pipeline(ASKING).doctor(runs_dir=tmp_path / "new"))
    place = found["runs directory"]
    assert place.state == "warn"
    assert place.message.startswith("run directories, cassettes, commands and the server need calls of POSIX")
    assert place.remedy.startswith('run in memory with durability="none"')
    assert "disk" not in found, "nothing is written"


@pytest.mark.parametrize(("free", "state"), [(10, "error"), (500 * 1024**2, "warn"), (2 * 1024**3, "ok")])
def test_the_disk_has_room(monkeypatch, free, state):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Space(free, 0, free))
    assert by_subject(pipeline(ASKING).doctor())["disk"].state == state


def refusing(number, words):
    def refuse(*_arguments, **_options):
        raise OSError(number, words)

    return refuse


def test_a_disk_that_does_not_say_how_full_it_is_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", refusing(errno.EIO, "Input/output error"))
    found = by_subject(pipeline(ASKING).doctor(runs_dir=tmp_path))["disk"]
    assert (found.state, found.message) == ("warn", f"{tmp_path}: Input/output error")


def test_a_machine_without_a_loopback_is_said_with_what_needs_one(monkeypatch):
    monkeypatch.setattr(socket, "create_server", refusing(errno.EADDRNOTAVAIL, "Cannot assign requested address"))
    found = machine.loopback("error")
    assert (found.state, found.remedy) == ("error", "the local model needs one")
    assert found.message == "no port on 127.0.0.1 can be opened: Cannot assign requested address"


def test_a_part_of_a_package_that_is_missing_is_not_installed():
    assert has_package("xml.etree")
    assert not has_package("no_such_package.part")


class Choosy:
    """A backend that takes no graph."""

    def run(self, node, prompt, context):
        return "text"

    def check_graph(self, graph):
        raise OptionError(f"{graph.name} names a model that is not here", hint="name another")


def test_what_a_backend_has_against_a_graph_is_an_error():
    found = pipeline(ASKING).doctor(Choosy())
    models = by_subject(found)["models"]
    assert (models.state, models.message, models.remedy) == (
        "error", "checked names a model that is not here", "name another",
    )  # fmt: skip
    assert not found.is_ready


def test_a_node_without_a_model_is_said_once_though_there_is_a_budget():
    found = pipeline("max_budget_usd=1 a [prompt=x] start -> a -> done").doctor("llm")
    assert [each.subject for each in found if each.state == "error"] == ["model of a"]


def test_a_command_that_only_a_shell_could_read_names_no_program():
    body = """a [shape=parallelogram, tool_command="sh -c 'echo"] start -> a -> done"""
    assert not [each for each in pipeline(body).doctor() if each.subject.startswith("program")]


def test_no_server_is_looked_for_unless_asked(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "create_connection", refuse)
    pipeline(ASKING).doctor("llm")
    with pytest.raises(AssertionError, match="a connection was made"):
        pipeline(ASKING).doctor("llm", online=True)


def test_online_says_which_server_answers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = f'a [prompt=x, llm_model="openai:m", llm.base_url="http://127.0.0.1:{port}/v1"] start -> a -> done'
        assert by_subject(pipeline(there).doctor("llm", online=True))["server 127.0.0.1"].state == "ok"
    found = pipeline(there).doctor("llm", online=True)
    assert by_subject(found)["server 127.0.0.1"].state == "error"


def test_the_machine_is_described_without_a_pipeline(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    monkeypatch.setenv("PATH", "")
    found = examine_machine()
    subjects = by_subject(found)
    assert subjects["key of openai"].state == "ok"
    assert subjects["key of anthropic"].state == "note"
    assert subjects["agent claude"].state == "note"
    assert {"extra llm", "local model", "loopback", "disk"} <= subjects.keys()
    assert PLANTED not in str(found)


def test_without_the_extra_the_command_is_told(monkeypatch):
    for name in EXTRAS["llm"].packages:
        monkeypatch.setitem(sys.modules, name, None)
    found = {each.subject: each for each in machine.extras()}
    assert found["extra llm"].remedy == install_command("llm")


def test_the_html_has_a_row_for_each_finding():
    found = pipeline(ASKING).doctor("llm")
    root = ET.fromstring(found._repr_mimebundle_()["text/html"])
    assert len(list(root.iter("tr"))) == len(found) + 1
