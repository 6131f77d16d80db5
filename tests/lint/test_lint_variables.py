"""Findings about inputs and variables (ruling 34)."""

import pytest

from attractor_nb import Pipeline

SHELL = "digraph { %s start [shape=Mdiamond] done [shape=Msquare] %s }"


def findings(body, head="", rule="variable_unknown", **options):
    if "->" not in body:
        body += " start -> work -> done"
    return [found for found in Pipeline(SHELL % (head, body), **options).diagnostics if found.rule == rule]


@pytest.mark.parametrize(
    ("head", "message", "words"),
    [
        ('inputs="a b"', 'inputs: expected a ","', "b"),
        ('inputs="a, a=1"', 'inputs: "a" occurs twice', "a"),
        ('inputs="outcome"', 'inputs: "outcome" is a key that the engine sets', "outcome"),
        ('goal="x" inputs="goal"', "the input goal has no effect: $goal is the goal of the graph", '"goal"'),
        ('inputs_schema="Ticket"', 'inputs_schema names the schema "Ticket", which is not registered', '"Ticket"'),
    ],
)
def test_a_wrong_declaration_is_an_error_at_its_place(head, message, words):
    (found,) = findings("start -> done", head, "inputs_valid")
    assert (found.message, found.severity.value, found.span.text) == (message, "error", words)


@pytest.mark.parametrize(
    "head", ["", 'inputs="ticket, tone=plain"', 'inputs="goal"', 'goal="x" inputs="ticket"', 'inputs=""']
)
def test_a_right_declaration_is_none(head):
    assert findings("start -> done", head, "inputs_valid") == []


@pytest.mark.parametrize(
    ("prompt", "message", "fixed"),
    [
        ("About $tikcet.", '${tikcet} names nothing; did you mean "ticket"?', "About $ticket."),
        ("${tol.output:tail 9}", '${tol.output} names nothing; did you mean "tool.output"?', "${tool.output:tail 9}"),
        ("$goal for ${wrk.response}", '${wrk.response} names nothing; did you mean "work.response"?', None),
        ("${research.response}", '${research.response} names nothing: there is no stage "research"', None),
        ("$colour", '${colour} names nothing: it is not an input, and no stage before "work" can set it', None),
    ],
)
def test_a_variable_that_names_nothing_is_a_warning_at_its_place(prompt, message, fixed):
    (found,) = findings(f'work [prompt="{prompt}"]', 'goal="g" inputs="ticket, tone=plain"')
    assert (found.message, found.severity.value, found.node_id) == (message, "warning", "work")
    assert found.span.text in prompt
    assert found.span.text.startswith("$")
    if fixed:
        assert found.fix.edits
        mended = Pipeline(SHELL % ('inputs="ticket"', f'work [prompt="{prompt}"] start -> work -> done'))
        assert f'prompt="{fixed}"' in mended.lint().fix().text


@pytest.mark.parametrize("schema", ["{no json", "[" * 100_000], ids=["no JSON", "too deep"])
def test_a_schema_that_cannot_be_read_has_no_fields_to_be_meant(schema):
    body = f'work [response_schema="{schema}"] next [prompt="${{wrk.verdict}}"] start -> work -> next -> done'
    (found,) = findings(body)
    assert found.message == '${wrk.verdict} names nothing; did you mean "work.verdict"?'


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('inputs="ticket"', 'work [prompt="$ticket ${context.ticket} $goal ${last_response} ${tool.output} $5"]'),
        ('inputs="ticket"', 'work [prompt="$$tikcet ${graph.label} ${internal.x} ${parallel.results}"]'),
        ("", 'work [prompt="$anything ${at.all} $tikcet"]'),
        ('inputs="a"', 'one work [prompt="$free ${one.response}"] start -> one -> work -> done'),
        ('inputs="a"', 'work [prompt="$free"] start -> work -> work -> done'),
        ('inputs="a"', 'run [shape=parallelogram, tool_command=ls] work [prompt="$free"] start -> run -> work -> done'),
        ('inputs="a"', 'work [shape=parallelogram, label="$free", tool_command="echo $free"]'),
    ],
    ids=["known", "not-ours", "undeclared", "behind-a-model", "loop", "behind-a-tool", "no-prompt"],
)
def test_what_something_may_give_is_none(head, body):
    assert findings(body, head) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [("$gaol", "$goal"), ("${goa}", "${goal}"), ("$gooal", "$goal"), ("$last_respnose", "$last_response")],
    ids=["swapped", "left-out", "doubled", "of-the-engine"],
)
def test_a_slip_is_told_where_the_graph_takes_any_values(written, meant):
    body = f'before work [prompt="For {written}."] start -> before -> work -> done'
    (found,) = findings(body, 'goal="Ship it"')
    assert (found.severity.value, found.span.text) == ("warning", written)
    assert f'prompt="For {meant}."' in Pipeline(SHELL % ('goal="Ship it"', body)).lint().fix().text


