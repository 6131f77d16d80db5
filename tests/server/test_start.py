"""A server listens before it has loaded what only a run needs: it is to be there in a second and a half."""

import subprocess
import sys

LATE = ("attractor_nb.pipeline.pipeline", "attractor_nb.engine.runner", "attractor_nb.backends")
NEVER = (
    "IPython",
    "anywidget",
    "ipywidgets",
    "networkx",
    "pydantic_ai",
    "distributed",
    "pandas",
    "httpx",
    "xllamacpp",
)


def test_what_only_a_run_needs_is_not_loaded_before_the_server_listens():
    program = (
        "import sys\n"
        "import attractor_nb.server.serving\n"
        "loaded = [name for name in sys.argv[1:] if name in sys.modules]\n"
        "assert not loaded, loaded\n"
        "assert 'attractor_nb.server.operations' in sys.modules\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, *LATE, *NEVER], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_it_is_loaded_by_the_time_somebody_posts_a_source(client, sources):
    assert client.ended(client.submit(sources.plain))["outcome"] == "success"
    assert "attractor_nb.pipeline.pipeline" in sys.modules
