"""A process that answers JSON lines with JSON lines: pagoda's bench worker and the peers' own."""

import json
import subprocess


class WorkerError(Exception):
    """The worker refused a request or ended."""


class LineWorker:
    """Starts a command; ask() sends one request and waits for its answer."""

    def __init__(self, command, environment=None):
        self.command = command
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
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.kill()
            raise WorkerError(self.process.stderr.read().strip() or "the worker ended")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
