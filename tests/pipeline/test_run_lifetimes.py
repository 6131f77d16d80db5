"""A run without a reference is gone, with its events and pictures: a notebook has many of them."""

import gc
import weakref

import pytest

from attractor_nb import Outcome, Pipeline, Run

SOURCE = """digraph Kept {
    start [shape=Mdiamond]
    write [prompt="Write"]
    own   [type=own]
    done  [shape=Msquare]
    start -> write -> own -> done
}"""


class Knowing:
    """A backend that knows the run which it answers, as those do that show what they are asked."""

    runs = ()

    def run(self, node, prompt, context):
        return "written"


def ended_run(tmp_path, knows):
    """A run that has ended, known to its backend, its handler or its observer."""
    backend, handler, seen = Knowing(), lambda *_: Outcome.success(), []
    pipeline = Pipeline(SOURCE, handlers={"own": handler})
    run = pipeline.run(logs_root=tmp_path / "run", durability="fast", backend=backend, observers=[seen.append])
    run.result(60)
    {"backend": backend, "handler": handler}.get(knows, Knowing()).runs = [run]
    return run


def looked_at(run):
    run.explain()
    run.inspect("write")
    assert run.to_svg()


@pytest.mark.parametrize("knows", ["nobody", "backend", "handler"])
@pytest.mark.parametrize("is_looked_at", [False, True])
@pytest.mark.campaign
def test_a_run_that_nobody_holds_is_gone(tmp_path, knows, is_looked_at):
    run = ended_run(tmp_path, knows)
    if is_looked_at:
        looked_at(run)
    kept = weakref.ref(run)
    del run
    gc.collect()
    assert kept() is None


def test_a_loaded_run_that_nobody_holds_is_gone(tmp_path):
    ended_run(tmp_path, "nobody")
    run = Run.load(tmp_path / "run")
    looked_at(run)
    kept = weakref.ref(run)
    del run
    gc.collect()
    assert kept() is None


def test_what_goes_on_from_a_run_has_its_backend(tmp_path):
    run = ended_run(tmp_path, "backend")
    again = run.fork("own")
    assert again.result(60)["write"].response == "written"
