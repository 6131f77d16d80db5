"""When a limit on usage ends, as agents say it in words. Pure: the time is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from datetime import tzinfo

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
