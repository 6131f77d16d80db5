"""An agent of the command line is told where the attached files are (issue 16)."""

import re
from pathlib import Path

from attractor_nb import Attachment, Pipeline

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def test_an_agent_finds_the_file_that_its_prompt_names(stubs, agent, tmp_path):
    stubs.do("answer")
    pipeline = Pipeline(
        """digraph { start [shape=Mdiamond] look [prompt="What is it?", attach="${photo}"]
            done [shape=Msquare] start -> look -> done }""",
        backend=agent,
    )
    photo = Attachment(PNG, "../my cat; rm -rf.png")
    pipeline.run(wait=True, params={"photo": photo}, logs_root=tmp_path / "run")
    task = stubs.calls[0]["task"]
    place = Path(re.search(r"^- (/.*)$", task, re.MULTILINE)[1])
    assert place.parent == (tmp_path / "run" / "look" / "attached").absolute()
    assert place.name == "1-_my_cat_rm_-rf.png"
    assert place.read_bytes() == PNG
