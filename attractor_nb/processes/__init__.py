"""The one place that starts programs (ruling 25; RELIABILITY, fault 9).

A command gets a session and process group of its own, an environment without provider keys, an input
that ends, and outputs that are bounded in memory and on disk. When it ends, by itself or not, all that
it started ends with it: its group, and on a best effort what left the group. Should this process be
killed, a watchdog ends the group. It must not know what a command is for.
"""

from attractor_nb.processes.local import CommandOutput, LocalProcesses, command_environment

__all__ = ["CommandOutput", "LocalProcesses", "command_environment"]
