"""Runs stages on workers: the tasks sent to an executor, their execution, and their reports.

A stage is shipped as plain data (``task.py``). ``perform.py`` is all that a worker runs: it keeps nothing
and writes nowhere but in a temporary directory. The coordinator (``shipping.py``) alone writes into the
run directory, judges and commits. It meets the engine through the seams that there are already: a
backend, processes and handlers that do their work elsewhere (``plugs.py``).
"""
