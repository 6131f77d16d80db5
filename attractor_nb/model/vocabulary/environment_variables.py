"""The environment variables that the package reads, and those that it gives to commands: one table for code and docs.

Keys and addresses of providers are in ``model/calls/providers.py``.
"""

from __future__ import annotations

from typing import Final

LIVE: Final = "ATTRACTOR_LIVE"
TRUST: Final = "ATTRACTOR_TRUST"
SERVER: Final = "ATTRACTOR_SERVER"
TOKEN: Final = "ATTRACTOR_TOKEN"  # noqa: S105 - the name of a variable
RUNS_DIR: Final = "ATTRACTOR_RUNS_DIR"
STATE_DIR: Final = "ATTRACTOR_STATE_DIR"
CONFIG_DIR: Final = "ATTRACTOR_CONFIG_DIR"
TRACEBACK: Final = "ATTRACTOR_TRACEBACK"
CI: Final = "CI"
JUPYTERHUB_USER: Final = "JUPYTERHUB_USER"
STATE_HOME: Final = "XDG_STATE_HOME"
CONFIG_HOME: Final = "XDG_CONFIG_HOME"

SETTINGS: Final = {
    LIVE: "Whether a notebook shows runs live: auto (if a person can click), on, inline (in the output itself) or off.",
    TRUST: "Hashes of commands that are trusted without a question, separated by commas or blanks.",
    SERVER: "The address of a server, as serve prints it; commands then watch, answer and submit runs there.",
    TOKEN: "The token of a server, if neither the command nor the address has one; for serve in JupyterLab, its token.",
    RUNS_DIR: "The runs folder that the card in JupyterLab shows, from Jupyter's root; .attractor/runs by default.",
    STATE_DIR: "The folder of what is remembered, as trust, and of answers; $XDG_STATE_HOME/attractor-nb by default.",
    CONFIG_DIR: "The folder of endpoints.toml; $XDG_CONFIG_HOME/attractor-nb by default.",
    TRACEBACK: "Any value: the command line shows the traceback of an error in the program itself.",
    CI: "Any value: the pytest fixture cassette replays only, and records nothing.",
    JUPYTERHUB_USER: "The name of the person who answers a gate; by default the account of the operating system.",
    STATE_HOME: "The place of the state folder; ~/.local/state by default.",
    CONFIG_HOME: "The place of the configuration folder; ~/.config by default.",
}
"""Variables that the package reads, with their meanings."""

RUN_ID: Final = "ATTRACTOR_RUN_ID"
NODE_ID: Final = "ATTRACTOR_NODE_ID"
STAGE_DIR: Final = "ATTRACTOR_STAGE_DIR"
LOGS_ROOT: Final = "ATTRACTOR_LOGS_ROOT"
IDEMPOTENCY_KEY: Final = "ATTRACTOR_IDEMPOTENCY_KEY"
CONTEXT_FILE: Final = "ATTRACTOR_CONTEXT_FILE"
ITEM_VALUE: Final = "ATTRACTOR_ITEM"
ITEM_NUMBER: Final = "ATTRACTOR_ITEM_INDEX"
WORKDIR: Final = "ATTRACTOR_WORKDIR"
HOOK: Final = "ATTRACTOR_HOOK"
TOOL_NAME: Final = "ATTRACTOR_TOOL_NAME"
TOOL_CALL_ID: Final = "ATTRACTOR_TOOL_CALL_ID"
COMMAND_MARK: Final = "ATTRACTOR_COMMAND"
OWN_BEGINNING: Final = "ATTRACTOR_"

OF_COMMANDS: Final = {
    RUN_ID: "The id of the run.",
    NODE_ID: "The id of the node.",
    STAGE_DIR: "The directory of the stage.",
    LOGS_ROOT: "The run directory.",
    IDEMPOTENCY_KEY: "A text that is the same in each attempt of a visit.",
    CONTEXT_FILE: "A file with the context as JSON, which is on stdin, too; of tool stages.",
    ITEM_VALUE: "The item of a list, of a stage with for_each: a text as it is, any other value as JSON.",
    ITEM_NUMBER: "The position of that item, from 0.",
    WORKDIR: "The directory in which the run works; of hooks and MCP servers.",
    HOOK: "pre or post; of hooks.",
    TOOL_NAME: "The tool that a model calls; of hooks.",
    TOOL_CALL_ID: "The id of that call; of hooks.",
    COMMAND_MARK: "A mark by which a command and all that it starts are found when they must end.",
}
"""Variables that commands of a run get, with their meanings."""
