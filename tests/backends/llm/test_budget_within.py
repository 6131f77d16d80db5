"""A model that calls tools is asked no more once a bound on tokens is reached (ruling 18)."""

from attractor_nb import Pipeline

SOURCE = """digraph { start [shape=Mdiamond] a [prompt="Look", allowed_tools="list"] done [shape=Msquare]
    start -> a -> done }"""


def test_ruling_18_no_request_is_made_after_the_bound(serve, reply, backend_for, tmp_path):
    server = serve(reply(tool_calls=(("list_files", {}),), finish="tool_calls"))
    result = Pipeline(SOURCE).run(
        wait=True, backend=backend_for(server), logs_root=tmp_path / "run", max_tokens_total=30
    )
    assert (result.status, result.bound) == ("fail", "max_tokens_total")
    assert len(server.asked) == 2  # eighteen tokens each: the second one reaches the bound
    assert result.usage.total_tokens == 36
