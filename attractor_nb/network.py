"""The network settings of an environment: the proxy of a server, and the certificates that count.

The module is pure, except that it checks files which variables name. Servers on this machine are reached without
a proxy: a proxy is elsewhere, and a prompt for a local model, and its key, stay here.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

WEB_PROXIES: Final = frozenset({"http", "https"})
SOCKS_PROXIES: Final = frozenset({"socks5", "socks5h"})
_NUMBERS: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]+(?:\.(?:0[xX])?[0-9a-fA-F]+){0,3}")
_PLAIN_ENTRY: Final = re.compile(r"[^\s:\[\]\x00-\x1f]*(?::\d{1,5})?")
_BRACKETED_ENTRY: Final = re.compile(r"\[([^\[\]]+)\](?::\d{1,5})?")

_EVERYWHERE: Final = {"0.0.0.0": (socket.AF_INET, "192.0.2.1"), "::": (socket.AF_INET6, "2001:db8::1")}  # noqa: S104 - told apart here
"""For a host that means all addresses: the family, and an address that is never assigned (RFC 5737, RFC 3849)."""


@dataclass(frozen=True, slots=True)
class NetworkFault:
    """A variable of the environment that keeps requests from leaving."""

    variable: str  #: Its name, as it is set.
    problem: str  #: Problem of its value.
    hint: str  #: The remedy.

    @property
    def message(self) -> str:
        """Variable and problem in one sentence."""
        return f"the environment variable {self.variable} {self.problem}"


def is_this_machine(host: str) -> bool:
    """True if a host is the machine that asks, by its name or number.

    >>> [is_this_machine(host) for host in ("127.0.0.2", "::1", "LOCALHOST.", "a.localhost", "0.0.0.0", "10.0.0.1")]
    [True, True, True, True, True, False]
    >>> [is_this_machine(host) for host in ("127.1", "2130706433", "0x7f.1", "0", "10.1", "1.example")]
    [True, True, True, True, False, False]
    """
    address = _address_of(host.strip("[]"))
    if address is None:
        name = host.lower().removesuffix(".")
        return name in {"localhost", socket.gethostname().lower()} or name.endswith(".localhost")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, also in the forms that the system reads: ``127.1``, ``0x7f.1``, ``2130706433``."""
    with suppress(ValueError):
        return ip_address(host)
    with suppress(OSError, UnicodeEncodeError, ValueError):
        return IPv4Address(socket.inet_aton(host)) if _NUMBERS.fullmatch(host) else None
    return None


def is_local(url: str) -> bool:
    """True if an address is one of this machine; an empty one is that of a provider."""
    with suppress(ValueError):
        return is_this_machine(urlsplit(url).hostname or "")
    return False


def proxy_variables(environment: Mapping[str, str], schemes: Collection[str]) -> list[tuple[str, str]]:
    """The proxies that are set for schemes, ``all`` among them: each variable and its value.

    The spelling in small letters counts before the other one, as everywhere.

    >>> proxy_variables({"HTTP_PROXY": "http://a:1", "http_proxy": "b:2", "ALL_PROXY": ""}, ("http", "all"))
    [('http_proxy', 'b:2')]
    """
    found = (_spelled(environment, f"{scheme}_proxy") for scheme in schemes)
    return [(name, value) for name, value in found if value]


def certificate_fault(environment: Mapping[str, str]) -> NetworkFault | None:
    """The fault in the variables that name certificates, or in the one that names the log of keys."""
    file, folder, log = (environment.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"))
    if file and not Path(file).is_file():
        return NetworkFault("SSL_CERT_FILE", f"names {file}, which is not a file", "correct it, or unset it")
    if folder and not file and not Path(folder).is_dir():
        return NetworkFault("SSL_CERT_DIR", f"names {folder}, which is not a folder", "correct it, or unset it")
    if log and not Path(log).parent.is_dir():
        return NetworkFault("SSLKEYLOGFILE", f"names {log}, whose folder does not exist", "correct it, or unset it")
    return None


def proxy_fault(
    environment: Mapping[str, str], schemes: Collection[str], proxies: Collection[str]
) -> NetworkFault | None:
    """The fault in the variables that name proxies.

    Args:
        environment: The environment.
        schemes: Whose proxies the client reads: ``http``, ``https``, ``all``.
        proxies: The schemes of proxies that the client can speak to.
    """
    found = proxy_variables(environment, schemes)
    for name, value in found:
        if fault := _proxy_fault(name, value, proxies):
            return fault
    exceptions, listed = _spelled(environment, "no_proxy")
    for entry in map(str.strip, listed.split(",")) if found else ():
        if not _is_readable(entry):
            problem = f"has the entry {entry!r}, which is no host, so that its requests would go to the proxy"
            return NetworkFault(exceptions, problem, "such as localhost,.example.org,10.0.0.0/8,[fd00::1]")
    return None


def _proxy_fault(name: str, value: str, proxies: Collection[str]) -> NetworkFault | None:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return NetworkFault(name, f"is {value}, which is not an address", "such as http://proxy.example.org:3128")
    if parts.scheme in SOCKS_PROXIES and parts.scheme not in proxies:
        hint = 'name an http:// proxy, or unset it; model calls can use SOCKS after pip install "httpx2[socks]"'
        return NetworkFault(name, f"is {value}, a SOCKS proxy, which cannot be used as it is", hint)
    if parts.scheme not in proxies or not is_whole:
        hint = "such as http://proxy.example.org:3128 or socks5://proxy.example.org:1080"
        return NetworkFault(name, f"is {value}, which is no proxy that can be used", hint)
    return None


def _spelled(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    spelling = name if name in environment else name.upper()
    return spelling, environment.get(spelling, "").strip()


def _is_readable(entry: str) -> bool:
    """True if an entry of ``no_proxy`` names a host, a domain or a net; what else a list has is left alone."""
    host = (entry.partition("://")[2] or entry).partition("/")[0]
    bracketed = _BRACKETED_ENTRY.fullmatch(host)
    if bracketed is None and host.count(":") < 2:
        return _PLAIN_ENTRY.fullmatch(host) is not None
    try:
        ip_address(bracketed[1] if bracketed else host)
    except ValueError:
        return False
    return True


def outward_address(host: str) -> str:
    """The address by which other machines reach a server that listens everywhere; empty where there is none.

    Nothing is sent: the system only says which of its addresses it would send from.

    >>> outward_address("127.0.0.1")
    ''

    Args:
        host: The address at which the server listens: ``0.0.0.0`` or ``::`` for all.
    """
    if host not in _EVERYWHERE:
        return ""
    family, elsewhere = _EVERYWHERE[host]
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as looking:
        looking.connect((elsewhere, 9))
        address = str(looking.getsockname()[0])
        return "" if ip_address(address).is_loopback else address
    return ""
