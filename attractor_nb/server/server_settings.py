"""The settings of a server: the root of its runs, who has access, and its limits."""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from attractor_nb.account import MAX_NAME_CHARS, account_name
from attractor_nb.errors import OptionError
from attractor_nb.network import outward_address
from attractor_nb.storage.files.document_files import DocumentFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

TOKEN_BYTES: Final = 32
DEFAULT_MAX_RUNS: Final = 1_000
DEFAULT_MAX_STREAMS: Final = 2_000
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}\Z")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*\Z")
_DEFAULT_PORTS: Final = frozenset({80, 443})
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - who listens there is asked here, too


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """A server's settings."""

    #: The runs base; nothing outside of it is read or written, but for the child files of a source and the documents.
    root: Path
    #: The token of each user, by name; empty for a user without a known name. Each permits every request.
    tokens: Mapping[str, str] = field(repr=False)
    #: Accepted Host headers, in lower case; a request with another one comes from a page that made its
    #: own name point here. None where the proxy before it has looked at that.
    hosts: frozenset[str] | None
    prefix: str = ""  #: Path before all others, without a slash at its end.
    #: A proxy lets users in, and shows the token for them; then nothing is served without it, and the page may be
    #: in a frame of the proxy's own pages.
    is_proxied: bool = False
    documents: Path | None = None  #: The folder whose DOT files the page shows; None for none.
    is_editing: bool = False  #: The page may save them, too.
    is_recovering: bool = True  #: Runs that a lost server of this root left are resumed at start.
    max_runs: int = DEFAULT_MAX_RUNS  #: Most active runs.
    max_streams: int = DEFAULT_MAX_STREAMS  #: Most open event streams.
    max_body_bytes: int = 1024 * 1024  #: Length of a request's body at most.
    body_seconds: float = 30.0  #: Time limit of a body to arrive.
    ticket_seconds: float = 30.0  #: Lifetime of a ticket.
    heartbeat_seconds: float = 15.0  #: Interval of the heartbeat of a silent stream.
    send_seconds: float = 30.0  #: Longest time for which a consumer may leave its connection unread.


def checked_token(token: str | None) -> str:
    """The token that was given, or a fresh one of 256 bits."""
    if token is None:
        return secrets.token_urlsafe(TOKEN_BYTES)
    if _TOKEN.match(token) is None:
        raise OptionError(
            "the token needs 16 to 512 letters, digits or ._~+/=-", hint="remove it, and the server makes a new one"
        )
    return token


def tokens_of(users: Sequence[str], token: str | None) -> dict[str, str]:
    """The token of each user, by name; without users the one token, which belongs to the account of this process.

    Args:
        users: The names.
        token: With users the secret from which their tokens are made, so that a restart does not change them.
    """
    given = checked_token(token)
    if not users:
        return {account_name(): given}
    for name in users:
        if not name.isprintable() or name != name.strip() or not 0 < len(name) <= MAX_NAME_CHARS or {*name} & {*"()"}:
            words = f"1 to {MAX_NAME_CHARS} printable characters without parentheses"
            raise OptionError(f"user {name!r} is not a name", hint=words)
    if len(set(users)) < len(users):
        raise OptionError("a user is named twice", hint="name each user once")
    return {name: _token_of(name, given) for name in users}


def _token_of(name: str, secret: str) -> str:
    digest = hmac.digest(secret.encode(), name.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def checked_prefix(prefix: str) -> str:
    """A path prefix without a slash at its end; empty for none."""
    found = prefix.rstrip("/")
    if _PREFIX.match(found) is None or ".." in found.split("/"):
        raise OptionError(f"prefix {prefix!r} is not a path", hint='for example "/attractor"')
    return found


def check_bind(host: str, *, is_remote_allowed: bool) -> None:
    """Check the address at which a server shall listen."""
    if is_remote_allowed or host == "localhost":
        return
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = False
    if not is_own:
        raise OptionError(
            f"{host} can be reached by other machines, and the token would be sent unencrypted",
            hint="listen on 127.0.0.1 and use an SSH tunnel, or allow it: allow_remote=True",
        )


def check_documents(folder: Path | None, *, is_editing: bool) -> None:
    """Check the folder whose DOT files a server shall show."""
    if folder is not None and not folder.is_dir():
        raise OptionError(f"{folder} is not a folder", hint="name one whose DOT files the page shall show")
    if is_editing and folder is None:
        raise OptionError("there are no files to edit", hint="name their folder: documents=Path(…)")
    if is_editing and not DocumentFolder.is_possible():
        raise OptionError("this system does not open files in a way that keeps links out", hint="leave edit out")


def check_limits(**limits: int) -> None:
    """Check how much a server shall take at a time."""
    for name, limit in limits.items():
        if type(limit) is not int or limit < 1:
            raise OptionError(f"{name} is {limit!r}, but must be 1 or more")


def shown_host(host: str) -> str:
    """The host of the address that is printed: a name by which this machine can ask, and that is let in.

    >>> shown_host("0.0.0.0"), shown_host("::1")
    ('127.0.0.1', '[::1]')
    """
    name = _EVERYWHERE.get(host, host)
    return f"[{name}]" if ":" in name else name


def hosts_of(host: str, port: int, also: Iterable[str] = ()) -> frozenset[str]:
    """The allowed values of the Host header: our names with our port, and those that were given.

    >>> sorted(hosts_of("127.0.0.1", 8765))
    ['127.0.0.1:8765', '[::1]:8765', 'localhost:8765']
    """
    names = {"127.0.0.1", "localhost", "[::1]", shown_host(host).lower()}
    if outward := outward_address(host):
        names.add(shown_host(outward))
    found = {f"{name}:{port}" for name in names}
    if port in _DEFAULT_PORTS:
        found |= names
    return frozenset(found | {name.lower() for name in also})
