"""Compares kernels that NVRTC compiled with those that nvcc made of the same functor.

instructions_test.py --cuobjdump PROGRAM --cubins FOLDER SHAPE=OBJECT...: FOLDER has SHAPE.VARIANT.cubin, a kernel each;
OBJECT has the same kernels for any architectures. Both are sorted by their number of instructions. They differ by less
than a few percent (docs/decisions/0034-functors-at-run-time.md), need the same registers and spill at most a few words
more: a kernel of 255 registers may miss by one.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MOST_DIFFERENCE = 0.03
MOST_STACK = 16  # bytes beyond those of nvcc's code
ARCHS = {"sm80": "sm_80", "sm90": "sm_90a", "sm100": "sm_100a"}
SKIPPED = 77


def dump(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def kernels(program, path, arch):
    """(instructions, registers, bytes of stack) of each kernel of `arch`."""
    instructions = {}
    for line in dump(program, "-sass", "-arch", arch, path).splitlines():
        if found := re.match(r"\s*Function : (\S+)", line):
            name = found[1]
            instructions[name] = 0
        elif re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+\S", line):
            instructions[name] += 1
    usage = dump(program, "-res-usage", "-arch", arch, path)
    rows = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) ", usage)
    resources = {name: (int(registers), int(stack)) for name, registers, stack in rows}
    return sorted((count, *resources[name]) for name, count in instructions.items())


def complaints(shape, runtime, compiled):
    if len(runtime) != len(compiled) or not runtime:
        return [f"{shape}: {len(runtime)} kernels of NVRTC, {len(compiled)} of nvcc"]
    found = []
    for mine, theirs in zip(runtime, compiled):
        print(f"{shape}: instructions, registers, stack: NVRTC {mine}, nvcc {theirs}")
        if abs(mine[0] / theirs[0] - 1) > MOST_DIFFERENCE:
            found.append(f"{shape}: {mine[0]} instructions of NVRTC, {theirs[0]} of nvcc")
        if mine[1] > theirs[1]:
            found.append(f"{shape}: {mine[1]} registers of NVRTC, {theirs[1]} of nvcc")
        if mine[2] > theirs[2] + MOST_STACK:
            found.append(f"{shape}: {mine[2]} bytes of stack of NVRTC, {theirs[2]} of nvcc")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuobjdump", required=True)
    parser.add_argument("--cubins", type=pathlib.Path, required=True)
    parser.add_argument("objects", nargs="*")
    args = parser.parse_args()
    if not any(args.cubins.glob("*.cubin")):
        print("no cubins: there is no NVRTC")
        return SKIPPED
    found = []
    for each in args.objects:
        shape, path = each.split("=", 1)
        arch = ARCHS[shape.split(".")[0]]
        cubins = sorted(args.cubins.glob(f"{shape}.*.cubin"))
        runtime = sorted(k for cubin in cubins for k in kernels(args.cuobjdump, cubin, arch))
        found += complaints(shape, runtime, kernels(args.cuobjdump, path, arch))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
