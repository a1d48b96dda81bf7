"""The Python section of README.md runs as it is printed, and the Python examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_example_runs_as_printed(tmp_path):
    section = README.read_text().partition("\n## Python\n")[2].partition("\n## ")[0]
    program = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    assert 8 <= sum(bool(line.strip()) for line in program.splitlines()) <= 10
    (tmp_path / "example.py").write_text(program)
    result = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.stdout == "(2, 1, 32, 128) (2, 1, 32)\n", result.stderr


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.name)
def test_examples_check_their_own_results(example):
    result = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "largest difference" in result.stdout, result.stderr
