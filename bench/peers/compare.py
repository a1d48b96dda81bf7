#!/usr/bin/env python3
"""Times Pagoda, ONNX Runtime and PyTorch on the grids of `pagoda bench`, in one interleaved run.

Each contender is a separate process with the same number of threads on the same CPUs. For each
case the contenders take turns; a turn's first run, which finds the caches cold, does not count; the
medians over all turns are compared. Needs nothing but Python here: the peers run in .venv/, which
this script makes. Writes one JSON file with everything that was measured, losses included.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import environment
import table
from line_worker import LineWorker, WorkerError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH_OPTIONS = ("--pagoda", "--out", "--venv")
SETTLE_SECONDS = 0.02  # until spinning threads of the last contender sleep


def say(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--pagoda", type=pathlib.Path, default=ROOT / "build/release/bin/pagoda",
                        help="the pagoda command (default: build/release/bin/pagoda)")
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="JSON file (default: bench/results/cpu/<device>.json; of a part of the cases: "
        "build/bench/<device>.json)",
    )
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / ".venv",
                        help="virtual environment of the peers (default: .venv)")
    parser.add_argument("--grid", default="all", help="a grid of `pagoda bench` (default: all)")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--threads", default="1,2", help="thread counts (default: 1,2)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each contender (default: 5)")
    parser.add_argument("--turn-seconds", type=float, default=0.3,
                        help="how long a turn aims to last (default: 0.3; at least two runs)")
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--no-own-bench", action="store_true",
                        help="leave out `pagoda bench` (roofline shares, scaling, planning)")
    arguments = parser.parse_args()
    if not arguments.pagoda.exists():
        parser.error(f"--pagoda: no file {arguments.pagoda}; ./dev build makes it")
    if arguments.turns < 1:
        parser.error("--turns: must be at least 1")
    cpus = len(os.sched_getaffinity(0))
    arguments.threads = [int(text) for text in arguments.threads.split(",")]
    arguments.threads = [count for count in arguments.threads if count <= cpus]
    if not arguments.threads or min(arguments.threads) < 1:
        parser.error(f"--threads: from 1 to {cpus}, the CPUs of this process")
    return arguments


def pagoda_json(arguments, *command):
    result = subprocess.run([str(arguments.pagoda), *command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"compare: pagoda {' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout)


def own_bench(arguments):
    """`pagoda bench` by itself: prints its table, returns its report."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "report.json"
        command = [str(arguments.pagoda), "bench", arguments.grid, "--out", str(out)]
        command += ["--threads", ",".join(map(str, arguments.threads))]
        command += ["--quick"] if arguments.quick else []
        command += ["--filter", arguments.filter] if arguments.filter else []
        code = subprocess.run(command).returncode
        if not out.exists():
            sys.exit(code or 1)
        report = json.loads(out.read_text())
    del report["command"]  # holds the temporary file's name
    return report


def start_workers(arguments, python, peers, threads):
    """The contenders, Pagoda first, pinned to the same CPUs."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    pinned = dict(
        os.environ,
        PEER_CPUS=",".join(map(str, cpus)),
        OMP_NUM_THREADS=str(threads),
        MKL_NUM_THREADS=str(threads),
        GOMP_CPU_AFFINITY=" ".join(map(str, cpus)),
    )
    workers = {"pagoda": LineWorker([str(arguments.pagoda), "bench", "--worker"])}
    script = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    for peer in peers:
        workers[peer] = LineWorker([python, script, peer, str(threads)], pinned)
    return workers


def prepare_all(workers, problem, threads):
    """Every contender's description of its run, or its error."""
    entries = {}
    for name, worker in workers.items():
        try:
            entries[name] = worker.ask("prepare", problem=problem, threads=threads)
        except WorkerError as error:
            if name == "pagoda":
                raise
            entries[name] = {"unsupported": str(error)}
    return entries


