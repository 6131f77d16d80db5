"""A whole pipeline over real HTTP, in each provider's form, killed and resumed: what each request tells its model.

Research, three reviewers, a synthesis, a judge, a fix loop on a real pytest and a gate. Its process is killed
while a reviewer or the fix is asked for, and again at the gate; each time another process goes on.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.metered_requests import price_of
from attractor_nb.model.calls.providers import read_model
from attractor_nb.model.outcome import Usage

SHAPES = {
    "openai": ("openai:gpt-5.2", "OPENAI_BASE_URL", "OPENAI_API_KEY", "accuracy"),
    "responses": ("house:gpt-5.2", "", "HOUSE_KEY", "fix"),
    "anthropic": ("anthropic:claude-opus-4-6", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "fix"),
    "google": ("google:gemini-2.5-pro", "", "", "accuracy"),
}
"""The model, the variables that hold the address and the key, and the stage whose first request a kill cuts off. The
address of ``house`` is that of an endpoint, and that of Google stands on the graph and so gets no key."""
SIGNS = {"accuracy": {"StageCompleted risk", "StageCompleted style"}, "fix": {"StageStarted fix"}}
"""The output of a process before it is killed in that stage."""
KEY = "sk-planted-0123456789abcdefghij"
PARAMS = {"ticket": "0.1 + 0.2 is printed as 0.30000000000000004", "product": "Ledger 4"}
SOURCE = """digraph Repair {{
    graph [goal="Prices add up to the cent", inputs="ticket, product, tone=plain", llm_model="{model}", {address}]
    start [shape=Mdiamond]
    research  [prompt="Name the likeliest cause of this problem with $product: $ticket"]
    reviewers [shape=component]
    accuracy  [prompt="Review the research: is it right? Its first words: ${{research.response:head 60}}"]
    risk      [prompt="Review the research: what may a repair break?"]
    style     [prompt="Review the research: can a user follow it? Tone: $tone."]
    collect   [shape=tripleoctagon]
    synthesis [prompt="Merge the three reviews into one plan, the most serious first."]
    judge     [prompt="Does the plan answer each review?", verdict=json, goal_gate=true, max_retries=3, retry_target=synthesis]
    write     [prompt="Write prices.py as planned.", allowed_tools="write"]
    test      [shape=parallelogram, tool_command="python -m pytest -q -p no:cacheprovider"]
    fix       [prompt="The tests are red. Find out why and repair the code.", allowed_tools="write"]
    approve   [shape=hexagon, label="Release $product?"]
    done      [shape=Msquare]
    start -> research -> reviewers
    reviewers -> accuracy -> collect
    reviewers -> risk -> collect
    reviewers -> style -> collect
    collect -> synthesis -> judge
    judge -> write [condition="outcome=success"]
    write -> test
    test -> approve [condition="outcome=success"]
    test -> fix [condition="outcome=fail"]
    fix -> test
    approve -> done [label="[R] Release"]
    approve -> fix  [label="[B] Back"]
}}"""
TESTS = """from prices import total


def test_cents_are_kept():
    assert total(["0.1", "0.2"]) == "0.3"
