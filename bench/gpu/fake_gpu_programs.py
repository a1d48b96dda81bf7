#!/usr/bin/env python3
"""Replaces, in tests, every program that `./dev gpu` runs on a GPU, selected by its own name:
pagoda, primitive_tests, graph_test, the example, peer_calls_test, compute-sanitizer, and a Python
with PyTorch. Times are computed from the work of a problem, so that ratios are known: cuDNN takes
twice our time, FA2 half of it.
"""

import fnmatch
import json
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import work

SLOWDOWN = {"cudnn": 2.0, "fa2": 0.5, None: 1.0}
CEILINGS = {"copy_bytes": 4.0e12, "matmul_flops": 8.0e14, "copy_seconds": [], "matmul_seconds": []}
BROKEN_CASE = 8192  # keys of a batch of 128: our worker dies of it


def seconds_of(problem, backend):
    ideal = max(
        work.flops(problem) / CEILINGS["matmul_flops"],
        work.bytes_moved(problem) / CEILINGS["copy_bytes"],
    )
    return SLOWDOWN[backend] * ideal / 0.8


def serve():
    """The worker protocol, for us and for the peers."""
    problem = backend = None
    for line in sys.stdin:
        request = json.loads(line)
        op, reply = request["op"], {"ok": True}
        if op == "version":
            reply = {"torch": "0.0"}
        elif op == "ceilings":
            reply = CEILINGS
        elif op == "prepare":
            problem, backend = request["problem"], request.get("backend")
            if backend is None and problem["batch"] == 128 and problem["seqlen-kv"] == BROKEN_CASE:
                sys.exit("an illegal memory access was encountered")
            reply = {"kernel": "fake", "max_relative_error": 0.001, "passed": True}
            if backend == "fa2" and problem["head-dim"] != problem.get(
                "v-head-dim", problem["head-dim"]
            ):
                reply = {"error": "No available kernel"}
        elif op in ("run", "back_to_back"):
            one = seconds_of(problem, backend)
            reply = {
                "seconds": [9.0 * one]
                + [one * (1 + 1e-6 * i) for i in range(request["iterations"] - 1)]
            }
        print(json.dumps(reply), flush=True)


TABLE = ["dense_a_b_1", "dense_a_b_2", "paged16_gqa2_hd64_1", "paged16_gqa2_hd64_2", "huge_a_b_1"]
# With FAKE_FAULTS set: one hangs, one ends the process, behind one everything fails.
FAULTY = [
    "csr_a_b_1",
    "csr_a_b_hangs",
    "csr_a_b_3",
    "ragged_a_b_ends",
    "ragged_a_b_2",
    "dense_a_b_sticks",
    "dense_a_b_9",
]


def verdict_of(name, has_stuck):
    if name.endswith("_hangs"):
        time.sleep(60)
    if name.endswith("_ends"):
        os.abort()
    if name.endswith("_sticks") or has_stuck:
        return f"failed   cuda  {name}: kernel: an illegal memory access was encountered"
    return (
        f"skipped  cuda  {name}: no memory" if name.startswith("huge") else f"passed   cuda  {name}"
    )


def check(arguments):
    pattern = arguments[arguments.index("--filter") + 1] if "--filter" in arguments else "*"
    table = TABLE + (FAULTY if os.environ.get("FAKE_FAULTS") else [])
    names = [name for name in table if fnmatch.fnmatchcase(name, pattern)]
    if "--list" in arguments:
        print(json.dumps({"cases": names}))
        return
    has_stuck = False
    for name in names:
        print(verdict_of(name, has_stuck), flush=True)
        has_stuck = has_stuck or name.endswith("_sticks")
    print(f"{len(names)} passed, 0 failed, 0 skipped")
    sys.exit(1 if has_stuck else 0)


def primitive_tests(log):
    pathlib.Path(log).write_text(json.dumps({"pass": 3, "fail": 1, "skip": 0, "tests": [
        {"name": "memory/load", "status": "pass"}, {"name": "wgmma/x", "status": "fail"}]}))
    sys.exit(1)


def sanitizer(arguments):
    tool = next(word for word in arguments if word.startswith("--tool=")).split("=")[1]
    print(f"passed   cuda  {arguments[-1].lstrip('*')}")
    if tool == "racecheck":
        print(
            "========= Error: Race reported\n"
            "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)"
        )
        sys.exit(99)
    print("========= ERROR SUMMARY: 0 errors")


def main():
    name, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
    if name == "pagoda" and arguments[0] == "bench" or name == "python_with_torch":
        serve()
    elif name == "pagoda" and arguments[0] == "info":
        print(json.dumps({"version": "0.0.0", "backends": [{"name": "cuda"}]}))
    elif name == "pagoda" and arguments[0] == "check":
        check(arguments)
    elif name == "pagoda" and arguments[0] == "replay":
        print("replay: 3 steps after 10 s", file=sys.stderr)
        print(
            json.dumps(
                {"requests": 3, "completed": 3, "checked_rows": 5, "mismatches": 0}, indent=1
            )
        )
    elif name == "primitive_tests":
        primitive_tests(arguments[arguments.index("--json") + 1])
    elif name == "compute-sanitizer":
        sanitizer(arguments)
    elif name == "functor_gpu_test":
        print("passed time_prefill_2048 a 90.0 us, b 90.0 us, ratio 1.000")
        print("failed decay_decode a the gain is 1.02")
        sys.exit(1)
    elif name in ("graph_test", "example_06_cuda_graph"):
        print("no NVIDIA GPU here")
        sys.exit(77)
    elif name == "peer_calls_test":
        print("[ RUN      ] FlashInfer/PeerCalls.are_one_call/cuda_mla_paged\n"
              "[       OK ] FlashInfer/PeerCalls.are_one_call/cuda_mla_paged (3 ms)\n"
              "[ RUN      ] FlashInfer/PeerCalls.are_one_call/cuda_batch_decode_paged\n"
              "[  FAILED  ] FlashInfer/PeerCalls.are_one_call/cuda_batch_decode_paged (3 ms)\n"
              "[  FAILED  ] FlashInfer/PeerCalls.are_one_call/cuda_batch_decode_paged")
        sys.exit(1)
    else:
        sys.exit(f"not a program that is faked: {name} {arguments} {os.getcwd()}")


if __name__ == "__main__":
    main()
