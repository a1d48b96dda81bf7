"""The layers of ARCHITECTURE.md as data, and the functions that check a tree against them.

Every function returns a list of complaints, one line each; empty = the tree keeps the rule.
"""

import pathlib
import re

# Lowest first. A file includes only its own folder and folders of lower rows; folders of one row do not include each
# other, and neither do families of kernels. `*_test.cpp` stand beside what they test and are exempt from the order.
TESTING = ["testing/material", "testing/demo", "testing/oracle", "testing/mirror", "testing/emulate", "testing/conformance"]
LAYERS = [
    ["include/pagoda"],
    ["src/core"],
    ["src/arch/layout"],  # bit layouts, which the emulator and the contracts share
    ["src/emulator"],
    ["src/arch"],  # contracts, by PTX or by the emulator
    ["src/operand", "src/mask", "src/softmax", "src/pipeline"],
    ["src/schedule"],  # above mask: work is sized by the keys that a mask leaves visible
    ["src/kernels/common"],
    ["src/kernels/*"],  # families of kernels: every other folder there
    ["src/kernels"],  # the list of families
    ["src/backends/gpu"],  # what the back ends of CUDA and HIP share
    ["src/backends/cpu", "src/backends/cuda", "src/backends/hip"],
    ["src/engine"],
    ["src/backends/emulator"],  # above the engine: a library of its own, which registers itself there
    ["src/functor", "src/runtime_functor"],  # headers that the programs of users compile; a library of its own
    ["src/c_api", "src/parallel"],
    TESTING[:-2],  # test material: nothing of the library includes it
    TESTING[-2:],
    ["bench"],
    ["cli"],
    ["python/src"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
ROOTS = ["include", "src", "testing", "cli", "bench", "python"]

# Libraries from outside, by the start of the include path, and the only places that may name them.
THIRD_PARTY = {
    "tbb/": ["src/backends/cpu/executor"],
    "oneapi/": ["src/backends/cpu/executor"],
    "sanitizer/": ["src/backends/cpu/fork_join", "src/emulator/machine/fiber"],
    "immintrin.h": ["src/backends/cpu/isa", "src/backends/cpu/isa_level", "bench/ceilings"],
    "cpuid.h": ["src/backends/cpu/isa_level", "cli"],
    "CLI/": ["cli", "bench"],
    "fmt/": ["cli", "bench"],
    "nlohmann/": ["cli", "bench"],
    "simdjson": ["cli", "bench"],
    "benchmark/": ["bench"],
    "nanobind/": ["python/src"],
    "boost/": ["src/emulator/machine/fiber"],
    "elf.h": ["src/runtime_functor/cubin"],
    "cuda/": ["src/arch/ptx"],
    "cuda": ["src/arch/ptx", "src/backends/cuda"],
    "gtest/": ["*_test.cpp"],
    "gmock/": ["*_test.cpp"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
# A standard header has no suffix; C headers (of the C ABI) and POSIX headers are listed.
STANDARD = re.compile(r"^([a-z_0-9]+|(sys|linux|asm)/[a-z_]+\.h|(stdbool|stddef|stdint|unistd|sched|pthread|signal|fcntl|spawn|dlfcn)\.h)$")


# Device code reaches global memory through src/arch alone: parameters and variables are arch::GlobalPtr, which can't be
# dereferenced. Host code (launch plans, make_*) may hold plain pointers; it has no PAGODA_DEVICE function.
DEVICE_FOLDERS = ["src/operand", "src/mask", "src/softmax", "src/pipeline", "src/schedule", "src/kernels"]
ELEMENT = r"(?:void|float|double|bool|char|T|Out|u?int\d+_t|(?:arch::)?Words<\w+>|Bits|Words)"
PLAIN_POINTER = re.compile(rf"\b(const\s+)?({ELEMENT})(\s+const)?\s*\*+(?!/)")
ESCAPES = [(re.compile(r"\bRawGlobal\b"), "RawGlobal"), (re.compile(r"reinterpret_cast<[^<>;]*(?:<[^<>]*>)?[^<>;]*\*\s*>"), "reinterpret_cast to a pointer")]


def sources(root):
    """Every source below the layered folders, as paths relative to `root`."""
    found = []
    for top in ROOTS:
        for suffix in ("*.hpp", "*.h", "*.cpp", "*.cu", "*.hip", "*.inc"):
            found += [p.relative_to(root) for p in (root / top).rglob(suffix)]
    return sorted(found)


def layer_of(path):
    """The layered folder that holds `path`, or None."""
    if is_family(path.parts[:3]) and len(path.parts) > 3:
        return "/".join(path.parts[:3])
    for parent in path.parents:
        if parent.as_posix() in RANK:
            return parent.as_posix()
    return None


def is_family(parts):
    """src/kernels/NAME: each is a layer of its own."""
    return len(parts) == 3 and parts[:2] == ("src", "kernels") and parts[2] != "common"


def rank_of(layer):
    return RANK["src/kernels/*"] if is_family(tuple(layer.split("/"))) else RANK[layer]


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
            if path.name.endswith("_test.cpp"):
                continue
            if other in TESTING and own not in TESTING + ["bench", "cli"]:
                complaints.append(f"{path}: includes {target}, which is test material")
            elif other != own and rank_of(own) == rank_of(other) == RANK["src/kernels/*"]:
                complaints.append(f"{path}: includes {target}; families do not include each other")
            elif other != own and rank_of(other) >= rank_of(own):
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


NAMESPACE = re.compile(r"^namespace pagoda \{$(.*?)^\}  // namespace pagoda$", re.MULTILINE | re.DOTALL)
NESTED = re.compile(r"^(?:inline )?namespace\b[^{]*\{$.*?^\}  // namespace.*?$", re.MULTILINE | re.DOTALL)
# Declarations at the start of a line: types, concepts, constants, functions (not members: no `::` before the name).
DECLARATION = re.compile(
    r"^(?:template <[^;{]*>\s*)?(?:(?:struct|class|enum class|union|concept|using)\s+(?P<type>\w+)\s*(?=[;:{=])"
    r"|(?!struct|class|enum|union|using|return|static_assert|template|namespace|friend|//|#)"
    r"(?=\S)(?:\[\[\w+\]\] *)?[\w:<>,&* ]*?[ &*](?P<name>\w+)\s*(?=\(|=|\{))", re.MULTILINE)


def check_public_namespace(root):
    """Of the library's own sources, namespace pagoda itself holds only what include/pagoda declares."""
    public = set()
    for header in (root / "include/pagoda").glob("*.hpp"):
        public |= set(re.findall(r"\w+", re.sub(r"//.*", "", header.read_text())))
    complaints = []
    for path in sources(root):
        if path.parts[0] != "src" or path.name.endswith("_test.cpp"):
            continue
        for block in NAMESPACE.findall((root / path).read_text()):
            for match in DECLARATION.finditer(NESTED.sub("", block)):
                declared = match["type"] or match["name"]
                if declared not in public:
                    complaints.append(f"{path}: '{declared}' stands in namespace pagoda, which is the public API's")
    return complaints


MAX_COLUMNS = 100
PROSE = ["*.md", "docs/**/*.md", "src/**/*.md", "bench/*.md"]


def check_line_length(root):
    """Lines end at 100 columns, prose included. Not: tables of Markdown, code blocks of Markdown, lines with a URL, raw
    strings and tables that clang-format leaves alone."""
    complaints = []
    prose = {p.relative_to(root) for pattern in PROSE for p in root.glob(pattern)}
    for path in sorted(set(sources(root)) | prose):
        is_off = False
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if "clang-format off" in line or (path.suffix == ".md" and line.lstrip().startswith("```") and not is_off):
                is_off = True
            elif "clang-format on" in line or (path.suffix == ".md" and line.lstrip().startswith("```")):
                is_off = False
            is_exempt = is_off or "://" in line or (path.suffix == ".md" and line.lstrip().startswith("|"))
            if len(line) > MAX_COLUMNS and not is_exempt:
                complaints.append(f"{path}:{number}: {len(line)} columns")
    return complaints


def cells(row):
    """The cells of a row of a Markdown table. A | divides cells in code, too, unless it is escaped."""
    return row.replace("\\|", "").count("|") - 1


def check_tables(root):
    """Each row of a table of Markdown is a line, with as many cells as the first one."""
    complaints = []
    for path in sorted({p.relative_to(root) for pattern in PROSE for p in root.glob(pattern)}):
        is_code, wanted = False, None
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if line.lstrip().startswith("```"):
                is_code = not is_code
            row = line.strip()
            is_diagram = line.startswith("    ")  # indented code
            if is_code or is_diagram or not row.startswith("|"):
                wanted = None
                continue
            wanted = cells(row) if wanted is None else wanted
            if not row.endswith("|") or cells(row) != wanted:
                complaints.append(f"{path}:{number}: not a row of {wanted} cells")
    return complaints


# Links of Markdown to a place of the tree, and pages that a source names.
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")
NAMED_PAGE = re.compile(r"[\w./-]+\.md\b")


def anchors(text):
    """The anchors that the headings of a page have."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(root):
    """Each relative link of a page leads to a file and, of a page, to a heading; a page that a source names exists."""
    complaints = []
    pages = {p.relative_to(root) for pattern in PROSE for p in root.glob(pattern)}
    for path in sorted(pages):
        text = (root / path).read_text()
        for target, anchor in LINK.findall(text):
            file = (root / path).parent / target if target else root / path
            if not file.exists():
                complaints.append(f"{path}: links to {target}, which does not exist")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                complaints.append(f"{path}: links to #{anchor}, which {file.name} has no heading for")
    for path in sources(root):
        for name in NAMED_PAGE.findall((root / path).read_text()):
            if not any(page.as_posix().endswith(name.lstrip("./")) for page in pages):
                complaints.append(f"{path}: names {name}, which does not exist")
    return complaints


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
        if path.suffix != ".hpp" or not path.as_posix().startswith(tuple(f + "/" for f in DEVICE_FOLDERS)):
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
