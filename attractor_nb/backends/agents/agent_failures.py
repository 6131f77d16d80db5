"""The failures of agent calls, and which of them a retry can fix (Appendix D).

Agents say it in words, in an exit code, or in the status that their model's server gave. What none of the
rules here knows is a plain failure: it is retried where the node asks for retries.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attractor_nb.errors import RetryableError, StageError, TerminalError
from attractor_nb.platforms import SIGKILL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from attractor_nb.backends.agents.dialects import Dialect


MAX_REASON_CHARACTERS: Final = 500
"""Longest quotation of an agent in the reason of a failure."""
MAX_NAMED: Final = 5
"""Most tools that a warning names."""


class FailureKind(Enum):
    """The kind of a failure."""

    ACCESS = auto()
    BILLING = auto()
    LIMIT = auto()
    NETWORK = auto()
    SERVER = auto()
    FLAGS = auto()
    MODEL = auto()
    SESSION = auto()
    TURNS = auto()
    TRUST = auto()
    REPOSITORY = auto()
    REQUEST = auto()
    ANSWER = auto()
    REFUSAL = auto()
    UNKNOWN = auto()


TRANSIENT: Final = frozenset({FailureKind.LIMIT, FailureKind.NETWORK, FailureKind.SERVER, FailureKind.ANSWER})
"""Failures that another attempt may fix."""
_UNMEASURED: Final = frozenset({FailureKind.ACCESS, FailureKind.BILLING, FailureKind.NETWORK})
"""Nothing was asked: the account was refused, or the server was not reached (ruling 51)."""
_HINTS: Final[Mapping[FailureKind, str]] = {
    FailureKind.ACCESS: "log in once by starting {name} in a terminal, or set {keys}",
    FailureKind.BILLING: "check the account that {name} uses",
    FailureKind.FLAGS: "this version of {name} does not know these arguments and may be too old; {install}",
    FailureKind.MODEL: "check llm_model: {name} accepts only models of its own provider",
    FailureKind.SESSION: "a session exists only on its machine and for its directory; "
    "start a new thread with another thread_id",
    FailureKind.TURNS: "allow more turns or money in its own settings, or give the node a smaller task",
    FailureKind.TRUST: "start {name} there once and trust the directory, or pass its flag to the backend",
    FailureKind.REPOSITORY: 'run it in a git repository, or give the backend arguments=("--skip-git-repo-check",)',
    FailureKind.REFUSAL: "change the prompt, or use another model",
    FailureKind.REQUEST: "check the node's prompt and the settings of {name}",
}
_ENDED_CODES: Final = (128 + SIGKILL, 128 + signal.SIGTERM)
"""Exit codes of a program that was ended through a shell, or ended itself when it was told to."""
_STATUS_KINDS: Final[Mapping[int, FailureKind]] = {
    400: FailureKind.REQUEST,
    401: FailureKind.ACCESS,
    402: FailureKind.BILLING,
    403: FailureKind.ACCESS,
    404: FailureKind.MODEL,
    408: FailureKind.SERVER,
    413: FailureKind.REQUEST,
    422: FailureKind.REQUEST,
    429: FailureKind.LIMIT,
}
_WORDS: Final = (
    (FailureKind.ANSWER, (r"error_max_structured_output_retries",)),
    (
        FailureKind.FLAGS,
        (
            r"unknown (?:option|argument|command)",
            r"unexpected argument",
            r"unrecognized (?:option|argument|subcommand)",
            r"invalid value .{0,60} for '",
            r"option .{0,60} argument .{0,60} is invalid",
            r"invalid values:",
        ),
    ),
    (
        FailureKind.SESSION,
        (
            r"no conversation found",
            r"no rollout found",
            r"session .{0,80}not found",
            r"no (?:saved |previous )?sessions? found",
            r"invalid session identifier",
            r"error resuming session",
        ),
    ),
    (
        FailureKind.TURNS,
        (r"error_max_turns", r"error_max_budget", r"max(?:imum)?[ _](?:session )?turns", r"turn limit"),
    ),
    (FailureKind.TRUST, (r"untrusted (?:folder|workspace|directory)", r"(?:folder|workspace) is not trusted")),
    (FailureKind.REPOSITORY, (r"skip-git-repo-check",)),
    (FailureKind.LIMIT, (r"resource[_ ]exhausted", r"per[_ ]?minute")),  # Gemini names plan and billing in these, too
    (
        FailureKind.BILLING,
        (r"credit balance", r"insufficient[_ ]quota", r"billing", r"payment required", r"spending limit"),
    ),
    (
        FailureKind.LIMIT,
        (
            r"rate[_ -]?limit",
            r"too many requests",
            r"usage limit",
            r"limit reached",
            r"hit your .{0,20}limit",
            r"quota (?:exceeded|exhausted)",
            r"exceeded your current quota",
            r"exhausted your capacity",
        ),
    ),
    (
        FailureKind.ACCESS,
        (
            r"invalid (?:x-)?api[ -]?key",
            r"incorrect api key",
            r"api[ -]?key not (?:found|valid)",
            r"missing api key",
            r"/login",
            r"not logged in",
            r"authenticat",
            r"unauthori[sz]ed",
            r"auth method",
            r"token (?:has )?expired",
            r"refresh[_ ]token",
            r"(?:sign|log) ?in again",
            r"permission[_ ]denied",
            r"forbidden",
        ),
    ),
    (
        FailureKind.MODEL,
        (
            r"model .{0,80}(?:not found|does not exist|not supported)",
            r"(?:invalid|unknown) model",
            r"issue with the selected model",
        ),
    ),
    (
        FailureKind.NETWORK,
        (
            r"econnrefused|enotfound|eai_again|enetunreach|ehostunreach",
            r"connection refused",
            r"network is unreachable",
            r"getaddrinfo|could not resolve host|name resolution",
        ),
    ),
    (
        FailureKind.SERVER,
        (
            r"overloaded",
            r"internal server error",
            r"bad gateway",
            r"service unavailable",
            r"server_error",
            r"timed? ?-?out",
            r"econnreset",
            r"connection (?:error|reset|closed)",
            r"fetch failed",
            r"network",
            r"stream (?:disconnected|error)",
            r"reconnecting",
            r"at capacity|high demand",
        ),
    ),
)
"""In this order: the first that fits counts."""
_STATUS_IN_WORDS: Final = re.compile(
    r"(?:status(?: code)?|error|http|api error|\bcode)\W{0,4}([45]\d\d)\b|^\W*([45]\d\d)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """A call that failed."""

    words: str = ""  #: The agent's message about it.
    status: int = 0  #: HTTP status that the model's server gave, or 0.
    exit_code: int = 0  #: The program's; negative: the signal that ended it.
    kind: FailureKind | None = None  #: Kind of failure, where the agent gives more than a text.


def kind_of(failure: AgentFailure, exit_kinds: Mapping[int, FailureKind]) -> FailureKind:
    """The kind of a failure: by the server's status first, then the words, then the exit code.

    >>> kind_of(AgentFailure("429 Too Many Requests"), {}), kind_of(AgentFailure("Invalid API key"), {})
    (<FailureKind.LIMIT: 3>, <FailureKind.ACCESS: 1>)
    """
    if failure.kind is not None:
        return failure.kind
    status = failure.status or _status_in(failure.words)
    by_words = next((kind for kind, pattern in _patterns() if pattern.search(failure.words)), None)
    if status == 429 and by_words is FailureKind.BILLING:
        return by_words  # an account without money is refused with it, too
    if status == 400 and by_words is not None:
        return by_words  # it stands for anything
    if (kind := _kind_of_status(status)) is not None:
        return kind
    return by_words or exit_kinds.get(failure.exit_code, FailureKind.UNKNOWN)


@cache
def _patterns() -> tuple[tuple[FailureKind, re.Pattern[str]], ...]:
    """The words as expressions; made when something fails for the first time."""
    return tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS)


def denials(dialect: Dialect, denied: Sequence[str]) -> str:
    """The tools that an agent was denied, and the number of its attempts."""
    counts = Counter(denied)
    named = [f"{tool} ({count} times)" if count > 1 else tool for tool, count in counts.most_common(MAX_NAMED)]
    more = f" and {len(counts) - MAX_NAMED} more" if len(counts) > MAX_NAMED else ""
    return f"{dialect.name} was denied {', '.join(named)}{more}"


def error_of(failure: AgentFailure, dialect: Dialect, now: datetime) -> StageError:
    """The error that a failure is raised as.

    Args:
        failure: What failed.
        dialect: Whose call it was.
        now: The time, with its zone: a limit says when it ends.

    Returns:
        ``RetryableError`` for what is transient, ``TerminalError`` with a remedy for what stays wrong, and
        a ``StageError`` for an unknown failure.
    """
    reason = _reason(failure, dialect.name)
    if failure.exit_code < 0 or failure.exit_code in _ENDED_CODES:
        return RetryableError(reason)
    kind = kind_of(failure, dialect.exit_kinds)
    if kind in TRANSIENT:
        wait = seconds_until_reset(failure.words, now) if kind is FailureKind.LIMIT else None
        return RetryableError(reason, retry_after_seconds=wait, is_unmeasured=kind in _UNMEASURED)
    if kind is FailureKind.UNKNOWN:
        return StageError(reason)
    hint = _HINTS[kind].format(name=dialect.name, keys=" or ".join(dialect.keys), install=dialect.install)
    return TerminalError(reason, hint=hint, is_unmeasured=kind in _UNMEASURED)


def _reason(failure: AgentFailure, name: str) -> str:
    if failure.exit_code < 0:
        how = f"was ended by {_signal_name(-failure.exit_code)}"
    elif failure.exit_code:
        how = f"ended with exit code {failure.exit_code}"
    else:
        how = "failed"
    words = failure.words.strip()
    if len(words) > MAX_REASON_CHARACTERS:
        words = f"…{words[-MAX_REASON_CHARACTERS:]}"
    return f"{name} {how}: {words}" if words else f"{name} {how} and did not say why"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _status_in(words: str) -> int:
    found = _STATUS_IN_WORDS.search(words)
    return int(found[1] or found[2]) if found else 0


def _kind_of_status(status: int) -> FailureKind | None:
    if status >= 500:
        return FailureKind.SERVER
    return _STATUS_KINDS.get(status)


# The reset time of a usage limit, parsed from an agent's words. Pure: the current time is an argument.

MAX_DAYS: Final = 31
"""A limit that ends later is none that anybody waits for: the number means something else."""
_SLACK: Final = timedelta(minutes=10)
"""A time of day that is over since so long has just been, and is not tomorrow's."""
_TIMESTAMP: Final = re.compile(r"\|\s*(1\d{9})(?:\d{3})?\b")
_BEGINNING: Final = r"(?:reset|try again|retry|available again)\w{0,12}(?: it)?(?: \w{1,20})?? {0,4}"
"""All repeats have a limit: the words are an agent's, and as long as it likes (ruling 52)."""
_IN: Final = re.compile(
    _BEGINNING + r"(?:in|after):? {0,4}((?:\d{1,9}(?:\.\d{1,9})? {0,4}[a-z]{1,20}(?:,? and |,? )?){1,9}+)",
    re.IGNORECASE,
)
_PART: Final = re.compile(
    r"(\d+(?:\.\d+)?) *(ms|milliseconds?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])",
    re.IGNORECASE,
)
_UNITS: Final = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_AT: Final = re.compile(
    _BEGINNING
    + r"(?:at|on)? {0,4}"
    + r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,9} (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    + r"(?:,? (?P<year>20\d\d))?,? {0,4}(?:at )?)?"
    + r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)? {0,4}(?P<half>[ap]\.?m\b)?"
    + r"(?:[^\S\n]{0,4}\((?P<zone>[A-Za-z0-9_+/-]{1,40})\)|[^\S\n]{0,4}(?P<utc>UTC|GMT)\b)?",
    re.IGNORECASE,
)


