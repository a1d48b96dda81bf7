"""Installs the build, then configures, builds and runs programs that find it as a package: one that
needs the library only, one that needs the emulator.

usage: install_test.py CMAKE BUILD_DIR CONSUMER_DIR EMULATED_CONSUMER_DIR COMPILER
"""

import pathlib
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_and_run(cmake, compiler, prefix, source, out):
    run(cmake, "-G", "Ninja", "-S", source, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release")
    with open(f"{out}/CMakeCache.txt") as cache:
        found = [line for line in cache if line.startswith("pagoda_DIR")]
    if not found or prefix not in found[0]:
        sys.exit(f"find_package found another pagoda: {found}")
    run(cmake, "--build", out)
    return run(f"{out}/{pathlib.Path(source).name}").strip()


def main():
    cmake, build, consumer, emulated, compiler = sys.argv[1:]
    lines = (pathlib.Path(consumer) / "main.cpp").read_text().count("\n")
    if lines >= 20:
        sys.exit(f"the consumer has {lines} lines; it must have fewer than 20")
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/prefix"
        run(cmake, "--install", build, "--prefix", prefix)
        answer = build_and_run(cmake, compiler, prefix, consumer, f"{folder}/build")
        if answer != "1.5":
            sys.exit(f"the consumer printed {answer}, not 1.5")
        print(f"{lines} lines against {prefix} print {answer}")
        answer = build_and_run(cmake, compiler, prefix, emulated, f"{folder}/emulated")
        if answer.splitlines() != ["emu:sm90: 640 values", "emu:sm100: 640 values", "0 wrong"]:
            sys.exit(f"the program with the emulator printed:\n{answer}")
        print(answer)


if __name__ == "__main__":
    main()
