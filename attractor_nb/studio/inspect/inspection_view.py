"""A stage, an edge and their reasons in a cell: text for a terminal, HTML for a notebook.

What is shown is the plain form that the front-end's inspector is given, too. Times and places are left out: a
saved notebook says the same after each run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.states import run_word, stage_word
from attractor_nb.studio.inspect.failure import failure_lines
from attractor_nb.views.drawings.theme import Theme, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.output_styles import inspection_css
from attractor_nb.views.table import Column, Table, aligned, one_line
from attractor_nb.views.texts.prose import prose_css, prose_html, shown_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from markupsafe import Markup

MAX_SHOWN: Final = 60
"""Characters of a context value on a line."""
MAX_CHANGES: Final = 12
MAX_TEXT_LINES: Final = 40
_PARTS: Final = (
    ("carried", "Carried"),
    ("prompt", "Prompt"),
    ("response", "Response"),
    ("stdout", "Output"),
    ("stderr", "Errors"),
    ("changes", "Changes"),
    ("traceback", "Traceback"),
)
_EDGES: Final = (
    Column("edge to", "place"),
    Column("condition", "place"),
    Column("saw", "place"),
    Column("weight", "number"),
    Column("verdict"),
)


def stage_text(plain: Mapping[str, Any]) -> str:
    """A stage in words: how it ended, how the run came there and continued, what changed, the texts."""
    lines = [headline(plain), *_columns(_facts(plain))]
    if failure := plain["failure"]:
        lines += ["--- failure", *failure_lines(failure)]
    if plain["items"]:
        lines += _indented(str(_items(plain["items"])))
    if candidates := _candidates(plain):
        lines += _indented(str(_edges(candidates)))
    for name, title in _PARTS:
        text = _part(plain, name)
        if text and name != "carried":
            lines += [f"--- {title.lower()}", *_shortened(text)]
    return "\n".join(lines)


def stage_html(plain: Mapping[str, Any], theme: Theme = "auto") -> str:
    """The same as HTML; everything of the input is escaped."""
    facts = joined(
        element("tr", None, element("th", {"scope": "row"}, name), element("td", None, words))
        for name, words in _facts(plain)
    )
    parts = [element("div", {"class": "headline"}, headline(plain))]
    if failure := plain["failure"]:
        parts.append(element("pre", {"class": "failure"}, "\n".join(failure_lines(failure))))
    parts.append(element("table", None, facts))
    if plain["items"]:
        parts.append(_section("Items", _html_table(_items(plain["items"])), is_open=True))
    if candidates := _candidates(plain):
        parts.append(_section("Why this way", _edge_table(candidates), is_open=False))
    shown = shown_parts(plain)
    for name, title in _PARTS:
        if text := _part(plain, name):
            body = prose_html(text, shown[name]) if name in shown else element("pre", None, text)
            parts.append(_section(title, body, is_open=name in {"prompt", "response"}))
    return _page(*parts, theme=theme)


def edge_text(plain: Mapping[str, Any]) -> str:
    """An edge in words: its condition, how often it was taken, what became of it each time."""
    return str(_verdicts(plain))


def edge_html(plain: Mapping[str, Any], theme: Theme = "auto") -> str:
    """The same as HTML."""
    return _verdicts(plain).to_html(theme)


def reason_text(plain: Mapping[str, Any]) -> str:
    """The reasons for a route: headline, the way into the stage and out of it, the rules, each edge."""
    lines = [headline(plain), *_columns(_route_facts(plain))]
    if reasons := plain.get("why_next"):
        rules = [[f"{number}", rule["name"], _rule_words(rule)] for number, rule in enumerate(reasons["rules"], 1)]
        if rules:
            lines += ["", "rules, in their order", *_indented(aligned(rules))]
        if reasons["candidates"]:
            lines += ["", *_indented(str(_edges(reasons["candidates"])))]
    return "\n".join(lines)


def reason_html(plain: Mapping[str, Any], theme: Theme = "auto") -> str:
    """The same as HTML."""
    facts = joined(
        element("tr", None, element("th", {"scope": "row"}, name), element("td", None, words))
        for name, words in _route_facts(plain)
    )
    parts = [element("div", {"class": "headline"}, headline(plain)), element("table", None, facts)]
    if reasons := plain.get("why_next"):
        items = joined(element("li", None, f"{rule['name']}: {_rule_words(rule)}") for rule in reasons["rules"])
        if items:
            parts.append(_section("Rules, in their order", element("ol", None, items), is_open=True))
        if reasons["candidates"]:
            parts.append(_section("Edges", _edge_table(reasons["candidates"]), is_open=True))
    return _page(*parts, theme=theme)


def headline(plain: Mapping[str, Any]) -> str:
    """``check (codergen), visit 2 of 3: success``."""
    handler = f" ({plain['handler']})" if plain.get("handler") else ""
    where = ""
    if plain.get("visit"):
        counting = sum(not one["is_set_aside"] for one in plain.get("visits", ()))
        of = f" of {counting}" if counting > 1 and not plain.get("is_set_aside") else ""
        where = f", visit {plain['visit']}{of}"
        if len(plain.get("attempts", ())) > 1:
            where += f", attempt {plain['attempt']} of {len(plain['attempts'])}"
        if plain.get("branch"):
            where += f", in branch {plain['branch']}"
    status = stage_word(plain["status"])
    aside = ", set aside by a rewind" if plain.get("is_set_aside") else ""
    mark = f" (run: {plain['mark']})" if plain.get("mark") and plain["status"] != "pending" else ""
    return one_line(f"{plain['node']}{handler}{where}: {status}{aside}{mark}")


def _candidates(plain: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    reasons: Mapping[str, Any] = plain.get("why_next") or {}
    return reasons.get("candidates", ())


def _rule_words(rule: Mapping[str, Any]) -> str:
    return f"{rule['words']}{'   (decided)' if rule['decides'] else ''}"


def _route_facts(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if plain.get("why_here"):
        yield "reached", plain["why_here"]
    if reasons := plain.get("why_next"):
        yield "next", reasons["words"]
        if reasons["mismatch"]:
            yield "but", reasons["mismatch"]
    for problem in plain.get("problems", ()):
        yield "not known", problem


def _facts(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and words of each fact that is known."""
    routes = list(_route_facts(plain))
    attempts, visits = plain["attempts"], plain["visits"]
    pairs = (
        *((name, plain[name]) for name in ("label", "reason", "notes")),
        *(pair for pair in routes if pair[0] != "not known"),
        *(("told", f"{one['text']} ({one['words']})") for one in plain["messages"]),
        ("by hand", "; ".join(plain["by_hand"])),
        ("cache", plain["cached"].partition(":")[0]),
        ("used", plain["usage_words"]),
        ("attempts", "; ".join(_attempt_words(one) for one in attempts) if len(attempts) > 1 else ""),
        ("visits", ", ".join(_visit_words(one) for one in visits) if len(visits) > 1 else ""),
    )
    yield from ((name, words) for name, words in pairs if words)
    changes = [one for one in plain["context"] if one["change"] != "same"]
    for one in changes[:MAX_CHANGES]:
        yield "context", _change_words(one)
    if len(changes) > MAX_CHANGES:
        yield "context", f"… and {len(changes) - MAX_CHANGES} more keys"
    if plain["files"]:
        yield "files", ", ".join(one["name"] for one in plain["files"])
    yield from (pair for pair in routes if pair[0] == "not known")


