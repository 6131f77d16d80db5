"""Finds secrets and takes them out, also of a text in pieces. One redactor serves the whole process.

Nearly every text is clean, and most are inspected during an event or a stage. So the first inspection is a
single pass of one automaton over all forms at once, and only a suspect text is inspected closely. The automaton
takes longer to load than a small run takes: until enough text has been inspected for it to pay, the beginnings
of secrets are searched for one by one.

A possible beginning of a secret is held back until it is known to be one or none.
"""

from __future__ import annotations

import binascii
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast
from urllib.parse import unquote

# The forms of secrets: well-known keys, names of variables, and spellings of a value.

MIN_LENGTH: Final = 12
"""Shorter values are no secrets worth the name: ``true``, ``1`` and ``development`` must stay readable."""

_NAME: Final = (
    r"(?i)(?:.*[_-])?(?:API_?KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|CREDS|JWTS?"
    r"|(?:PRIVATE|ACCESS|SECRET|SIGNING|ENCRYPTION|MASTER|FERNET)_?KEYS?|AUTH_?KEYS?|PAT)(?:[_-].*)?|(?i:.+_KEYS?)"
    r"|.*(?:PASSWORD|TOKEN|API_?KEY|MASTERKEY|BINDPW)|SSHPASS|(?:.+[_-])(?:PWD|PASS|AUTH)|(?:.*[_-])?COOKIES?"
)
_PLAIN_NAME: Final = (
    r"(?i).*[_-](?:FILE|PATH|DIR|DIRECTORY|URL|URI|HOST|PORT|NAME|ID|TYPE|TTL|LIMIT|COUNT|TIMEOUT|REGION)"
)
"""Names of what belongs to a secret without being one: ``TOKEN_FILE``, ``SECRET_NAME``."""
_NAME_OF_AN_ID: Final = r"(?i)(?:.*[_-])?SECRET_ID"
"""A secret in spite of its last word: that of Vault."""


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """An expression that is compiled at its first use, to keep the import of the package fast."""
    return re.compile(expression)


def is_secret_name(name: str) -> bool:
    """True if the name of an environment variable marks its value as a secret.

    >>> [is_secret_name(name) for name in ("OPENAI_API_KEY", "LOCAL_KEY", "TOKENIZERS_PARALLELISM", "PWD")]
    [True, True, False, False]
    >>> [is_secret_name(name) for name in ("PGPASSWORD", "MYSQL_PWD", "OLDPWD", "SSH_AUTH_SOCK")]
    [True, True, False, False]
    """
    if _compiled(_NAME_OF_AN_ID).fullmatch(name):
        return True
    return bool(_compiled(_NAME).fullmatch(name)) and not _compiled(_PLAIN_NAME).fullmatch(name)


def secrets_among(environment: Mapping[str, str]) -> list[str]:
    """The secrets of an environment that are long enough: values by their name, and parts of addresses."""
    found: list[str] = []
    for name, value in environment.items():
        found += [value] if is_secret_name(name) else address_secrets(value)
    return [value for value in found if len(value) >= MIN_LENGTH]


def address_secrets(value: str) -> list[str]:
    """The secrets of the addresses and connection strings in a text: passwords, keys, and what is secret by its name.

    >>> address_secrets("http://127.0.0.1:8765/#token=abc"), address_secrets("postgres://ann:pa%20ss@db/x?token=")
    (['abc'], ['pa%20ss', 'pa ss'])
    """
    found: list[str] = []
    if ";" in value:
        found += [given[2] for given in _compiled(_PART).finditer(value) if _is_secret_parameter(given[1])]
    if "://" in value:
        found += [password[1] for password in _compiled(_USER_INFO).finditer(value)]
        found += [part for key in _compiled(_KEY_OR_HOOK).finditer(value) for part in key.groups() if part]
        found += [given[2] for given in _compiled(_PARAMETER).finditer(value) if _is_secret_parameter(given[1])]
    return list(dict.fromkeys(spelling for text in found for spelling in (text, unquote(text))))


_SECRET_PARAMETERS: Final = frozenset(
    {"sig", "signature", "x-amz-signature", "accountkey", "sharedaccesskey", "sharedaccesssignature", "pwd"}
)


def _is_secret_parameter(name: str) -> bool:
    return name.lower() in _SECRET_PARAMETERS or is_secret_name(name)


