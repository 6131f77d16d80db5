"""What secrets look like: the forms of well-known keys, names of variables, and spellings of a value.

A table and pure functions; who looks for them is ``redactor.py``.
"""

from __future__ import annotations

import binascii
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """Whether the name of an environment variable marks its value as a secret.

    >>> [is_secret_name(name) for name in ("OPENAI_API_KEY", "LOCAL_KEY", "TOKENIZERS_PARALLELISM", "PWD")]
    [True, True, False, False]
    >>> [is_secret_name(name) for name in ("PGPASSWORD", "MYSQL_PWD", "OLDPWD", "SSH_AUTH_SOCK")]
    [True, True, False, False]
    """
    if _compiled(_NAME_OF_AN_ID).fullmatch(name):
        return True
    return bool(_compiled(_NAME).fullmatch(name)) and not _compiled(_PLAIN_NAME).fullmatch(name)


def secrets_among(environment: Mapping[str, str]) -> list[str]:
    """What is secret in an environment and long enough to be: values by their name, and parts of addresses."""
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
    tail: str  #: What may follow the anchor while more of the key is still to come.
    #: An expression that holds wherever the other does, in JSON text too, without groups that look around: it is for an
    #: engine that has none.
    probe: str
    is_mixed: bool = False  #: Only a text with a digit and a long word is one; ``risk-based-management`` is none.

    @property
    def open_tail(self) -> re.Pattern[str]:
        """What may follow the anchor while more of the key is still to come."""
        return _compiled(self.tail)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such keys are, as offsets."""
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
    """How a value is spelled where texts are quoted: plain, in JSON, in Python, in an address.

    Bytes are looked through as Latin-1, so that what they say in UTF-8 is one more spelling.
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
    """What every base64 text that contains a value has in it, wherever in the text the value begins.

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
