"""The phases of `./dev gpu`, one function each. It returns the phase's log entry: a status
("passed", "failed", "skipped" = it can't run here, "hazards" = needs an explanation), the
reason, counts, the command."""

import concurrent.futures
import json
import pathlib
import re
import shutil
import sys

import python_phase
import ratio_table
import sharded_check
import watched

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXIT_SKIPPED = 77
SANITIZERS = ("memcheck", "synccheck", "initcheck", "racecheck")  # the slowest last
SANITIZER_EXIT = 99
RACECHECK_NOTE = (
    "racecheck does not follow the chain of syncwarp, mbarrier arrive, mbarrier wait, syncwarp "
    "that orders the reuse of a drained ring: see docs/emulator.md, 'Beside racecheck'. "
    "Every hazard is listed; "
    "one that is no such reuse is a bug."
)


def outcome(finished, limit_seconds, **more):
    """The status of an exit code."""
    if finished.code is None:
        return {
            "status": "failed",
            "why": f"ended after its limit of {limit_seconds:.0f} s",
            **more,
        }
    if finished.code == EXIT_SKIPPED:
        return {"status": "skipped", "why": finished.tail(1), **more}
    why = "" if finished.code == 0 else f"exit code {finished.code}: {finished.tail(1)}"
    return {"status": "passed" if finished.code == 0 else "failed", "why": why, **more}


def recorded(command):
    """A command without the folders of this machine."""
    return " ".join(
        pathlib.Path(word).name if word.startswith("/") else word for word in map(str, command)
    )


def backend(context):
    """What selects the CUDA back end and the kernels of --kernel."""
    kernel = context.arguments.kernel
    return ["--backend", "cuda", *(["--kernel", kernel] if kernel else [])]


# --- primitives ---------------------------------------------------------------------------------


def primitives(context):
    log = context.folder / "primitives.json"
    command = [context.binary("primitive_tests"), "--json", str(log)]
    finished = watched.run(command, context.limit, context.every(200))
    result = outcome(finished, context.limit, command=recorded(command))
    if log.exists():
        report = json.loads(log.read_text())
        result |= {"passed": report["pass"], "failed": report["fail"], "skipped": report["skip"],
                   "failures": [test for test in report["tests"] if test["status"] == "fail"]}
    return result


# --- conformance --------------------------------------------------------------------------------


def check(context):
    pagoda, text = context.binary("pagoda"), context.arguments.check_filter
    command = [pagoda, "check", *backend(context), "--verbose"]
    names = sharded_check.list_cases([pagoda, "check"], text)
    return run_cases(context, command, names, {text: names} if text else None,
                     recorded([*command, *(["--filter", text] if text else [])])
                     + ("" if text else ", by shards: a filter a process"))


def drawn_cases(context):
    """Conformance cases drawn at random, the same in every run with the same seed."""
    arguments = context.arguments
    drawn = [context.binary("pagoda"), "check", "--random", str(arguments.random_cases),
             "--seed", str(arguments.random_seed)]
    command = [*drawn, *backend(context), "--verbose"]
    names = sharded_check.list_cases(drawn, arguments.check_filter)
    shards = {f"*{last}": [name for name in names if name.endswith(last)]
              for last in {name[-1] for name in names}}  # ten, for the names end in numbers
    return run_cases(context, command, names, shards, recorded(command))


def run_cases(context, command, names, shards, log_command):
    deadline = context.elapsed() + context.limit
    checker = sharded_check.ShardedCheck(
        command, names, lambda: deadline - context.elapsed(), context.say
    )
    verdicts = checker.run(context.arguments.check_jobs, shards)
    found = sharded_check.summary(verdicts)
    why = (
        f"{found['failed']} cases failed"
        if found["failed"]
        else "" if found["passed"] else "no case passed"
    )
    return {"status": "failed" if why else "passed", "why": why, "command": log_command, **found}


# --- CUDA graphs --------------------------------------------------------------------------------


def example(context):
    command = [context.binary("example_06_cuda_graph")]
    finished = watched.run(command, context.limit, context.say)
    return outcome(finished, context.limit, command=recorded(command))


def graph(context):
    command = [context.binary("graph_test")]
    finished = watched.run(command, context.limit, context.say)
    words = [line.split(None, 1) for line in finished.lines]
    return outcome(
        finished,
        context.limit,
        command=recorded(command),
        tests=[
            {"status": w[0], "name": w[1]}
            for w in words
            if len(w) == 2 and w[0] in ("passed", "failed")
        ],
    )