_PART: Final = r"""(?:^|;)\s*([A-Za-z ]{1,40})=([^;"'\s]+)"""
"""A part of a connection string, such as that of Azure: ``AccountKey=…``."""
_KEY_OR_HOOK: Final = (
    r"://([A-Za-z0-9_-]{20,200})@|://hooks\.slack\.com/services/([^\s\"'<>]+)"
    r"|://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/([^\s\"'<>]+)"
)
"""A key in place of a user, as of Sentry, and the path of a webhook, which is its key."""
_USER_INFO: Final = r"""://[^\s/:@"'<>]*:([^\s/"'<>]+)@"""
_PARAMETER: Final = r"""[?#&]([A-Za-z_-]{1,40})=([^\s&#"'<>]+)"""


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The form of a well-known key."""

    anchor: str  #: The literal it begins with.
    expression: str  #: The whole of it; its first group, if there is one, is the secret part.
    tail: str  #: Text that may follow the anchor while more of the key is still to come.
    #: An expression that holds wherever the other does, in JSON text too, without groups that look around: it is for an
    #: engine that has none.
    probe: str
    is_mixed: bool = False  #: Only a text with a digit and a long word is one; ``risk-based-management`` is none.

    @property
    def open_tail(self) -> re.Pattern[str]:
        """The pattern that may follow the anchor while the key is incomplete."""
        return _compiled(self.tail)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The offsets of such keys."""
        if self.anchor not in text:
            return
        for found in _compiled(self.expression).finditer(text):
            start, end = found.span(found.lastindex or 0)
            if not self.is_mixed or _is_mixed(text[start:end]):
                yield start, end


def _is_mixed(key: str) -> bool:
    return bool(_compiled(_LONG_WORD).search(key)) and any(char.isdigit() for char in key)


_LONG_WORD: Final = r"[A-Za-z0-9]{12}"


def _form(anchor: str, rest: str, tail: str, *, probe: str = "", is_mixed: bool = False) -> KeyForm:
    return KeyForm(anchor, re.escape(anchor) + rest, tail, literal(anchor) + (probe or rest), is_mixed)


def literal(text: str) -> str:
    """A text as an expression that matches it in any engine."""
    return "".join(char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):x}}}" for char in text)


_WORD, _DASHED = r"[A-Za-z0-9]", r"[A-Za-z0-9_-]"
_PEM_BODY: Final = r"[^-]*(?:-{1,4}[^-]+)*"
_PEM_HEAD: Final = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END: Final = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_LINES: Final = r"(?:(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{40,})(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]+)*)?"
_CREDENTIAL_CHAR: Final = r"[A-Za-z0-9._~+/=-]"

KEY_FORMS: Final = (
    _form("sk-", rf"{_DASHED}{{16,}}", rf"{_DASHED}*", is_mixed=True),  # OpenAI, Anthropic, OpenRouter
    _form("gsk_", rf"{_WORD}{{20,}}", rf"{_WORD}*"),  # Groq
    _form("AKIA", r"[0-9A-Z]{16}", r"[0-9A-Z]*"),  # AWS
    _form("ASIA", r"[0-9A-Z]{16}", r"[0-9A-Z]*"),
    *(_form(f"gh{kind}_", rf"{_WORD}{{30,}}", rf"{_WORD}*") for kind in "pousr"),  # GitHub
    _form("github_pat_", r"[A-Za-z0-9_]{22,}", r"[A-Za-z0-9_]*"),
    _form("glpat-", rf"{_DASHED}{{20,}}", rf"{_DASHED}*"),  # GitLab
    _form("AIza", rf"{_DASHED}{{35,}}", rf"{_DASHED}*"),  # Google
    _form("xox", r"[a-z]-[A-Za-z0-9-]{10,}", r"[A-Za-z0-9-]*"),  # Slack
    _form("hf_", rf"{_WORD}{{30,}}", rf"{_WORD}*"),  # Hugging Face
    _form(  # a JSON web token: header and payload, and the signature if it is there
        "eyJ", rf"{_DASHED}{{8,512}}\.eyJ{_DASHED}{{8,}}(?:\.{_DASHED}*)?", r"[A-Za-z0-9_.-]*", probe=rf"{_DASHED}{{8}}"
    ),
    _form(  # an Authorization header
        "earer",
        rf"\s{{1,4}}({_CREDENTIAL_CHAR}{{16,}})",
        rf"\s{{0,4}}{_CREDENTIAL_CHAR}*",
        probe=rf"(?:\s|\\[nrt]){{1,4}}{_CREDENTIAL_CHAR}{{16}}",
        is_mixed=True,
    ),
    _form(  # user and password in an address
        "://", r"""([^\s/:@"'<>]*:[^\s/"'<>]+)@""", r"""[^\s/"'<>]*""", probe=r"[^\s/:@]*:[^\s/]+@"
    ),
    KeyForm(  # what an address lets its reader in with, such as that of our own server
        "token=",
        rf"(?<=[?#&])token=({_CREDENTIAL_CHAR}{{16,}})",
        rf"{_CREDENTIAL_CHAR}*",
        literal("token=") + rf"{_CREDENTIAL_CHAR}{{16}}",
    ),
    _form(
        "-----BEGIN ",
        rf"{_PEM_HEAD}(?:{_PEM_BODY}{_PEM_END}|{_PEM_LINES})",
        rf"(?:{_PEM_HEAD}{_PEM_BODY}(?:-{{0,5}}|-----EN?|-----END[A-Z0-9 ]*-{{0,4}})|[A-Z0-9 ]*-{{0,4}})\Z",
        probe=r"[A-Z0-9 ]{0,40}PRIVATE KEY",
    ),
)


