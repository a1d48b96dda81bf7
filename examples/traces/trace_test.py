#!/usr/bin/env python3
"""The committed trace is what its generator writes.

    trace_test.py FOLDER
"""

import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
written = subprocess.run(
    [sys.executable, folder / "make_chat_trace.py"], capture_output=True, text=True, check=True
).stdout
sys.exit(written != (folder / "chat.jsonl").read_text())
