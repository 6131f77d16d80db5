"""Remedies that name Python, in the words of the command line.

The layers below write for those who call them. A command shows the same errors, and says its own options and commands
in them. What the command line has none for stays as it is, and is said to be Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CALLS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r'run\(trust="([0-9a-f]+)"\) or resume\(…, trust="[0-9a-f]+"\) in Python, --trust on the command line',
            r"--trust-hash \1, --trust",
        ),
        (r"(?:resume\(…, )?workdir=(?:DIR\))?, --workdir DIR(?: on the command line)?", "--workdir DIR"),
        (r', or give backend=ProviderBackend\("…"\)', ""),
        (r'backend=ProviderBackend\("…"\)', "--backend llm --model NAME"),
        (r"run\.fork\(node, prompt=…\)", "`attractor-nb fork DIR NODE --prompt FILE`"),
        (r"run\.fork\(node, context=\{[^}]*\}\)", "`attractor-nb fork DIR NODE --set KEY=TEXT`"),
        (r"run\.fork\([^)]*\)", "`attractor-nb fork DIR NODE`"),
        (r"run\.rewind\([^)]*\) or (?=`attractor-nb resume )", ""),
        (r"run\.rewind\([^)]*\)", "`attractor-nb resume DIR --from NODE`"),
        (r"resume\(…, backend=…\)", "`attractor-nb resume DIR --backend NAME`"),
        (r"(?:Pipeline\([^)]*\)|pipeline)\.resume_map\([^)]*\)", "`attractor-nb map FILE --resume DIR`"),
        (r"(?:Pipeline\([^)]*\)|pipeline)\.resume\([^)]*\)", "`attractor-nb resume DIR --graph FILE`"),
        (r'(?:run|Run\.load\("[^"]*"\))\.resume\(\)', "`attractor-nb resume DIR`"),
        (r"run\.answer\([^)]*\)", "`attractor-nb answer DIR GATE CHOICE`"),
        (r"run\.tell\([^)]*\)", '`attractor-nb tell DIR "TEXT"`'),
        (r"Run\.load\(…\)", "`attractor-nb watch DIR --once`"),
        (r"allow_remote=True", "--allow-remote"),
        (r"take_over=True", "--take-over"),
        (r"documents=Path\(…\)", "--documents DIR"),
        (r'interviewer="auto", a function of a question, or QueueInterviewer\(\[…\]\)', "--auto-approve"),
        (r'params=\{"(\w+)": "(\w+)"\}', r"--param \1=\2"),
        (r'outputs=\["(\w+)"\]', r"--output \1"),
        (r'leave map_dir and durability="none" out', "leave --durability none out"),
        (r"backend=…", "--backend NAME"),
        (r"see pipeline\.lint\(\)", "`attractor-nb validate FILE`"),
        (r"trust=True, --trust", "--trust"),
        (
            r'give interviewer="auto" \(--auto-approve on the command line\), or answers beforehand.*',
            "give --auto-approve",
        ),
        (r'interviewer="(auto|console)"', r"--gates \1"),
        (r": +(Pipeline\(…, |ProviderBackend\()", r" in Python: \1"),
        (r"^(?=Pipeline\(…, )", "in Python: "),
    )
)
"""Python as remedies have it, and what the command line has for it, applied in this order."""
_NAMES: Final = (
    "on_graph_change|on_interrupted|backend|durability|cassette_mode|cassette|isolation|workdir|workspace_from|runs_dir|"
    "logs_root|max_steps|max_node_visits|max_restarts|max_goal_gate_redirects|max_budget_usd_all|max_budget_usd|"
    "max_tokens_total|max_duration_all|max_duration|max_tokens_all|max_parallel|max_runs|max_streams"
)
"""Options of Python that the command line has under the same name, with hyphens."""
_SETTING: Final = re.compile(rf'(?<![\w.])({_NAMES})=("[\w.-]+"(?: or "[\w.-]+")*|[\w.-]+)?')
_SUBJECT: Final = re.compile(rf"({_NAMES})(?= (?:cannot|must|is) )")
_REMEDY: Final = re.compile(r" (?:hint|fix): ")


def in_options(text: str) -> str:
    """A remedy that names Python, in the options and commands of the command line.

    >>> in_options('on_interrupted="rerun" runs it again')
    '--on-interrupted rerun runs it again'
    >>> in_options("change values: run.fork(node, context={…})")
    'change values: `attractor-nb fork DIR NODE --set KEY=TEXT`'
    """
    for python, words in _CALLS:
        text = python.sub(words, text)
    return _SETTING.sub(lambda found: f"{_flag(found[1])} {(found[2] or '').replace(chr(34), '')}".rstrip(), text)


def message_in_options(message: str) -> str:
    """A message that begins with the name of an option, with that of the command line.

    >>> message_in_options("max_duration cannot be 'soon'")
    "--max-duration cannot be 'soon'"
    """
    found = _SUBJECT.match(message)
    return message if found is None else _flag(found[1]) + message[found.end() :]


def reason_in_options(reason: str) -> str:
    """The reason of a failure, with the remedies in brackets at its end as ``in_options``.

    >>> reason_in_options('max_steps=3 reached; x calls "y", which is not registered (Pipeline(…, functions={"y": y}))')
    'max_steps=3 reached; x calls "y", which is not registered (in Python: Pipeline(…, functions={"y": y}))'
    """
    if not reason.endswith(")"):
        return reason
    depth = 0
    for place in range(len(reason) - 1, 0, -1):
        depth += (reason[place] == ")") - (reason[place] == "(")
        if not depth:
            return reason[: place + 1] + in_options(reason[place + 1 : -1]) + ")"
    return reason


def report_in_options(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a report, remedies in the words of the command line; what is quoted from a source stays."""
    for line in lines:
        head = _REMEDY.match(line)
        yield message_in_options(line) if head is None else head[0] + in_options(line[head.end() :])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
