"""Writes of an attempt after its time limit do not count for the next attempt."""

import threading

from attractor_nb.model.outcome import Outcome
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.stage import current_stage

LIMIT_SECONDS = 60
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=custom, timeout="200ms", max_retries=1] done [shape=Msquare]
    start -> work -> done
}"""


def test_ruling_27_a_status_file_of_an_attempt_that_was_given_up_is_never_read(tmp_path):
    second_began, first_wrote = threading.Event(), threading.Event()

    def work(*_):
        scope = current_stage()
        if scope.attempt == 1:
            second_began.wait(LIMIT_SECONDS)
            try:
                scope.files.write_text("status.json", '{"outcome": "success"}')
            finally:
                first_wrote.set()
            return Outcome.success()
        second_began.set()
        first_wrote.wait(LIMIT_SECONDS)
        return Outcome.fail("the second attempt failed")

    source = SOURCE.replace("200ms", "1s")
    run = Pipeline(source, handlers={"custom": work}).run(logs_root=tmp_path / "run")
    result = run.result(LIMIT_SECONDS)
    assert result.status == "fail"
    assert "the second attempt failed" in result.reason
