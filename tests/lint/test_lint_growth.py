"""A pipeline is made and checked in a time that grows with its nodes alone, also when each of them has a slip."""

import sys

import pytest

from attractor_nb import Pipeline
from attractor_nb.lint.survey import MAX_SUGGESTIONS

SMALL, LARGE = 3 * MAX_SUGGESTIONS, 6 * MAX_SUGGESTIONS


def chain(node, *, edge="", head=""):
    """A chain of nodes with these attributes, in which ``@`` is the number of the node, of three digits."""

    def text(count):
        lines = [f"n{number} [{node.replace('@', f'{number:03}')}]" for number in range(count)]
        lines += [f"n{number} -> n{number + 1} [{edge.replace('@', f'{number:03}')}]" for number in range(count - 1)]
        body = "\n".join(lines)
        return f"digraph {{ {head} start [shape=Mdiamond] exit [shape=Msquare]\n{body}\nstart -> n0 n1 -> exit }}"

    return text


def selecting(selector, **options):
    """The same with a stylesheet of one rule a node."""

    def text(count):
        rules = " ".join(f"{selector.replace('@', f'{number:03}')} {{ llm_model: x; }}" for number in range(count))
        return chain(**options, head=f'model_stylesheet="{rules}"')(count)

    return text


def choosing(label):
    """One gate with many choices."""

    def text(count):
        ways = " ".join(f'gate -> exit [label="{label.replace("@", f"{number:03}")}"]' for number in range(count))
        return f"digraph {{ start [shape=Mdiamond] exit [shape=Msquare] gate [shape=hexagon] start -> gate {ways} }}"

    return text


def calls_of_making(text):
    Pipeline(text)  # what is computed once for a process is computed
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        Pipeline(text + "\n")  # another text: nothing of it is kept
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(chain('prompt="Do $ticket"'), id="one value that nobody declares"),
        pytest.param(chain('prompt="Do $ticket@"'), id="values that nobody declares"),
        pytest.param(chain('prompt="Do $topci@"', head='inputs="topic"'), id="values beside the declared ones"),
        pytest.param(chain('shape=hexagon, label="$x@?"', head='inputs="topic"'), id="values behind gates alone"),
        pytest.param(chain('prompt="Do ${nobody@.response}"'), id="responses of no stage"),
        pytest.param(chain("prompt=x", edge='condition="context.k@=1"'), id="keys in conditions"),
        pytest.param(chain("prompt=x", edge='condition="outcom@=1"'), id="slips in conditions"),
        pytest.param(chain('shape=hexagon, label=x, human.review="nobody@/a.md"'), id="reviews of no stage"),
        pytest.param(
            chain('prompt=x, carry="n@.reponse"'), id="carried values of no stage", marks=pytest.mark.campaign
        ),
        pytest.param(chain('prompt=x, retry_target="m@"'), id="jumps to no stage", marks=pytest.mark.campaign),
        pytest.param(chain('promt="x"'), id="one misspelled attribute"),
        pytest.param(chain('promt@="x"'), id="misspelled attributes"),
        pytest.param(chain('type="tol@"'), id="unknown types"),
        pytest.param(chain('prompt="sk-abcdefghij1234567890@"'), id="secrets"),
        pytest.param(selecting(".k@", node='class="c@"'), id="classes that do not meet", marks=pytest.mark.campaign),
        pytest.param(selecting("#k@", node="prompt=x"), id="ids of no node", marks=pytest.mark.campaign),
        pytest.param(selecting(".c@", node='class="c@"'), id="a style for each node"),
        pytest.param(choosing("Agree @"), id="choices with one key"),
    ],
)
def test_twice_the_nodes_take_twice_the_calls(text):
    assert calls_of_making(text(LARGE)) < 2.3 * calls_of_making(text(SMALL))
