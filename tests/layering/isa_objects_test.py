"""No machine needs instructions that it lacks: checked on the object files of the library.

An inline function of a shared header, compiled in the AVX-512 translation unit, is a weak symbol;
the linker keeps one copy of it for the whole program, maybe that one. So an object compiled with an
instruction set defines weak symbols only in the namespace of that instruction set, has no static
initialiser (it would run at load time), and no other object uses a vector register wider than
SSE's.

usage: isa_objects_test.py OBJECT...
"""

import pathlib
import re
import subprocess
import sys

# DW.ref: a pointer that exception tables use, data only.
HARMLESS = re.compile(r"^DW\.ref\.")
# Registers that exist only with AVX and later.
WIDE = re.compile(r"%[yz]mm\d+|%k[1-7]\b|%tmm\d")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def isa_of(path):
    """'avx512' for .../isa/avx512.cpp.o; None for baseline objects, the scalar level too."""
    match = re.search(r"/(?:cpu/isa|ceilings)/((?:avx|amx)\w*)\.cpp\.o$", path)
    return match.group(1) if match else None


def own_namespace(isa):
    """Mangled names of pagoda::cpu::<isa>, with what may stand before the name."""
    return re.compile(rf"^_Z(T[VIST]|GV|Z|GVZ)*N[KVRO]*6pagoda3cpu(3isa)?{len(isa)}{isa}")


def check_weak_symbols(path, isa, listing):
    """`listing` is the output of `nm --defined-only`."""
    allowed = own_namespace(isa)
    complaints = []
    for line in listing.splitlines():
        kind, name = line.split()[-2:]
        if kind in "WwVvu" and not HARMLESS.match(name) and not allowed.match(name):
            complaints.append(f"{path}: weak symbol {name} may replace another object's copy")
    return complaints


def check_initialisers(path, headers):
    """`headers` is the output of `objdump -h`."""
    return [f"{path}: a static initialiser runs at load time" for name in (".init_array", ".ctors")
            if re.search(rf"\s{re.escape(name)}\b", headers)]


def check_baseline(path, disassembly):
    match = WIDE.search(disassembly)
    return [f"{path}: baseline code uses {match.group(0)}"] if match else []


def check_the_checks():
    weak = "0000000000000000 W _ZNSt6vectorIfSaIfEE9push_backEOf\n"
    own = "0000000000000000 W _ZN6pagoda3cpu6avx5126attendIfEEvv\n"
    assert check_weak_symbols("a.o", "avx512", weak), "a weak symbol of std was not noticed"
    assert not check_weak_symbols("a.o", "avx512", own), "an own symbol was refused"
    assert check_weak_symbols("a.o", "avx2", own), "another level's symbol was not noticed"
    assert check_initialisers("a.o", "  5 .init_array 00000008"), "an initialiser was not noticed"
    assert check_baseline("a.o", "vaddps %ymm1,%ymm2,%ymm3"), "a wide register was not noticed"
    assert not check_baseline("a.o", "addps %xmm1,%xmm2"), "SSE was refused"


def main():
    check_the_checks()
    objects = [p for p in sys.argv[1:] if pathlib.Path(p).suffix == ".o"]
    isa_objects = [p for p in objects if isa_of(p)]
    if not isa_objects or len(objects) < 5:
        sys.exit(f"{len(isa_objects)} ISA objects of {len(objects)} in all: nothing to check")
    complaints = []
    for path in objects:
        isa = isa_of(path)
        if isa:
            complaints += check_weak_symbols(path, isa, output_of("nm", "--defined-only", path))
            complaints += check_initialisers(path, output_of("objdump", "-h", path))
        else:
            complaints += check_baseline(path, output_of("objdump", "-d", "--no-show-raw-insn", path))
    print("\n".join(complaints))
    print(f"{len(objects)} objects, {len(isa_objects)} of them with an instruction set of their own, "
          f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