def _attempt_words(one: Mapping[str, Any]) -> str:
    reason = f" ({_short(one['reason'])})" if one["reason"] else ""
    return f"{one['number']} {one['status']}{reason}"


def _visit_words(one: Mapping[str, Any]) -> str:
    extra = [word for word, holds in (("set aside", one["is_set_aside"]), ("cached", one["is_cached"])) if holds]
    where = f" in {one['branch']}" if one["branch"] else ""
    return f"{one['number']} {one['status']}{where}" + (f" ({', '.join(extra)})" if extra else "")


def _change_words(one: Mapping[str, Any]) -> str:
    if one["change"] == "added":
        return f"+ {one['key']} = {_short(one['after'])}"
    if one["change"] == "removed":
        return f"- {one['key']} (was {_short(one['before'])})"
    return f"~ {one['key']}: {_short(one['before'])} → {_short(one['after'])}"


def _part(plain: Mapping[str, Any], name: str) -> str:
    text = plain["output"].get(name) if name in {"stdout", "stderr"} else plain.get(name)
    if not text:
        return ""
    whole = plain["cut"].get(name)
    return f"{text}\n… cut: {len(text):,} of {whole:,}" if whole else text


def _shortened(text: str) -> list[str]:
    lines = text.rstrip().splitlines()
    if len(lines) <= MAX_TEXT_LINES:
        return lines
    return [*lines[:MAX_TEXT_LINES], f"… {len(lines) - MAX_TEXT_LINES} more lines"]