"""
WRONG = "def total(prices):\n    return str(sum(float(price) for price in prices))\n"
RIGHT = "from decimal import Decimal\n\n\ndef total(prices):\n    return str(sum(Decimal(price) for price in prices))\n"
ASSERTION = "AssertionError: assert '0.30000000000000004' == '0.3'"
CUT = '{"outcome":"fail","checks":[{"outcome":"success"},{"outcome":"fail","notes":"risk 2 is mis'
UNKNOWN = '{"outcome": "splendid"}'
COMPLAINT = "## Your last answer was not accepted"


def page(name):
    """An answer of some 1,800 characters, the end of which is as telling as its beginning."""
    points = "\n".join(f"{number}. {name} point {number}: floats are no money. " * 2 for number in range(1, 16))
    return f"# {name}\n\n{points}\n\nThe last word of {name}."


RESEARCH, ACCURACY, RISK, STYLE = map(page, ("Research", "Accuracy", "Risk", "Style"))


@dataclass
class Models:
    """The answers of the pipeline's models, by request; the number of requests of each, and their contents.

    The first answer to the stage ``cut`` breaks off in the middle, and nothing more comes.
    """

    reply: type
    cut: str
    told: list = field(default_factory=list)
    consumed: list = field(default_factory=list)

    def __call__(self, asked):
        text = words_of(asked)
        name = next(name for name, task in TASKS.items() if task in text)
        self.told.append((name, text))
        turn = len([each for each, _ in self.told if each == name]) - 1
        answers = self.answers(name)
        answer = answers[min(turn, len(answers) - 1)]
        if answer.ends == "well":
            self.consumed.append(answer.usage)
        return answer

    def answers(self, name):
        """The replies to one stage, in turn; tokens are unlike, so that a sum tells what is missing."""
        reply, number = self.reply, list(TASKS).index(name) + 1

        def said(text="", **more):
            return reply(text, usage=(1000 * number, 10 * number), **more)

        def stored(code):
            return said(tool_calls=(("write_file", {"path": "prices.py", "content": code}),))

        hanging = [said("Let me see, let me", ends="hang", after=2)] if name == self.cut else []
        return (
            hanging
            + {
                "research": [said(RESEARCH)],
                "accuracy": [said(ACCURACY)],
                "risk": [said(RISK)],
                "style": [said(STYLE)],
                "synthesis": [said("1. Use Decimal.\n2. Keep the signature.")],
                "judge": [
                    said(CUT, finish="length"),
                    said(UNKNOWN),
                    said('{"outcome": "success", "notes": "each is answered"}'),
                ],
                "write": [stored(WRONG), said("I wrote prices.py.")],
                "fix": [stored(RIGHT), said("I use Decimal now.")],
            }[name]
        )

    def of(self, name):
        """The contents of each request to a stage's model."""
        return [text for each, text in self.told if each == name]


TASKS = {
    "research": "Name the likeliest cause",
    "accuracy": "is it right?",
    "risk": "what may a repair break?",
    "style": "can a user follow it?",
    "synthesis": "Merge the three reviews",
    "judge": "Does the plan answer each review?",
    "write": "Write prices.py as planned.",
    "fix": "The tests are red.",
}
"""Words of each stage's task, which no other prompt has."""


def words_of(asked):
    """The texts for people in a request, in whichever form: all strings that stand under ``text`` or ``content``."""

    def found(value, key=""):
        if isinstance(value, str):
            return [value] if key in {"text", "content", "input"} else []
        pairs = (
            value.items()
            if isinstance(value, dict)
            else ((key, each) for each in value)
            if isinstance(value, list)
            else ()
        )
        return [text for name, each in pairs for text in found(each, name)]

    return "\n".join(
        found({name: asked.body[name] for name in ("messages", "input", "contents") if name in asked.body})
    )


BEGIN = """
import json, sys, time
from attractor_nb import Pipeline
text, root, params, how = sys.argv[1:]

def tell(event):
    print(event.type, getattr(event, "node_id", ""), flush=True)

if __name__ == "__main__":
    options = {"backend": "llm", "observers": [tell]}
    if how == "begin":
        run = Pipeline(text).run(logs_root=root, params=json.loads(params), workdir=".", **options)
    else:
        run = Pipeline(text).resume(root, **options)
    run.wait_for_gate("approve", timeout=60)
    print("at the gate", flush=True)
    time.sleep(600)
"""


@dataclass
class Played:
    """A run that was killed twice, and what the server was asked meanwhile."""

    result: object
    models: Models
    server: object
    place: Path
    root: Path
    model: str


ROWS = [
    pytest.param(
        shape, marks=pytest.mark.kind("a pipeline over HTTP") if shape == "anthropic" else pytest.mark.campaign
    )
    for shape in sorted(SHAPES)
]


@pytest.fixture(scope="module", params=ROWS)
def played(request, tmp_path_factory, program):
    """The pipeline of one form, from its beginning in the first process to its end in this one."""
    shape = request.param
    model, address_variable, key_variable, cut = SHAPES[shape]
    place = tmp_path_factory.mktemp(shape)
    (place / "test_prices.py").write_text(TESTS)
    models = Models(program.Reply, cut)
    with program.ScriptedServer(choose=models) as server, pytest.MonkeyPatch.context() as patch:
        home = server.base_url(shape)
        address = {
            "responses": f'endpoint.house.url="{home}", endpoint.house.api=responses, endpoint.house.key_env=HOUSE_KEY',
            "google": f'llm.base_url="{home}"',
        }.get(shape, "")
        for name, value in ((address_variable, home), (key_variable, KEY)):
            if name:
                patch.setenv(name, value)
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        text, root = SOURCE.format(model=model, address=address), place / "run"

        def killed(how, asked, signs):
            """Let a process begin or go on, and kill it when it has said all of this and that stage was asked."""
            words = [sys.executable, "-c", BEGIN, text, str(root), json.dumps(PARAMS), how]
            with subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, text=True) as process:
                left = set(signs)
                while left and (line := process.stdout.readline()):
                    left.discard(line.strip())
                with server.came:
                    was_asked = not left and server.came.wait_for(lambda: models.of(asked), 60)
                process.kill()
            assert not left, f"{how}: never said {left}"
            assert was_asked

        killed("begin", cut, SIGNS[cut])
        killed("go on", "fix", {"at the gate"})
        run = Pipeline(text).resume(root, backend="llm")
        run.wait_for_gate("approve", timeout=60)
        run.answer("approve", "R")
        yield Played(run.result(60), models, server, place, root, model)


