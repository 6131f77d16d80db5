"""Redaction: what counts as a secret, that it goes whole, and that everything else stays as it is."""

import base64
import json
import random
import string
import subprocess
import sys
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.redaction import (
    StreamRedactor,
    address_secrets,
    is_secret_name,
    learn,
    may_hold,
    redacted,
    redacted_value,
    secrets_among,
)
from attractor_nb.redaction.redactor import REDACTOR
from attractor_nb.runtime.prepare.known_secrets import redact_also, stored_source
from attractor_nb.source import SourceText, render_excerpt

MARK = "[redacted]"


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_learnt_for_other_tests():
    before = dict(REDACTOR._values)
    yield
    REDACTOR._values = before
    REDACTOR._compile()


CAPITAL = string.ascii_uppercase + string.digits


def drawn(count, alphabet=string.ascii_letters + string.digits):
    return "".join(random.choices(alphabet, k=count - 1)) + "7"


@pytest.fixture(params=["plain", "automaton"])
def redactor(request, monkeypatch):
    """The first look as a small run has it, and as one has that goes on for longer."""
    if request.param == "automaton":
        REDACTOR.prepare()
        return
    monkeypatch.setattr(REDACTOR, "prepare", lambda: None)
    for name in ("_probes", "_to_json"):
        monkeypatch.setattr(REDACTOR, name, None)


KEYS = {
    "openai": lambda: "sk-proj-" + drawn(40),
    "anthropic": lambda: "sk-ant-api03-" + drawn(80),
    "aws": lambda: "AKIA" + drawn(16, CAPITAL),
    "github": lambda: "ghp_" + drawn(36),
    "github_fine": lambda: f"github_pat_{drawn(22)}_{drawn(59)}",
    "google": lambda: "AIza" + drawn(35),
    "slack": lambda: "xoxb-1234567890-" + drawn(24),
    "hugging_face": lambda: "hf_" + drawn(34),
    "gitlab": lambda: "glpat-" + drawn(20),
    "groq": lambda: "gsk_" + drawn(40),
    "token": lambda: f"eyJ{drawn(20)}.eyJ{drawn(40)}.{drawn(43)}",
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("around", ["{}", "key={}\nnext", '{{"a": "\\n{}"}}', "({}),"])
def test_a_well_known_key_goes_whole(name, around, redactor):
    key = KEYS[name]()
    assert redacted(around.format(key)) == around.format(MARK)


@pytest.mark.parametrize(
    "text",
    [
        "a risk-based-management-of-task-force-work approach",
        "see https://example.org:8080/a@b and mail me@example.org",
        "the bearer of responsibilities",
        "max_token=12345678901234567890 and the token=abcdefghijklmnopqrst of #token=$TOKEN",
        "eyJust a word, sk-8, AKIA, ghp_short, hf_model",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "lone \ud800 surrogate in a longer text",
    ],
)
def test_an_ordinary_text_stays_the_same_object(text, redactor):
    assert redacted(text) is text


def test_credentials_of_an_address_go_and_the_address_stays(redactor):
    assert redacted("x postgres://me:p@ss-word@host/db") == f"x postgres://{MARK}@host/db"


@pytest.mark.parametrize("before", ["#", "/?", "#sidebar&"])
def test_the_token_of_an_address_goes_and_the_address_stays(before, redactor):
    address = f"http://127.0.0.1:8765/{before}token="
    assert redacted(f'open "{address}{drawn(20)}-_{drawn(20)}", then') == f'open "{address}{MARK}", then'
    stream = StreamRedactor()
    shown = [stream.feed(piece) for piece in (address[:-3], "en=", drawn(9), drawn(9), " then")]
    assert "".join(shown) + stream.finish() == f"{address}{MARK} then"


def test_a_private_key_goes_to_its_end_or_as_far_as_it_is_there(redactor):
    lines = "\n".join(drawn(64) for _ in range(3))
    whole = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"
    assert redacted(f"a {whole} b") == f"a {MARK} b"
    assert redacted(f"a -----BEGIN PRIVATE KEY-----\n{lines}") == f"a {MARK}"


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda value: json.dumps(value)[1:-1],
        lambda value: urllib.parse.quote(value, safe=""),
        urllib.parse.quote_plus,
        lambda value: repr(value)[1:-1],
        lambda value: value.encode().decode("latin-1"),
    ],
    ids=["plain", "json", "url", "form", "python", "latin-1"],
)
def test_a_known_value_is_found_in_every_spelling(spell, redactor):
    value = drawn(9) + ' ä"\\\n&' + drawn(9)
    learn([value])
    assert redacted(f"a {spell(value)} b") == f"a {MARK} b"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_value_is_found_in_base64_wherever_it_begins(before, encode, redactor):
    value = drawn(24)
    learn([value])
    for after in ("", "x", "xy", "tail of it"):
        text = encode((before + value + after).encode()).decode()
        shown = redacted(text)
        assert MARK in shown
        assert len(shown) <= len(text) - len(value) + len(MARK)


