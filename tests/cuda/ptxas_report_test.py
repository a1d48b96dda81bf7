"""What ptxas reports of each instance of mha_sm80 and of the Blackwell families: every kernel for
every architecture, no spill, no more registers than a launch has, no shared memory beside the
kernel's Storage (whose size a static_assert bounds). The reports are OBJECT.ptxas, written by
cmake/keep_ptxas_report.py.

    ptxas_report_test.py --architectures ARCHITECTURE... --objects OBJECT...
"""

import argparse
import pathlib
import re
import sys

REGISTER_FILE, MOST_REGISTERS = 65536, 255  # of a multiprocessor, of a thread
# By a regular expression on the mangled name, the last that matches: threads on a multiprocessor,
# and variants of an instance. Two CTAs of mha_sm80 share a multiprocessor.
KERNELS = {
    r"10SM100MHA2Q": (512, 2),
    r"12SM100MHAD512": (384, 2),
    r"8mha_sm80": (2 * 128, 6),
    r"8mha_sm80.*Li(64|128|256)ELi\1E": (2 * 128, 8),  # with RowKind::kDecode, of narrow rows, too (has_decode_tile)
    r"8mha_sm80.*Li576ELi512E": (2 * 128, 3),  # without a prefill tile
}

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
TIME = re.compile(r"Compile time = ([\d.]+) ms")


def kernels_of(report):
    """[(name, architecture, text)]"""
    parts = re.split(r"(?=ptxas info\s*: Compiling entry function)", report)
    return [(*match.groups(), part) for part in parts if (match := ENTRY.search(part))]


def threads_and_variants(name):
    known = [numbers for pattern, numbers in KERNELS.items() if re.search(pattern, name)]
    return known[-1] if known else None


def complaints_about(name, text):
    wrong = []
    spills, used, shared = SPILLS.search(text), USED.search(text), SHARED.search(text)
    if spills is None or used is None:
        return ["no numbers: is this `ptxas -v`?"]
    frame, stores, loads = map(int, spills.groups())
    if stores or loads:
        wrong.append(f"spills {stores} bytes of stores, {loads} of loads")
    if frame:
        wrong.append(f"a stack frame of {frame} bytes")
    if shared is not None:
        wrong.append(f"{shared[1]} bytes of shared memory beside its Storage")
    known = threads_and_variants(name)
    if known is None:
        return [*wrong, "not a kernel whose threads this test knows"]
    if int(used[1]) > min(MOST_REGISTERS, REGISTER_FILE // known[0]):
        wrong.append(f"{used[1]} registers are too many for {known[0]} threads")
    return wrong


def complaints_about_number(kernels, architectures):
    """Each architecture must have each variant once."""
    known = threads_and_variants(kernels[0][0])
    if known is None:
        return []  # complaints_about() names the kernel
    names = {arch: [name for name, of, _ in kernels if of == arch] for _, arch, _ in kernels}
    wrong = []
    for arch in sorted(architectures | names.keys()):
        of_arch, wanted = names.get(arch, []), known[1] if arch in architectures else 0
        if len(of_arch) != wanted or len(set(of_arch)) != wanted:
            wrong.append(f"{len(of_arch)} kernels for {arch}, not {wanted}")
    return wrong


def complaints_about_object(path, architectures):
    report = pathlib.Path(path + ".ptxas")
    if not report.exists():
        return [f"{path}: no report beside it; build again"], []
    kernels = kernels_of(report.read_text())
    if not kernels:
        return [f"{report}: no kernel in it"], []
    wrong = [
        f"{path}: {name} for {arch}: {what}"
        for name, arch, text in kernels
        for what in complaints_about(name, text)
    ]
    wrong += [f"{path}: {what}" for what in complaints_about_number(kernels, architectures)]
    return wrong, kernels


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--architectures", nargs="+", required=True)  # 100a
    parser.add_argument("--objects", nargs="+", required=True)
    options = parser.parse_args(arguments)
    objects, architectures = options.objects, {f"sm_{name}" for name in options.architectures}
    results = [complaints_about_object(path, architectures) for path in objects]
    if wrong := [line for lines, _ in results for line in lines]:
        print("\n".join(wrong))
        return 1
    texts = [text for _, kernels in results for _, _, text in kernels]
    size = sum(pathlib.Path(path).stat().st_size for path in objects)
    seconds = sum(float(time) for text in texts for time in TIME.findall(text)) / 1000
    print(f"{len(objects)} objects of {size / 1e6:.1f} MB, {len(texts)} kernels, ", end="")
    registers = [int(USED.search(text)[1]) for text in texts]
    print(f"{min(registers)} to {max(registers)} registers, {seconds:.0f} s of ptxas: as expected")
    return 0 if objects else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
