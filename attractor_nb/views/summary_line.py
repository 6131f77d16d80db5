"""The one line about a run: what it is doing, or how it ended and what to call then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.bounds import MAP_BOUNDS
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.states import WAITING, NodeStatus, RunStatus, run_state
from attractor_nb.views.state import RunView, so_far
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.outcome import Usage

_PASSING_TYPES: Final = frozenset({"start", "exit", "conditional"})
"""Handler types that do no work of their own: what fails there has failed before."""
_SILENT_TYPES: Final = frozenset({"start", "exit", "conditional", "parallel", "parallel.fan_in"})
"""Handler types whose results are not worth a look."""


def run_summary(
    view: RunView, graph: Graph, *, name: str = "", handle: str = "", has_times: bool = False, has_usage: bool = False
) -> str:
    """One line about a run: its status, how far it came, what to call next.

    Args:
        name: What the user calls what the line is about: the run, or its result; ``run`` by default.
        handle: What the user calls the run; the same by default.
        has_times: Show time, tokens and cost, which differ from run to run.
        has_usage: Show tokens and cost.
    """
    is_paused = view.is_paused
    parts = [run_state(view.shown_status), f"{view.stages} stage{'s' * (view.stages != 1)}"]
    if has_times:
        parts.append(duration_text(view.duration))
    if has_times or has_usage:
        parts += usage_words(so_far(view))
    if mark := view.marks.marks.words:
        parts.append(mark)
    if view.cached:
        parts.append(cached_words(view))
    if view.reason and not is_paused:
        parts.append(one_line(view.reason))
    if view.status is RunStatus.INTERRUPTED and view.next_node:
        parts.append(f"{'before' if is_paused else 'at'} {view.next_node}")
    name = name or handle or "run"
    parts.append(_next_step(view, graph, name, handle or name))
    return "   ".join(part for part in parts if part)


def _next_step(view: RunView, graph: Graph, name: str, handle: str) -> str:
    """The call that shows the last result after the end, or that resumes the run; empty for none."""
    if view.status is RunStatus.INTERRUPTED or view.bound in MAP_BOUNDS:  # a row alone has none of these
        return f"resume with {handle}.resume()"
    if view.bound:
        return f"resume with {handle}.resume({view.bound}=…)"
    if not view.status.is_ended:
        return ""
    wanted = {NodeStatus.FAIL} if view.status is RunStatus.FAIL else set(NodeStatus)
    reached = [
        (state.since, node_id)
        for node_id, state in view.nodes.items()
        if state.status in wanted and node_id in graph.nodes and graph.handler_types[node_id] not in _SILENT_TYPES
    ]
    return f'see {name}["{max(reached)[1]}"]' if reached else ""


def failed_stage(view: RunView, graph: Graph) -> str:
    """The stage in which a run failed: the path of its node, through child runs (``review>draft``); empty for none.

    Of a fan-out it is the stage of a branch. A run that was stopped because a stage could not be executed has one, too.
    """
    if view.is_unmeasured and view.next_node in graph.nodes:
        return view.next_node
    if view.status is not RunStatus.FAIL:
        return ""
    failed = {
        name: state.since
        for name, state in view.nodes.copy().items()
        if state.status is NodeStatus.FAIL and name in graph.nodes and graph.handler_types[name] not in _PASSING_TYPES
    }
    if not failed:
        return ""
    latest = max(failed, key=lambda name: failed[name])
    branches = [branch for branch in view.branches.copy().values() if branch.path.startswith(f"{latest}/")]
    if in_branch := [name for branch in branches for name in branch.nodes if name in failed]:
        latest = max(in_branch, key=lambda name: failed[name])
    child, below = view.children.get(latest), graph.children.get(latest)
    if child is None or below is None or latest in view.items:
        return latest
    inner = failed_stage(child.view, below)
    return f"{latest}{CHILD_SEPARATOR}{inner}" if inner else latest


def duration_text(seconds: float) -> str:
    """A length of time for users.

    >>> duration_text(0.25), duration_text(12.43), duration_text(75), duration_text(7320)
    ('0.25 s', '12.4 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def usage_words(usage: Usage) -> list[str]:
    """Tokens and price for users; what is nothing is left out, and what is not known is said.

    >>> from attractor_nb.model.outcome import Usage
    >>> usage_words(Usage(900, 100, 0.25)), usage_words(Usage(900, 100)), usage_words(Usage())
    (['1,000 tokens', '$0.25'], ['1,000 tokens', 'unpriced'], [])
    >>> usage_words(Usage(900, 100, 0.25, cached_tokens=800))
    ['1,000 tokens (800 cached)', '$0.25']
    """
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    words = [f"{usage.total_tokens:,} tokens{cached}"] if usage.total_tokens else []
    if count := usage.estimated_calls:
        words.append(f"{count} call{'s' * (count != 1)} counted by estimate")
    return [*words, price] if (price := price_text(usage)) else words


def cached_words(view: RunView) -> str:
    """The number of stages from the cache, and its known savings."""
    words = usage_words(view.saved)
    return f"{len(view.cached)} cached" + (f" (saved {', '.join(words)})" if words else "")


def price_text(usage: Usage) -> str:
    """The price of a usage; empty for nothing and for what is free. A part of it is not taken for the whole.

    >>> from attractor_nb.model.outcome import Usage
    >>> price_text(Usage(900, 100, 0.012, 3) + Usage(900, 100, None, 1))
    '≥ $0.012 (1 call unpriced)'
    """
    count = usage.unpriced_calls
    if not count:
        return cost_text(usage.cost_usd) if usage.cost_usd else ""
    if usage.cost_usd is None:
        return "unpriced"
    unpriced = f"{count} call{'s' * (count != 1)} unpriced"
    return f"≥ {cost_text(usage.cost_usd)} ({unpriced})" if usage.cost_usd else unpriced


def cost_text(usd: float) -> str:
    """A price with as many digits as tell something.

    >>> cost_text(0.0031), cost_text(1.5)
    ('$0.0031', '$1.50')
    """
    return f"${usd:.2f}" if usd >= 1 or not usd else f"${usd:.2g}"


def status_line(view: RunView, graph: Graph, *, started: float, now: float) -> dict[str, Any]:
    """The line as JSON for the front-end, which lets the seconds run by itself.

    Args:
        view: The state of the run.
        graph: What runs.
        started: When the run began, in seconds since 1970.
        now: The clock of who runs it at this moment; sent as ``at``, so that the browser can tell its skew.
    """
    line: dict[str, Any] = {"status": view.status.value, "at": round(now, 3)}
    active = view.active_nodes
    if view.status.is_ended:
        line |= {"is_ended": True, **({"is_paused": True} if view.is_paused else {})}
        line["elapsed"] = round(view.duration, 3)
        if view.status is not RunStatus.SUCCESS:
            line["node"] = view.next_node or view.reason
        if failed := failed_stage(view, graph):
            line["failed"] = failed
    else:
        line["elapsed"] = round(max(0.0, now - started), 3) if started else 0.0
    if active and not view.status.is_ended:
        shown = next((name for name in active if view.nodes[name].status is NodeStatus.WAITING), active[-1])
        state = view.nodes[shown]
        line["status"] = WAITING if view.is_waiting else state.status.value
        line["node"] = shown
        if len(active) > 1:
            line["more"] = len(active) - 1
        line["attempt"] = state.attempt
        # A resume runs a stage that was cut off again, beyond the attempts that its policy allows.
        if shown in graph.nodes and state.attempt <= (allowed := attempts_allowed(graph, shown)):
            line["attempts"] = allowed
    if view.stages:
        line["stages"] = view.stages
    usage = so_far(view)
    if usage.total_tokens:
        line["tokens"] = usage.total_tokens
    if price := price_text(usage):
        line["price"] = price
    said = {"mark": view.marks.marks.words, "cached": cached_words(view) if view.cached else ""}
    return {**line, **{name: words for name, words in said.items() if words}}


def attempts_allowed(graph: Graph, node_id: str) -> int:
    """The maximum attempts of a node: its ``max_retries``, else the graph's, plus one (ruling 13)."""
    default = graph.get("default_max_retries", int, graph.get("default_max_retry", int, 0))
    return graph.nodes[node_id].get("max_retries", int, default) + 1
