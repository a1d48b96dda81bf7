"""In the code of each compiled kernel of mha_sm90, the products stand near the start: what stands
before them delays them, even where it is not executed ("Code that is not executed" in
src/kernels/mha_sm90/notes/start_of_a_call.md). Reads objects with cuobjdump.

    sm90_placement_test.py --cuobjdump PROGRAM OBJECT...
"""

import argparse
import concurrent.futures
import re
import subprocess
import sys

# A mangled name: padded head dims, RowKind.
INSTANCE = re.compile(r"8mha_sm90\w*?8Instance\w*?Li(\d+)ELi(\d+)E\w*?RowKindE(\d)E")
MIXED, PACKED = "5", "7"  # RowKind
LINE = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:@!?U?P[0-9T]+\s+)?([A-Z][\w.]*)", re.M)
# Bytes before the first product: of tokens; and of those that find the start of their CTA among all
# sequences before.
LIMIT, SEARCHING_LIMIT = 32 * 1024, 64 * 1024
PRODUCT = re.compile(r"[HQ]G?MMA")


def complaints_about(name, body):
    match = INSTANCE.search(name)
    if match is None:
        return [f"{name}: not an instance that this test knows"]
    at = next((int(at, 16) for at, what in LINE.findall(body) if PRODUCT.match(what)), None)
    if at is None:
        return [f"{name}: no product"]
    limit = SEARCHING_LIMIT if match[3] in (MIXED, PACKED) else LIMIT
    return [f"{name}: {at} bytes before the first product, not {limit} at most"] if at > limit else []


def kernels_of(cuobjdump, file):
    """[(name, SASS)]"""
    dumped = subprocess.run([cuobjdump, "-sass", file], capture_output=True, text=True, check=True)
    parts = re.split(r"(?=\bFunction : )", dumped.stdout)[1:]
    return [(re.match(r"Function : (\w+)", body)[1], body) for body in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuobjdump", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        of_files = list(pool.map(lambda f: kernels_of(arguments.cuobjdump, f), arguments.files))
    kernels = [kernel for of_file in of_files for kernel in of_file if "8mha_sm90" in kernel[0]]
    wrong = [complaint for name, body in kernels for complaint in complaints_about(name, body)]
    if not kernels:
        wrong.append("no kernel")
    print("\n".join(wrong) if wrong else f"{len(kernels)} kernels")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
