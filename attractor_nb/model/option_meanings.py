"""What each option means, in one line: for signatures, magics, the command line and the docs.

The keywords of ``Pipeline``, ``run``, ``map`` and their kin are written out in the source with these
meanings; ``make docs`` writes them there, and a test compares.
"""

from __future__ import annotations

from typing import Final

OF_A_RUN: Final = {
    "params": "Values that the context has before the first stage: the run's inputs, by name.",
    "backend": "What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.",
    "interviewer": "Who answers gates: auto, console, deferred (run.answer), a function or an interviewer; "
    "by default whoever shows the run, else the terminal.",
    "trust": "Vouches for the commands of a pipeline from elsewhere, for this call: True, or their hash.",
    "max_steps": "Stop after so many stages.",
    "max_node_visits": "Stop after so many visits to one node.",
    "max_restarts": "Stop after so many loop_restarts.",
    "max_goal_gate_redirects": "Stop after so many ways back from unsatisfied goal gates.",
    "max_budget_usd": "Stop at this price in US dollars.",
    "max_tokens_total": "Stop at so many tokens.",
    "max_duration": "Stop after 90s, 15m, 2h of running time, in the middle of a stage if need be.",
    "logs_root": "The run's own directory; it must be new or empty.",
    "runs_dir": "Where run directories are made; .attractor/runs by default.",
    "durability": "Commits survive a power loss (full), or a killed process (fast); none stores nothing.",
    "workdir": "Where commands, agents and tools of models work; the current directory by default.",
    "isolation": "A place of the run's own: workspace (a folder in the run directory), worktree (a git "
    "worktree with a branch), or none, whatever the graph says.",
    "workspace_from": "A folder, or a quoted pattern: a workspace begins with copies of its files.",
    "cache": "Take results of unchanged stages from .attractor/cache, or another directory, and keep them "
    "there.",
    "cassette": "Record the calls of models, commands and people in this file, and replay them from it.",
    "cassette_mode": "replay: call nothing; record: call everything; auto, the default: what is not there.",
    "stop_after": "Pause after so many stages.",
    "breakpoints": "Where the run stands until run.debugger has it go on: plan, plan->review, after:plan, "
    "on:error, a condition.",
    "pins": "Nodes that are not executed, each with what it comes to: the text of its response, an Outcome, "
    "or a run, whose latest answer it is.",
    "observers": "Functions that are called with every event.",
    "is_shown": "Whether the notebook shows the run.",
    "executor": "Where tool and model stages are done: a concurrent.futures.Executor, or a function that "
    "makes one; here by default.",
    "worker_wait": "How long an executor is waited for that does not answer or has no workers.",
    "host": "Where the engine works: thread, or kernel, a task in the running event loop.",
    "on_interrupted": "What to do with a stage that was cut off: rerun, ask or fail; by default what its "
    "node says.",
    "take_over": "For a resume: take the run from an owner that is frozen, or gone with its machine.",
    "secrets": "Values that must not appear in anything that is written, shown or raised.",
    "session": "Keep the status of parallel work in .founder-mode/status of this directory "
    "(status-schema); True: of the working directory.",
    "tracer": "Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a "
    "Tracing.",
    "checkpoint_every_stage": "Write checkpoint.json after every stage, not only when it is due.",
    "clock": "Stands in for the clock; for tests.",
    "randomness": "Stands in for chance; for tests.",
    "processes": "Stands in for what starts commands; for tests.",
    "disk": "Stands in for the disk; for tests.",
}
"""Options of one run."""

OF_A_MAP: Final = {
    "max_parallel": "How many rows run at the same time.",
    "on_failure": "After a failed row: continue, or stop, which starts no further one.",
    "outputs": "Context values that the result keeps of each row; nothing else of it stays in memory.",
    "map_dir": "The map's own directory; it must be new or empty. One is made in runs_dir by default.",
    "max_budget_usd_all": "Start no further row at this price of all rows together, in US dollars.",
    "max_tokens_all": "Start no further row at so many tokens of all rows together.",
    "max_duration_all": "Start no further row after 90s, 15m, 2h of the whole map.",
    "ship": "What travels to the workers of an executor: rows, or their stages; by default rows, where all "
    "their stages may be run again.",
    "session": "Keep the status of the rows in .founder-mode/status of this directory (status-schema); "
    "True: of the working directory.",
}
"""Options of one map, beside those of its rows."""

OF_A_PIPELINE: Final = {
    "backend": OF_A_RUN["backend"],
    "interviewer": OF_A_RUN["interviewer"],
    "executor": OF_A_RUN["executor"],
    "handlers": "Custom handlers by type.",
    "transforms": "Custom transforms, after the built-in ones.",
    "rules": "Custom lint rules.",
    "severity": "Severities in place of the rules' own, by the name of the rule.",
    "params": "Values that every run's context starts with.",
    "name": "Name to show, in place of the graph's.",
    "runs_dir": OF_A_RUN["runs_dir"],
    "strict": "Generous readings of DOT are errors.",
    "allow_many_exits": "More than one exit node may stand (ruling 7).",
    "origin": "Where a text came from that is not the caller's own: its commands then need trust= of run. A "
    "file that source names is its own origin.",
    "pipelines": "Pipelines that nodes run by name (pipeline.name, stack.child_pipeline).",
    "guards": "Functions by name that judge a supervised child (manager.guard_function).",
    "schemas": "Pydantic models by name that response_schema or human.form of a node, or inputs_schema of "
    "the graph, may name.",
    "tools": "Functions by name that allowed_tools of a node may name, for models that are asked directly "
    "(backend=llm).",
    "child_roots": "Directories in which child files may be, besides those below the file that names them "
    "and below the working directory.",
    "ancestry": "Of a child pipeline: where it stands. For the package alone.",
}
"""What a pipeline is made with."""
