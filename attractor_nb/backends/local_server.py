"""The program that serves a local model. It is run by its path and imports nothing of ours.

A process of its own, because starting the engine blocks every thread of its process, and because a
process can be ended at any moment. It says its address on one line and then serves until it is ended.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any


def serve(model_path: str, context_tokens: int, threads: int) -> None:
    """Serve a GGUF file, with a context window of so many tokens, until the process is ended.

    With 0 threads the engine chooses how many it takes.
    """
    engine: Any = importlib.import_module("xllamacpp")  # untyped
    parameters = engine.CommonParams()
    parameters.model.path = model_path
    parameters.model_alias = {"local"}
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    if threads:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = -1
    server = engine.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()  # its own threads serve; nobody takes the server apart, which can take long


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