def test_secrets_that_overlap_go_together(redactor):
    first = drawn(20)
    second = first[-5:] + drawn(15)
    learn([first, second])
    assert redacted(f"<{first}{second[5:]}>") == f"<{MARK}>"


def test_values_lose_secrets_in_keys_too_and_clean_ones_stay_the_same_object(redactor):
    key = KEYS["aws"]()
    assert redacted_value({key: [1, (key, "x")]}) == {MARK: [1, (MARK, "x")]}
    clean = {"a": [1, {"b": "some text here"}], "c": None}
    assert redacted_value(clean) is clean


KNOWN = 'pass"word\\with\nlines é'
PIECES = st.sampled_from(
    [
        *("sk-abcdefgh1234567890abcd", KNOWN, "AKIA" + "A1" * 8, "https://ada:hunter2@example.org", "\ud800"),
        "http://h/#token=abcdefgh1234567890",
        *("-----BEGIN PRIVATE KEY-----\n" + "A1b2" * 12, "Bearer\tabcdefgh1234567890abcd", "eyJ" + "a" * 9 + ".eyJ"),
        *("\n", "\t", '"', "\\", "word", "é", "\x00", " ", "sk-"),
    ]
)
TEXT_OF_PIECES = st.lists(PIECES, max_size=4).map("".join)


@given(
    st.recursive(
        TEXT_OF_PIECES | st.none() | st.booleans() | st.integers() | st.floats(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT_OF_PIECES, inner, max_size=3),
        max_leaves=8,
    )
)
@settings(max_examples=300)
def test_one_look_at_a_whole_value_finds_what_a_look_at_each_text_does(value):
    REDACTOR.prepare()
    learn([KNOWN])
    assert repr(redacted_value(value)) == repr(REDACTOR._redacted_value(value))


def test_what_the_first_look_lets_pass_is_clean(redactor):
    for make in KEYS.values():
        assert may_hold(json.dumps({"text": f"x\n{make()}"}).encode())
    assert not may_hold(b'{"type":"StageStarted","name":"plan_the_work"}')


