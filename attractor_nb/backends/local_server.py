"""The program that serves a local model. It is run by its path and imports nothing of ours.

A process of its own, because starting the engine blocks every thread of its process, and because a
process can be ended at any moment. It says its address on one line and then serves until it is
ended, or until the process that started it is gone: no server outlives its user.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any

PARENT_CHECK_SECONDS = 0.25


def serve(model_path: str, context_tokens: int, parent: int) -> None:
    """Serve until the parent process is gone.

    Args:
        model_path: The GGUF file.
        context_tokens: Size of the context window.
        parent: Process id of the parent.
    """
    engine: Any = importlib.import_module("xllamacpp")  # untyped
    parameters = engine.CommonParams()
    parameters.model.path = model_path
    parameters.model_alias = {"local"}
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.verbosity = -1
    server = engine.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)  # destroying a server that is busy can take half a minute


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
