"""Foreign texts: made safe for a terminal, shortened to their room, and compared with known names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import NoSuchKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


# Foreign texts on their way to a terminal: what could steer it is shown as its escape (ruling 38).

STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 without newline and tab, DEL, C1, rare line ends, and what orders text in two directions."""


def shown(text: str) -> str:
    r"""A text in which each character that steers a terminal, or reorders the line, is its escape.

    >>> shown("red\x1b[31m?")
    'red\\x1b[31m?'
    """
    if text.isascii() and text.isprintable():
        return text
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


# Halves of characters (surrogates) in a text: joined if both are there, replaced if one is alone.
#
# A stream that escapes its text may cut a character beyond the basic plane in two, a half in each piece. Half a
# character cannot be encoded, so an answer with one would be lost after it was paid.


def whole(text: str) -> str:
    r"""A text that can be written anywhere.

    >>> whole("a\ud83d\ude00b") == "a\U0001f600b", whole("a\ud83db") == "a\ufffdb"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def ends_in_half(text: str) -> bool:
    """True if the other half of a text's last character may be still to come."""
    return "\ud800" <= text[-1:] <= "\udbff"


# Parts of texts that are too long for their room, and how a room is shared out.


def excerpt(text: str, limit: int) -> str:
    r"""A text, or its beginning and its end with a word on what lies between.

    >>> excerpt("abcdefghij", 4)
    'ab\n[… 6 characters left out …]\nij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def first_lines(text: str, limit: int) -> str:
    r"""The beginning of a text: whole lines, where that leaves at least half of the room.

    >>> first_lines("one\ntwo\nthree", 8), first_lines("a long line", 4)
    ('one\ntwo', 'a lo')
    """
    if len(text) <= limit:
        return text
    beginning = text[:limit]
    end = limit if text[limit] == "\n" else beginning.rfind("\n")
    return beginning[:end] if 2 * end >= limit else beginning


def last_lines(text: str, limit: int) -> str:
    r"""The end of a text: whole lines, where that leaves at least half of the room.

    >>> last_lines("one\ntwo\nthree", 9), last_lines("a long line", 4)
    ('two\nthree', 'line')
    """
    if len(text) <= limit:
        return text
    begin = len(text) - limit
    line = begin if text[begin - 1] == "\n" else text.find("\n", begin) + 1
    return text[line:] if line and 2 * (len(text) - line) >= limit else text[begin:]


def fair_shares(room: int, needs: Sequence[int]) -> list[int]:
    """The share of a room that each of several texts gets: its need, or as much as the others that need more.

    >>> fair_shares(100, [10, 500, 60]), fair_shares(100, [20, 30]), fair_shares(0, [5])
    ([10, 45, 45], [20, 30], [0])
    """
    shares = [0] * len(needs)
    left, waiting = max(0, room), sorted(range(len(needs)), key=lambda index: needs[index])
    while waiting:
        index = waiting.pop(0)
        shares[index] = min(needs[index], left // (len(waiting) + 1))
        left -= shares[index]
    return shares


# The known name that a misspelt one most likely meant.

MAX_SLIPS = 2
"""Edit distance up to which a name counts as a slip of another (rulings 4, 5)."""
_LISTED: Final = 20


def edit_distance(left: str, right: str, limit: int = MAX_SLIPS) -> int:
    """Insertions, deletions and replacements between two words; ``limit + 1`` when there are more.

    Case counts. Linear in the length of the words for a given limit.

    >>> edit_distance("prompt", "promt"), edit_distance("label", "shape")
    (1, 3)
    """
    goal = len(right) - len(left)
    if abs(goal) > limit:
        return limit + 1
    # The key is the lead, by how many characters more the right word has been read than the left one;
    # the value is how far the left one has been read at best.
    furthest = {0: _agreeing(left, right, 0, 0)}
    for slips in range(limit + 1):
        if furthest.get(goal) == len(left):
            return slips
        if slips < limit:
            furthest = {
                lead: _agreeing(left, right, offset, lead)
                for lead in range(-slips - 1, slips + 2)
                if (offset := _after_a_slip(furthest, lead, len(left), len(right))) >= 0
            }
    return limit + 1


def _after_a_slip(furthest: Mapping[int, int], lead: int, left_size: int, right_size: int) -> int:
    """The furthest offset in the left word that one more slip reaches with a lead; negative for none."""
    replaced = furthest.get(lead, -2) + 1
    left_out = furthest.get(lead + 1, -2) + 1
    put_in = furthest.get(lead - 1, -1)
    return min(max(replaced, left_out, put_in), left_size, right_size - lead)


def _agreeing(left: str, right: str, offset: int, lead: int) -> int:
    """Continue from an offset in the left word as long as the words agree."""
    end = min(len(left), len(right) - lead)
    while offset < end and left[offset] == right[offset + lead]:
        offset += 1
    return offset


def in_order(names: Iterable[str]) -> Iterable[str]:
    """Names as they are given; those of a set by the alphabet, as its own order is another in each process.

    >>> in_order({"plan", "done"}), in_order(["plan", "done"])
    (['done', 'plan'], ['plan', 'done'])
    """
    return sorted(names) if isinstance(names, set | frozenset) else names


def nearest(word: str, known: Iterable[str], limit: int = MAX_SLIPS) -> str:
    """The known name closest to a word, or empty when none is within ``limit`` slips.

    Case counts less than any other slip. Words are expected to be short; of equally near names the
    first wins (``in_order``). A name that shares nothing with the word is never offered.

    >>> nearest("implment", ["plan", "implement"]), nearest("xyz", ["plan"])
    ('implement', '')
    """
    folded = word.casefold()
    best, best_distance = "", min(limit, max(len(word) - 1, 0)) + 1
    letters, pieces = set(folded), _pieces(folded, best_distance)
    for name in in_order(known):
        if abs(len(name) - len(word)) >= best_distance:
            continue
        other = name.casefold()
        # What is cheap to see first: slips spare one of these pieces, and each brings or takes one letter at most.
        if not any(piece in other for piece in pieces) or len(letters.difference(other)) >= best_distance:
            continue
        distance = edit_distance(folded, other, best_distance)
        if distance < best_distance and distance < len(name):
            best, best_distance = name, distance
    return best


def _pieces(word: str, count: int) -> list[str]:
    """A word in a number of pieces, about equally long."""
    return [word[len(word) * place // count : len(word) * (place + 1) // count] for place in range(count)]


def slipped(word: str, known: Iterable[str]) -> str:
    """The known name that one slip of the fingers made into a word, or empty.

    Two neighbouring letters changed places, or one was left out or doubled. Another letter is no such slip:
    ``goals`` and ``coal`` may be names of their own.

    >>> [slipped(word, ["goal"]) for word in ("gaol", "goa", "gooal", "goals", "coal")]
    ['goal', 'goal', 'goal', '', '']
    """
    return next((name for name in in_order(known) if abs(len(name) - len(word)) <= 1 and _is_slip(word, name)), "")


def _is_slip(word: str, name: str) -> bool:
    """True if a word, at most one letter longer or shorter, is a name with one slip of the fingers."""
    place = _agreeing(word, name, 0, 0)
    if len(word) < len(name):  # a letter was left out
        return word[place:] == name[place + 1 :]
    if len(word) > len(name):  # a letter was doubled
        return place > 0 and word[place] == word[place - 1] and word[place + 1 :] == name[place:]
    swapped = word[place + 1 : place + 2] + word[place : place + 1]
    return word != name and swapped == name[place : place + 2] and word[place + 2 :] == name[place + 2 :]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the nearest known name, or empty: the end of a message."""
    return suggestion(nearest(word, known))


def suggestion(meant: str) -> str:
    """``; did you mean "x"?`` for a name that was found to be meant, or empty where none was."""
    return f'; did you mean "{meant}"?' if meant else ""


def no_such_key(owner: str, kind: str, key: object, known: Iterable[str]) -> NoSuchKey:
    """The error of a lookup that found nothing: names the nearest key and lists the known ones.

    >>> print(no_such_key("the pipeline", "node", "paln", ["start", "plan"]))
    the pipeline has no node 'paln'; did you mean "plan"?
     hint: nodes: start, plan
    """
    names = list(in_order(known))
    near = did_you_mean(key, names) if isinstance(key, str) else ""
    rest = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    hint = f"{kind}s: {', '.join(names[:_LISTED])}{rest}" if names else f"it has no {kind}s"
    return NoSuchKey(f"{owner} has no {kind} {key!r}{near}", hint=hint)