def spellings(value: str) -> list[str]:
    """The spellings of a value where texts are quoted: plain, in JSON, in Python, in an address.

    Bytes are searched as Latin-1, so the value's UTF-8 bytes are one more spelling.
    """
    raw = value.encode("utf-8", "surrogatepass")
    found = [
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        raw.decode("latin-1"),
        _url_quoted(raw, "-._~"),
        _url_quoted(raw, "-._~/"),
        _url_quoted(raw, "-._~ ").replace(" ", "+"),
    ]
    return list(dict.fromkeys(found))


def _url_quoted(raw: bytes, safe: str) -> str:
    return "".join(
        chr(byte) if byte < 128 and (chr(byte).isalnum() or chr(byte) in safe) else f"%{byte:02X}" for byte in raw
    )


def base64_cores(value: str) -> list[str]:
    """The digits that every base64 text of a value contains, wherever in the text the value begins.

    The digits at both ends, which depend on its neighbours too, are left out.
    """
    raw = value.encode("utf-8", "surrogatepass")
    cores: list[str] = []
    for shift in range(3):
        digits = binascii.b2a_base64(bytes(shift) + raw, newline=False).decode().rstrip("=")
        is_last_shared = (shift + len(raw)) % 3 != 0
        core = digits[(0, 2, 3)[shift] : -1 if is_last_shared else None]
        cores += [core, core.translate(_URL_SAFE)]
    return list(dict.fromkeys(cores))


_URL_SAFE: Final = str.maketrans("+/", "-_")


MARK: Final = "[redacted]"
"""Replacement of a secret."""
_CONTAINERS: Final = frozenset({dict, list, tuple})
PROBED_CHARACTERS: Final = 24
"""Of a known value the first look needs no more: what begins like it is looked at closely."""
PLAIN_CHARACTERS: Final = 64 * 1024
"""So much is looked at without the automaton, which takes as long to load as some 200 kB take without it."""

Probe = Callable[[str | bytes], bool]
Openings = Mapping[str, tuple[tuple[str, int], ...]]

MAX_HELD: Final = 64 * 1024
"""No key is that long: what is held back for longer is given out, whole keys in it redacted."""


