"""The runs that the site shows: exported pages, made at each build from the examples, the same each time.

No model is called and no command is started. The answers of the runs on the front page are written here; the runs of the gallery are
simulated.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attractor_nb import Answer, Pipeline, QueueInterviewer, Run, diff
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES
from attractor_nb.testing import FakeProcesses, ManualClock, SeededRandomness
from tests.examples.example_table import TABLE

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLES = REPOSITORY / "examples"
SECONDS_A_WORD = 0.05
PLAN = """1. `limits.py`: a token bucket for each API key, 100 requests a minute.
2. The middleware answers 429 with `Retry-After`.
3. Tests: below, at and above the limit; two keys at once.

**Risk:** callers that retry at once. The header tells them when."""
FIRST = """```diff
+ bucket = buckets[request.headers["X-Key"]]
+ if not bucket.take():
+     return Response(status=429)
```"""
SECOND = """```diff
+ key = request.headers.get("X-Key", request.client.host)
+ if wait := buckets[key].seconds_until_free():
+     return Response(status=429, headers={"Retry-After": str(ceil(wait))})
```

As asked: a request without a key counts for its address, and the header says when to try again."""
ACCEPTED = 'Nothing must change before merging.\n\n{"outcome": "success"}'
MERGED = "Limit the public API to 100 requests a minute for each key\n\nA caller above it gets 429 and `Retry-After`."

CHANGES = Answer("C", text="Count requests without a key, too, and say when to try again.")

REVIEWED: Mapping[str, list[str]] = {
    "plan": [PLAN],
    "implement": [FIRST, SECOND],
    "review": [ACCEPTED],
    "summarize": [MERGED],
}
AT_ONCE: Mapping[str, list[str]] = {**REVIEWED, "implement": [SECOND]}
READ: Mapping[str, list[str]] = {
    "correctness": ["`client.py:88`: a timeout after the bank has booked is retried, so 20.00 moves twice."],
    "threats": ["- A customer who cancels the request in the middle.\n- A proxy that repeats it."],
    "security": ["Nothing stands against a repeated request: it has no idempotency key."],
    "speed": ["Each retry opens a connection. It grows with the number of failures, not of payments."],
    "wording": ["`_do2` should be `send_again`."],
    "best": ["correctness"],
    "summary": [
        "Do not retry after a timeout without an idempotency key: the payment may have been booked (`client.py:88`)."
    ],
}
BY_HAND = "The answers are written by hand."


@dataclass(frozen=True)
class Shown:
    """A run that pages embed.

    Attributes:
        title: Its name in a tab.
        words: What a reader can do there.
    """

    title: str
    words: str


FRONT = {
    "review": Shown(
        "A loop with a person",
        "A model writes, another reviews, a person sends it back once and then merges. Move the slider, or click a stage to read its prompt and its answer.",
    ),
    "readers": Shown(
        "Branches at once", "Four readers look at one change at a time; the summary is written from the best review."
    ),
    "compared": Shown(
        "Two runs compared", "The same pipeline with a better first draft. Click a stage to read both sides."
    ),
}
"""The runs of the front page, which other pages embed, too: `<!-- run: NAME -->`."""


def _run(
    name: str, folder: Path, answers: Mapping[str, list[str]] | None = None, interviewer: Any = "auto", **options: Any
) -> Run:
    clock = ManualClock(1_767_000_000.0)
    left = {node: list(texts) for node, texts in (answers or {}).items()}

    async def answer(node: Any, prompt: str, context: Any) -> str:
        texts = left[node.id]
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        clock.advance(1 + SECONDS_A_WORD * len(text.split()))
        return text

    run = Pipeline(EXAMPLES / f"{name}.dot").run(
        backend=answer if answers else "simulated",
        interviewer=interviewer,
        logs_root=folder,
        clock=clock,
        randomness=SeededRandomness(len(name)),
        processes=FakeProcesses(),
        durability="fast",
        is_shown=False,
        **options,
    )
    if (result := run.result()).status != "success":
        raise AssertionError(f"the run of {name} is shown as one that succeeds: {result.reason}")
    return run


def pages() -> dict[str, str]:
    """Each page and each picture, by its place on the site."""
    made: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        review = _run("code_review_loop", root / "review", REVIEWED, QueueInterviewer([CHANGES, "M"]))
        _run("code_review_loop", root / "at-once", AT_ONCE)
        exported = {
            "review": review,
            "readers": _run("fan_out", root / "readers", READ),
            "compared": diff(Run.load(root / "review"), Run.load(root / "at-once")),
            **{
                f"example-{each.name}": _run(each.name, root / each.name, params=each.params)
                for each in TABLE
                if each.name in gallery()
            },
        }
        for name, shown in exported.items():
            made[f"runs/{name}.html"] = shown.export_html(root / f"{name}.html").read_text("utf-8")
            made[f"runs/{name}.svg"] = shown.to_svg()
    return made


# -- on pages --------------------------------------------------------------------------------------------


def frame(name: str, to_root: str, *, is_open: bool = True) -> str:
    """The element that shows a run."""
    return f'<iframe class="run" src="{to_root}runs/{name}.html" title="A run to replay" loading="{"eager" if is_open else "lazy"}"></iframe>'


def embedded(text: str, to_root: str) -> str:
    """Markdown with its runs in place of their marks."""
    text = text.replace("<!-- runs -->", _tabs(to_root))
    return re.sub(r"<!-- run: (\w+) -->", lambda found: _figure(found[1], to_root), text)


def _figure(name: str, to_root: str) -> str:
    words = FRONT[name].words
    return (
        f'<figure class="run">{frame(name, to_root, is_open=False)}<figcaption>{words} {BY_HAND}</figcaption></figure>'
    )


def _tabs(to_root: str) -> str:
    parts = ['<div class="runs">']
    for number, (name, shown) in enumerate(FRONT.items()):
        checked = " checked" if number == 0 else ""
        parts += [
            f'<input type="radio" name="run" id="run-{name}"{checked}><label for="run-{name}">{shown.title}</label>',
            f'<div class="panel"><p>{shown.words} {BY_HAND}</p>{frame(name, to_root, is_open=not number)}</div>',
        ]
    return "".join([*parts, "</div>"])


def gallery(page: str | None = None) -> dict[str, str]:
    """The examples to keep, with their meanings as Markdown, from the table of examples or from a page with it."""
    text = (EXAMPLES / "README.md").read_text("utf-8") if page is None else page
    kept = text.partition("## From the specification")[0]
    return dict(re.findall(r"^\| \[(\w+)\.dot\]\(\S+\) \| (.+) \|$", kept, re.MULTILINE))


def with_cards(page: str) -> str:
    """The page of examples with a card in place of each row of the table of those to keep."""
    cards = "\n".join(_card(name, words) for name, words in gallery(page).items())
    return re.sub(r"(?<=## To keep and change\n\n)(?:\|.*\n)+", lambda _: cards, page)


def _card(name: str, words: str) -> str:
    text = (EXAMPLES / f"{name}.dot").read_text("utf-8")
    pipeline = Pipeline(EXAMPLES / f"{name}.dot")
    return f"""### {pipeline.title or name}

![The graph of {name}](runs/example-{name}.svg)

{words[0].upper()}{words[1:]}.

**Needs** {needs(pipeline)}. [{name}.dot](path:files/examples/{name}.dot)

<details class="run"><summary>Play a simulated run</summary>{frame(f"example-{name}", "", is_open=False)}</details>

<details><summary>Text</summary>

```dot
{text.strip()}
```

</details>
"""


def needs(pipeline: Pipeline) -> str:
    """The needs of a run of a pipeline, in words: a model, a person, a shell, inputs."""
    kinds = [kind for kind in pipeline.graph.handler_types.values() if kind in BUILT_IN_TYPES]
    found = [
        word
        for kind, word in (("codergen", "a model"), ("wait.human", "a person"), ("tool", "a shell"))
        if kind in kinds
    ]
    inputs = [f"`{each.name}`" for each in pipeline.inputs if each.is_required]
    return ", ".join([*found, *(["inputs " + ", ".join(inputs)] if inputs else [])]) or "nothing"
