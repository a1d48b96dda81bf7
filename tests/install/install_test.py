"""Installs the build, then configures, builds and runs a program that finds it as a package.

usage: install_test.py CMAKE BUILD_DIR CONSUMER_DIR COMPILER
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


def main():
    cmake, build, consumer, compiler = sys.argv[1:]
    lines = (pathlib.Path(consumer) / "main.cpp").read_text().count("\n")
    if lines >= 20:
        sys.exit(f"the consumer has {lines} lines; the promise is fewer than 20")
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = f"{folder}/prefix", f"{folder}/build"
        run(cmake, "--install", build, "--prefix", prefix)
        run(cmake, "-G", "Ninja", "-S", consumer, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release")
        found = [line for line in open(f"{out}/CMakeCache.txt") if line.startswith("pagoda_DIR")]
        if not found or prefix not in found[0]:
            sys.exit(f"find_package found another pagoda: {found}")
        run(cmake, "--build", out)
        answer = run(f"{out}/consumer").strip()
        if answer != "1.5":
            sys.exit(f"the consumer printed {answer}, not 1.5")
        print(f"{lines} lines against {prefix} print {answer}")


if __name__ == "__main__":
    main()