def functors(context):
    """The functors of examples/functors: results, and the time of a functor compared with that of
    the mask that it re-states."""
    command = [context.binary("functor_gpu_test")]
    finished = watched.run(command, context.limit, context.say)
    words = [line.split(None, 2) for line in finished.lines]
    tests = [
        {"status": w[0], "name": w[1], "result": w[2] if len(w) == 3 else ""}
        for w in words
        if len(w) >= 2 and w[0] in ("passed", "failed")
    ]
    return outcome(finished, context.limit, command=recorded(command), tests=tests)


# --- calls of the peers --------------------------------------------------------------------------


def peers(context):
    command = [context.binary("peer_calls_test"), "--gtest_filter=*cuda_*:PeerStates.*"]
    finished = watched.run(command, context.limit)
    result = outcome(finished, context.limit, command=recorded(command))
    text = sharded_check.COLOURS.sub("", "\n".join(finished.lines))
    result["passed"] = len(re.findall(r"^\[       OK \] .*/cuda_", text, re.MULTILINE))
    result["failed"] = len(set(re.findall(r"^\[  FAILED  \] (\S+/cuda_\w+)", text, re.MULTILINE)))
    if result["status"] == "passed" and not result["passed"]:
        result |= {"status": "skipped", "why": "no test for CUDA: this build can't use this GPU"}
    return result


# --- compute-sanitizer --------------------------------------------------------------------------


def find_sanitizer():
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )


