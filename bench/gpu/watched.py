"""Runs a command with a time limit and looks at its lines as they come."""

import contextlib
import os
import signal
import subprocess
import threading


class Finished:
    """code: None where the limit ended it."""

    def __init__(self, code, lines):
        self.code = code
        self.lines = lines

    def tail(self, count=12):
        return "\n".join(self.lines[-count:])


def run(command, limit_seconds, on_line=None, environment=None):
    """stdout and stderr in one; the command's whole process group ends with it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env=environment)
    is_late = threading.Event()

    def end():
        is_late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit_seconds, end)
    timer.start()
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if on_line is not None:
                on_line(lines[-1])
        code = process.wait()
    finally:
        timer.cancel()
        process.stdout.close()
    return Finished(None if is_late.is_set() else code, lines)
