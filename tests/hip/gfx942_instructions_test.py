"""Each kernel of the code objects keeps its vector registers (no spill, no scratch), has no flat
access, fits in the LDS of a workgroup and takes the parameters that the host passes; kernels of
attention multiply with MFMA, the others and those of mha_simt do not.

    gfx942_instructions_test.py --bin FOLDER --params PROGRAM [--attention FILE...]
                                [--others FILE...]

FOLDER has llvm-objdump and llvm-readelf; PROGRAM prints the bytes of the parameters
(hip_params.cpp).
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

LDS_BYTES = {"gfx942": 64 << 10, "gfx950": 160 << 10}
INSTRUCTIONS = {
    "MFMAs": r"v_mfma_",
    "flat accesses": r"flat_(?:load|store|atomic)",
    "scratch accesses": r"scratch_(?:load|store)|buffer_(?:load|store)\S* .*s32",
}
ZERO = [".private_segment_fixed_size"]  # bytes of scratch memory: where spills go
# A vector register above 256 is kept in an accumulation register, not in memory: general scores at
# depth 256, of vectors, have 4 such spills.
MOST_VGPR_SPILLS = 4  # of attention; 0 of the others
# A scalar register is spilled to a lane of a vector register, not to memory; in attention nearly all
# before the loop over KV tiles, where the work tile is found.
MOST_SGPR_SPILLS = 40  # of attention; 0 of the others


def output(*command):
    text = [str(part) for part in command]
    return subprocess.run(text, capture_output=True, text=True, check=True).stdout


def instructions(text):
    """{symbol: counts}"""
    kernels = {}
    for part in re.split(r"^[0-9a-f]+ <", text, flags=re.M)[1:]:
        name, body = part.split(">:", 1)
        counts = collections.Counter()
        for line in body.splitlines():
            line = line.strip()
            counts["instructions"] += bool(line)
            for what, pattern in INSTRUCTIONS.items():
                counts[what] += bool(re.match(pattern, line))
        kernels[name] = counts
    return kernels


def metadata(text):
    """The target, and {symbol: {key: number}}; ".params": bytes of the parameter by value."""
    target = re.search(r"amdhsa\.target:\s+\S*-(gfx\w+)", text)[1]
    kernels = {}
    block = re.search(r"^amdhsa\.kernels:\n(.*?)^amdhsa\.", text, re.M | re.S)[1]
    for part in re.split(r"^  -", block, flags=re.M)[1:]:
        numbers = re.findall(r"^\s+(\.\w+):\s+(\d+)$", part, re.M)
        values = {key: int(value) for key, value in numbers}
        arguments = part.split(".args:", 1)[1] if ".args:" in part else ""
        for argument in re.split(r"^\s+- ", arguments, flags=re.M):
            if "by_value" in argument and "hidden" not in argument:
                values[".params"] = int(re.search(r"\.size:\s+(\d+)", argument)[1])
        kernels[re.search(r"^\s+\.name:\s+(\S+)", part, re.M)[1]] = values
    return target, kernels


def complaints(target, name, values, counts, is_attention, param_bytes):
    wrong = [f"{key} is {values[key]}" for key in ZERO if values[key] != 0]
    if values[".vgpr_spill_count"] > (MOST_VGPR_SPILLS if is_attention else 0):
        wrong.append(f".vgpr_spill_count is {values['.vgpr_spill_count']}")
    if values[".sgpr_spill_count"] > (MOST_SGPR_SPILLS if is_attention else 0):
        wrong.append(f".sgpr_spill_count is {values['.sgpr_spill_count']}")
    never = ("flat accesses", "scratch accesses")
    wrong += [f"{counts[what]} {what}" for what in never if counts[what]]
    has_mfma = is_attention and "8mha_simt" not in name
    if (counts["MFMAs"] > 0) != has_mfma:
        wrong.append(f"{counts['MFMAs']} MFMAs, not {'some' if has_mfma else 'none'}")
    if values[".group_segment_fixed_size"] > LDS_BYTES[target]:
        wrong.append(f"{values['.group_segment_fixed_size']} bytes of LDS of {LDS_BYTES[target]}")
    threads, wavefront = values[".max_flat_workgroup_size"], values[".wavefront_size"]
    if wavefront != 64 or threads % 64 != 0:
        wrong.append(f"{threads} threads in wavefronts of {wavefront}")
    if values.get(".params") != param_bytes:
        wrong.append(f"takes {values.get('.params')} bytes, the host passes {param_bytes}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--params", required=True)
    parser.add_argument("--attention", nargs="*", default=[])
    parser.add_argument("--others", nargs="*", default=[])
    arguments = parser.parse_args()
    sizes = [line.split() for line in output(arguments.params).splitlines()]
    param_bytes = {name: int(count) for name, count in sizes}
    wrong, count = [], 0
    for path in map(pathlib.Path, arguments.attention + arguments.others):
        is_attention = str(path) in arguments.attention
        target, kernels = metadata(output(arguments.bin / "llvm-readelf", "--notes", path))
        found = instructions(output(arguments.bin / "llvm-objdump", "-d", path))
        if not kernels:
            wrong.append(f"{path.name}: no kernel")
        for name, values in kernels.items():
            count += 1
            expected = param_bytes["attention" if is_attention else path.name.split(".")[0]]
            for what in complaints(target, name, values, found[name], is_attention, expected):
                wrong.append(f"{path.name} {name}: {what}")
            print(
                f"{path.name} {name}: {values['.vgpr_count']} VGPRs, "
                f"{values.get('.agpr_count', 0)} of them AGPRs, {values['.sgpr_count']} SGPRs, "
                f"{values['.sgpr_spill_count']} spilled, "
                f"{values['.group_segment_fixed_size']} bytes of LDS, "
                f"{found[name]['MFMAs']} MFMAs, {found[name]['instructions']} instructions"
            )
    print("\n".join(wrong) or f"{count} kernels: as expected")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
