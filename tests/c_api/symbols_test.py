"""libpagoda.so exports the functions of exports.txt and nothing else, and pagoda.h declares them.

A line that disappears from exports.txt breaks programs: it needs another SOVERSION.

usage: symbols_test.py NM LIBRARY HEADER EXPORTS
"""

import pathlib
import re
import subprocess
import sys


def main():
    nm, library, header, exports = sys.argv[1:]
    listed = pathlib.Path(exports).read_text().split()
    if listed != sorted(set(listed)) or len(listed) < 15:
        sys.exit(f"{exports} is not a sorted list of functions")
    lines = subprocess.run([nm, "--dynamic", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    exported = sorted(line.split()[-1] for line in lines)
    declared = sorted(re.findall(r"^PAGODA_API [^;]*?\b(pagoda_\w+)\(", pathlib.Path(header).read_text(),
                                 re.MULTILINE))
    failures = [f"{where}: {symbol}" for where, symbols in (
        ("exported, but not listed", set(exported) - set(listed)),
        ("listed, but not exported", set(listed) - set(exported)),
        ("declared, but not listed", set(declared) - set(listed)),
        ("listed, but not declared", set(listed) - set(declared)),
    ) for symbol in sorted(symbols)]
    print("\n".join(failures) or f"{len(listed)} functions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
