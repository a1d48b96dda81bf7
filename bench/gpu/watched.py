"""Runs a command with a time limit and passes on its lines as they arrive."""

import contextlib
import os
import signal
import subprocess
import threading
import time


class Finished:
    """code: None = killed at the limit."""

    def __init__(self, code, lines):
        self.code = code
        self.lines = lines

    def tail(self, count=12):
        return "\n".join(self.lines[-count:])


def run(command, limit_seconds, on_line=None, silence_seconds=None, environment=None,
        folder=None):  # fmt: skip
    """Merges stdout and stderr. After the time limit, or after too long without a line, it kills
    the command's process group."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env=environment,
        cwd=folder,
    )
    is_over, is_late = threading.Event(), threading.Event()
    begin = last = time.monotonic()

    def watch():
        while not is_over.wait(0.2):
            now = time.monotonic()
            if (
                now - begin > limit_seconds
                or silence_seconds is not None
                and now - last > silence_seconds
            ):
                is_late.set()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    lines = []
    try:
        for line in process.stdout:
            last = time.monotonic()
            lines.append(line.rstrip())
            if on_line is not None:
                on_line(lines[-1])
        code = process.wait()
    finally:
        is_over.set()
        watcher.join()
        process.stdout.close()
    return Finished(None if is_late.is_set() else code, lines)
