"""Each compiled kernel of mha_sm80 multiplies with mma.sync and reads its operands with ldmatrix;
kernels of AsyncKVBuffer copy with cp.async, those of KVBufferImpl do not; and none has an
instruction that began with sm_90. Reads objects with cuobjdump (SASS), or PTX where there is none.

    sm80_instructions_test.py [--cuobjdump PROGRAM] FILE...     objects, or *.ptx
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

# A mangled name: element type, padded head dims, RowKind, Staging (0 async, 2 registers,
# 3 async of narrow rows),
# ScoreClass.
INSTANCE = re.compile(
    r"8mha_sm804ChipE\w*?\d(BFloat16|Half)ELi(\d+)ELi(\d+)E"
    r"\w*?RowKindE([012])E\w*?StagingE([023])E\w*?ScoreClassE([01])E"
)

# Regular expressions on an instruction, for PTX and for SASS.
INSTRUCTIONS = {
    "products of bf16": (r"mma\.sync\.aligned\.m16n8k16\S*\.f32\.bf16", r"HMMA\.16816\.F32\.BF16"),
    "products of f16": (r"mma\.sync\.aligned\.m16n8k16\S*\.f32\.f16", r"HMMA\.16816\.F32\s"),
    "other products": (r"w?g?mma\.(?!sync\.aligned\.m16n8k16)|tcgen05", r"(?:HG|I|QG|UTC)\w*MMA"),
    "ldmatrix": (r"ldmatrix\.\S*x\d\.shared", r"LDSM\.16\.M88"),
    "transposed ldmatrix": (r"ldmatrix\.\S*x\d\.trans", r"LDSM\.16\.MT88"),
    "asynchronous copies": (r"cp\.async\.c[ag]\.shared", r"LDGSTS"),
    "mbarriers": (r"mbarrier|cp\.async\.mbarrier", r"SYNCS"),
    "bulk copies": (r"cp\.(?:reduce\.)?async\.bulk", r"UTMA|UBLK"),
    "register budgets": (r"setmaxnreg", r"USETMAXREG"),
    "dependent launches": (r"griddepcontrol", r"ACQBULK|PREEXIT"),
    "clusters": (r"barrier\.cluster|mapa", r"UCGABAR|MAPA"),
    "accesses to local memory": (r"(?:ld|st)\.local", r"(?:LDL|STL)\b"),
}


def expected_of(element, staging):
    """What a kernel must have; of all else it has nothing."""
    wanted = {"products of bf16" if element == "BFloat16" else "products of f16"}
    wanted |= {"ldmatrix", "transposed ldmatrix"}
    return wanted | ({"asynchronous copies"} if staging in "03" else set())


def count(lines, patterns):
    found = collections.Counter()
    for line in lines:
        found.update(what for what, pattern in patterns.items() if pattern.match(line))
    return found


def in_ptx(text):
    """{(architecture, kernel): counts}"""
    patterns = {what: re.compile(ptx) for what, (ptx, _) in INSTRUCTIONS.items()}
    arch = re.search(r"^\.target (\w+)", text, re.M)[1]
    kernels = {}
    for body in re.split(r"^(?=\.visible \.entry |\.func )", text, flags=re.M)[1:]:
        if body.startswith(".func"):  # called by kernels
            continue
        name = re.match(r"\.visible \.entry (\w+)", body)[1]
        lines = [re.sub(r"^[\s{]*(?:@!?\S+\s+)?", "", line) for line in re.split(r"[;\n]", body)]
        kernels[arch, name] = count(lines, patterns)
    return kernels


def in_sass(text):
    patterns = {what: re.compile(sass) for what, (_, sass) in INSTRUCTIONS.items()}
    kernels = {}
    for part in re.split(r"(?=\bcode for sm_)", text)[1:]:
        arch = re.match(r"code for (\w+)", part)[1]
        for body in re.split(r"(?=\bFunction : )", part)[1:]:
            name = re.match(r"Function : (\w+)", body)[1]
            lines = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P[0-9T]+\s+)?([A-Z].*)", body, re.M)
            kernels[arch, name] = count(lines, patterns)
    return kernels


def complaints_about(name, found):
    match = INSTANCE.search(name)
    if match is None:
        return [f"{name}: not an instance that this test knows"]
    wanted = expected_of(match[1], match[5])
    return [
        f"{name}: {found[what]} {what}, not {'some' if what in wanted else 'none'}"
        for what in INSTRUCTIONS
        if (found[what] > 0) != (what in wanted)
    ]


def number_of_variants(depth_qk, depth_vo):
    if depth_vo > 256:
        return 3  # no prefill tile
    return 8 if depth_qk == depth_vo <= 256 else 6  # with RowKind::kDecode, of narrow rows, too


def complaints_about_variants(kernels):
    """Each architecture has each variant of the object's shape once."""
    wrong = []
    for arch in {arch for arch, _ in kernels}:
        instances = [INSTANCE.search(name) for of, name in kernels if of == arch]
        known = {match.groups() for match in instances if match}
        depths = {(int(values[1]), int(values[2])) for values in known}
        wanted = max((number_of_variants(*of_shape) for of_shape in depths), default=0)
        if len(known) != wanted or len(instances) != wanted:
            wrong.append(f"{len(instances)} kernels for {arch}, {len(known)} known, not {wanted}")
    return wrong or ([] if kernels else ["no kernel"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuobjdump")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    wrong, kernels = [], 0
    for path in arguments.files:
        if path.endswith(".ptx"):
            found = in_ptx(pathlib.Path(path).read_text())
        else:
            command = [arguments.cuobjdump, "-sass", path]
            sass = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found = in_sass(sass)
        kernels += len(found)
        wrong += [f"{path}: {what}" for what in complaints_about_variants(found)]
        for (arch, name), counts in found.items():
            wrong += [f"{path} {arch} {what}" for what in complaints_about(name, counts)]
    print("\n".join(wrong) or f"{len(arguments.files)} files, {kernels} kernels: as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
