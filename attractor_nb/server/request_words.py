"""Remedies that name Python, in the requests of the server.

A client of the server has no Python: an answer names the request that does the same, as a method and a path, or the
member of its body. What no request does is said to be done in Python or at the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.remedy_words import RemedyWords, calls_of, setting_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_ONE: Final = "/pipelines/{id}"
_PIPELINE: Final = r"(?:Pipeline\([^)]*\)|pipeline)"
_RUN: Final = r'(?:run|Run\.load\("[^"]*"\))'
_CALLS: Final = calls_of(
    (
        r'run\(trust="([0-9a-f]+)"\) or resume\(…, trust="[0-9a-f]+"\) in Python, --trust on the command line',
        r'"trust": "\1" in the request',
    ),
    (r"trust=True, --trust", '"trust" in the request'),
    (r"(?:resume\(…, )?workdir=(?:DIR\))?, --workdir DIR(?: on the command line)?", "`attractor-nb run --workdir DIR`"),
    (r', or give backend=ProviderBackend\("…"\)', ""),
    (r'backend=ProviderBackend\("…"\)', '"backend": "llm"'),
    (r"run\.fork\(node, prompt=…\)", f'POST {_ONE}/fork with "prompt"'),
    (r"run\.fork\(node, context=\{[^}]*\}\)", f'POST {_ONE}/fork with "context"'),
    (r"run\.fork\([^)]*\)", f"POST {_ONE}/fork"),
    (r"run\.rewind\([^)]*\)(?: or `attractor-nb resume [^`]*`)?", f'POST {_ONE}/resume with "rewind_to"'),
    (r"rewind_to=…, --rewind-to at the command line", '"rewind_to" in the request'),
    (r"resume\(…, backend=…\)", f'POST {_ONE}/resume with "backend"'),
    (rf"{_PIPELINE}\.resume_map\([^)]*\)", "`attractor-nb map FILE --resume DIR`"),
    (rf"{_PIPELINE}\.resume_evaluation\([^)]*\)", "`attractor-nb evaluate --resume DIR --scorers MODULE:NAME`"),
    (rf"{_PIPELINE}\.resume\([^)]*\)", "`attractor-nb resume DIR --graph FILE`"),
    (rf"{_RUN}\.resume\([^)]*\)", f"POST {_ONE}/resume"),
    (r"run\.answer\([^)]*\)(?:, or run\.answer\([^)]*\))?", f"POST {_ONE}/questions/{{qid}}/answer"),
    (r"run\.tell\([^)]*\)", f"POST {_ONE}/messages"),
    (r"run\.cancel\(\)", f"POST {_ONE}/cancel"),
    (r'(?:print\()?run\.inspect\("?([^")]*)"?\)(?:\.traceback\))?', rf"GET {_ONE}/stages/\1"),
    (r"run\.result\(\)|Run\.load\([^)]*\)", f"GET {_ONE}"),
    (r"run\.children", f"GET {_ONE}/inspection"),
    (r"`?(?:await )?run\.debugger\.\w+\([^)]*\)`?(?:, or step\(\))?", "do it in the notebook that debugs the run"),
    (r"pipeline\.lint\(\)", "POST /validate"),
    (r"take_over=True, or `([^`]*)`, takes", r"`\1` takes"),
    (r'params=\{"(\w+)": "(\w+)"\}', r'"params": {"\1": "\2"}'),
    (
        r'give interviewer="auto" \(--auto-approve on the command line\), or answers beforehand.*',
        f"answer its gates with POST {_ONE}/questions/{{qid}}/answer",
    ),
    (r'interviewer="auto", a function of a question, or QueueInterviewer\(\[…\]\)', "answer in a run in Python"),
    (r"backend=…", '"backend"'),
    (r'params=\{"\w+": Path\([^)]*\)\}(?:, or bytes)?', "a run in Python takes files"),
    (r"pins=\{[^}]*\} keeps", "a pin in a run in Python keeps"),
    (r"(?<![\w.])(params|context)=(?=\{)", r'"\1": '),
    (r", or give the backend its path: executable=…", ""),
    (r"\b(?:Provider|Local)\w*Backend\([^)]*\)", "a backend made in Python"),
    (r"(?:(?<=: )|^)Pipeline\(…, \w+=.*", "a run in Python can have it"),
)
"""Python as remedies have it, and what a request has for it, applied in this order."""
_MEMBERS: Final = (
    "on_graph_change|on_interrupted|backend|durability|max_steps|max_node_visits|max_restarts|"
    "max_goal_gate_redirects|max_budget_usd|max_tokens_total|max_duration"
)
"""Options of Python that requests have under the same name."""

_SAID: Final = frozenset({"reason", "note", "words", "detail", "problems", "sentence"})
"""Members of a view that say why something failed."""
_RECORDED: Final = frozenset({"context", "inputs", "outputs"})
"""Members of a view that have values of the run itself, as they are stored."""


def _member(name: str, value: str) -> str:
    return f'"{name}": {value}' if value else f'"{name}"'


_WORDS: Final = RemedyWords(_CALLS, setting_of(_MEMBERS), _member)


def in_requests(remedy: str) -> str:
    """A remedy that names Python, in requests.

    >>> in_requests("resume it: run.resume()")
    'resume it: POST /pipelines/{id}/resume'
    >>> in_requests('or say on_graph_change="accept" or "warn"')
    'or say "on_graph_change": "accept" or "warn"'
    """
    return _WORDS.of(remedy)


def reason_in_requests(reason: str) -> str:
    """The reason of a failure, with the remedy in brackets at its end as ``in_requests``."""
    return _WORDS.of_reason(reason)


def report_in_requests(report: str) -> str:
    """A report, its remedies in requests; what is quoted from a source stays."""
    return "\n".join(map(_WORDS.of_line, report.split("\n")))


def view_in_requests(view: Mapping[str, Any]) -> dict[str, Any]:
    """A view of a run as plain values, its reasons as ``reason_in_requests``; values of the run itself stay."""
    return {name: value if name in _RECORDED else _in_view(name, value) for name, value in view.items()}


def _in_view(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return reason_in_requests(value) if name in _SAID else value
    if isinstance(value, list):
        return [_in_view(name, each) for each in cast("list[Any]", value)]
    return view_in_requests(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
