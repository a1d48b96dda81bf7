"""The `pagoda` command: runs the program that the wheel holds."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "pagoda"
    if not program.exists():
        sys.exit(
            "pagoda: this package was built without the command, because CLI11, fmt,\n"
            "nlohmann-json or simdjson were missing. On Debian or Ubuntu: apt-get install\n"
            "libcli11-dev libfmt-dev nlohmann-json3-dev libsimdjson-dev, then install it again."
        )
    os.execv(program, [str(program), *sys.argv[1:]])
