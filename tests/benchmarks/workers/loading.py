"""The cost of ``%load_ext attractor_nb`` after ``import IPython``, in a fresh interpreter."""

import json
import sys
import tempfile
import time

HEAVY = ("networkx", "httpx", "pydantic_ai", "dask", "starlette", "anywidget", "ipywidgets", "lark", "pydantic")

begin = time.process_time()
import IPython  # noqa: E402 - its cost is what is measured

imported = time.process_time()
with tempfile.TemporaryDirectory() as folder:
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.ProfileDir.location = folder
    shell = IPython.core.interactiveshell.InteractiveShell.instance(config=config, ipython_dir=folder)
    ready = time.process_time()
    shell.run_line_magic("load_ext", "attractor_nb")
    loaded = time.process_time()
print(
    json.dumps(
        {
            "ipython": imported - begin,
            "extension": loaded - ready,
            "heavy": [name for name in HEAVY if name in sys.modules],
        }
    )
)
