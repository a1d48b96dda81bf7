"""The conformance table on a GPU, in many processes: a case that hangs, or whose fault destroys
the CUDA context, fails alone. The rest of its shard then runs case by case.
"""

import concurrent.futures
import json
import re
import subprocess

import watched

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TARGETS = ("cuda", "emu", "cpu", "reference")
SILENCE_SECONDS = 45  # the longest case takes a few
HANGS_OF_A_SHARD = 3  # after these the rest of the shard is skipped
MESSAGE_CHARACTERS = 600
LINES_SHOWN = 25  # failures; the log has all
# After these every further call of the process fails.
STICKY = re.compile(
    r"illegal (memory access|address|instruction|barrier)"
    r"|unspecified launch failure|misaligned address"
    r"|hardware stack error|invalid program counter|ErrorLaunch|device-side assert",
    re.IGNORECASE,
)


def verdicts_of(lines):
    """{case: (verdict, message)} of the output of `pagoda check --verbose`, which may be
    incomplete. The lines after a failure belong to its message, up to the next verdict, progress
    line or table."""
    found, name = {}, None
    for line in lines:
        words = COLOURS.sub("", line).split(None, 2)
        if (
            len(words) == 3
            and words[0] in ("passed", "failed", "skipped")
            and words[1].split(":")[0] in TARGETS
        ):
            name, _, message = words[2].partition(": ")
            name = name.split()[-1]  # after the kernel, where --kernel names one
            found[name] = (words[0], message[:MESSAGE_CHARACTERS])
        elif not words or words[0] in ("target", "check:", "skipped", "========="):
            name = None
        elif name is not None and found[name][0] == "failed":
            found[name] = ("failed", f"{found[name][1]} {line.strip()}"[:MESSAGE_CHARACTERS])
    return found


def summary(verdicts):
    """Counts, failures and the reasons for skipped cases."""
    reasons = {}
    for verdict, message in verdicts.values():
        if verdict == "skipped":
            reasons[message] = reasons.get(message, 0) + 1
    return {
        **{
            v: sum(verdict == v for verdict, _ in verdicts.values())
            for v in ("passed", "failed", "skipped")
        },
        "failures": [
            f"{name}: {message}" for name, (v, message) in verdicts.items() if v == "failed"
        ],
        "skipped_because": reasons,
    }


def shards_of(names):
    """{filter: names}: names that begin with the same three words."""
    shards = {}
    for name in names:
        words = name.split("_")
        shards.setdefault("_".join(words[:3]) + "_*" if len(words) > 3 else "*" + name, []).append(
            name
        )
    return shards


class ShardedCheck:
    def __init__(self, command, names, seconds_left, say):
        self.command = command  # "pagoda check ..", a filter follows
        self.names = names
        self.seconds_left = seconds_left
        self.say = say
        self.num_done = 0

    def run_filter(self, text):
        """(verdicts, error; empty = the process ended normally)."""
        left = self.seconds_left()
        if left < 1:
            return {}, "no time left"
        try:
            finished = watched.run(
                [*self.command, "--filter", text], left, silence_seconds=SILENCE_SECONDS
            )
        except OSError as error:
            return {}, str(error)
        found = verdicts_of(finished.lines)
        if finished.code is None:
            return found, "it hangs" if self.seconds_left() > 1 else "no time left"
        return found, (
            ""
            if finished.code in (0, 1) and found
            else f"exit code {finished.code}: {finished.tail(2)}"
        )

    def run_shard(self, text, names):
        found, ended = self.run_filter(text)
        verdicts, rest = {}, []
        for i, name in enumerate(names):
            if name not in found:
                verdicts[name], rest = ("failed", ended or "it was not run"), names[i + 1:]
                break
            verdicts[name] = found[name]
            if STICKY.search(found[name][1]):
                rest = names[i + 1:]
                break
        return verdicts | self.run_alone(rest, ended == "no time left")

    def run_alone(self, names, is_late):
        """Runs case by case after a case that killed its process."""
        verdicts, hangs = {}, 0
        for name in names:
            if is_late or hangs == HANGS_OF_A_SHARD:
                verdicts[name] = (
                    "failed",
                    "not run: " + ("no time left" if is_late else "too many before it hang"),
                )
                continue
            found, ended = self.run_filter("*" + name)
            verdicts[name] = found.get(name, ("failed", ended or "it was not run"))
            hangs += ended == "it hangs"
        return verdicts

    def run(self, jobs, shards=None):
        shards = shards_of(self.names) if shards is None else shards
        verdicts = {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(self.run_shard, text, names) for text, names in shards.items()]
            shown = 0
            for done in concurrent.futures.as_completed(running):
                part = done.result()
                verdicts |= part
                for name, (verdict, message) in part.items():
                    if verdict == "failed" and shown < LINES_SHOWN:
                        shown += 1
                        self.say(f"failed {name}: {message}")
                if len(verdicts) // 100 != (len(verdicts) - len(part)) // 100:
                    self.say(f"{len(verdicts)} of {len(self.names)} cases")
        return {name: verdicts[name] for name in self.names}


def list_cases(check, text):
    """The names of the cases of `check`, a command, whose name matches the filter `text`."""
    command = [*check, "--list", "--json", *(["--filter", text] if text else [])]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"pagoda check --list: {result.stderr.strip()}")
    return json.loads(result.stdout)["cases"]
