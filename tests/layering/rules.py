"""The layers of ARCHITECTURE.md as data, and the functions that check a tree against them.

Every function returns a list of complaints, one line each; empty = the tree keeps the rule.
"""

import pathlib
import re

# Lowest first. A file includes only its own folder and folders of lower rows.
LAYERS = [
    ["include/pagoda"],
    ["src/core"],
    ["src/arch"],
    ["src/operand", "src/mask", "src/softmax", "src/pipeline"],
    ["src/schedule"],  # above mask: work is sized by the keys that a mask leaves visible
    ["src/kernels", "src/cpu"],
    ["src/cuda"],  # above kernels: it gathers their rows
    ["src/engine"],
    ["src/capi", "src/distributed", "src/mirror"],
    ["testing/oracle"],  # test material: nothing of the installed library may include it
    ["src/kernels/emulated"],  # checks its kernels with the oracle
    ["src/emulator"],  # registers what is in there
    ["tests/conformance"],  # the table that `pagoda check` shares with the tests
    ["bench"],
    ["cli"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
ROOTS = ["include", "src", "testing", "cli", "bench"]

# Libraries from outside, by the start of the include path, and the only places that may name them.
THIRD_PARTY = {
    "tbb/": ["src/cpu/executor"],
    "oneapi/": ["src/cpu/executor"],
    "sanitizer/": ["src/cpu/fork_join", "src/arch/emu/runtime/fiber"],
    "immintrin.h": ["src/cpu/isa", "src/cpu/isa_level", "bench/ceilings"],
    "cpuid.h": ["src/cpu/isa_level", "cli"],
    "CLI/": ["cli", "bench"],
    "fmt/": ["cli", "bench"],
    "nlohmann/": ["cli", "bench"],
    "simdjson": ["cli", "bench"],
    "benchmark/": ["bench"],
    "boost/": ["src/arch/emu/runtime/fiber"],
    "cuda/": ["src/arch/ptx"],
    "cuda": ["src/arch/ptx", "src/cuda"],
    "gtest/": ["*_test.cpp"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
# A standard header has no suffix; C and POSIX headers are listed.
STANDARD = re.compile(r"^([a-z_0-9]+|(sys|linux|asm)/[a-z_]+\.h|(unistd|sched|pthread|signal|fcntl|spawn)\.h)$")


# Device code reaches global memory through src/arch alone: parameters and variables are arch::GlobalPtr, which can't be
# dereferenced. Host code (launch plans, make_*) may hold plain pointers; it has no PAGODA_DEVICE function.
DEVICE_FOLDERS = ["src/operand", "src/mask", "src/softmax", "src/pipeline", "src/schedule", "src/kernels"]
ELEMENT = r"(?:void|float|double|bool|char|T|Out|u?int\d+_t|(?:arch::)?Words<\w+>|Bits|Words)"
PLAIN_POINTER = re.compile(rf"\b(const\s+)?({ELEMENT})(\s+const)?\s*\*+(?!/)")
ESCAPES = [(re.compile(r"\bRawGlobal\b"), "RawGlobal"), (re.compile(r"reinterpret_cast<[^<>;]*(?:<[^<>]*>)?[^<>;]*\*\s*>"), "reinterpret_cast to a pointer")]


def sources(root):
    """Every .hpp, .cpp and .inc below the layered folders, as paths relative to `root`."""
    found = []
    for top in ROOTS:
        for suffix in ("*.hpp", "*.cpp", "*.cu", "*.inc"):
            found += [p.relative_to(root) for p in (root / top).rglob(suffix)]
    return sorted(found)


def layer_of(path):
    """The layered folder that holds `path`, or None."""
    for parent in path.parents:
        if parent.as_posix() in RANK:
            return parent.as_posix()
    return None


def resolve(root, path, name):
    """The repository file that `#include "name"` in `path` means, or None."""
    for base in (root / "include", root / "src", root, root / "tests"):
        candidate = base / name
        if candidate.is_file():
            return pathlib.Path(candidate.resolve().relative_to(root.resolve()))
    return None


def check_layers(root):
    complaints = []
    for path in sources(root):
        own = layer_of(path)
        if own is None:
            complaints.append(f"{path}: lies in no layer; add its folder to LAYERS")
            continue
        for kind, name in INCLUDE.findall((root / path).read_text()):
            if kind == "<":
                complaints += check_third_party(path, name)
                continue
            target = resolve(root, path, name)
            if target is None:
                complaints.append(f'{path}: "{name}" is no file of this repository')
                continue
            other = layer_of(target)
            if other != own and RANK[other] >= RANK[own]:
                complaints.append(f"{path}: includes {target}; {own} stands below or beside {other}")
    return complaints


def check_third_party(path, name):
    for prefix, places in THIRD_PARTY.items():
        if name.startswith(prefix):
            allowed = any(
                path.match(place) if "*" in place else path.as_posix().startswith(place)
                for place in places
            )
            return [] if allowed else [f"{path}: <{name}> belongs in {', '.join(places)} only"]
    if STANDARD.match(name):
        return []
    return [f"{path}: <{name}> is neither standard nor listed in THIRD_PARTY"]


def check_opening_comments(root):
    """Every file opens with a comment that says what it is."""
    return [
        f"{path}: does not open with a comment"
        for path in sources(root)
        if not (root / path).read_text().startswith(("//", "/*"))
    ]


def check_global_pointers(root):
    """Device code holds no plain pointer to elements, and takes none out of a GlobalPtr."""
    complaints = []
    for path in sources(root):
        if path.suffix != ".hpp" or layer_of(path) not in DEVICE_FOLDERS:
            continue
        text = (root / path).read_text()
        if "PAGODA_DEVICE" not in text:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            code = re.sub(r'//.*|"[^"]*"', "", line)
            for match in PLAIN_POINTER.finditer(code):
                if match[1] is None or match[2] != "char":  # const char*: the name of something
                    complaints.append(f"{path}:{number}: '{match[0]}' in device code; use arch::GlobalPtr")
            complaints += [f"{path}:{number}: {what} in device code" for pattern, what in ESCAPES if pattern.search(code)]
    return complaints
