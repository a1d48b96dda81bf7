#!/usr/bin/env python3
"""All tests and benchmarks that need a GPU, in phases: primitive tests, conformance, CUDA graphs,
the calls of FlashAttention and FlashInfer, functors, compute-sanitizer, the benchmark grid with
cuDNN, replay of a trace, the Python package, tokens per second of a whole model. A phase that fails
does not keep the next from running. Writes one JSON log, after every phase, and prints ratio
tables. `./dev gpu` builds what this runs."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import gpu_device
import phases

ROOT = phases.ROOT
START = time.monotonic()
LIMITS = {"primitives": 180, "check": 540, "random": 240, "graph": 180, "example": 60, "peers": 60,
          "functors": 180, "sanitize": 540, "replay": 540, "python": 300, "model": 90}  # seconds
PATH_OPTIONS = ("--json", "--python", "--trace")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev gpu", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        default=",".join(phases.PHASES),
        help="phases, separated by commas (default: all): " + ", ".join(phases.PHASES),
    )
    parser.add_argument(
        "--json", type=pathlib.Path, help="the log (default: build/gpu/<device>.json)"
    )
    parser.add_argument(
        "--bin",
        type=pathlib.Path,
        default=ROOT / "build/release/bin",
        help="folder of the programs",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="a Python that has PyTorch, for cuDNN's rows (default: the one that runs this)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=480,
        help="time budget of the benchmark grid (default: 480): repeats go first, then cases",
    )
    parser.add_argument(
        "--limit",
        type=float,
        help="ends any phase after this many seconds (default: a phase's own)",
    )
    parser.add_argument(
        "--kernel", default="", help="only this kernel, or those that begin so: sm80.*"
    )
    parser.add_argument("--check-filter", default="", help="only conformance cases that match")
    parser.add_argument(
        "--check-jobs",
        type=int,
        default=max(1, min(8, (os.cpu_count() or 1) // 2)),
        help="conformance processes side by side (default: half the CPUs, at most 8)",
    )
    parser.add_argument("--random-cases", type=int, default=600,
                        help="conformance cases that are drawn at random (default: 600)")
    parser.add_argument("--random-seed", type=int, default=1, help="which (default: 1)")
    parser.add_argument(
        "--bench-filter",
        default="",
        help="only benchmark cases that contain one of these, by commas",
    )
    parser.add_argument(
        "--tools",
        default=",".join(phases.SANITIZERS),
        help="of compute-sanitizer (default: all four)",
    )
    parser.add_argument("--jobs", type=int, default=4, help="sanitizers side by side (default: 4)")
    parser.add_argument(
        "--case-seconds", type=float, default=120, help="limit of one sanitized case (default: 120)"
    )
    parser.add_argument("--trace", type=pathlib.Path, default=ROOT / "examples/traces/chat.jsonl",
                        help="what replay serves (default: examples/traces/chat.jsonl)")
    parser.add_argument(
        "--replay-args",
        default="--model llama-3.1-8b --requests 300 --cache-gib 16",
        help="further arguments of `pagoda replay` (default: %(default)s)",
    )
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    arguments.only = [name for name in arguments.only.split(",") if name]
    for name in arguments.only:
        if name not in phases.PHASES:
            parser.error(f"--only: no phase '{name}'; there are: {', '.join(phases.PHASES)}")
    return arguments


def recorded_command(words):
    """The command line without folders of this machine and without --bin, which ./dev adds."""
    kept, option = ["./dev gpu"], ""
    for word in words:
        if "--bin" not in (word, option):
            kept.append(pathlib.Path(word).name if option in PATH_OPTIONS else word)
        option = word
    return " ".join(kept)


class Context:
    """The arguments of a phase."""

    def __init__(self, arguments, phase, folder, log):
        self.arguments = arguments
        self.log = log
        self.phase = phase
        self.folder = folder
        own = arguments.seconds + 90 if phase == "bench" else LIMITS[phase]
        self.limit = arguments.limit or own

    def elapsed(self):
        return time.monotonic() - START

    def say(self, text):
        print(f"[{self.elapsed():6.1f} s] {self.phase}: {text}", flush=True)

    def say_bare(self, text):
        print(text, flush=True)

    def every(self, count):
        """A line callback that shows one line in `count`."""
        seen = 0

        def on_line(line):
            nonlocal seen
            seen += 1
            if seen % count == 0:
                self.say(f"{seen} lines; {line[:150]}")

        return on_line

    def binary(self, name):
        path = self.arguments.bin / name
        if not path.exists():
            raise FileNotFoundError(f"no {name} in {self.arguments.bin}")
        return str(path)


def describe(arguments):
    """Device, driver, CUDA and revision."""
    versions = {}
    info = (
        subprocess.run(
            [str(arguments.bin / "pagoda"), "info", "--json", "--no-ceilings"],
            capture_output=True,
            text=True,
        )
        if (arguments.bin / "pagoda").exists()
        else None
    )
    if info is not None and info.returncode == 0:
        report = json.loads(info.stdout)
        versions = {"pagoda_version": report["version"],
                    "backends": [b for b in report.get("backends", []) if b.get("name") == "cuda"]}
    stamp = (
        arguments.bin.parent / "built.json"
    )  # ./dev gpu --build writes revision and compiler
    return {"device": gpu_device.describe(), **versions,
            "built": json.loads(stamp.read_text()) if stamp.exists() else {}}


def why_no_backend(head):
    """Why the CUDA back end can't run, as `pagoda info` prints it; empty = it can."""
    return next(
        (
            b.get("description", "")
            for b in head.get("backends", [])
            if not b.get("is_available", True)
        ),
        "",
    )


def run_one(arguments, name, folder, log, unavailable):
    context = Context(arguments, name, folder, log)
    if unavailable and name in phases.NEED_BACKEND:
        context.say(f"skipped: {unavailable}")
        return {"status": "skipped", "seconds": 0.0, "why": unavailable}
    context.say("begins")
    begin = context.elapsed()
    sampler = gpu_device.ClockSampler()
    try:
        result = phases.PHASES[name](context)
    except Exception as error:  # an error ends its phase only
        result = {"status": "failed", "why": f"{type(error).__name__}: {error}"}
    clocks = sampler.stop()
    result = {
        "status": result.pop("status"),
        "seconds": round(context.elapsed() - begin, 1),
        **result,
        **({"clocks": clocks} if clocks else {}),
    }
    context.say(
        f"{result['status']} after {result['seconds']} s"
        + (f": {result['why']}" if result["why"] else "")
    )
    return result


def summary_line(name, result):
    counts = phases.counts_of(result)
    return f"{name:<11} {result['status']:<8} {result['seconds']:7.1f} s  " + "; ".join(
        text for text in (counts, (result["why"] or "").replace("\n", " ")[:200]) if text)


def main():
    arguments = parse_arguments()
    head = {"tool": "./dev gpu", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": recorded_command(sys.argv[1:]), **describe(arguments)}
    out = arguments.json or ROOT / f"build/gpu/{gpu_device.file_name(head['device'])}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            results[name] = run_one(
                arguments, name, pathlib.Path(folder), out, why_no_backend(head)
            )
            out.write_text(json.dumps({**head, "phases": results}, indent=1) + "\n")
    tables = phases.print_tables(results)
    if tables:
        print("\n" + tables)
    print()
    for name, result in results.items():
        print(summary_line(name, result))
    print(f"log: {os.path.relpath(out)}")
    statuses = {result["status"] for result in results.values()}
    sys.exit(1 if "failed" in statuses or "passed" not in statuses else 0)


if __name__ == "__main__":
    main()
