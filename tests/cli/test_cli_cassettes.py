"""`--cassette`: a run of the command line is recorded once, and replayed without a gate, a model or trust."""


def test_a_run_is_recorded_and_replayed(command, sources):
    first = command("run", "review.dot", "--auto-approve", "--cassette", "review.json")
    assert first.code == 0, first.err
    assert "cassette: 0 calls from review.json, 2 recorded" in first.err
    again = command("run", "review.dot", "--gates", "refuse", "--cassette", "review.json", "--cassette-mode", "replay")
    assert again.code == 0, again.err
    assert "replayed from review.json: no model is called, no command is run" in again.err
    assert "cassette: 2 calls from review.json" in again.err
    assert "responses are simulated" not in again.err


def test_a_replay_of_commands_from_a_file_needs_no_trust_and_runs_none(command, sources):
    assert command("run", "slow.dot", "--cassette", "c.json").code == 2, "recording runs commands"
    (sources / "quick").touch()
    assert command("run", "slow.dot", "--trust", "--cassette", "c.json").code == 0
    (sources / "began").unlink()
    ended = command("run", "slow.dot", "--cassette", "c.json", "--cassette-mode", "replay")
    assert ended.code == 0, ended.err
    assert not (sources / "began").exists()


def test_a_changed_pipeline_fails_its_replay_and_says_what_changed(command, sources):
    assert command("run", "straight.dot", "--cassette", "c.json").code == 0
    (sources / "straight.dot").write_text(
        (sources / "straight.dot").read_text().replace('prompt="Write"', 'prompt="Write well"')
    )
    ended = command("run", "straight.dot", "--cassette", "c.json", "--cassette-mode", "replay")
    assert ended.code == 1
    assert '"Write" → "Write well"' in ended.out


def test_options_that_contradict_each_other_are_refused(command, sources):
    for options, said in (
        (["--cassette-mode", "replay"], "--cassette-mode needs --cassette"),
        (
            ["--simulate", "--cassette", "c.json"],
            "--simulate and --cassette contradict each other: a simulation makes no calls",
        ),
        (["--cassette", "none.json", "--cassette-mode", "replay"], "there is no cassette none.json to replay"),
    ):
        ended = command("run", "straight.dot", *options)
        assert ended.code == 2
        assert said in ended.err
