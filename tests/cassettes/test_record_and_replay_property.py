"""The replay of any run has the same path, context and files."""

import importlib.util
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from attractor_nb import Pipeline, current_stage
from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Outcome, StageStatus, Usage

_SPEC = importlib.util.spec_from_file_location("cassette_scenario", Path(__file__).with_name("conftest.py"))
scenario = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(scenario)

SOURCE = """digraph {
    max_steps=20
    start [shape=Mdiamond]
    done [shape=Msquare]
    node [fidelity="compact"]
    work [prompt="Work.", max_retries=1]
    fan [shape=component, error_policy="continue"]
    left [prompt="Left."]
    right [prompt="Right."]
    join [shape=tripleoctagon]
    start -> work
    work -> fan [condition="outcome=success"]
    work -> done [condition="outcome!=success"]
    fan -> left -> join
    fan -> right -> join
    join -> work [condition="preferred_label=again"]
    join -> done
}"""

texts = st.text(max_size=30)
usages = st.none() | st.builds(Usage, st.integers(0, 99), st.integers(0, 99), st.none() | st.floats(0, 1), st.just(1))
replies = st.one_of(
    st.builds(lambda text, usage, cut: Response(text, usage=usage, is_truncated=cut), texts, usages, st.booleans()),
    st.builds(
        lambda status, label, value, usage: Outcome(
            status, preferred_label=label, context_updates={"value": value}, usage=usage, failure_reason="as scripted"
        ),
        st.sampled_from([StageStatus.SUCCESS, StageStatus.PARTIAL_SUCCESS, StageStatus.FAIL, StageStatus.RETRY]),
        st.sampled_from(["", "again"]),
        st.none() | st.integers(0, 9) | st.lists(texts, max_size=2),
        usages,
    ),
    st.builds(RetryableError, texts),
    st.builds(TerminalError, texts),
    st.builds(ValueError, texts),
)
scripts = st.fixed_dictionaries({name: st.lists(replies, min_size=1, max_size=4) for name in ("work", "left", "right")})
files = st.dictionaries(st.sampled_from(["a.txt", "b.bin", "out/c.txt"]), st.binary(max_size=20), max_size=2)


class Scripted:
    """Gives each node its replies in order, writes files, and tells where its run is."""

    def __init__(self, script, written):
        self.left = {name: list(given) for name, given in script.items()}
        self.written = written

    def run(self, node, prompt, context):
        left = self.left[node.id]
        reply = left.pop(0) if len(left) > 1 else left[0]
        scope = current_stage()
        for name, data in self.written.items():
            scope.files.write_bytes(name, data)
        context.set("where", f"{scope.run_id} in {scope.logs_root}")
        if isinstance(reply, Exception):
            raise reply
        return reply


class NoWait:
    """Time without waiting between attempts."""

    def time(self):
        return 1.0

    def monotonic(self):
        return 1.0

    async def sleep(self, seconds):
        pass

    async def wait_out(self, seconds):
        pass


@settings(max_examples=30, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(scripts, files)
def test_a_replay_equals_the_run_that_was_recorded(tmp_path_factory, script, written):
    place = tmp_path_factory.mktemp("runs")
    pipeline = Pipeline(SOURCE)
    options = {
        "wait": True,
        "cassette": place / "c.json",
        "durability": "fast",
        "clock": NoWait(),
        "max_tokens_total": 10**9,
    }
    recorded = pipeline.run(
        backend=Scripted(script, written), cassette_mode="record", logs_root=place / "one", **options
    )
    replayed = pipeline.run(cassette_mode="replay", logs_root=place / "two", **options)
    assert not replayed.cassette.misses, replayed.reason
    assert not replayed.cassette.unused
    assert (replayed.status, replayed.reason) == (recorded.status, recorded.reason)
    assert replayed.completed_nodes == recorded.completed_nodes
    assert replayed.visits == recorded.visits
    assert scenario.context_of(replayed) == scenario.context_of(recorded)
    assert scenario.evidence(replayed) == scenario.evidence(recorded)
    assert not replayed.usage.cost_usd
    assert not replayed.usage.total_tokens
    assert replayed.cassette.usage.total_tokens == recorded.usage.total_tokens
