"""The meaning of each option in one line, for signatures, magics, the command line and the docs; and its flag.

``runtime/prepare/run_options.py`` composes the docstrings of ``Pipeline``, ``run``, ``map`` and their kin from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from attractor_nb.model.vocabulary.isolation import ISOLATIONS

DURABILITIES: Final = ("full", "fast", "none")
CASSETTE_MODES: Final = ("record", "replay", "auto")

OF_A_RUN: Final = {
    "params": "The inputs of the run, by name; the context has them before the first stage.",
    "backend": "The backend for prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.",
    "interviewer": "The interviewer at gates: auto, console, deferred (run.answer), pause (the run stops there, "
    "answered later), refuse, widgets (in a notebook), a function or an interviewer; by default the view of the run, "
    "or the terminal when there is none.",
    "trust": "Trust the commands of a pipeline from another source, for this call: True, or their hash.",
    "max_steps": "Stop after this many stages.",
    "max_node_visits": "Stop after this many visits to one node.",
    "max_restarts": "Stop after this many restarts by loop_restart edges.",
    "max_goal_gate_redirects": "Stop after unsatisfied goal gates have sent the run back this many times.",
    "max_budget_usd": "Stop at this cost in US dollars.",
    "max_tokens_total": "Stop at this many tokens.",
    "max_duration": "Stop after this running time (90s, 15m, 2h), even in the middle of a stage.",
    "logs_root": "The run's own directory; it must be new or empty.",
    "runs_dir": "The folder for new run directories; .attractor/runs by default.",
    "durability": "full: commits survive a power loss; fast: they survive a killed process; none: nothing is stored.",
    "workdir": "The working directory of commands, agents and tools of models; the current directory by default.",
    "isolation": "The run's own working directory: workspace (a folder in the run directory), worktree (a "
    "git worktree with a branch) or none; overrides the graph.",
    "workspace_from": "A folder, or a quoted pattern, whose files are copied into the new workspace.",
    "cache": "Store results of stages in .attractor/cache, or in the given directory, and reuse them for "
    "unchanged stages.",
    "cassette": "Record the calls of models, commands and interviewers in this file, and replay them from it.",
    "cassette_mode": "replay: make no calls; record: make and record all calls; auto, the default: "
    "make the calls that are not recorded.",
    "stop_after": "Pause after this many stages.",
    "breakpoints": "Places where the run stops until run.debugger continues it: plan, plan->review, after:plan, "
    "on:error, a condition.",
    "pins": "Nodes that are not executed, each with its result: the text of the response, an Outcome, or a "
    "run that has the result.",
    "observers": "Functions that are called with every event.",
    "is_shown": "Show the run in the notebook.",
    "executor": "The executor of tool and model stages: a concurrent.futures.Executor, or a function that makes "
    "one; by default in this process.",
    "worker_wait": "Time to wait for an executor that does not answer or has no workers.",
    "host": "The host of the engine: thread (its own thread) or kernel (a task in the running event loop).",
    "on_interrupted": "The rule for an interrupted stage: rerun, ask or fail; by default that of its node.",
    "take_over": "For a resume: take the run from an owner that is frozen or whose machine is gone.",
    "secrets": "Values that are removed from everything that is written, shown or raised.",
    "session": "The directory whose .founder-mode/status has the status files of parallel work "
    "(status-schema); True: the working directory.",
    "tracer": "Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a Tracing.",
    "checkpoint_every_stage": "Write checkpoint.json after every stage, not only from time to time.",
    "clock": "Replaces the clock; for tests.",
    "randomness": "Replaces the source of random numbers; for tests.",
    "processes": "Replaces the object that starts commands; for tests.",
    "disk": "Replaces the file system; for tests.",
}
"""Options of one run."""


class Flag(NamedTuple):
    """The command-line flag of a run's option, such as ``--max-steps N``."""

    #: The type of its value.
    kind: type = str
    #: Placeholder of its value in the help.
    metavar: str = ""
    #: The lowest value of a number.
    minimum: int | None = None
    #: The words that it takes; empty for any.
    choices: tuple[str, ...] = ()
    #: Its value where it is not given.
    default: str | None = None
    #: A server takes the option.
    is_remote: bool = False
    #: The run directory records it, so that a resume has it.
    is_recorded: bool = False