class Redactor:
    """The known secrets and the search for them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._plain_characters = 0
        self._probes: tuple[Probe, Probe] | None = None
        self._to_json: Callable[..., bytes] | None = None
        self.longest = 0
        self._compile()

    def learn(self, values: Iterable[str]) -> None:
        """Take out these values too from now on; those of fewer than ``MIN_LENGTH`` characters are not."""
        new = [value for value in values if len(value) >= MIN_LENGTH and value not in self._values]
        if new:
            self._values.update(dict.fromkeys(new))
            self._compile()

    def prepare(self) -> None:
        """Load the automaton. The first look does so by itself when it pays."""
        if self._to_json is None:
            from pydantic_core import to_json  # noqa: PLC0415 - slow to import

            self._to_json = to_json
            self._compile()

    def _compile(self) -> None:
        while True:
            values = tuple(self._values)
            found = {spelling for value in values for spelling in spellings(value)}
            self.literals = tuple(sorted(found, key=len, reverse=True))
            self.cores = tuple({core for value in values for core in base64_cores(value)})
            self.openings = _openings(self.literals, self.cores)
            self.longest = max((self.longest, *map(len, (*self.literals, *self.cores))))
            known = tuple(dict.fromkeys(text[:PROBED_CHARACTERS] for text in (*self.literals, *self.cores)))
            self._starts = (*(form.anchor for form in KEY_FORMS), *known)
            self._starts_in_bytes = tuple(start.encode("utf-8", "surrogatepass") for start in self._starts)
            shared = "[A-Za-z0-9+/_-]?"
            cores = "|".join(re.escape(core) for core in self.cores)
            self._in_base64 = re.compile(f"{shared}(?:{cores}){shared}={{0,2}}") if cores else None
            if self._to_json is not None:
                self._probes = _probes(known)
            if len(self._values) == len(values):  # else another thread has learnt more meanwhile
                return

    def may_hold(self, data: str | bytes) -> bool:
        """True if a text, or our UTF-8, deserves a closer look; False is certain."""
        if len(data) < MIN_LENGTH:
            return False
        probes = self._probes
        if probes is None:
            self._plain_characters += len(data)
            if self._plain_characters > PLAIN_CHARACTERS or "pydantic_core" in sys.modules:
                self.prepare()
            if isinstance(data, str):
                return any(start in data for start in self._starts)
            return any(start in data for start in self._starts_in_bytes)
        if probes[0](data):
            return probes[1](data)
        # A lone surrogate is beyond the automaton: it answers False for what it cannot read.
        return type(data) is str and not data.isascii() and not _is_readable(data)

    def secret_places(self, text: str) -> list[tuple[int, int]]:
        """The offsets of the secrets in a text, in order and apart from one another."""
        if not self.may_hold(text):
            return []
        found = [place for form in KEY_FORMS for place in form.find(text)]
        for value in self.literals:
            start = text.find(value)
            while start >= 0:
                found.append((start, start + len(value)))
                start = text.find(value, start + 1)
        if self._in_base64 is not None and any(core in text for core in self.cores):
            found += [match.span() for match in self._in_base64.finditer(text)]
        return _united(found)

    def holds_secret(self, text: str) -> bool:
        """True if there is a secret in a text."""
        return bool(self.secret_places(text))

    def redacted(self, text: str) -> str:
        """Return the text without secrets; the same object if it contains none."""
        if not self.may_hold(text):
            return text
        places = self.secret_places(text)
        if not places:
            return text
        pieces: list[str] = []
        position = 0
        for start, end in places:
            pieces += [text[position:start], MARK]
            position = end
        return "".join([*pieces, text[position:]])

    def redacted_value(self, value: Any) -> Any:
        """Return a JSON value without secrets, keys included; the same object if it contains none."""
        if type(value) in _CONTAINERS and self._to_json is not None:
            try:
                if not self.may_hold(self._to_json(value)):  # one look at all of it
                    return value
            except (ValueError, RecursionError):  # it has no such form: each text by itself
                pass
        return self._redacted_value(value)

    def _redacted_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redacted(value)
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, dict | Mapping):  # a dict is known sooner than what is only like one
            entries = cast("Mapping[Any, Any]", value)
            clean: dict[Any, Any] = {}
            is_same = True
            for key, item in entries.items():
                clean_key, clean_item = self._redacted_value(key), self._redacted_value(item)
                clean[clean_key] = clean_item
                is_same = is_same and clean_key is key and clean_item is item
            return cast("Any", value) if is_same else clean
        if isinstance(value, list | tuple):
            items = cast("list[Any] | tuple[Any, ...]", value)
            copies = [self._redacted_value(item) for item in items]
            if all(copy is item for copy, item in zip(copies, items, strict=True)):
                return cast("Any", value)
            return tuple(copies) if isinstance(value, tuple) else copies
        return value


def _united(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places that overlap become one: no rest of one secret is left beside another."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if united and start < united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def _openings(literals: Iterable[str], cores: Iterable[str]) -> Openings:
    """By first character: each literal, and how many characters behind it belong to it as well."""
    found: dict[str, list[tuple[str, int]]] = {}
    for text, shared in (*((text, 0) for text in literals), *((core, 1) for core in cores)):
        found.setdefault(text[0], []).append((text, shared))
    return {first: tuple(entries) for first, entries in found.items()}


def _probes(known: Iterable[str]) -> tuple[Probe, Probe]:
    """True if a text has the beginning of any secret, and whether it continues like one.

    Each is one pass, by the engine for expressions that pydantic brings; for literals alone it is four
    times as fast as for the rest.
    """
    from pydantic_core import SchemaValidator, core_schema  # noqa: PLC0415 - slow to import

    def automaton(*expressions: str) -> Probe:
        schema = core_schema.str_schema(pattern="|".join(expressions), regex_engine="rust-regex")
        return SchemaValidator(schema).isinstance_python

    starts = [literal(text) for text in known]
    anchors = [literal(form.anchor) for form in KEY_FORMS]
    return automaton(*anchors, *starts), automaton(*(form.probe for form in KEY_FORMS), *starts)


def _is_readable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


REDACTOR: Final = Redactor()
"""The one of this process."""
learn = REDACTOR.learn
may_hold = REDACTOR.may_hold
secret_places = REDACTOR.secret_places
holds_secret = REDACTOR.holds_secret
redacted = REDACTOR.redacted
redacted_value = REDACTOR.redacted_value


class StreamRedactor:
    """One stream of text without its secrets.

    Only a secret is held back: the letters that every key of a kind begins with tell nothing of it.

    >>> stream = StreamRedactor()
    >>> stream.feed("the key is AKIA"), stream.feed("ABCDEFGHIJ"), stream.feed("KLMNOP, keep it")
    ('the key is ', '', '[redacted], keep it')
    """

    __slots__ = ("_before", "_held")

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; what can be given out by now."""
        return self._given_out(self._before + self._held + text, is_end=False)

    def finish(self) -> str:
        """The text that was held back, when nothing more follows."""
        return self._given_out(self._before + self._held, is_end=True)

    def _given_out(self, text: str, *, is_end: bool) -> str:
        """The next part of the output, of a text that begins with what was given out already."""
        origin, length = len(self._before), len(text)
        places = REDACTOR.secret_places(text)
        end = length if is_end else max(origin, _settled_length(text, places))
        if length - end > MAX_HELD:
            end = length
        pieces: list[str] = []
        position = origin
        for start, stop in places:
            if origin < stop <= end:
                pieces += [text[position : max(start, position)], MARK]
                position = stop
        pieces.append(text[position:end])
        self._before, self._held = text[max(0, end - _LONGEST_ANCHOR) : end], text[end:]
        return "".join(pieces)