@pytest.mark.parametrize("name", ["goals", "coal", "goat", "oil", "outcomes", "last_answer", "go", "all"])
def test_a_word_of_its_own_is_no_slip_where_the_graph_takes_any_values(name):
    assert findings(f'work [prompt="About ${name}."]', 'goal="Ship it"') == []


def test_a_gate_before_it_gives_nothing_of_its_own():
    body = 'gate [shape=hexagon, label="Send $tikcet?"] work [prompt="$fre"] start -> gate -> work -> done'
    assert [found.node_id for found in findings(body, 'inputs="ticket"')] == ["gate", "work"]


def test_the_response_of_a_tool_is_its_output():
    body = (
        'tests [shape=parallelogram, tool_command=ls] work [prompt="${tests.response}"] start -> tests -> work -> done'
    )
    (found,) = findings(body)
    assert "is a tool stage, and sets ${tool.output}" in found.message


def test_a_prompt_that_a_transform_has_changed_is_judged_too():
    (found,) = findings('work [prompt="$goal: $tikcet"]', 'goal="a $b" inputs="ticket"')
    assert found.span.text == "$tikcet"


@pytest.mark.parametrize(
    ("command", "is_told"),
    [
        ("close ${ticket}", True),
        ("echo ${work.response}", False),
        ("ticket=4; echo ${ticket}", False),
        ("echo $ticket", True),
        ("echo ${HOME} $USER {{.Names}} $10", False),
        ("echo $goal", True),
        ("echo {{goal}}", True),
        ("echo $context.story", True),
        ("echo $plan.response", True),
        ("for ticket in 1 2; do echo $ticket; done", False),
        ("while read -r ticket; do echo $ticket; done", False),
        ("goal=1 make $goal", False),
    ],
)
def test_ruling_25_a_command_that_names_an_input_is_a_warning(command, is_told):
    body = f'work [shape=parallelogram, tool_command="{command}"]'
    assert bool(findings(body, 'inputs="ticket" goal="Ship"', "command_variable")) is is_told


@pytest.mark.parametrize(
    ("prompt", "written", "fixed"),
    [
        ("Do $plan.response now", "$plan.response", "Do ${plan.response} now"),
        ("Do {{goal}}", "{{goal}}", "Do ${goal}"),
        ("Do {{ ticket }}", "{{ ticket }}", "Do ${ticket}"),
        ("Do $context.story", "$context.story", "Do ${context.story}"),
        ("See $ticket.Then go on", "", ""),
        ("Render {{name}} and {{#each}}", "", ""),
        ("It costs $$context.x", "", ""),
    ],
)
def test_a_variable_in_a_form_that_nothing_replaces_is_named_with_its_braces(prompt, written, fixed):
    body = f'plan [prompt=Plan] work [prompt="{prompt}"] start -> plan -> work -> done'
    found = findings(body, 'inputs="ticket" goal="Ship"', "variable_form")
    assert [each.message.partition('" in the')[0].lstrip('"') for each in found] == ([written] if written else [])
    if fixed:
        pipeline = Pipeline(SHELL % ('inputs="ticket" goal="Ship"', body))
        assert f'prompt="{fixed}"' in pipeline.fixed().to_dot()


CHILD = SHELL % ('inputs="ticket, tone=plain"', "start -> done")


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ('type=pipeline, pipeline.inputs="ticket=context.t"', ""),
        ("type=pipeline", 'the child of "sub": the input "ticket" is missing'),
        ('type=pipeline, pipeline.inputs="topic=="', ""),  # it cannot be read, and another rule says so
        (
            "type=pipeline, pipeline.inputs=\"tikcet='4'\"",
            'the child of "sub": "tikcet" is no input; did you mean "ticket"?',
        ),
    ],
)
def test_a_child_gets_its_inputs(node, told):
    body = f"sub [pipeline.name=child, {node}] start -> sub -> done"
    found = findings(body, "", "child_pipeline", pipelines={"child": CHILD})
    assert [each.message for each in found] == ([told] if told else [])


def test_a_manager_gives_none_and_a_child_of_ones_own_may_bring_them():
    body = "boss [shape=house, stack.child_pipeline=child] start -> boss -> done"
    (found,) = findings(body, "", "child_pipeline", pipelines={"child": CHILD})
    assert found.fix.title == "give its inputs defaults, or use type=pipeline"
    own = Pipeline(CHILD, params={"ticket": "1"})
    assert findings(body, "", "child_pipeline", pipelines={"child": own}) == []


@pytest.mark.parametrize(
    ("head", "stage", "rule"),
    [('inputs="tone mood"', "", "inputs_valid"), ("", ', pipeline.outputs="tone=="', "pipeline_mappings")],
    ids=["inputs", "outputs"],
)
def test_names_that_another_rule_cannot_read_are_unknown_and_break_nothing(head, stage, rule):
    body = f'sub [type=pipeline, pipeline.name=x{stage}] work [prompt="In a $tone, $gaol"] start -> sub -> work -> done'
    assert len(findings(body, head, rule)) == 1
    assert [found.message.split()[0] for found in findings(body, head)] == ["${gaol}"]
