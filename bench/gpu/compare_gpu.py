#!/usr/bin/env python3
"""Times Pagoda, cuDNN and FA2 (through PyTorch) on one GPU, in one interleaved run over grid.json.

Each contender is a separate process. For each case they take turns; a turn's first run does not
count; the median of the turns' medians is compared. Before every run L2 is flushed by a memset, and
events stand around that one run. Ceilings are measured at the beginning and the end. What the time
budget does not allow is left out, repeats first, and named. Writes the JSON file after every case.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))

import gpu_device
import ratio_table
import ratios
from line_worker import LineWorker, WorkerError

PEERS = ("cudnn", "fa2")
ANSWER_SECONDS = 90  # the largest case takes half a minute to prepare
CEILING_ITERATIONS = 10
BACK_TO_BACK_CALLS = 500
START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:6.1f} s] bench: {text}", file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pagoda", default=str(HERE.parents[1] / "build/release/bin/pagoda"),
                        help="the pagoda command (default: build/release/bin/pagoda)")
    parser.add_argument(
        "--worker",
        help="the whole command of our worker; default: PAGODA bench --worker --backend cuda",
    )
    parser.add_argument(
        "--python", default=sys.executable, help="a Python that has PyTorch (default: this one)"
    )
    parser.add_argument(
        "--kernel", default="", help="only this kernel, or those that begin so: sm80.*"
    )
    parser.add_argument("--grid", type=pathlib.Path, default=HERE / "grid.json")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="JSON file")
    parser.add_argument(
        "--filter",
        default="",
        help="only cases whose name contains one of these, separated by commas",
    )
    parser.add_argument(
        "--turns",
        type=int,
        default=5,
        help="turns of each contender (default: 5, 3 where time is short)",
    )
    parser.add_argument(
        "--turn-seconds",
        type=float,
        default=0.03,
        help="what a turn's runs aim to take (default: 0.03)",
    )
    parser.add_argument(
        "--seconds", type=float, default=480, help="time budget of the whole run (default: 480)"
    )
    parser.add_argument("--no-tables", action="store_true", help="write the file only")
    parser.add_argument("--peers", default=",".join(PEERS), help="of cudnn, fa2; empty: none")
    return parser.parse_args()


def commands_of(arguments):
    """Each contender's command line, Pagoda first."""
    own = (
        arguments.worker.split()
        if arguments.worker
        else [arguments.pagoda, "bench", "--worker", "--backend", "cuda"]
    )
    commands = {"pagoda": own}
    for peer in filter(None, arguments.peers.split(",")):
        commands[peer] = [arguments.python, str(HERE / "peer_sdpa.py")]
    return commands


class Contenders:
    """The processes. A process that died is restarted for the next case."""

    def __init__(self, commands, kernel=""):
        self.commands, self.kernel = commands, kernel
        # All start at the same time, because importing PyTorch takes seconds.
        self.workers = {name: self.start(name) for name in commands}

    def start(self, name):
        return LineWorker(self.commands[name], timeout_seconds=ANSWER_SECONDS)

    def ask(self, name, op, **fields):
        if not self.workers[name].is_alive():
            self.workers[name].close()
            self.workers[name] = self.start(name)
        return self.workers[name].ask(op, **fields)

    def prepare(self, name, problem):
        own = {"threads": 1, "kernel": self.kernel}
        more = own if name == "pagoda" else {"backend": name}
        return self.ask(name, "prepare", problem=problem, **more)

    def release(self):
        for name, worker in self.workers.items():
            if worker.is_alive():
                try:
                    self.ask(name, "release")
                except WorkerError:
                    pass

    def close(self):
        for worker in self.workers.values():
            worker.close()


def first_peers(contenders, say_why):
    """The peers that run here, and their versions."""
    usable, versions, missing = [], {}, {}
    for name in contenders.commands:
        if name == "pagoda":
            continue
        try:
            versions[name] = contenders.ask(name, "version")
            usable.append(name)
        except WorkerError as error:
            missing[name] = str(error).strip().splitlines()[-1]
            say_why(f"{name} is not measured: {missing[name]}")
    return usable, versions, missing


def measure_ceilings(contenders, peers):
    """Copy bandwidth (read and written bytes) and bf16 matrix rate; empty without PyTorch."""
    if not peers:
        return {}
    try:
        return contenders.ask(peers[0], "ceilings", iterations=CEILING_ITERATIONS)
    except WorkerError as error:
        say(f"no ceilings: {error}")
        return {}


def merge_ceilings(measured):
    """The medians over all measurements."""
    measured = [m for m in measured if m]
    if not measured:
        return {}
    copies = [m["copy_bytes"] for m in measured]
    rates = [m["matmul_flops"] for m in measured]
    return {
        "copy_bytes": statistics.median(copies),
        "matmul_flops": statistics.median(rates),
        "measured": measured,
    }


