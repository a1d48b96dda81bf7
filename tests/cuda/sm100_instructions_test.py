"""The Blackwell instances as ptxas left them: the tensor core and TMA instructions that their source means, and
no spill. Needs cuobjdump; without it the test is skipped (exit code 77).

    sm100_instructions_test.py OBJECT...
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
# By padded head dim; src/kernels/sm100/config.hpp and sm100_deep/config.hpp.
TILE_KEYS = {64: 192, 128: 128, 256: 128, 512: 256}
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+\s+)?([A-Z0-9_]+)")


def counts_of(cuobjdump, path):
    """Instructions by name, of each function of each architecture in the object."""
    text = subprocess.run([cuobjdump, "-sass", path], capture_output=True, text=True, check=True).stdout
    functions, arch = {}, ""
    for line in text.splitlines():
        if match := re.search(r"arch = (\S+)", line):
            arch = match[1]
        elif match := re.search(r"Function : (\S+)", line):
            counts = functions.setdefault((arch, match[1]), collections.Counter())
        elif match := INSTRUCTION.match(line):
            counts[match[1]] += 1
    return functions


def complaints_about(name, counts, products):
    """`products`: tcgen05.mma in the code, each written out once where it is issued."""
    wrong = [] if counts["UTCHMMA"] + counts["UTCQMMA"] == products else [
        f"{name}: {counts['UTCHMMA'] + counts['UTCQMMA']} products, not {products}"
    ]
    for instruction, what in [("UTMALDG", "TMA load"), ("LDTM", "load of tensor memory"), ("UTCBAR", "tcgen05.commit"),
                              ("STTM", "store of tensor memory")]:
        if counts[instruction] == 0:
            wrong.append(f"{name}: no {what} ({instruction})")
    if counts["USETMAXREG"] != 3:
        wrong.append(f"{name}: {counts['USETMAXREG']} register budgets, not one a kind of role")
    for spill in ["STL", "LDL"]:
        if counts[spill] != 0:
            wrong.append(f"{name}: {counts[spill]} {spill}: local memory")
    return wrong


def products_of(depth, element):
    """An instruction takes 32 bytes of the contraction."""
    keys = TILE_KEYS[depth]
    if depth > 128:  # S: two places, a loop over parts of 128 columns; O: one a section of 256 columns
        return (2 * 128 + depth // 256 * keys) * element // 32
    return (7 * depth + 8 * keys) * element // 32  # S: four places for two halves, three for one; O: four each


def main(objects):
    cuobjdump = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    if cuobjdump is None:
        print("no cuobjdump here")
        return SKIPPED
    wrong = []
    for path in objects:
        depth, dtype = re.match(r"d(\d+)_(\w+?)\.", pathlib.Path(path).name).groups()
        element = 1 if dtype == "f8e4m3" else 2
        products = products_of(int(depth), element)
        functions = counts_of(cuobjdump, path)
        if len(functions) != 4:
            wrong.append(f"{path}: {len(functions)} kernels, not two for each of sm_100a and sm_103a")
        for (arch, function), counts in functions.items():
            wrong += complaints_about(f"{pathlib.Path(path).name} {arch} {function[-24:]}", counts, products)
    print("\n".join(wrong) or f"{len(objects)} objects: as meant")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
