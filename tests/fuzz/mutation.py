"""Makes near-valid inputs: seeds, and changes that know what the targets' texts are made of.

Plain bytes hardly ever get past the first token. What is made here is mostly right and wrong in a few
places: words of the language put in, parts taken out, said again (sometimes a thousand times) or
taken from another seed, and JSON values replaced by unexpected ones.
"""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MALFORMED = HERE.parent / "languages" / "malformed"
MAX_BYTES = 20_000

_DOT = (
    'digraph G {|graph|node|edge|subgraph|strict|{|}|[|]|;|,|=|->|--|a|b|start|"|\\|\\n|//|/*|*/|#|\n|\r\n|\r| |\t|label|'
    'shape=Mdiamond|shape=Msquare|condition="outcome=success"|model_stylesheet="* { llm_model: x }"|max_retries=3|'
    'timeout=15m|weight=1|-0.5|007|1e5|true|human.default_choice|\ufeff|\u202e|\u2028|\0|é|😀|a -> b -> c|a [x=1, y="z"]|'
    'subgraph cluster_x { label="A" |node [shape=box]|edge [weight=2]|goal="g"|prompt="$goal"|retry_target=a|'
    '9999999999999999999|<b>|\'|`|a:b|a.b=1|class="x y"|sk-aaaaaaaaaaaaaaaaaaaaaaaa1'
)
_CONDITION = 'outcome|=|!=|==|&&|&|and|or|not|contains|success|fail|succes|context.x|preferred_label|"|\\"|\\|\'|(|)| |\t|\n|a.b|.|a|~|<>|!|\u00a0|é|\0|true'
_STYLE = "*|#a|.b|box|{|}|:|=|;|llm_model|model|reasoning_effort|high|hihg|llm_provider|\"|'|\\|/*|*/|//| |\n|!|@x|,|>|x-1|.|#|é|\0|\u00a0"
_JSON = (
    '{|}|[|]|:|,|"|\\|\\u0041|\\ud800|null|true|false|NaN|Infinity|-1|1e999|1E400|0.1|'
    + "9" * 30
    + '|"outcome"|"success"|'
    '"status"|"suggested_next_ids"|"a"|"context_updates"|"internal.x"|"usage"|"checksum"|"crc"|"schema_version"|\ufeff| |\n'
)
WORDS = {
    "dot": _DOT.split("|"),
    "condition": _CONDITION.split("|"),
    "stylesheet": _STYLE.split("|"),
    **dict.fromkeys(("json", "status", "sealed", "session", "log"), _JSON.split("|")),
}
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**40, 0.5, -0.0, 1e308, "", "a", "success", "\0", "\ud800", "x" * 300,
    [], {}, [[]], {"": None}, [None], ["a", "a"], {"a": {"b": []}}, "2026-02-01T14:30:22Z", "9999-12-31", "1.0", "running",
)  # fmt: skip


def seeds(target: str) -> list[bytes]:
    """The first inputs of the mutation: the corpus, the texts that are known to be refused, the bugs of the past."""
    found = [path.read_bytes() for path in sorted((HERE / "corpus" / target).glob("*"))]
    table = MALFORMED / f"{target}.toml"
    if table.exists():
        cases = tomllib.loads(table.read_text(encoding="utf-8"))
        found += [case["source"].encode() for case in (*cases.get("case", ()), *cases.get("malformed", ()))]
    return found


class Mutator:
    """Draws inputs for one target from a seeded generator."""

    def __init__(self, target: str, seed: int) -> None:
        self._random = random.Random(f"{target} {seed}")
        self._seeds = seeds(target)
        self._words = [word.encode("utf-8", "surrogatepass") for word in WORDS[target]]

    def reseed(self, seed: int) -> None:
        """Draw from another generator from now on."""
        self._random.seed(seed)

    def fresh(self) -> bytes:
        """A new input: a seed changed in some places, at times words only, at times bytes only."""
        draw = self._random
        kind = draw.random()
        if kind < 0.05:
            return draw.randbytes(draw.randrange(60))
        if kind < 0.2:
            return b" ".join(draw.choices(self._words, k=draw.randrange(1, 25)))
        data = draw.choice(self._seeds)
        for _ in range(draw.choice((1, 1, 2, 3, 6))):
            data = self.changed(data)
        return data

    def changed(self, data: bytes) -> bytes:
        """The input with one change."""
        draw = self._random
        kind = draw.randrange(10)
        if kind == 0 and (replaced := self._other_value(data)) is not None:
            return replaced
        start = draw.randrange(len(data) + 1)
        end = min(len(data), start + draw.choice((0, 1, 2, 5, 20)))
        part = data[start:end]
        if kind <= 3:
            part = draw.choice(self._words)
        elif kind <= 5:
            part = b""
        elif kind == 6:
            part *= draw.choice((2, 2, 3, 30, 1_000))
        elif kind == 7:
            other = draw.choice(self._seeds)
            begin = draw.randrange(len(other) + 1)
            part = other[begin : begin + draw.choice((3, 20, 100))]
        elif kind == 8:
            part = bytes([draw.randrange(256)])
        else:
            part = part[::-1]
        return (data[:start] + part + data[end:])[:MAX_BYTES]

    def _other_value(self, data: bytes) -> bytes | None:
        """JSON with one value replaced, removed or put in under another key."""
        line = self._random.choice(data.splitlines() or [b""]) if data.count(b"}\n{") else data
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
        places = list(_places(value))
        if not places:
            return None
        holder, key = self._random.choice(places)
        holder[key] = self._random.choice(_VALUES)
        new = json.dumps(value, separators=(",", ":")).encode()
        return new if line is data else data.replace(line, new)


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    queue = [value]
    while queue:
        holder = queue.pop()
        if isinstance(holder, dict | list):
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            found += [(holder, key) for key in keys]
            queue += [holder[key] for key in keys]
    return found
