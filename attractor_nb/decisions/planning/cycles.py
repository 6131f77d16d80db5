"""Cycles of a directed graph, as its strongly connected components."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def find_cycles(
    successors: Mapping[str, Collection[str]], predecessors: Mapping[str, Collection[str]]
) -> list[list[str]]:
    """The components in which each node can be reached from each other one, or a node from itself.

    Kosaraju's algorithm without recursion: linear, and no depth of graph can exhaust the stack.
    networkx has such a function too, but takes half a second to import.

    Args:
        successors: The targets of every node; each target is a key too.
        predecessors: The same edges by target.

    >>> find_cycles({"a": ["a", "b"], "b": []}, {"a": ["a"], "b": ["a"]})
    [['a']]
    """
    # What only leads to cycles, or is only led to, is on none: in most pipelines that is nearly all.
    core = _without_ends(_without_ends(successors.keys(), successors), predecessors)
    inner = {node: [target for target in successors[node] if target in core] for node in core}
    cycles: list[list[str]] = []
    seen: set[str] = set()
    for root in reversed(_finishing_order(inner)):
        if root in seen:
            continue
        seen.add(root)
        component = [root]
        for node in component:
            for source in predecessors[node]:
                if source in core and source not in seen:
                    seen.add(source)
                    component.append(source)
        if len(component) > 1 or root in inner[root]:
            cycles.append(component)
    return cycles


def _without_ends(nodes: Collection[str], targets: Mapping[str, Collection[str]]) -> set[str]:
    """The nodes without those that no other node, or only one so left out, leads to."""
    entering = dict.fromkeys(nodes, 0)
    for node in nodes:
        for target in targets[node]:
            if target in entering:
                entering[target] += 1
    ends = [node for node, count in entering.items() if not count]
    for node in ends:
        for target in targets[node]:
            if target in entering:
                entering[target] -= 1
                if not entering[target]:
                    ends.append(target)
    return {node for node, count in entering.items() if count}


def _finishing_order(successors: Mapping[str, Collection[str]]) -> list[str]:
    """All nodes, each after everything that a depth-first walk finds from it."""
    order: list[str] = []
    seen: set[str] = set()
    for root in successors:
        if root in seen:
            continue
        seen.add(root)
        work = [(root, iter(successors[root]))]
        while work:
            node, targets = work[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                work.pop()
                order.append(node)
            else:
                seen.add(target)
                work.append((target, iter(successors[target])))
    return order
