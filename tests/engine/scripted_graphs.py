"""Small pipelines that Hypothesis draws, with the replies of their nodes."""

from hypothesis import strategies as st

from attractor_nb import Pipeline

EDGES = ("weight=1", 'condition="outcome=success"', 'condition="outcome=fail"', "default=true")


@st.composite
def scripted_pipelines(draw, nodes, statuses, backend):
    """A pipeline with loops, conditions, gates, retries and diamonds; ``backend`` makes its backend of its replies.

    Findings that would be errors are warnings.
    """
    lines = []
    for name in nodes:
        attrs = [f"max_retries={draw(st.integers(0, 1))}"]
        if draw(st.booleans()):
            attrs += ["goal_gate=true", f"retry_target={draw(st.sampled_from(nodes))}"]
        if draw(st.integers(0, 4)) == 0:
            attrs = ["shape=diamond"]
        lines.append(f"{name} [{', '.join(attrs)}]")
        targets = draw(st.lists(st.sampled_from((*nodes, "done")), min_size=1, max_size=3, unique=True))
        lines += [f"{name} -> {target} [{draw(st.sampled_from(EDGES))}]" for target in targets]
    replies = {name: draw(st.lists(st.sampled_from(statuses), min_size=1, max_size=3)) for name in nodes}
    body = "\n".join(lines) + "\nstart -> a"
    text = f"digraph g {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
    found = Pipeline(text, backend=backend(replies))
    off = {each.rule: "warning" for each in found.diagnostics if each.is_error}
    return Pipeline(text, backend=backend(replies), severity=off)
