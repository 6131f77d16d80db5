"""A cell and the meanings of its words, as JupyterLab and language servers show them."""

TEXT = """digraph Review {
    graph [goal="Ship it", inputs="ticket, tone=plain", model_stylesheet="#plan { llm_model: haiku }
        .fast { llm_provider: local } box { temperature: 0 } .none { max_tokens: 5 }"]
    start [shape=Mdiamond]
    start -> plan -> write -> done
    write -> plan [condition="outcome=fail && context.tool.exit_code!=0"]
    plan  [label="Plan it", max_retries=2, retry_target=write, class="fast"]
    write [prompt="Say it for $goal as $ticket in $tone: ${plan.response:tail 400} ${tool.output} $other label = plan"]
    done [shape=Msquare]
}"""
CELL = f"%%attractor review\n{TEXT}"
PLAN = ["plan: Plan it (codergen)", "from start, write outcome=fail && context.tool.exit_code!=0", "to write"]
MEANINGS = {
    "plan ->": PLAN,
    "Mdiamond": ["Mdiamond", "start: the start of a run"],
    "$goal": ["goal (variable)", "the goal of the graph: Ship it"],
    "$ticket": ["ticket (input · string · required)"],
    "$tone": ["tone (input · string · default plain)"],
    "${plan": ["plan.response (variable)", "the complete response of the stage plan", *PLAN],
    "${tool": ["tool.output (variable)", "the output of the last command"],
    "$other": ["other (variable)", "a value of the context: a parameter of the run, or set by a stage"],
    "outcome=": ["outcome (variable)", "the status of the last stage"],
    "tool.exit_code": ["tool.exit_code (variable)", "the exit code of the last command"],
    "fast {": [".fast (rule of the stylesheet)", "selects plan"],
    "box {": ["box (rule of the stylesheet)", "selects plan, write"],
    "none {": [".none (rule of the stylesheet)", "selects no node"],
    "plan {": ["#plan (rule of the stylesheet)", "selects plan", *PLAN],
}
"""By the text whose second character is pointed at."""
BEGINNINGS = {"max_retries": "max_retries (of a node · integer", "temperature:": "temperature (of a node"}
"""The first words where the table of attributes has the others."""
PROSE = ("label = plan", 'plan"')
"""Words of a prompt, which mean nothing."""
