"""Addresses and keys: an address belongs to one provider, and a key goes nowhere that its owner did not say."""

import os

import pytest

from attractor_nb import Context, Pipeline, ProviderBackend
from attractor_nb.backends.llm import addresses
from attractor_nb.backends.llm.addresses import address_of, key_variables
from attractor_nb.backends.llm.model_requests import RequestDefaults, read_request
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError, RetryableError, TerminalError, UntrustedSource
from attractor_nb.model.calls.providers import Endpoint, read_endpoint
from attractor_nb.model.graph import Node
from attractor_nb.redaction import redacted

OPENAI, ANTHROPIC, LOCAL = ("sk-planted-openai-0123456789", "sk-ant-planted-0123456789", "planted-local-0123456789")
FRAME = """digraph talk {{
    graph [{graph}]
    start [shape=Mdiamond]  done [shape=Msquare]
    {body}
}}"""
ONE = 'plan [prompt="Plan it"{more}]  start -> plan -> done'


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Keys of everybody, and no settings of whoever runs the tests."""
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.setenv("ANTHROPIC_API_KEY", ANTHROPIC)
    monkeypatch.setenv("LOCAL_KEY", LOCAL)
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path):
    def start(graph, body, **options):
        text = FRAME.format(graph=graph, body=body)
        return Pipeline(text).run(wait=True, logs_root=tmp_path / "run", **{"backend": ProviderBackend(), **options})

    return start


def keys_of(server):
    return [came.headers.get("authorization") or came.headers.get("x-api-key") for came in server.asked]


def targets(text, **defaults):
    graph = Pipeline(text).graph
    return {
        node.id: [f"{target} {target.base_url or (target.endpoint.url if target.endpoint else '')}".strip()
                  for target in read_request(node, RequestDefaults(**defaults)).targets]
        for node in graph.nodes.values() if node.prompt
    }  # fmt: skip


HOME = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize("model", ["qwen3", "openai:qwen3", 'qwen3", llm_provider="openai'])
def test_a_local_server_first_and_openai_then(model, serve, reply, run, monkeypatch):
    """The fallback goes to OpenAI's own place, with OpenAI's key; the local server sees no key."""
    local, openai = serve(reply(status=503, error="busy")), serve(reply("From OpenAI"))
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url("openai"))
    body = ONE.format(more=', llm_fallback="openai:gpt-5.2"')
    result = run(f'llm_model="{model}", llm.base_url="{local.base_url("openai")}"', body)
    assert result.status == "success", result.reason
    assert keys_of(local) == ["Bearer no-key"]
    assert keys_of(openai) == [f"Bearer {OPENAI}"]


@pytest.mark.parametrize(
    ("graph", "node", "expected"),
    [
        ("llm_model=qwen3", "", [f"openai:qwen3 {HOME}"]),
        ("llm_model=qwen3", 'llm_model="claude-opus-4-6"', ["anthropic:claude-opus-4-6"]),
        ("llm_model=qwen3", 'llm_model="gpt-5.2"', ["openai:gpt-5.2"]),
        ("llm_model=qwen3", 'llm_model="llama3"', [f"openai:llama3 {HOME}"]),
        ("llm_model=qwen3", 'llm_fallback="llama3, gpt-5.2"', [f"openai:qwen3 {HOME}", f"openai:llama3 {HOME}", "openai:gpt-5.2"]),
        ('llm_model="gpt-5.2"', 'llm_fallback="openai:gpt-5-mini"', [f"openai:gpt-5.2 {HOME}", f"openai:gpt-5-mini {HOME}"]),
        ('llm_model="gpt-5.2"', 'llm_model="claude-opus-4-6", llm_fallback="o3"', ["anthropic:claude-opus-4-6", "openai:o3"]),
        ("", 'llm_model="claude-opus-4-6"', ["anthropic:claude-opus-4-6"]),
        ("", 'llm_model="gpt-5.2"', [f"openai:gpt-5.2 {HOME}"]),
        ('llm_model="claude-opus-4-6"', "", [f"anthropic:claude-opus-4-6 {HOME}"]),
        ('llm_model="claude-opus-4-6"', 'llm_model="gpt-5.2"', ["openai:gpt-5.2"]),
    ],
)  # fmt: skip
def test_a_graphs_address_takes_no_other_providers_nodes_along(graph, node, expected):
    text = FRAME.format(
        graph=f'llm.base_url="{HOME}", {graph}'.rstrip(", "), body=ONE.format(more=f", {node}" if node else "")
    )
    assert targets(text) == {"plan": expected}


def test_a_backends_address_takes_no_other_providers_nodes_along():
    text = FRAME.format(graph="", body=ONE.format(more=', llm_model="claude-opus-4-6"'))
    assert targets(text, model="qwen3", base_url=HOME) == {"plan": ["anthropic:claude-opus-4-6"]}


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_an_address_beside_a_model_gets_no_key(shape, serve, reply, backend_for, asked):
    server = serve(reply("Hello"))
    asked(backend_for(server, shape))
    assert OPENAI not in str(server.asked[0].headers)
    assert ANTHROPIC not in str(server.asked[0].headers)


def test_the_providers_own_variable_takes_its_key_along(serve, reply, asked, monkeypatch):
    server = serve(reply("Hello"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    asked(ProviderBackend("gpt-5.2"))
    asked(ProviderBackend("gpt-5.2", base_url=server.base_url("openai")))
    assert keys_of(server) == [f"Bearer {OPENAI}"] * 2


def test_a_server_that_wants_a_key_is_said_how_to_get_one(serve, reply, backend_for, asked):
    with pytest.raises(TerminalError, match="refused the key") as caught:
        asked(backend_for(serve(reply(status=401, error="who"))))
    assert "endpoint.NAME.key_env" in caught.value.hint


@pytest.mark.parametrize(
    "node",
    ['llm_model="local:qwen3:8b"', 'llm_provider=local, llm_model="qwen3:8b"', 'llm_model="gpt-5.2", llm_fallback="local:qwen3:8b"'],
)  # fmt: skip
def test_an_endpoint_of_the_graph_gets_its_own_key(node, serve, reply, run, monkeypatch):
    server, openai = serve(reply("Hello")), serve(reply(status=503, error="busy"))
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url("openai"))
    graph = f'endpoint.local.url="{server.base_url("openai")}", endpoint.local.key_env="LOCAL_KEY"'
    result = run(graph, ONE.format(more=f", {node}"), trust=True)
    assert result.status == "success", result.reason
    assert server.asked[0].body["model"] == "qwen3:8b"
    assert keys_of(server) == [f"Bearer {LOCAL}"]
    assert redacted(f"the key is {LOCAL}") == "the key is [redacted]"


def test_an_endpoint_without_key_env_gets_none_and_one_whose_key_is_missing_is_not_asked(
    serve, reply, asked, monkeypatch
):
    server = serve(reply("Hello"))
    plain = {"url": server.base_url("openai")}
    asked(ProviderBackend("local:qwen3", endpoints={"local": plain}))
    assert keys_of(server) == ["Bearer no-key"]
    monkeypatch.delenv("LOCAL_KEY")
    with pytest.raises(TerminalError, match="LOCAL_KEY is not set"):
        asked(ProviderBackend("local:qwen3", endpoints={"local": {**plain, "key_env": "LOCAL_KEY"}}))
    assert len(server.asked) == 1


@pytest.mark.parametrize(("sign", "name"), [("\xe9", "U+00E9"), ("\u201c", "U+201C"), ("\u2026", "U+2026")])
def test_a_key_that_cannot_be_sent_names_its_variable_and_is_not_shown(sign, name, serve, reply, asked, monkeypatch):
    server = serve(reply("Hello"))
    monkeypatch.setenv("LOCAL_KEY", f"sk-secret{sign}0123456789")
    with pytest.raises(TerminalError) as caught:
        asked(
            ProviderBackend("local:q", endpoints={"local": {"url": server.base_url("openai"), "key_env": "LOCAL_KEY"}})
        )
    assert f"LOCAL_KEY contains the character {name}, which cannot be sent in a key" in caught.value.message
    assert "secret" not in str(caught.value)
    assert server.asked == []


def test_an_endpoint_speaks_what_it_says(serve, reply, asked):
    server = serve(reply(status=503, error="busy"))
    for api in ("chat", "responses"):
        endpoint = Endpoint("local", server.base_url("openai"), api=api)
        with pytest.raises(RetryableError):
            asked(ProviderBackend("local:qwen3", endpoints={"local": endpoint}))
    assert [came.path for came in server.asked] == ["/v1/chat/completions", "/v1/responses"]


def test_the_graphs_endpoint_goes_before_pythons_and_that_before_the_users_file(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/endpoints.toml").write_text(
        "".join(f'[{name}]\nurl = "http://file"\n' for name in ("one", "two", "three"))
    )
    backend = ProviderBackend(endpoints={name: {"url": "http://python"} for name in ("one", "two")})
    node = Node("plan", {"llm_model": "one:m", "llm_fallback": "two:m,three:m", "endpoint.one.url": "http://graph"})
    urls = [target.endpoint.url for target in backend.targets_of(node)]
    assert urls == ["http://graph", "http://python", "http://file"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[local", "cannot be read"),
        ('local = "http://x"', "not an endpoint"),
        ('[local]\nurl = "x"', "is no address"),
        ('[openai]\nurl = "http://x"', "name of a provider"),
    ],
)
def test_a_settings_file_that_is_wrong_is_said_by_its_name(text, said, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/endpoints.toml").write_text(text)
    with pytest.raises(OptionError, match=rf"endpoints\.toml.*{said}"):
        ProviderBackend()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "url is missing"),
        ({"url": "localhost:8080"}, "is no address"),
        ({"url": "http://me:secret@host"}, "password"),
        ({"url": HOME, "api": "chta"}, 'did you mean "chat"'),
        ({"url": HOME, "key-env": "LOCAL_KEY"}, 'did you mean "key_env"'),
        ({"url": HOME, "key_env": "HOME"}, "not called a key"),
        ({"url": HOME, "key_env": "sk-0123456789"}, "not called a key"),
    ],
)
def test_an_endpoint_that_is_none_says_what_to_write(facts, said):
    with pytest.raises(ValueError, match=said) as caught:
        read_endpoint("local", facts)
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize("name", ["my model", "", "a.b", "ä"])
def test_a_name_that_no_attribute_can_have_is_none_of_an_endpoint(name):
    with pytest.raises(ValueError, match="has to have a name of letters, digits, - and _") as caught:
        read_endpoint(name, {"url": HOME})
    assert repr(name) in str(caught.value)


def test_endpoints_count_as_commands_once_and_their_keys_too():
    text = FRAME.format(
        graph=f'endpoint.x.url="{HOME}", endpoint.x.key_env="LOCAL_KEY", llm_model="x:m"', body=ONE.format(more="")
    )
    surface = executable_surface(Pipeline(text).graph)
    assert [(each.node_id, each.attribute, each.text) for each in surface.commands] == [
        ("", "endpoint.x.key_env", "LOCAL_KEY"),
        ("", "endpoint.x.url", HOME),
    ]


def test_a_stranger_s_graph_sends_no_key_of_mine_anywhere_unasked(serve, reply, tmp_path, monkeypatch):
    """A file from elsewhere that names a variable and an address is refused before anything is sent."""
    server = serve(reply("Thanks"))
    file = tmp_path / "theirs.dot"
    file.write_text(
        FRAME.format(
            graph=f'endpoint.x.url="{server.base_url("openai")}", endpoint.x.key_env="OPENAI_API_KEY", llm_model="x:m"',
            body=ONE.format(more=""),
        )
    )
    with pytest.raises(UntrustedSource):
        Pipeline(file).run(wait=True, backend=ProviderBackend(), logs_root=tmp_path / "run")
    assert server.asked == []


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("refusal", {"text": "no", "finish": "refusal"}),
        ("overlong", {"status": 400, "error": "maximum context length", "error_type": "context_length_exceeded"}),
    ],
)
def test_what_is_refused_is_asked_elsewhere_when_the_node_says_so(word, fault, serve, reply, run):
    server = serve(reply(**fault), reply("From the second"))
    graph = f'llm_model="gpt-5.2", llm.base_url="{server.base_url("openai")}"'
    more = ', llm_fallback="gpt-5-mini"'
    result = run(graph, ONE.format(more=f'{more}, llm_fallback_on="{word}"'))
    assert result.status == "success", result.reason
    assert "in place of openai:gpt-5.2" in result.outcomes["plan"].notes
    assert len(server.asked) == 2


@pytest.mark.parametrize("words", ["", "overlong"])
def test_a_refusal_is_not_taken_elsewhere_unasked(words, serve, reply, backend_for, asked):
    server = serve(reply("no", finish="refusal"), reply("From the second"))
    with pytest.raises(TerminalError, match="refused to answer"):
        asked(backend_for(server, fallback=["openai:gpt-5-mini"]), llm_fallback_on=words)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("attrs", "rule", "said"),
    [
        (f'endpoint.local.url="{HOME}", llm_model="locla:qwen3"', "model_provider", 'did you mean "local"'),
        (f'endpoint.local.url="{HOME}", llm_provider=locla, llm_model=m', "provider_known", 'did you mean "local"'),
        (f'endpoint.local.url="{HOME}", endpoint.local.api=chta', "endpoint_valid", 'did you mean "chat"'),
        ('endpoint.local.url="somewhere"', "endpoint_valid", "is no address"),
        ('endpoint.local.key_env="LOCAL_KEY"', "endpoint_valid", "url is missing"),
        ('endpoint.local.url="http://far.example/v1"', "endpoint_valid", "unencrypted"),
    ],
)  # fmt: skip
def test_lint_sees_what_is_wrong_with_an_endpoint(attrs, rule, said):
    found = Pipeline(FRAME.format(graph=attrs, body=ONE.format(more=""))).lint()
    assert [each for each in found if each.rule == rule and said in each.message]


def test_lint_has_nothing_against_an_endpoint_that_is_right():
    attrs = f'endpoint.local.url="{HOME}", endpoint.local.key_env="LOCAL_KEY", llm_model="local:qwen3"'
    found = Pipeline(FRAME.format(graph=attrs, body=ONE.format(more=', llm_model="gpt-5.2"'))).lint()
    assert not [each for each in found if each.rule in {"model_provider", "provider_known", "endpoint_valid"}]


@pytest.mark.parametrize(
    ("model", "variable", "address"),
    [
        ("mistral:mistral-large-latest", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
        ("groq:llama-3.3-70b", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
        ("grok-4", "XAI_API_KEY", "https://api.x.ai/v1"),
    ],
)
def test_a_provider_by_name_has_its_own_address_and_key(model, variable, address, asked, monkeypatch):
    (target,) = ProviderBackend(model).targets_of(Node("plan", {}))
    assert (address_of(target), key_variables(target)) == (address, (variable,))
    assert target.base_url == ""
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(TerminalError, match=f"{variable} is not set"):
        asked(ProviderBackend(model))


def test_a_settings_file_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(addresses, "MAX_BYTES", 10)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/endpoints.toml").write_text("# " + "x" * 20)
    with pytest.raises(OptionError, match=r"endpoints\.toml has more than 10 bytes"):
        ProviderBackend()


def test_a_settings_file_is_read_as_every_file_that_a_user_names(tmp_path):
    file = tmp_path / "config/endpoints.toml"
    file.parent.mkdir()
    file.write_bytes(b'\xef\xbb\xbf[local]\nurl = "http://file"\n')
    assert list(addresses.users_endpoints()) == ["local"]
    file.write_bytes(b"# as Windows writes it: \xe4\n")
    with pytest.raises(OptionError, match=r"endpoints\.toml is not UTF-8 text \(line 1\)"):
        ProviderBackend()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OptionError, match=r"endpoints\.toml cannot be read: it is a pipe, and nobody writes to it"):
        ProviderBackend()
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("no folder")
    assert addresses.users_endpoints() == {}


def test_a_user_without_a_home_has_no_endpoints_of_her_own(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("ATTRACTOR_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(addresses.Path, "home", homeless)
    assert (addresses.settings_file(), addresses.users_endpoints()) == (None, {})


@pytest.mark.parametrize(
    ("attrs", "said"),
    [
        ({"llm_model": "local:qwen3", "endpoint.local.url": "localhost:8080"}, "is no address"),
        ({"llm_model": "local:", "endpoint.local.url": HOME}, "names the endpoint 'local' and no model"),
        ({"llm_model": "gpt-5.2", "llm.extra.seed": "many"}, "a whole number"),
    ],
    ids=["endpoint", "no model", "option"],
)
def test_what_a_node_says_wrongly_is_said_with_its_name_and_asks_nobody(attrs, said):
    node = Node("plan", {"prompt": "Plan it", **attrs})
    with pytest.raises(TerminalError, match=f"node 'plan'.*{said}"):
        read_request(node, RequestDefaults())
    assert ProviderBackend().call_inputs(node, Context()) is None
    graph = Pipeline(FRAME.format(graph="", body=ONE.format(more=""))).graph.with_nodes([node])
    assert ProviderBackend().recorded(graph)