_LONGEST_ANCHOR: Final = max(len(form.anchor) for form in KEY_FORMS)


def _settled_length(text: str, places: list[tuple[int, int]]) -> int:
    """The length of the part of a text that is settled, whatever follows it."""
    end = min(_open_literal(text), _open_key(text))
    if end < len(text):
        for start, stop in places:
            if start < end < stop:
                return start
    return end


def _open_literal(text: str) -> int:
    """The beginning of the first literal that is cut off by the end of the text; the text's length without one."""
    length = len(text)
    openings = REDACTOR.openings
    for start in range(max(0, length - REDACTOR.longest), length):
        entries = openings.get(text[start])
        if entries is None:
            continue
        rest = text[start:]
        for secret, shared in entries:
            # A base64 core shares a digit with each of its neighbours: the next one must be seen too.
            if length - start < len(secret) + shared and secret.startswith(rest):
                return max(0, start - shared)
    return length


def _open_key(text: str) -> int:
    """The beginning of the first key that may continue beyond the end of the text; the text's length without one."""
    length = end = len(text)
    for form in KEY_FORMS:
        start = text.find(form.anchor)
        while 0 <= start < end:
            tail = form.open_tail.match(text, start + len(form.anchor))
            after = tail.end() if tail else start + 1
            if tail and after == length:
                end = start
                break
            start = text.find(form.anchor, max(after, start + 1))
    return end
