"""A resumed run is answered as it was before; it never goes on with simulated answers by accident."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError

SOURCE = "digraph G { start [shape=Mdiamond] a [prompt=a] b [prompt=b] done [shape=Msquare] start -> a -> b -> done }"


def answer(prompt):
    return f"answered {prompt}"


def _stopped(tmp_path, backend):
    Pipeline(SOURCE).run(wait=True, logs_root=tmp_path / "run", backend=backend, stop_after=2)
    return tmp_path / "run"


def test_a_run_on_ones_own_backend_is_not_resumed_without_it(tmp_path):
    logs_root = _stopped(tmp_path, answer)
    with pytest.raises(
        OptionError, match="prompts of this run were answered by answer, and no backend is given"
    ):
        Pipeline(SOURCE).resume(logs_root)
    result = Pipeline(SOURCE, backend=answer).resume(logs_root).result()
    assert result["b"].response.startswith("answered")


def test_a_simulated_run_is_resumed_as_it_was(tmp_path):
    result = Pipeline(SOURCE).resume(_stopped(tmp_path, None)).result()
    assert result["b"].response.startswith("[Simulated]")


def test_another_backend_may_be_given(tmp_path):
    result = Pipeline(SOURCE).resume(_stopped(tmp_path, answer), backend="simulated").result()
    assert result["b"].response.startswith("[Simulated]")


@pytest.mark.parametrize("key", ["internal.retry_count.a", "graph.goal"])
def test_parameters_do_not_reach_the_engines_own_keys(key, tmp_path):
    with pytest.raises(OptionError, match="are the engine's own"):
        Pipeline(SOURCE).run(params={key: 1}, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()
