"""The graphs that are read, checked and drawn: made, deterministic, of any size."""

from __future__ import annotations

import random


def written_pipeline(nodes: int) -> str:
    """A text that every DOT reader takes: six attributes a node, one and a half edges a node."""
    chance = random.Random(nodes)
    lines = [
        "digraph bench {",
        '  graph [goal="Build the thing", max_steps=100000]',
        '  start [shape=Mdiamond, label="Start"]',
        '  exit [shape=Msquare, label="Exit"]',
    ]
    for number in range(nodes):
        prompt = (
            f'You are step {number} of $goal.\\nRead the \\"plan\\" first,\\nthen write the code.\n'
            "Second line of the prompt, with some more words in it."
        )
        lines.append(
            f'  n{number} [shape=box, label="Step {number}: do it", prompt="{prompt}",'
            f' max_retries={number % 4}, timeout="{(number % 9 + 1) * 100}s", class="code,g{number % 7}"]'
        )
    lines += ["  start -> n0", f"  n{nodes - 1} -> exit"]
    lines += [f"  n{number} -> n{number + 1} [weight={number % 3}]" for number in range(nodes - 1)]
    for number in range(nodes // 2):
        source = chance.randrange(nodes)
        target = min(nodes - 1, source + chance.randrange(1, 20))
        guard = f"outcome=fail && context.k{number % 5}=1"
        lines.append(f'  n{source} -> n{target} [label="skip", condition="{guard}"]')
    return "\n".join([*lines, "}"]) + "\n"


def drawn_pipeline(nodes: int, seed: int) -> str:
    """A chain with half as many skips as nodes; another seed gives another graph, so no cache helps."""
    chance = random.Random(seed)
    lines = ["digraph bench {", "  node [shape=box]", "  start [shape=Mdiamond]", "  exit [shape=Msquare]"]
    lines += [f'  n{number} [label="Step {number}"]' for number in range(nodes)]
    lines += ["  start -> n0", f"  n{nodes - 1} -> exit"]
    lines += [f"  n{number} -> n{number + 1}" for number in range(nodes - 1)]
    for _ in range(nodes // 2):
        source = chance.randrange(nodes)
        target = min(nodes - 1, source + chance.randrange(2, 12))
        lines.append(f'  n{source} -> n{target} [label="skip"]')
    return "\n".join([*lines, "}"]) + "\n"
