"""The phases `python` and `model` of `./dev gpu`: the Python package's tests and host times, and
tokens per second of a whole model. The wheels (of pagoda and what it needs) lie beside the
programs; nothing comes from a package index."""

import concurrent.futures
import json
import os
import pathlib
import re

import watched

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Tests of this name take long: each case is a process of its own.
LONG = ("sampled_combinations", "torch_compile", "compiles_as_a_whole_graph")


def install(context):
    """(environment with the package, None), or (None, the phase's result where that fails)."""
    interpreter = context.arguments.python
    wheels = context.arguments.bin.parent / "wheels"
    if not list(wheels.glob("pagoda-*.whl")):
        return None, {"status": "skipped", "why": f"no wheel of pagoda in {wheels.name}/"}
    if watched.run([interpreter, "-c", "import torch, numpy"], 60).code != 0:
        name = pathlib.Path(interpreter).name
        return None, {"status": "skipped", "why": f"{name} has no PyTorch or no NumPy"}
    site = context.folder / "site"
    if not site.exists():
        command = [interpreter, "-m", "pip", "install", "--quiet", "--no-index", "--find-links",
                   str(wheels), "--target", str(site)]  # fmt: skip
        # ml_dtypes alone: NumPy is the interpreter's.
        for packages in (["pagoda", "pytest"], ["--no-deps", "ml_dtypes"]):
            installed = watched.run([*command, *packages], 120)
            if installed.code != 0:
                return None, {"status": "failed", "why": f"{packages[-1]}: {installed.tail(1)}"}
    # The tests run side by side: one thread each.
    threads = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return {**os.environ, "PYTHONPATH": str(site), **threads}, None


def shards(tests):
    """Arguments of pytest, one list for each process, the longest first: the cases of LONG tests,
    and each file without them. tests: "test_file.py::test_name[case]" of each."""
    alone = [test for test in tests if any(name in test for name in LONG)]
    alone.sort(key=lambda test: next(i for i, name in enumerate(LONG) if name in test))
    files = dict.fromkeys(test.partition("::")[0] for test in tests if test not in alone)
    without = [[f"--deselect={test}" for test in alone if test.startswith(file + "::")]
               for file in files]  # fmt: skip
    return [[test] for test in alone] + [[file, *rest] for file, rest in zip(files, without)]


def counts(last_lines):
    """The sum of pytest's last lines, "3 passed, 1 failed, 2 skipped in 0.1s"."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for line in last_lines:
        for number, what in re.findall(r"(\d+) (passed|failed|skipped|error)", line):
            total["failed" if what == "error" else what] += int(number)
    return total


def python(context):
    """The tests, in processes side by side, then the host time of a call on the quiet machine."""
    environment, result = install(context)
    if result is not None:
        return result
    interpreter = context.arguments.python
    folder = ROOT / "tests/python"
    pytest = [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    listed = watched.run([*pytest, "--collect-only"], 120, environment=environment, folder=folder)
    tests = [line for line in listed.lines if "::" in line and line.startswith("test_")]
    if listed.code != 0 or not tests:
        return {"status": "failed", "why": f"pytest lists no tests: {listed.tail(1)}"}
    deadline = context.elapsed() + context.limit

    def run(arguments):
        left = max(5, deadline - context.elapsed())
        finished = watched.run([*pytest, *arguments], left, environment=environment, folder=folder)
        context.say(f"{arguments[0]}: {finished.tail(1)}")
        return finished

    jobs = max(2, min(16, os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = shards(tests)
        finished = list(pool.map(run, parts))
    result = {"status": "passed", "why": "", "command": "pytest tests/python, in processes",
              **counts(f.tail(1) for f in finished)}  # fmt: skip
    result["failures"] = [line for f in finished for line in f.lines if line.startswith("FAILED")]
    bad = [part[0] for part, f in zip(parts, finished) if f.code != 0]
    if bad:
        result |= {"status": "failed", "why": f"{result['failed']} failed, in {', '.join(bad[:5])}"}
    elif result["passed"] + result["skipped"] != len(tests):
        result |= {"status": "failed", "why": f"{len(tests)} tests are listed, others have run"}
    timed = watched.run(
        [interpreter, str(HERE / "python_host_time.py")], 120, context.say, environment=environment
    )
    if timed.code == 0:
        result["host_time"] = json.loads(timed.lines[-1])
    elif result["status"] == "passed":
        result |= {"status": "failed", "why": f"host time: {timed.tail(1)}"}
    return result


def model(context):
    """bench/python/llama.py."""
    environment, result = install(context)
    if result is not None:
        return result
    environment.pop("OMP_NUM_THREADS")
    log = context.folder / "model.json"
    command = [context.arguments.python, str(ROOT / "bench/python/llama.py"), "--json", str(log)]
    finished = watched.run(command, context.limit, context.say, environment=environment)
    result = {"status": "passed", "why": "", "command": "bench/python/llama.py"}
    if log.exists():
        result["report"] = json.loads(log.read_text())
    rows = result.get("report", {}).get("rows", [])
    measured = [row for row in rows if row["attention"] == "pagoda" and "tokens_per_second" in row]
    if finished.code != 0 or len(measured) != 2:
        result |= {"status": "failed", "why": finished.tail(1)}
    return result
