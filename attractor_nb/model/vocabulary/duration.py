"""Durations: a number and a unit (spec 2.4); fractions are read, and written in a smaller unit."""

from __future__ import annotations

import re

import msgspec

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_SCALE = dict(_UNITS)
_DURATION = re.compile(r"(-?[0-9]++)(ms|s|m|h|d)\Z")
_FRACTION = re.compile(r"(-?(?:[0-9]++\.[0-9]+|\.[0-9]+))(ms|s|m|h|d)?\Z")
_MAX_DIGITS = 18
_MAX_MILLISECONDS = 10**15
"""Some 30,000 years: beyond it a number is a slip, and its digits would not survive writing."""
_NUMBER = re.compile(r"-?[0-9]++\Z")


class Duration(msgspec.Struct, frozen=True, order=True):
    """A length of time in whole milliseconds. ``str()`` gives the shortest exact DOT spelling.

    >>> str(Duration(900_000)), Duration(250).seconds
    ('15m', 0.25)
    """

    milliseconds: int

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.milliseconds / 1000

    def __str__(self) -> str:
        for unit, scale in _UNITS:
            if self.milliseconds % scale == 0 and self.milliseconds:
                return f"{self.milliseconds // scale}{unit}"
        return "0s"


def parse_duration(text: str) -> Duration | None:
    """Read ``900s``, ``15m``, ``0.5h``, ``250ms``; a number without a unit means seconds (ruling 2).

    Returns None when the text is no duration, or one of more than some 30,000 years.

    >>> [str(parse_duration(text)) for text in ("2h", "1.5", "0.5s", "1.5h", "soon")]
    ['2h', '1500ms', '500ms', '90m', 'None']
    """
    if found := _DURATION.match(text):
        milliseconds = int(found[1]) * _SCALE[found[2]] if len(found[1]) <= _MAX_DIGITS else _MAX_MILLISECONDS
    elif _NUMBER.match(text) and len(text) <= _MAX_DIGITS:
        milliseconds = int(text) * 1000
    elif (found := _FRACTION.match(text)) and len(text) <= _MAX_DIGITS:
        from decimal import Decimal  # noqa: PLC0415 - hardly ever needed, and %load_ext stays light

        milliseconds = round(Decimal(found[1]) * _SCALE[found[2] or "s"])
    else:
        return None
    return Duration(milliseconds) if abs(milliseconds) < _MAX_MILLISECONDS else None
