"""Hooks around tool calls are not for agents, which call their tools themselves: the run says so (spec 9.7)."""

from attractor_nb import Pipeline

SOURCE = """digraph g { tool_hooks.pre="false" start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Mend it.", allowed_tools="read", tool_hooks.post="true"] start -> work -> exit }"""


def test_9_7_a_run_warns_that_an_agent_asks_no_hook(stubs, agent, tmp_path):
    seen = []
    result = Pipeline(SOURCE).run(wait=True, backend=agent, logs_root=tmp_path / "run", observers=[seen.append])
    assert result.status == "success"
    said = [event.message for event in seen if type(event).__name__ == "RunWarning"]
    assert said == [
        f"tool_hooks.{when} of work does not run: {agent} calls its tools itself" for when in ("pre", "post")
    ]
