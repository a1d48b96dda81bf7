"""Every header compiles alone, twice in a row, without a warning.

usage: headers_test.py ROOT COMPILER [FLAG...]
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

# Headers of the ISA translation units are compiled with every instruction set that they may use.
ISA_FLAGS = ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512bf16", "-mfma", "-mf16c",
             "-mamx-tile", "-mamx-bf16"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wno-sign-conversion", "-Werror"]


def compile_alone(compiler, flags, root, header):
    # As they are spelled in #include: from include/ or src/, and bench/ and cli/ with their folder.
    name = header.relative_to(header.parts[0] if header.parts[0] in ("include", "src") else "")
    command = [compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *flags, f"-I{root / 'include'}",
               f"-I{root / 'src'}", f"-I{root}"]
    if header.as_posix().startswith("src/cpu/isa/"):
        command += ISA_FLAGS
    text = f'#include "{name}"\n#include "{name}"\n'
    done = subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    return header, done.returncode, done.stderr


def main():
    root, compiler, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    headers = [p.relative_to(root) for top in ("include", "src", "cli", "bench")
               for p in sorted((root / top).rglob("*.hpp"))]
    if len(headers) < 10:
        sys.exit(f"only {len(headers)} headers found below {root}: wrong folder?")
    # The check must be able to fail: a header that needs another's declarations does not compile.
    broken = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
                            input="std::string s;\n", capture_output=True, text=True)
    if broken.returncode == 0:
        sys.exit("the compiler accepts a name that nothing declares")

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, code, errors in pool.map(
                lambda h: compile_alone(compiler, flags, root, h), headers):
            if code != 0:
                failures += 1
                print(f"{header} does not compile alone:\n{errors}")
    print(f"{len(headers) - failures} of {len(headers)} headers compile alone")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
