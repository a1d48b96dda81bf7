"""Runs a compiler and keeps what `ptxas -v` reports beside the object, as OBJECT.ptxas, instead of on the screen.
Everything else passes through. A launcher: it stands before ccache, which replays reports with its objects.

    keep_ptxas_report.py COMPILER ARGUMENT...
"""

import pathlib
import re
import subprocess
import sys

# "ptxas info : ...", and the line of numbers that follows "Function properties".
REPORT = re.compile(r"^ptxas info\s*:|^\s+\d+ bytes stack frame")


def main(command):
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    lines = run.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in lines if not REPORT.match(line))
    if run.returncode == 0 and "-o" in command:
        report = pathlib.Path(command[command.index("-o") + 1] + ".ptxas")
        report.write_text("".join(line for line in lines if REPORT.match(line)))
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
