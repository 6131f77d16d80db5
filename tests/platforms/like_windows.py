"""Runs a program as on Windows, as far as Linux can: without the modules and names of POSIX. Usage: like_windows.py FILE."""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys

LIBRARIES = (
    "asyncio", "click", "filelock", "getpass", "multiprocessing.util", "shutil", "subprocess", "tempfile",
    "typer", "uuid",
)  # fmt: skip
"""Loaded before: they have code of their own for Windows, which does not run here."""
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
OF_OS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "chown", "fchmod",
    "fchown", "fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getloadavg",
    "getpgid", "getpgrp", "getppgid", "getsid", "getuid", "initgroups", "killpg", "lchown", "major", "mkfifo",
    "mknod", "openpty", "posix_fallocate", "posix_spawn", "pread", "preadv", "pwrite", "pwritev",
    "register_at_fork", "sched_getaffinity", "sendfile", "setgid", "setpgid", "setsid", "setuid", "sysconf",
    "tcgetpgrp", "uname", "wait3", "wait4", "waitid",
)  # fmt: skip
OF_SIGNAL = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGTTIN",
    "SIGTTOU", "SIGUSR1", "SIGUSR2", "SIGWINCH", "alarm", "pthread_kill", "pthread_sigmask", "setitimer",
    "sigwait",
)  # fmt: skip


def take_away() -> None:
    """Take from this process what Windows lacks."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in MODULES:
        sys.modules[name] = None
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names:
            vars(module).pop(name, None)
    os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = set()


if __name__ == "__main__":
    take_away()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
