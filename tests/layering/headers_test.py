"""Every header compiles alone, twice in a row, without a warning.

A header that is the first #include of a file that the build compiles is known to stand alone; all of those are
compiled together, twice, for warnings. The others are compiled one by one.

Exempt are the parts of ISA translation units: headers in src/backends/cpu/isa whose opening comment says
that they stand "over the including unit's" definitions. Each must be part of some unit. Exempt are
src/arch/ptx and src/arch/hip, which are for nvcc and for clang -x hip. Headers of src/functor are compiled as
pagoda_add_functor() compiles them, for one kernel.

PAGODA_HEADERS_EVERY=N compiles every Nth of the others only, as `./dev test` does to save time; `./dev test nightly`
compiles all.

usage: headers_test.py ROOT COMPILER COMPILE_COMMANDS [FLAG...]
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

# Headers of the ISA translation units are compiled with every instruction set that they may use.
ISA_FLAGS = ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512bf16", "-mfma", "-mf16c",
             "-mamx-tile", "-mamx-bf16"]
# Internal functions that only some units use are no fault of a header.
ISA_FLAGS += ["-Wno-unused-function", "-Wno-unused-variable"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wno-sign-conversion", "-Werror"]


def spelled(header):
    """As in #include: from include/ or src/, and bench/ and cli/ with their folder."""
    return header.relative_to(header.parts[0] if header.parts[0] in ("include", "src") else "").as_posix()


def compile_twice(compiler, flags, root, headers):
    command = [compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *flags, f"-I{root / 'include'}",
               f"-I{root / 'src'}", f"-I{root}"]
    if is_of_isa(headers[0]):
        command += ISA_FLAGS
    if headers[0].as_posix().startswith("src/functor/"):
        command += ["-DPAGODA_FUNCTOR_FAMILY=90", '-DPAGODA_FUNCTOR_SHAPE="sm90.d128.bf16"']
    text = "".join(f'#include "{spelled(header)}"\n' for header in headers + headers)
    done = subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    return headers, done.returncode, done.stderr


def is_of_isa(header):
    return header.as_posix().startswith("src/backends/cpu/isa/")


def first_includes(compile_commands):
    """The headers that a compiled file includes before anything else, as they are spelled there."""
    names = set()
    for entry in json.loads(pathlib.Path(compile_commands).read_text()):
        if not entry["file"].endswith(".cpp"):
            continue
        first = re.search(r"^#\s*(\S.*)$", pathlib.Path(entry["file"]).read_text(), re.MULTILINE)
        if first and (match := re.match(r'include "([^"]+)"', first[1])):
            names.add(match[1])
    return names


def is_part(root, header):
    opening = []
    for line in (root / header).read_text().splitlines():
        if not line.startswith("//"):
            break
        opening.append(line.lstrip("/ "))
    text = " ".join(opening)
    return header.as_posix().startswith("src/backends/cpu/isa/") and "over the including unit's" in text


def is_included(root, header):
    name = header.relative_to("src").as_posix()
    return any(f'#include "{name}"' in p.read_text() for p in (root / "src/backends/cpu/isa").iterdir())


def main():
    root, compiler, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[4:]
    headers = [p.relative_to(root) for top in ("include", "src", "testing", "cli", "bench")
               for suffix in ("*.hpp", "*.h") for p in sorted((root / top).rglob(suffix))]
    if len(headers) < 10:
        sys.exit(f"only {len(headers)} headers found below {root}: wrong folder?")
    # The check must be able to fail: a header that needs another's declarations does not compile.
    broken = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
                            input="std::string s;\n", capture_output=True, text=True)
    if broken.returncode == 0:
        sys.exit("the compiler accepts a name that nothing declares")

    failures = 0
    parts = [h for h in headers if is_part(root, h)]
    # The PTX half of arch/ is nvcc's: compiled with the primitive tests. The AMD half is clang's: with the code objects.
    # What NVRTC compiles besides: with runtime_functor_test.
    nvrtc = "src/runtime_functor/device/"
    gpu = ("src/arch/ptx/", "src/arch/hip/", nvrtc + "program.hpp", nvrtc + "standard_library.hpp")
    headers = [h for h in headers if h not in parts and not h.as_posix().startswith(gpu)
               and h.name not in ("on_gpu.hpp", "gpu_machine.hpp", "gpu_functor.hpp", "hip_kernel.hpp")]
    for part in parts:
        if not is_included(root, part):
            failures += 1
            print(f"{part} is part of no unit")
    stand_alone = first_includes(sys.argv[3])
    together = [h for h in headers if spelled(h) in stand_alone and not is_of_isa(h)]
    alone = [h for h in headers if h not in together]
    every = int(os.environ.get("PAGODA_HEADERS_EVERY", "1"))
    alone = [h for i, h in enumerate(alone) if (i + zlib.crc32(h.parent.as_posix().encode())) % every == 0]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for group, code, errors in pool.map(lambda group: compile_twice(compiler, flags, root, group),
                                            [together] * bool(together) + [[h] for h in alone]):
            if code != 0:
                failures += 1
                what = f"{group[0]} does not compile alone" if len(group) == 1 else "a header that the build compiles first, beside the others of its kind"
                print(f"{what}:\n{errors}")
    print(f"{len(headers)} headers: {len(together)} that the build has compiled first, {len(alone)} compiled alone; "
          f"{len(parts)} parts of ISA units; {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