def test_the_automaton_is_loaded_when_it_pays():
    program = (
        "import sys; from attractor_nb.redaction import redacted; from attractor_nb.redaction.redactor import *;"
        "key = 'sk-proj-' + 'Ab3' * 14; found = [];\n"
        "for number in range(3):\n"
        "    found.append((redacted(f'{number} {key}'), 'pydantic_core' in sys.modules))\n"
        "    redacted('a clean text ' * (PLAIN_CHARACTERS // 20))\n"
        "print(found)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str([(f"0 {MARK}", False), (f"1 {MARK}", False), (f"2 {MARK}", True)])


@pytest.mark.parametrize("name", [*KEYS, "known"])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_a_secret_split_anywhere_is_held_back_and_goes(name, data):
    key = KEYS[name]() if name in KEYS else drawn(30)
    learn([key] if name == "known" else [])
    text = f"before {key} after"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    stream = StreamRedactor()
    pieces = [stream.feed(text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown = "".join(pieces) + stream.finish()
    assert shown.startswith("before ")
    assert shown.endswith(f"{MARK} after")
    assert key[-12:] not in shown
    assert len(shown) <= len(f"before {MARK} after") + len("github_pat_")


@given(st.lists(st.text(alphabet="sk-AIeyJ.:/@ b", max_size=12)))
def test_a_clean_stream_comes_out_as_it_went_in(pieces):
    stream = StreamRedactor()
    shown = "".join([stream.feed(piece) for piece in pieces]) + stream.finish()
    assert shown == redacted("".join(pieces))


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("OPENAI_API_KEY", True),
        ("MY_SECRET_VALUE", True),
        ("DB_PASSWORD", True),
        ("GITHUB_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("SSH_PRIVATE_KEY", True),
        ("PGPASSWORD", True),
        ("MYSQL_PWD", True),
        ("DB_PASS", True),
        ("NPM_CONFIG__AUTH", True),
        ("COOKIE", True),
        ("VAULT_SECRET_ID", True),
        ("SSHPASS", True),
        ("GITHUBTOKEN", True),
        ("OPENAIAPIKEY", True),
        ("LDAP_BINDPW", True),
        ("CI_JOB_JWT", True),
        ("FERNET_KEYS", True),
        ("DB_CREDS", True),
        ("AWS_ACCESS_KEY_ID", False),
        ("PWD", False),
        ("OLDPWD", False),
        ("SSH_AUTH_SOCK", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("TOKEN_FILE", False),
        ("PATH", False),
        ("KEYBOARD", False),
    ],
)
def test_a_variables_name_says_whether_it_is_secret(name, is_secret):
    assert is_secret_name(name) is is_secret


def test_addresses_in_an_environment_hold_secrets_whatever_its_variables_are_called():
    environment = {
        "ATTRACTOR_SERVER": "http://127.0.0.1:8765/#token=tokenOfAServer",
        "WATCHED": "http://h/?run=1&api_key=keyOfAService#x",
        "DATABASE_URL": "postgres://ann:p%40ssword-1234@db:5432/x",
        "HOMEPAGE": "http://ann@h:8080/?page=anAddressWithoutASecret",
    }
    found = ["tokenOfAServer", "keyOfAService", "p%40ssword-1234", "p@ssword-1234"]
    assert secrets_among(environment) == found


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("https://hooks.slack.com/services/T0/B0/abcdefghijkl", ["T0/B0/abcdefghijkl"]),
        ("https://discord.com/api/webhooks/1/abcdefghijkl", ["1/abcdefghijkl"]),
        ("https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/1", ["0123456789abcdef0123456789abcdef"]),
        ("https://b.blob.core.windows.net/c?sv=1&sig=abcdefgh12%3D", ["abcdefgh12%3D", "abcdefgh12="]),
        ("Server=x;User Id=sa;Password=abcdefgh1234;", ["abcdefgh1234"]),
        ("AccountName=a;AccountKey=abcdefgh1234+/==;EndpointSuffix=x", ["abcdefgh1234+/=="]),
        ("https://ann@example.org/a;b=c", []),
        ("PATH=/usr/bin;HOME=/root", []),
    ],
)
def test_ruling_43_webhooks_keys_and_connection_strings_are_secrets_whatever_the_variable(value, secrets):
    assert address_secrets(value) == secrets


def test_short_values_are_no_secrets():
    assert secrets_among({"A_TOKEN": "true", "B_TOKEN": "x" * 12}) == ["x" * 12]
    with pytest.raises(OptionError, match="at least 12 characters, not 4 characters"):
        redact_also("true")


def test_carets_stay_under_their_text_when_a_secret_before_it_goes():
    source = SourceText(f"a {KEYS['aws']()} b {KEYS['github']()} wrong {KEYS['gitlab']()}", "x.dot")
    start = source.text.index("wrong")
    _, line, carets = render_excerpt(source.span(start, start + 5))
    assert line[carets.index("^") : carets.rindex("^") + 1] == "wrong"
    assert line.count(MARK) == 3


def test_a_stored_source_without_secrets_is_the_source_itself():
    source = "digraph { a -> b }"
    assert stored_source(source, None) == (source, False)


def test_a_stored_source_can_be_read_where_a_mark_cannot_stand_in_the_place_of_a_secret():
    secret = "planted_0123456789abcdef"
    source = f'digraph {{ start [shape=Mdiamond] {secret} [label="a {secret}"] start -> {secret} }}'
    redact_also(secret)
    clean, is_redacted = stored_source(source, parse_dot(source))
    assert is_redacted
    assert secret not in clean
    graph = parse_dot(clean)
    assert len(graph.nodes) == 2
    assert [edge.source for edge in graph.edges] == ["start"]