OTHER_NAMES: Final = {
    **dict.fromkeys(("inputs", "input", "parameters", "variables", "args", "kwargs"), "params"),
    **dict.fromkeys(("timeout", "time_limit", "deadline", "max_time"), "max_duration"),
    **dict.fromkeys(("budget", "max_cost", "max_budget", "cost_limit"), "max_budget_usd"),
    **dict.fromkeys(("max_tokens", "token_limit"), "max_tokens_total"),
    **dict.fromkeys(("directory", "run_dir", "output_dir", "log_dir", "path"), "logs_root"),
    **dict.fromkeys(("cwd", "working_directory"), "workdir"),
    **dict.fromkeys(("callbacks", "on_event"), "observers"),
    **dict.fromkeys(("recursion_limit", "steps", "max_iterations"), "max_steps"),
    **dict.fromkeys(("human", "approver"), "interviewer"),
    "llm": "backend",
}
"""Options by the names that other tools have for them."""
INSTEAD: Final = {
    "model": 'name it in the graph, graph [llm_model="…"], or pass backend="llm"',
    "provider": 'name it in the graph, graph [llm_provider="…"], or pass backend="llm"',
    "temperature": "write it in the graph: node [llm.temperature=0.2]",
    "api_key": "set the environment variable of the provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY",
    **dict.fromkeys(("simulate", "dry_run", "mock"), 'pass backend="simulated"'),
    **dict.fromkeys(("auto_approve", "approve"), 'pass interviewer="auto"'),
    **dict.fromkeys(("block", "blocking"), "pass wait=True"),
}
"""Remedies for names that other tools have for something that is no option here."""

FLAGS: Final = {
    "workdir": Flag(Path, "DIR", is_recorded=True),
    "isolation": Flag(choices=ISOLATIONS, is_recorded=True),
    "workspace_from": Flag(Path, "DIR", is_recorded=True),
    "cassette": Flag(Path, "FILE"),
    "cassette_mode": Flag(choices=CASSETTE_MODES),
    "max_steps": Flag(int, minimum=1, is_remote=True),
    "max_node_visits": Flag(int, minimum=1, is_remote=True),
    "max_restarts": Flag(int, minimum=0, is_remote=True),
    "max_goal_gate_redirects": Flag(int, minimum=0, is_remote=True),
    "max_budget_usd": Flag(float, minimum=0, is_remote=True),
    "max_tokens_total": Flag(int, minimum=0, is_remote=True),
    "max_duration": Flag(metavar="TIME", is_remote=True),
    "durability": Flag(choices=DURABILITIES, default="full", is_recorded=True),
}
"""The options of a run that the command line passes on as they are, in the order of its help."""

OF_A_MAP: Final = {
    "max_parallel": "Number of rows that run at the same time.",
    "on_failure": "After a failed row: continue, or stop (start no further rows).",
    "outputs": "Context values that the result keeps of each row; nothing else of a row stays in memory.",
    "map_dir": "The map's own directory; it must be new or empty. By default a new one in runs_dir.",
    "max_budget_usd_all": "Start no further rows once all rows together have cost this much, in US dollars.",
    "max_tokens_all": "Start no further rows once all rows together have used this many tokens.",
    "max_duration_all": "Start no further rows once the map has run this long (90s, 15m, 2h).",
    "ship": "The unit of work that is sent to an executor: rows or stages; by default rows, if all "
    "their stages may be run again.",
    "session": "The directory whose .founder-mode/status has the status files of the rows (status-schema); "
    "True: the working directory.",
}
"""Options of one map, in addition to those of its rows."""

OF_AN_EVALUATION: Final = {
    "repeat": "Runs of each row.",
    "output": "The output that is judged: a context key such as write.response, or a function of a run; by default "
    "the whole response of the last stage.",
    "inputs": "The columns that are inputs, where the pipeline declares none.",
    "only": "With runs: the one stage that each row executes anew, as this pipeline has it now, with the context that "
    "it had in the stored run.",
}
"""Options of one evaluation, in addition to those of its map."""

OF_A_PIPELINE: Final = {
    "backend": OF_A_RUN["backend"],
    "interviewer": OF_A_RUN["interviewer"],
    "executor": OF_A_RUN["executor"],
    "handlers": "Custom handlers by type.",
    "transforms": "Custom transforms; they run after the built-in ones.",
    "rules": "Custom lint rules.",
    "severity": "Severities by the name of a rule; they replace the rule's own.",
    "params": "Inputs of every run, by name.",
    "name": "Name to show instead of the graph's.",
    "runs_dir": OF_A_RUN["runs_dir"],
    "strict": "Refuse attributes without commas between them.",
    "allow_many_exits": "Allow more than one exit node (ruling 7).",
    "origin": "The origin of the text, if it is not your own: a run then needs trust= for its commands. A file "
    "that source names is its own origin.",
    "pipelines": "Pipelines by name, which nodes run as child runs (pipeline.name, stack.child_pipeline).",
    "guards": "Functions by name, which judge a supervised child run (manager.guard_function).",
    "schemas": "Pydantic models by name, for response_schema and human.form of a node and inputs_schema of the graph.",
    "tools": "Functions by name, which allowed_tools of a node gives to its model (only with backend=llm).",
    "functions": "Functions by name, which nodes call as stages (function=count).",
    "child_roots": "Directories where files of child pipelines may be, in addition to the directory of the "
    "file that names them and the working directory.",
    "ancestry": "The parents of a nested pipeline; only for internal use.",
}
"""Options of a pipeline."""