def take_turns(workers, entries, turns, turn_seconds):
    """Fills each entry's "seconds" with the runs of all turns, the first run of each left out."""
    running = [name for name in workers if "unsupported" not in entries[name]]
    iterations = {}
    for name in running:
        first = min(workers[name].ask("run", iterations=2)["seconds"])
        iterations[name] = max(2, min(200, 1 + round(turn_seconds / first)))
        entries[name]["seconds"] = []
    for turn in range(turns):
        for name in running if turn % 2 == 0 else reversed(running):
            time.sleep(SETTLE_SECONDS)
            seconds = workers[name].ask("run", iterations=iterations[name])["seconds"]
            entries[name]["seconds"] += seconds[1:]
    for name in running:
        seconds = entries[name].pop("seconds")
        entries[name] |= {
            "runs": len(seconds),
            "median_seconds": statistics.median(seconds),
            "min_seconds": min(seconds),
        }


def compare(arguments, python, peers, cases):
    """Returns the rows, the peers' versions and the ceilings that the rows were placed on."""
    rows, versions, ceilings = [], {}, {}
    for threads in arguments.threads:
        workers = start_workers(arguments, python, peers, threads)
        try:
            for peer in peers:
                versions[peer] = workers[peer].ask("version")["version"]
            ceilings = workers["pagoda"].ask("ceilings", threads=max(arguments.threads))
            for number, case in enumerate(cases, 1):
                say(
                    f"{threads} thread{'s' * (threads > 1)}: {case['name']} ({number}/{len(cases)})"
                )
                entries = prepare_all(workers, case["problem"], threads)
                take_turns(workers, entries, arguments.turns, arguments.turn_seconds)
                rows.append({"case": case["name"], "grid": case["grid"], "threads": threads,
                             "problem": case["problem"], "contenders": entries})
                workers["pagoda"].ask("release")
        finally:
            for worker in workers.values():
                worker.close()
    return rows, versions, ceilings


def device_name(machine, isa):
    words = (
        machine["cpu_model"].lower().replace("(r)", "").replace("(tm)", "").replace("@", "").split()
    )
    return "-".join([*words, f"{machine['allowed_cpus']}cpu", isa])


def recorded_command(arguments):
    """The command as a report holds it: without the options that name files of this machine."""
    kept, is_path = ["bench/peers/compare.py"], False
    for word in arguments:
        option = word.split("=")[0]
        if not is_path and option not in PATH_OPTIONS:
            kept.append(word)
        is_path = word in PATH_OPTIONS
    return " ".join(kept)


def git_revision():
    """The output of `git describe`; empty outside a checkout or without git."""
    if not shutil.which("git"):
        return ""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main():
    arguments = parse_arguments()
    python, peers, missing = environment.prepare(arguments.venv, not arguments.no_torch, say)
    for peer, why in missing.items():
        say(f"{peer} is not measured: {why}")
    info = pagoda_json(arguments, "info", "--json", "--no-ceilings")
    bench = None if arguments.no_own_bench else own_bench(arguments)

    listing = ["bench", arguments.grid, "--list", "--json"]
    listing += ["--quick"] if arguments.quick else []
    listing += ["--filter", arguments.filter] if arguments.filter else []
    # Planning and mixed batches have no counterpart in the peers.
    cases = [c for c in pagoda_json(arguments, *listing) if c["grid"] in ("prefill", "decode")]
    rows, versions, ceilings = compare(arguments, python, peers, cases)
    print(table.render(rows, peers, versions))

    is_part = arguments.quick or arguments.filter or arguments.grid != "all"
    folder = ROOT / ("build/bench" if is_part else "bench/results/cpu")
    out = arguments.out or folder / f"{device_name(info['machine'], info['isa_in_use'])}.json"
    report = {
        "tool": "bench/peers/compare.py",
        "command": recorded_command(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "git_revision": git_revision(),
        "pagoda_version": info["version"],
        "peers": versions,
        "peers_not_measured": missing,
        "machine": info["machine"],
        "isa": info["isa_in_use"],
        "method": f"{arguments.turns} interleaved turns, medians, pinned, one process a contender",
        "ceilings": ceilings,
        "comparison": rows,
        "bench": bench,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    say(f"wrote {os.path.relpath(out)}")


if __name__ == "__main__":
    main()
