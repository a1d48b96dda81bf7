"""A process that answers JSON lines with JSON lines: pagoda's bench worker and the peers' own."""

import json
import select
import subprocess


class WorkerError(Exception):
    """The worker rejected a request or ended."""


class LineWorker:
    """Starts a command; ask() sends one request and waits for its answer."""

    def __init__(self, command, environment=None, timeout_seconds=None):
        self.command = command
        self.timeout_seconds = timeout_seconds  # an answer that takes longer ends the worker
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, op, **fields):
        try:
            self.process.stdin.write(json.dumps({"op": op, **fields}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline() if self.has_answer() else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.kill()
            self.process.wait()
            raise WorkerError(self.process.stderr.read().strip() or "the worker ended")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def has_answer(self):
        """Waits for one: every request has one line of answer, so nothing is buffered before it."""
        if (
            self.timeout_seconds is None
            or select.select([self.process.stdout], [], [], self.timeout_seconds)[0]
        ):
            return True
        self.process.kill()
        raise WorkerError(f"no answer in {self.timeout_seconds} s")

    def is_alive(self):
        return self.process.poll() is None

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