def seconds_until_reset(words: str, now: datetime) -> float | None:
    """Seconds until a limit ends, as a message says it; None for one that does not say.

    >>> now = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
    >>> seconds_until_reset("5-hour limit reached - resets 3pm", now)
    7200.0
    >>> seconds_until_reset("Your limit will reset at 3:30pm (Europe/Berlin).", now)
    5400.0
    >>> seconds_until_reset("limit reached|1772373600", now), seconds_until_reset("Try again later", now)
    (3600.0, None)

    Args:
        words: The message.
        now: The time, in the zone of times that name none.
    """
    if found := _TIMESTAMP.search(words):
        return _until(datetime.fromtimestamp(int(found[1]), UTC), now)
    if found := _IN.search(words):
        parts = [(float(number), _unit(unit)) for number, unit in _PART.findall(found[1])]
        seconds = sum(number * unit for number, unit in parts)
        return seconds if parts and seconds <= MAX_DAYS * 86_400 else None
    for found in _AT.finditer(words):
        if (moment := _moment(found, now)) is not None:
            return _until(moment, now)
    return None


def _unit(name: str) -> float:
    name = name.lower()
    return 0.001 if name.startswith(("ms", "mil")) else _UNITS[name[0]]


def _until(moment: datetime, now: datetime) -> float | None:
    seconds = (moment - now).total_seconds()
    return max(0.0, seconds) if seconds <= MAX_DAYS * 86_400 else None


def _moment(found: re.Match[str], now: datetime) -> datetime | None:
    """The moment that a time of day, with or without its day, means; None when it is none."""
    zone = _zone(found["zone"] or found["utc"] or "", now)
    hour, half = int(found["hour"]), (found["half"] or "")[:1].lower()
    if zone is None or (not half and found["minute"] is None):
        return None  # a bare number is no time of day
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    here = now.astimezone(zone)
    try:
        moment = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            year = int(found["year"] or here.year)
            moment = moment.replace(year=year, month=month, day=int(found["day"]))
            if not found["year"] and moment < here - timedelta(days=180):
                moment = moment.replace(year=year + 1)
            return moment
    except ValueError:  # 3:99pm, or the 31st of February
        return None
    return moment if moment > here - _SLACK else moment + timedelta(days=1)


def _zone(name: str, now: datetime) -> tzinfo | None:
    """The zone of a name, that of ``now`` without one; None for one that is not known here."""
    if not name:
        return now.tzinfo
    try:
        return UTC if name.upper() in ("UTC", "GMT") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