def _edges(candidates: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        [
            one["target"],
            one["condition"] or "-",
            ", ".join(f"{value['value'] or 'nothing'}" for value in one["values"]) or "-",
            str(one["weight"]),
            one["words"],
        ]
        for one in candidates
    ]
    states = ["ok" if one["is_taken"] else "" for one in candidates]
    return Table("Edges that lead out", _EDGES, rows, states)


def _items(items: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        [str(one["index"]), _short(one["value"]), run_word(one["status"]), _short(one["reason"] or "-")]
        for one in items
    ]
    columns = (Column("item", "number"), Column("value", "place"), Column("status"), Column("reason"))
    return Table("Items", columns, rows, [""] * len(rows))


def _edge_table(candidates: Sequence[Mapping[str, Any]]) -> Markup:
    return _html_table(_edges(candidates))


def _html_table(table: Table) -> Markup:
    head = element("tr", None, *(element("th", {"scope": "col"}, column.title) for column in table.columns))
    body = joined(
        element(
            "tr",
            {"class": "taken"} if state else None,
            *(
                element("td", {"class": column.kind if column.kind != "text" else None}, cell)
                for column, cell in zip(table.columns, row, strict=True)
            ),
        )
        for row, state in zip(table.rows, table.states, strict=True)
    )
    return element("table", {"aria-label": table.label}, element("thead", None, head), element("tbody", None, body))


def _verdicts(plain: Mapping[str, Any]) -> Table:
    marks = [word for word in ("is_default", "is_restart") if plain[word]]
    words = {"is_default": "default=true", "is_restart": "loop_restart=true"}
    facts = [f"condition {plain['condition']}"] if plain["condition"] else ["no condition"]
    facts += [f'label "{plain["label"]}"'] if plain["label"] else []
    facts += [f"weight {plain['weight']}", *(words[mark] for mark in marks)]
    facts += [f"max_taken={plain['max_taken']}"] if plain["max_taken"] else []
    times = {0: "never taken", 1: "taken once"}.get(plain["passes"], f"taken {plain['passes']} times")
    rows = [
        [
            f"{one['visit']}" + (f" ({one['branch']})" if one["branch"] else ""),
            ", ".join(f"{value['clause']} saw {value['value'] or 'nothing'}" for value in one["values"]) or "-",
            one["words"],
            one["went_to"] or "(the end)",
        ]
        for one in plain["verdicts"]
    ]
    return Table(
        "Visits of the edge's source",
        (Column(f"visit of {plain['source']}"), Column("saw", "place"), Column("verdict"), Column("went to", "place")),
        rows,
        ["ok" if one["is_taken"] else "" for one in plain["verdicts"]],
        headline=f"{plain['source']} -> {plain['target']}: {times}; {', '.join(facts)}",
        notes=tuple(plain["problems"]),
    )


def _section(title: str, body: Markup, *, is_open: bool) -> Markup:
    return element("details", {"open": "" if is_open else None}, element("summary", None, title), body)


def _page(*parts: Markup, theme: Theme) -> str:
    classes = f"attractor-table attractor-inspection {root_class()} {theme}"
    return str(element("div", {"class": classes}, style_sheet(inspection_css() + prose_css()), *parts))


def _short(value: Any) -> str:
    text = one_line("nothing" if value is None else str(value))
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _columns(pairs: Iterable[tuple[str, str]]) -> list[str]:
    rows = [[name, one_line(words)] for name, words in pairs]
    return _indented(aligned(rows)) if rows else []


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
