#!/usr/bin/env python3
"""`pagoda replay` as a program: exit codes, messages, JSON, the report, Ctrl-C.

    command_test.py PAGODA_BINARY
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = None
# Heads so small that any kernel, sanitizers included, is fast enough.
TINY = "--q-heads 2 --kv-heads 1 --head-dim 8 --layers 2 --no-ceilings --cache-gib 0.05".split()
GOOD = '{"timestamp": %d, "input_length": 600, "output_length": 20, "hash_ids": [1, %d]}'


def replay(*arguments):
    return subprocess.run(
        [BINARY, "replay", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def trace(self, *lines):
        path = self.folder / "trace.jsonl"
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def good_trace(self, count=6):
        return self.trace(*(GOOD % (40 * i, i) for i in range(count)))

    def run_json(self, *arguments):
        done = replay(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)  # exactly one object

    def test_json_has_the_documented_keys_and_no_mismatch(self):
        result = self.run_json(self.good_trace(), *TINY)
        for key in (
            "mismatches checked_rows requests completed tokens ttft_seconds tpot_seconds "
            "cache_hit_rate preemptions evictions occupancy flops gflops_per_s gb_per_s "
            "roofline_share attention_seconds checksum clock model"
        ).split():
            self.assertIn(key, result)
        self.assertEqual(result["mismatches"], 0)
        self.assertEqual(result["completed"], 6)
        self.assertEqual(result["tokens"]["output"], 120)
        self.assertGreater(result["cache_hit_rate"], 0)
        self.assertGreater(result["checked_rows_by_phase"]["reused"], 0)
        for quantile in ("p50", "p90", "p99"):
            self.assertGreater(result["ttft_seconds"][quantile], 0)

    def test_the_same_seed_gives_the_same_run(self):
        trace = self.good_trace()
        runs = [self.run_json(trace, *TINY, "--seed", seed) for seed in (1, 1, 2)]
        for key in ("checksum", "steps", "ttft_seconds", "clock"):
            self.assertEqual(runs[0][key], runs[1][key], key)
        self.assertNotEqual(runs[0]["checksum"], runs[2]["checksum"])

    def test_the_table_ends_with_the_mismatches_and_names_the_layers_left_out(self):
        done = replay(self.good_trace(), *TINY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.rstrip().splitlines()[-1], "0 mismatches")
        self.assertIn("only 2 of the model's 16", done.stdout)
        self.assertIn("latencies by", done.stdout)

    def test_a_malformed_line_is_reported_with_its_number_and_skipped(self):
        trace = self.trace(GOOD % (0, 1), "{", GOOD % (5, 2), GOOD.replace("600", "-3") % (9, 3))
        done = replay(trace, *TINY, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trace.jsonl:2: not JSON", done.stderr)
        self.assertIn("trace.jsonl:4: input_length is -3", done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["completed"], result["malformed_lines"]), (2, 2))

    def test_strict_ends_the_run_at_a_malformed_line(self):
        done = replay(self.trace(GOOD % (0, 1), "{"), *TINY, "--strict")
        self.assertEqual(done.returncode, 2)
        self.assertIn("trace.jsonl:2: not JSON", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_request_larger_than_the_cache_is_rejected_with_a_reason(self):
        trace = self.trace(GOOD % (0, 1), GOOD.replace("20,", "2000,") % (1, 2))
        done = replay(trace, *TINY, "--cache-tokens", 1024, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("request 1 is 2599 tokens long; the whole cache holds 1024", done.stderr)
        self.assertEqual(json.loads(done.stdout)["completed"], 1)

    def test_wrong_flags_are_named(self):
        trace = self.good_trace()
        for flags, complaint in (
            (["--model", "gpt-2"], "llama-3.2-1b"),
            (["--tp", 3], "tp is 3"),
            (["--layers", 99], "--layers is 99"),
            (["--budget", 0], "--budget is 0"),
            (["--page-size", 0], "--page-size is 0"),
            (["--dtype", "int8"], "--dtype is 'int8'"),
            (["--kv-dtype", "fp4"], "--kv-dtype is 'fp4'"),
            (["--clock", "lunar"], "--clock is 'lunar'"),
            (["--cache-gib", 1e-9], "--cache-gib is 1e-09"),
            (["--speedup", 0], "--speedup is 0"),
            (["--backend", "tpu"], "tpu"),
            (["--head-dim", 12], "head-dim is 12"),
            (["--window", -2], "window is -2"),
            (["--softcap", -1], "softcap is -1"),
            (["--softcap", "nan"], "softcap is nan"),
        ):
            done = replay(trace, *flags)
            self.assertEqual(done.returncode, 2, (flags, done.stderr))
            self.assertIn(complaint, done.stderr)
        self.assertEqual(replay(self.folder / "absent.jsonl").returncode, 2)
        self.assertEqual(replay(self.folder).returncode, 2)
        self.assertEqual(replay(self.trace("")).returncode, 2)

    def test_every_model_dtype_and_page_size_serves(self):
        trace = self.good_trace(3)
        small = ["--requests", 3, "--layers", 2, "--no-ceilings", "--cache-gib", 0.05]
        for flags in (
            ["--model", "gpt-oss-20b", "--tp", 8, "--head-dim", 16],
            ["--model", "gemma-2-9b", "--tp", 8, "--head-dim", 16, "--dtype", "fp16"],
            ["--model", "qwen3-32b", "--tp", 8, "--head-dim", 16, "--kv-dtype", "fp8"],
            ["--tp", 8, "--dtype", "fp32", "--page-size", 17],
            ["--tp", 8, "--page-size", 1, "--budget", 100],
        ):
            result = self.run_json(trace, *small, *flags)
            self.assertEqual((result["mismatches"], result["completed"]), (0, 3), flags)

    def test_the_emulator_serves_a_tiny_trace(self):
        line = '{"timestamp": %d, "input_length": %d, "output_length": 4, "hash_ids": [%s]}'
        trace = self.trace(line % (0, 530, "1, 2"), line % (40, 520, "1, 3"), line % (50, 60, "4"))
        small = "--layers 2 --cache-gib 0.05 --budget 128".split()
        heads = "--q-heads 2 --kv-heads 1 --head-dim 64".split()
        for flags in (
            ["--backend", "emu:sm90", *heads],
            ["--backend", "emu:sm90", *heads, "--page-size", 16, "--dtype", "fp16"],
            # Windows and sinks; a gathered cache of another type.
            ["--backend", "emu:sm100", "--model", "gpt-oss-20b", "--tp", 8, "--page-size", 32],
            ["--backend", "emu:sm100", *heads, "--page-size", 24, "--kv-dtype", "fp8"],
        ):
            result = self.run_json(trace, *small, *flags)
            self.assertEqual((result["mismatches"], result["completed"]), (0, 3), flags)
            self.assertGreater(result["checked_rows_by_phase"]["reused"], 0)

    def test_ctrl_c_ends_with_a_partial_summary(self):
        trace = self.good_trace(200)
        process = subprocess.Popen(
            [BINARY, "replay", trace, *TINY, "--clock", "wall", "--speedup", "0.1"],
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()  # the header is out: the session is about to start
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", rest)
        self.assertEqual(rest.rstrip().splitlines()[-1], "0 mismatches")

    def test_the_report_holds_json_and_three_pictures(self):
        report = self.folder / "report"
        done = replay(self.good_trace(), *TINY, "--report", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        saved = json.loads((report / "replay.json").read_text())
        self.assertEqual(len(saved["requests_served"]), 6)
        self.assertEqual(len(saved["timeline"]), 200)
        for name in ("latency", "timeline", "roofline"):
            png = (report / f"{name}.png").read_bytes()
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n", name)
            width, height = struct.unpack(">II", png[16:24])
            self.assertGreaterEqual(min(width, height), 500)
            self.assertGreater(len(png), 5000, name)

    def test_a_report_without_gnuplot_is_rejected_before_the_run(self):
        environment = {**os.environ, "PATH": str(self.folder)}
        done = subprocess.run(
            [BINARY, "replay", self.good_trace(), *TINY, "--report", self.folder / "report"],
            capture_output=True,
            text=True,
            env=environment,
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("gnuplot", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