def read_sanitizer(tool, filter_text, finished):
    """One run's counts. `reports`: the number that the tool printed, None = none printed."""
    text = sharded_check.COLOURS.sub("", "\n".join(finished.lines))
    summary = re.search(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", text)
    reports = int(summary[1] or summary[2]) if summary else None
    result = {"tool": tool, "case": filter_text.lstrip("*"), "reports": reports}
    result |= sharded_check.summary(sharded_check.verdicts_of(finished.lines))
    if "Device not supported" in text:
        result["status"] = "skipped"
    elif finished.code is None:
        result["status"] = "timed out"
    elif (
        reports is None
        or result["failed"]
        or not result["passed"]
        or finished.code not in (0, SANITIZER_EXIT)
    ):
        result["status"] = "failed"
    else:
        result["status"] = "clean" if reports == 0 else "reports"
    if result["status"] not in ("clean", "skipped"):
        shown = [line for line in finished.lines if line.startswith("=========")] or finished.lines
        result["excerpt"] = shown[:40]
    return result


def judge_sanitizers(runs):
    """racecheck's hazards need an explanation: status "hazards", neither passed nor failed."""
    bad = [
        r
        for r in runs
        if r["status"] in ("failed", "timed out")
        or r["status"] == "reports"
        and r["tool"] != "racecheck"
    ]
    hazards = [r for r in runs if r["status"] == "reports" and r["tool"] == "racecheck"]
    by_tool = {
        tool: {
            s: sum(r["tool"] == tool and r["status"] == s for r in runs)
            for s in ("clean", "reports", "failed", "timed out", "skipped")
        }
        for tool in SANITIZERS
    }
    if runs and all(r["status"] == "skipped" for r in runs):
        return {
            "status": "skipped",
            "why": "compute-sanitizer does not support this device",
            "counts": by_tool,
        }
    why = "; ".join(f"{r['tool']} of {r['case']}: {r['status']}" for r in bad[:5])
    result = {"status": "failed" if bad else "passed", "why": why, "counts": by_tool}
    if hazards:
        result |= {"status": "failed" if bad else "hazards", "to_explain": RACECHECK_NOTE}
        result["why"] = (
            why + "; " if why else ""
        ) + f"racecheck reports hazards in {len(hazards)} cases: to be explained"
    return result


def sanitize(context):
    program = find_sanitizer()
    if program is None:
        return {
            "status": "skipped",
            "why": "no compute-sanitizer on PATH or in /usr/local/cuda/bin",
        }
    cases = json.loads((HERE / "sanitizer_sample.json").read_text())["cases"]
    tools = [tool for tool in SANITIZERS if tool in context.arguments.tools.split(",")]
    deadline = context.elapsed() + context.limit

    def one(tool, case):
        left = deadline - context.elapsed()
        if left < 5:
            return {
                "tool": tool,
                "case": case["filter"].lstrip("*"),
                "status": "timed out",
                "reports": None,
            }
        command = [
            program,
            f"--tool={tool}",
            f"--error-exitcode={SANITIZER_EXIT}",
            "--print-limit=10",
            context.binary("pagoda"),
            "check",
            *backend(context),
            "--verbose",
            "--filter",
            case["filter"],
        ]
        result = read_sanitizer(
            tool, case["filter"], watched.run(command, min(left, context.arguments.case_seconds))
        )
        context.say(f"{tool} {result['case']}: {result['status']}"
                    + (f", {result['reports']} reports" if result["reports"] else ""))
        return result

    with concurrent.futures.ThreadPoolExecutor(context.arguments.jobs) as pool:
        runs = list(
            pool.map(lambda pair: one(*pair), [(tool, case) for tool in tools for case in cases])
        )
    command = " ".join(["compute-sanitizer --tool=TOOL pagoda check", *backend(context),
                        "--verbose --filter CASE"])
    return judge_sanitizers(runs) | {"command": command, "runs": runs}


# --- benchmark grid -----------------------------------------------------------------------------


def bench(context):
    out = context.log.with_suffix(
        ".bench.json"
    )  # next to the log: it grows case by case, even if this process is killed
    arguments = context.arguments
    # The limit is a last resort: the grid keeps to its own budget.
    command = [
        sys.executable,
        str(HERE / "compare_gpu.py"),
        "--out",
        str(out),
        "--python",
        arguments.python,
        "--seconds",
        str(arguments.seconds),
        "--pagoda",
        context.binary("pagoda"),
        "--no-tables",
    ]
    command += ["--kernel", arguments.kernel] if arguments.kernel else []
    command += ["--filter", arguments.bench_filter] if arguments.bench_filter else []
    finished = watched.run(command, context.limit, context.say_bare)
    result = outcome(finished, context.limit, command=recorded(command))
    if out.exists():
        report = json.loads(out.read_text())
        out.unlink()
        measured = [
            row for row in report["rows"] if "median_seconds" in row["contenders"].get("pagoda", {})
        ]
        result |= {"rows": len(report["rows"]), "measured": len(measured), "report": report}
        if result["status"] == "passed" and not measured:
            result |= {"status": "failed", "why": "no case was measured"}
    return result


# --- replay -------------------------------------------------------------------------------------


def replay(context):
    arguments = context.arguments
    command = [
        context.binary("pagoda"),
        "replay",
        str(arguments.trace),
        *backend(context),
        "--json",
        *arguments.replay_args.split(),
    ]
    finished = watched.run(
        command, context.limit, lambda line: line[:1] in "{ }" or context.say(line)
    )
    result = outcome(finished, context.limit, command=recorded(command))
    text = "\n".join(finished.lines)
    begin = text.find("\n{") + 1 if not text.startswith("{") else 0
    try:
        report, _ = json.JSONDecoder().raw_decode(text[begin:])
    except ValueError:
        if result["status"] == "passed":
            result |= {"status": "failed", "why": "no JSON report"}
        return result
    result |= {
        key: report.get(key) for key in ("requests", "completed", "checked_rows", "mismatches")
    }
    if result["status"] == "passed" and (
        report.get("mismatches") != 0 or not report.get("checked_rows")
    ):
        result |= {
            "status": "failed",
            "why": f"{report.get('mismatches')} mismatches in {report.get('checked_rows')} rows",
        }
    return result | {"report": report}


COUNTS = (
    "passed",
    "failed",
    "skipped",
    "rows",
    "measured",
    "requests",
    "completed",
    "checked_rows",
    "mismatches",
)


def counts_of(result):
    """A phase's counts as text."""
    return ", ".join(f"{result[key]} {key.replace('_', ' ')}" for key in COUNTS if key in result)


PHASES = {
    "primitives": primitives,
    "check": check,
    "random": drawn_cases,
    "graph": graph,
    "example": example,
    "functors": functors,
    "peers": peers,
    "sanitize": sanitize,
    "bench": bench,
    "replay": replay,
    "python": python_phase.python,
    "model": python_phase.model,
}
# The other phases check for themselves.
NEED_BACKEND = ("check", "random", "sanitize", "bench", "replay")


def print_tables(result):
    """The tables of the benchmark grid, if it ran."""
    report = result.get("bench", {}).get("report")
    return ratio_table.render(report) if report and report["rows"] else ""
