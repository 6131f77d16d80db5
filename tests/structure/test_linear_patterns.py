"""No pattern of ours takes more than linear time on a hostile text (ruling 52).

Each pattern is applied as its module applies it: with ``match`` always, and with ``finditer`` where the source calls
``search``, ``finditer``, ``findall``, ``sub`` or ``split`` of its name. The texts repeat what the pattern itself speaks of.
"""

import importlib
import inspect
import itertools
import pkgutil
import re
import sys
import time
import warnings
from re import _parser

import pytest

import attractor_nb

SIZE = 6_000
SECONDS = 0.003
"""Linear patterns take less than a millisecond for such a text, quadratic ones more than this on any machine."""
GROWTH = 9
"""A text of four times the length takes a linear pattern four times as long, a quadratic one sixteen times."""
MOST_PIECES = 5
CATEGORIES = {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a"}
BOUNDED = {
    "attractor_nb.backends.agents.agent_failures._PART": "is given what _IN has found, at most 600 characters",
    "attractor_nb.languages.dot.lexer._COMMENTS": "is given what the lexer has read as blanks and comments: all are closed",
    "attractor_nb.languages.dot.mistakes._STRING_OR_COMMENT": "the lexer has read the text: all in it is closed",
    "attractor_nb.model.calls.reasoning._INSIDE_OF_TAG": "is given a mark that _MARK has found, at most 300 characters",
    "attractor_nb.studio.edit.completion._CLAUSE": "is given what a person has typed of one clause",
    "attractor_nb.views.drawings.flat_svg._COMMENTS_AND_BLOCKS": "is given our own style sheet",
    "attractor_nb.views.drawings.flat_svg._RULE": "is given our own style sheet",
    "attractor_nb.views.drawings.svg._DECLARED": "is given our own style sheet",
    "attractor_nb.views.drawings.svg._STYLE": "is given our own drawing, which has one style sheet",
}
"""Patterns that no foreign text of any length reaches, with the reason."""


def found_in(value, name, depth=0):
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, list | tuple | set | frozenset) and depth < 3:
        for each in value:
            yield from found_in(each, name, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        yield from found_in(list(value.values()), name, depth + 1)


def patterns():
    """All patterns of the package's modules, each with its first name and whether it is searched for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(attractor_nb.__path__, "attractor_nb."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    known = {}
    for module_name, module in sorted(sys.modules.items()):
        if module_name.partition(".")[0] != "attractor_nb" or not hasattr(module, "__file__"):
            continue
        source = inspect.getsource(module) if vars(module).get("re") is re else ""
        for name, value in list(vars(module).items()):
            for _, pattern in found_in(value, name):
                is_searched = bool(
                    re.search(rf"\b{re.escape(name)}\.(?:search|finditer|findall|subn?|split)\b", source)
                )
                key = pattern.pattern, pattern.flags
                first, before = known.get(key, (f"{module_name}.{name}", False))
                known[key] = first, before or is_searched
    return [(name, re.compile(*key), is_searched) for key, (name, is_searched) in known.items()]


def pieces(tree):
    """The characters of a pattern: its literals, and a character of each class."""
    for kind, run in itertools.groupby(tree, key=lambda part: str(part[0])):
        values = [value for _, value in run]
        if kind == "LITERAL":
            yield "".join(map(chr, values))
        elif kind == "IN":
            yield from itertools.chain.from_iterable(map(of_class, values))
        elif kind in {"ANY", "NOT_LITERAL"}:
            yield "a"
        else:
            yield from itertools.chain.from_iterable(map(inner_pieces, values))


def of_class(parts):
    for how, what in parts:
        if str(how) in {"LITERAL", "RANGE"}:
            yield chr(what if str(how) == "LITERAL" else what[0])
        elif str(how) == "CATEGORY":
            yield CATEGORIES.get(str(what), "-")


def inner_pieces(value):
    if isinstance(value, _parser.SubPattern):
        yield from pieces(value)
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(inner_pieces, value))


def hostile_texts(pattern, size=SIZE):
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    own = list(dict.fromkeys(pieces(_parser.parse(text, pattern.flags & ~re.UNICODE))))
    first = own[:MOST_PIECES]
    units = dict.fromkeys(
        [*own[:12], *map("".join, itertools.permutations(first[:4], 2)), "".join(first), " ", "a", "1", '"\\']
    )
    for unit in units:
        for beginning in ("", *first[:1]):
            made = beginning + unit * (size // len(unit)) + "\x00"
            yield made if isinstance(pattern.pattern, str) else made.encode("utf-8", "replace")


def seconds_of(pattern, text, *, is_searched):
    began = time.thread_time()  # other threads of earlier tests do not count
    pattern.match(text)
    if is_searched:
        for _ in pattern.finditer(text):
            pass
    return time.thread_time() - began


def slow(pattern, *, is_searched):
    """A hostile text for which a pattern takes more than linear time, cut; None for none."""
    for text, shorter in zip(hostile_texts(pattern), hostile_texts(pattern, SIZE // 4), strict=True):
        if seconds_of(pattern, text, is_searched=is_searched) > SECONDS:
            # The machine is busy at times: the best of some.
            long = min(seconds_of(pattern, text, is_searched=is_searched) for _ in range(4))
            short = min(seconds_of(pattern, shorter, is_searched=is_searched) for _ in range(4))
            if long > SECONDS and long > GROWTH * short:
                return text[:40]
    return None


def test_ruling_52_no_pattern_of_ours_takes_more_than_linear_time():
    known = [entry for entry in patterns() if entry[0] not in BOUNDED]
    assert len(known) > 200
    assert {
        name: text for name, pattern, is_searched in known if (text := slow(pattern, is_searched=is_searched))
    } == {}


@pytest.mark.parametrize(("written", "is_searched"), [(r"[0-9]+\.?[0-9]*\Z", False), (r",(?![^{}]*\})", True)])
def test_a_pattern_of_more_than_linear_time_is_found(written, is_searched):
    assert slow(re.compile(written), is_searched=is_searched) is not None