def text_of(played, name, turn=-1):
    return played.models.of(name)[turn]


def test_it_ends_right_in_the_third_process(played):
    result = played.result
    assert result.status == "success", result.reason
    tail = ["synthesis", "judge", "write", "test", "fix", "test", "approve", "done"]
    assert list(result.completed_nodes)[-len(tail) :] == tail
    assert (played.place / "prices.py").read_text() == RIGHT
    assert "1 passed" in result.context["tool.output"]


def test_no_stage_is_asked_twice_but_where_it_was_killed_or_not_understood(played):
    asked = {name: len(played.models.of(name)) for name in TASKS}
    with_tools = {"write": 2, "fix": 2}  # one request that calls the tool, and one after it
    expected = {**dict.fromkeys(TASKS, 1), "judge": 3, **with_tools}
    expected[played.models.cut] += 1
    assert asked == expected


def test_each_request_has_the_inputs(played):
    assert all("0.1 + 0.2 is printed as" in text and "Ledger 4" in text for _, text in played.models.told)


def test_variables_have_their_values(played):
    assert "Name the likeliest cause of this problem with Ledger 4: 0.1 + 0.2" in text_of(played, "research")
    assert "Tone: plain." in text_of(played, "style")
    assert "Its first words: # Research" in text_of(played, "accuracy")
    assert not [text for _, text in played.models.told if "${" in text or "$product" in text]


def test_each_reviewer_is_told_the_whole_research(played):
    for name in ("accuracy", "risk", "style"):
        assert RESEARCH in text_of(played, name)


def test_the_synthesis_is_told_the_whole_of_each_review(played):
    for review in (ACCURACY, RISK, STYLE):
        assert review in text_of(played, "synthesis")


def test_a_judge_that_was_cut_off_and_one_that_was_not_understood_are_told_so(played):
    first, second, third = played.models.of("judge")
    assert COMPLAINT not in first
    assert "cut off by the token limit" in second
    assert CUT in second
    assert "outcome 'splendid' is not known" in third
    assert UNKNOWN in third


def test_the_fix_is_told_which_assertion_failed(played):
    for text in played.models.of("fix"):
        assert f"E       {ASSERTION}" in text
        assert "test_cents_are_kept" in text


def test_a_request_that_was_cut_off_by_a_kill_is_made_again_as_it_was(played):
    task = TASKS[played.models.cut]
    first, second = [asked for asked in played.server.asked if task in words_of(asked)][:2]
    assert (second.path, second.body) == (first.path, first.body)


def test_no_request_has_anything_of_this_run_alone(played):
    said = json.dumps([asked.body for asked in played.server.asked])
    for name in (played.result.run_id, str(played.root), str(played.place)):
        assert name not in said


def test_the_key_is_in_headers_alone_and_goes_nowhere_without_its_variable(played):
    sent = [KEY in str(asked.headers) for asked in played.server.asked]
    assert set(sent) == {played.server.asked[0].shape != "google"}
    assert KEY not in json.dumps([asked.body for asked in played.server.asked])
    found = [path for path in played.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert not found


def test_tokens_and_price_are_counted_once_over_all_processes(played):
    usage, consumed = played.result.usage, played.models.consumed
    sent, received = (sum(each) for each in zip(*consumed, strict=True))
    assert (usage.input_tokens, usage.output_tokens) == (sent, received)
    model = read_model(played.model.replace("house:", "openai:"))
    prices = [price_of(model, Usage(*each)) for each in consumed]
    assert usage.cost_usd == pytest.approx(sum(prices))


def test_prompt_md_is_what_was_sent(played):
    for name in ("synthesis", "judge", "fix"):
        assert played.result[name].prompt.strip() in text_of(played, name)