def measure(contenders, case, names, turns, turn_seconds):
    """The case's row: every contender's description and the summary of its turns, or its error."""
    entries, running, iterations = {}, [], {}
    for name in names:
        try:
            entries[name] = contenders.prepare(name, case["problem"])
            first = min(contenders.ask(name, "run", iterations=3)["seconds"])
            iterations[name] = max(5, min(100, 1 + round(turn_seconds / max(first, 1e-6))))
            entries[name]["turns"] = []
            running.append(name)
        except WorkerError as error:
            entries[name] = {"error" if name == "pagoda" else "unsupported": str(error)[-500:]}
    for turn in range(turns):
        for name in list(running if turn % 2 == 0 else reversed(running)):
            try:
                entries[name]["turns"].append(
                    contenders.ask(name, "run", iterations=iterations[name])["seconds"][1:]
                )
            except WorkerError as error:
                running.remove(name)
                entries[name] |= {"turns": [], "error": str(error)[-500:]}
    for name in running:
        try:
            if case.get("back_to_back"):
                seconds = contenders.ask(name, "back_to_back", iterations=BACK_TO_BACK_CALLS)[
                    "seconds"
                ]
                entries[name]["back_to_back_seconds"] = statistics.median(seconds)
        except WorkerError as error:
            entries[name]["back_to_back_error"] = str(error)[-200:]
    for name, entry in entries.items():
        found = entry.pop("turns", [])
        if found:
            entry |= ratios.summary(found)
    contenders.release()
    return entries


def turns_for(arguments, remaining_seconds, remaining_cases, seconds_a_case):
    """The turns that fit in the remaining time: at least 3, or 0 = skip the case."""
    if remaining_seconds < 1.5 * seconds_a_case:
        return 0
    return (
        arguments.turns
        if remaining_seconds > 1.2 * remaining_cases * seconds_a_case
        else min(3, arguments.turns)
    )


def one_line(row, peers):
    cells = ratio_table.own_cells(row, {})
    text = f"{cells[0]}, {cells[2]} TFLOP/s | GB/s"
    for peer in peers:
        value = ratios.ratio(row, peer)
        text += "" if value is None else f", {peer} {value:.2f}x"
    return text


def run_grid(arguments, contenders, cases, peers, write):
    """Most important cases first; the rows come back in the grid's order."""
    rows = {
        case["name"]: {
            "case": case["name"],
            "family": case["family"],
            "problem": case["problem"],
            "contenders": {},
            **({"beside": case["beside"]} if "beside" in case else {}),
        }
        for case in cases
    }
    seconds_a_case, deadline = 2.0, START + arguments.seconds
    ordered = sorted(cases, key=lambda case: case["priority"])  # stable
    for number, case in enumerate(ordered, 1):
        row, begin = rows[case["name"]], time.monotonic()
        turns = turns_for(arguments, deadline - begin, len(cases) - number + 1, seconds_a_case)
        if turns == 0:
            row["left_out"] = "no time left"
            continue
        names = ["pagoda", *(peer for peer in peers if peer in case["peers"])]
        row["contenders"] = measure(contenders, case, names, turns, arguments.turn_seconds)
        spent = time.monotonic() - begin
        seconds_a_case += (spent - seconds_a_case) * (0.5 if spent > seconds_a_case else 0.2)
        say(f"{number}/{len(cases)} {case['name']}: {one_line(row, peers)}")
        write(list(rows.values()))
    return list(rows.values())


def pick(cases, text):
    words = [word for word in text.split(",") if word]
    return [case for case in cases if not words or any(word in case["name"] for word in words)]


def git_revision():
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def main():
    arguments = parse_arguments()
    grid = json.loads(arguments.grid.read_text())
    cases, names = pick(grid["cases"], arguments.filter), [case["name"] for case in grid["cases"]]
    if not cases:
        sys.exit(f"compare_gpu: no case matches --filter {arguments.filter}")
    report = {
        "tool": "bench/gpu/compare_gpu.py",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "git_revision": git_revision(),
        "device": gpu_device.describe(),
        "filter": arguments.filter,
        **({"kernel": arguments.kernel} if arguments.kernel else {}),
        "method": f"up to {arguments.turns} interleaved turns, one process a contender, "
        "L2 flushed by a memset "
        "before each run, events around one run, median of the turns' medians",
    }
    contenders = Contenders(commands_of(arguments), arguments.kernel)
    sampler = gpu_device.ClockSampler()
    try:
        peers, report["peers"], report["peers_not_measured"] = first_peers(contenders, say)
        ceilings = [measure_ceilings(contenders, peers)]

        def write(rows):
            merged = merge_ceilings(ceilings)
            report.update(
                ceilings=merged,
                rows=rows,
                targets=[ratios.judge(target, rows, merged, names) for target in grid["targets"]],
            )
            arguments.out.write_text(json.dumps(report, indent=1) + "\n")

        write([])
        rows = run_grid(arguments, contenders, cases, peers, write)
        ceilings.append(measure_ceilings(contenders, peers))
    finally:
        contenders.close()
        report["clocks"] = sampler.stop()
    report["seconds"] = round(time.monotonic() - START, 1)
    write(rows)
    if not arguments.no_tables:
        print(ratio_table.render(report))
    bad = ratios.bad_cases(rows)
    if bad:
        sys.exit(f"bench: wrong, or not run: {', '.join(bad)}")


if __name__ == "__main__":
    main()
