"""bench/python/llama.py runs, and its models give the same logits with every attention."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
PROGRAM = Path(__file__).parents[2] / "bench/python/llama.py"
MODELS = ["torch"] + ["transformers"] * (importlib.util.find_spec("transformers") is not None)


@pytest.mark.parametrize("model", MODELS)
def test_the_tiny_model_has_a_row_for_each_attention(model, tmp_path):
    log = tmp_path / "log.json"
    command = [PROGRAM, "--config", "tiny", "--model", model, "--json", log]
    result = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    assert report == json.loads(log.read_text())
    assert report["model"].startswith(model)
    rows = {(row["attention"], row["phase"]): row for row in report["rows"]}
    for attention in ("pagoda", "sdpa"):
        for phase in ("decode", "prefill"):
            row = rows[attention, phase]
            assert row["tokens_per_second"] > 0, row
            assert row["logit_difference"] < 0.03, row
    for row in rows.values():  # nothing is left out in silence
        assert ("tokens_per_second" in row) != ("why" in row)


def test_a_part_ends_after_its_limit(tmp_path):
    command = [PROGRAM, "--config", "tiny", "--model", "torch", "--part-seconds", "0"]
    result = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, timeout=120
    )
    rows = json.loads(result.stdout.splitlines()[-1])["rows"]
    assert all(row["why"].startswith(("TimeoutError", "ModuleNotFound")) for row in rows), rows
