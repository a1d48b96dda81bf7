"""Each compiled Blackwell instance has exactly the tensor core, tensor memory and TMA instructions
that follow from its tile. Reads objects with cuobjdump (SASS), or PTX where there is no cuobjdump.

    sm100_instructions_test.py [--cuobjdump PROGRAM] FILE...     objects, or *.ptx
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

# A mangled name: kernel, element type, padded head dim, score class (0 plain, 1 general), CTAs of
# an MMA.
INSTANCE = re.compile(
    r"\d(SM100MHA[A-Z0-9a-z]*?)I\w*?8Instance\w*?\d(BFloat16|Half|Float8E4M3)E"
    r"\w*?Li(\d+)E\w*?ScoreClassE([01])E(?:Li(\d)E)?"
)
ELEMENT_BYTES = {"BFloat16": 2, "Half": 2, "Float8E4M3": 1}

# What is counted: regular expressions on an instruction, for PTX and for SASS.
INSTRUCTIONS = {
    "MMAs": (r"tcgen05\.mma", r"UTC[HQ]MMA"),
    "commits": (r"tcgen05\.commit", r"UTCBAR"),
    "tensor memory loads": (r"tcgen05\.ld", r"LDTM"),
    "tensor memory stores": (r"tcgen05\.st", r"STTM"),
    "TMA loads of K and V": (r"cp\.async\.bulk\.tensor\.3d\.shared", r"UTMALDG\.3D"),
    "TMA loads of Q": (r"cp\.async\.bulk\.tensor\.4d\.shared", r"UTMALDG\.4D"),
    "TMA stores of O": (r"cp\.async\.bulk\.tensor\.4d\.global", r"UTMASTG\.4D"),
    "register budgets raised": (r"setmaxnreg\.inc", r"USETMAXREG\.TRY_ALLOC"),
    "register budgets lowered": (r"setmaxnreg\.dec", r"USETMAXREG\.DEALLOC"),
    "waits for the launch before": (r"griddepcontrol\.wait", r"ACQBULK"),
    "starts of the launch after": (r"griddepcontrol\.launch", r"PREEXIT"),
    "accesses to local memory": (r"(?:ld|st)\.local", r"(?:LDL|STL)\b"),
}
COLUMNS = 512  # of tensor memory


def expected_of_mha_2q(element_bytes, depth, is_general):
    """Counts and register budgets. Loops over KV tiles are loops in the code, the rest is
    unrolled: the code has an instruction once for each call site. The sizes of a tile are those of
    src/kernels/mha_sm100/config.hpp."""
    mma_k = 32 // element_bytes
    keys = min(256, (256 - depth) // mma_k * mma_k)
    panels = depth // 64
    parts = panels  # of K and of V, with barriers of their own
    holds_scores = not is_general and keys <= 128
    reads = 1 if holds_scores else 2  # of S
    batches = keys // (32 if holds_scores else 16)
    # Softmax: masked, unmasked and masked KV tiles. Masked ones store S back if it is loaded
    # twice.
    written_back = 0 if holds_scores else 3 if is_general else 2
    # Copies of a tile of smaller pages down to 16 keys; a tile that lies in one page is one copy of
    # K and one for each part of V.
    copies = sum(keys // page for page in (16, 32, 64, 128) if page < keys and keys % page == 0)
    counts = {
        # S of two halves: first, same; next, same. S of a KV split in the CTA: first, odd, even. O
        # of two halves: first, next, last; O of a KV split: odd, even, and the last of each.
        "MMAs": 7 * depth // mma_k + 8 * keys // mma_k,
        # After each S and O, and after the last readers of each part of K and of V, at two call
        # sites each.
        "commits": 7 + 8 + 4 * parts + 4 * parts,
        # S. O of two halves where it is rescaled, and where it is read: staged, stored from
        # registers, stored as a partial result. Both O where they are merged.
        "tensor memory loads": 3 * reads * batches + 2 * depth // 16 + 2 + 2 * 3 * depth // 32,
        # P, and S stored back; O rescaled and merged.
        "tensor memory stores": (3 + written_back) * batches + 2 * depth // 16 + 1,
        # K: a tile in one page; complete and partial tiles of smaller pages. V: complete parts, and
        # parts with a tail.
        "TMA loads of K and V": panels * (1 + 2 * copies + 2 * (parts + copies)),
        "TMA loads of Q": 4 * panels,  # one for each of four schedules
        # O of two halves. With 8-bit queries its panels have 32 columns: 16-bit O is staged in Q.
        "TMA stores of O": 2 * panels if element_bytes == 2 else 4 * panels,
        "register budgets raised": 1,
        "register budgets lowered": 2,
        "waits for the launch before": 1,
        "starts of the launch after": 1,
        "accesses to local memory": 0,
    }
    budgets = [176, 88, 72] if holds_scores else [152, 104, 104]
    return counts, budgets


def expected_of_pair(element_bytes, depth, is_general):
    """A CTA pair does not split the keys of one CTA, and gathers nothing."""
    counts, _ = expected_of_mha_2q(element_bytes, depth, is_general)
    mma_k = 32 // element_bytes
    keys = 256 - depth
    panels = depth // 64
    parts = panels  # of K and of V
    batches = keys // (16 if is_general else 32)
    reads, written_back = (2, 3) if is_general else (1, 0)
    k_copies = 1 + sum(keys // 2 // page for page in (16, 32, 64))  # of half of the keys
    v_copies = parts + sum(keys // page for page in (16, 32, 64))
    counts |= {
        # S and O of each half: first and next.
        "MMAs": 4 * depth // mma_k + 4 * keys // mma_k,
        "commits": 4 + 4 + 2 * parts + 2 * parts,
        # As above, without the merge of both O.
        "tensor memory loads": 3 * reads * batches + 2 * depth // 16 + 2 * 3 * depth // 32,
        "tensor memory stores": (3 + written_back) * batches + 2 * depth // 16,
        # K, and V of half of the columns: complete parts and parts with a tail, and zeros where the
        # second part has no key; once for the leader, once for its peer.
        "TMA loads of K and V": 2
        * (panels * (2 * k_copies - 1) + panels // 2 * (2 * v_copies + v_copies // 2)),
    }
    return counts, [152, 112, 96] if is_general else [168, 104, 72]


def expected_of_d512(element_bytes, depth, _is_general):
    """The sizes of a tile are those of src/kernels/mha_sm100_d512/config.hpp."""
    mma_k = 32 // element_bytes
    sections, keys = (1, 128) if depth == 256 else (2, 256)
    copies = 1 + sum(keys // 2 // page for page in (16, 32, 64, 128) if page <= keys // 2)
    counts = {
        # S, first and next, each a loop over slots of 128 columns; O.
        "MMAs": 2 * 128 // mma_k + sections * keys // mma_k,
        # After S and O, and after each slot of K, and of V in two parts.
        "commits": 2 + 2 + 2 * 2 * sections,
        # S of a row or of half a row. O where it is rescaled, 256 columns of a lane; and where it
        # is read: staged (not with 8-bit queries), stored from registers, stored as a partial
        # result.
        "tensor memory loads": 128 // 16 + 256 // 16 + sections * (3 if element_bytes == 2 else 2),
        "tensor memory stores": 256 // 16,
        # K, first and next, and two parts of V, whole or with a tail; two panels; once for the
        # leader, once for its peer.
        "TMA loads of K and V": 2 * 2 * (2 + 2 * 2) * copies,
        "TMA loads of Q": 4,  # one for each of four schedules
        "TMA stores of O": depth // 64 if element_bytes == 2 else 0,
        "register budgets raised": 1,
        "register budgets lowered": 2,
        "waits for the launch before": 1,
        "starts of the launch after": 1,
        "accesses to local memory": 0,
    }
    return counts, [240, 144, 120] if element_bytes == 2 else [248, 136, 120]


EXPECTED = {
    ("SM100MHAD512", 1): expected_of_d512,
    ("SM100MHA2Q", 1): expected_of_mha_2q,
    ("SM100MHA2Q", 2): expected_of_pair,
}


def count(lines, patterns):
    found = collections.Counter()
    for line in lines:
        found.update(what for what, pattern in patterns.items() if pattern.match(line))
    return found


def in_ptx(text):
    """{(architecture, kernel): (counts, register budgets, columns of tensor memory)}"""
    patterns = {what: re.compile(ptx) for what, (ptx, _) in INSTRUCTIONS.items()}
    arch = re.search(r"^\.target (\w+)", text, re.M)[1]
    kernels = {}
    for body in re.split(r"^(?=\.visible \.entry )", text, flags=re.M)[1:]:
        name = re.match(r"\.visible \.entry (\w+)", body)[1]
        lines = [re.sub(r"^\s*(?:@!?\S+\s+)?", "", line) for line in re.split(r"[;\n]", body)]
        budgets = [int(number) for number in re.findall(r"setmaxnreg\S+ (\d+);", body)]
        register = re.search(r"tcgen05\.alloc\.\S+ \[%r\d+\], (%r\d+);", body)[1]
        columns = int(re.search(rf"mov\.\w+\s+{register}, (\d+);", body)[1])
        kernels[arch, name] = count(lines, patterns), budgets, columns
    return kernels


def in_sass(text):
    patterns = {what: re.compile(sass) for what, (_, sass) in INSTRUCTIONS.items()}
    kernels = {}
    for part in re.split(r"(?=\bcode for sm_)", text)[1:]:
        arch = re.match(r"code for (\w+)", part)[1]
        for body in re.split(r"(?=\bFunction : )", part)[1:]:
            name = re.match(r"Function : (\w+)", body)[1]
            lines = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P[0-9T]+\s+)?([A-Z].*)", body, re.M)
            kernels[arch, name] = count(lines, patterns), None, None
    return kernels


def complaints_about(name, found, budgets, columns):
    match = INSTANCE.search(name)
    if match is None or (match[1], int(match[5] or 1)) not in EXPECTED:
        return [f"{name}: not an instance that this test knows"]
    kernel, element, depth, scores, ctas = match.groups()
    expected = EXPECTED[kernel, int(ctas or 1)]
    want, want_budgets = expected(ELEMENT_BYTES[element], int(depth), scores == "1")
    wrong = [
        f"{found[what]} {what}, not {number}"
        for what, number in want.items()
        if found[what] != number
    ]
    if budgets is not None and budgets != want_budgets:
        wrong.append(f"register budgets {budgets}, not {want_budgets}")
    if columns is not None and columns > COLUMNS:
        wrong.append(f"{columns} columns of tensor memory: there are {COLUMNS}")
    return [f"{name}: {what}" for what in wrong]


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
        # That no architecture is missing is for ptxas_report_test.py.
        kernels_of = collections.Counter(arch for arch, _ in found) or {"any architecture": 0}
        wrong += [
            f"{path}: {number} kernels for {arch}, not plain and general"
            for arch, number in kernels_of.items()
            if number != 2
        ]
        kernels += len(found)
        for (arch, name), what in found.items():
            wrong += [f"{path} {arch} {complaint}" for complaint in complaints_about(name, *what)]
    print("\n".join(wrong) or f"{len(arguments.files)} files, {kernels} kernels: as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
