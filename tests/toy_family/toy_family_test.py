"""A new family of kernels costs its folder, a line of CMake and its entry in the list of families. Adds mha_toy/ to a
copy of the tree, shows the difference outside that folder, builds, and runs the conformance table on the emulator.

    toy_family_test.py ROOT [--keep FOLDER]     ROOT: the repository; FOLDER: work there and leave it
"""

import argparse
import difflib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EDITS = {
    "src/CMakeLists.txt": [("pagoda_kernel_family(mha_sm100_d512 ARCHS 100a 103a)\n",
                            "pagoda_kernel_family(mha_sm100_d512 ARCHS 100a 103a)\npagoda_kernel_family(mha_toy ARCHS 90a)\n")],
    "src/kernels/families.hpp": [('#include "kernels/mha_sm90/family.hpp"\n',
                                  '#include "kernels/mha_sm90/family.hpp"\n#include "kernels/mha_toy/family.hpp"\n'),
                                 ("    mha_sm90::Family,         //\n",
                                  "    mha_sm90::Family,         //\n    mha_toy::Family,          //\n")],
}
COPIED = ["CMakeLists.txt", "CMakePresets.json", "cmake", "include", "src", "testing", "bench", "cli", "tests/CMakeLists.txt"]


def add_family(root, tree):
    """The difference, as text."""
    for name in COPIED:
        source, target = root / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("results"))
        else:
            shutil.copy2(source, target)
    shutil.copytree(HERE / "mha_toy", tree / "src/kernels/mha_toy")
    difference = []
    for name, edits in EDITS.items():
        before = after = (tree / name).read_text()
        for old, new in edits:
            if after.count(old) != 1:
                sys.exit(f"{name} no longer has exactly one {old!r}")
            after = after.replace(old, new)
        (tree / name).write_text(after)
        difference += difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=0, lineterm="")
    return "\n".join(difference)


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run(command, check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp())
    tree = folder / "pagoda"
    try:
        print(add_family(arguments.root.resolve(), tree), flush=True)
        build = folder / "build"
        run("cmake", "-S", str(tree), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPAGODA_CUDA=OFF",
            "-DPAGODA_BUILD_TESTS=OFF", "-DPAGODA_BUILD_EXAMPLES=OFF", stdout=subprocess.DEVNULL)
        run("ninja", "-C", str(build), "pagoda_cli", stdout=subprocess.DEVNULL)
        for kernel in ("toy.d64.bf16", "toy.d128.bf16"):
            check = run(str(build / "bin/pagoda"), "check", "--backend", "emu:sm90", "--kernel", kernel,
                        "--filter", "*_bf16_*", "--json", stdout=subprocess.PIPE, text=True)
            counts = json.loads(check.stdout)
            print(kernel, {key: counts[key] for key in ("passed", "failed", "skipped")})
            assert counts["failed"] == 0 and counts["passed"] >= 10, counts
    finally:
        if arguments.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
