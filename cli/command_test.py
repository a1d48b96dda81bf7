"""The command from outside: exit codes, JSON, messages. usage: command_test.py PAGODA"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PAGODA = None


def pagoda(*arguments, text_in=None, **environment):
    return subprocess.run(
        [PAGODA, *arguments],
        capture_output=True,
        text=True,
        input=text_in,
        env=dict(os.environ, **environment),
        timeout=300,  # with a sanitizer on a busy machine
    )


SMALL = [
    "--seqlen-q",
    "5",
    "--q-heads",
    "4",
    "--kv-heads",
    "2",
    "--head-dim",
    "64",
    "--iterations",
    "2",
]


class Command(unittest.TestCase):
    def assert_fails(self, arguments, flag):
        result = pagoda(*arguments)
        self.assertEqual(result.returncode, 2, arguments)
        self.assertIn(flag, result.stderr, arguments)
        self.assertEqual(result.stdout, "", arguments)

    def test_wrong_calls_exit_with_2_and_name_the_flag(self):
        for arguments, flag in [
            (["nonsense"], "nonsense"),
            (["run", "--no-such-flag"], "--no-such-flag"),
            (["run", "--threads", "-1"], "--threads"),
            (["run", "--threads", "x"], "--threads"),
            (["run", "--iterations", "-1"], "--iterations"),
            (["run", "--check-rows", "-1"], "--check-rows"),
            (["run", "--isa", "mmx"], "--isa"),
            (["run", "--backend", "abacus"], "--backend"),
            (["run", "--kernel", "cpu.abacus"], "--kernel"),
            (["run", "--batch", "0"], "--batch"),
            (["run", "--seqlen-q", "2000000000", "--q-heads", "2000000000"], "--seqlen-q"),
            (["explain", "--mask", "causl"], "--mask"),
            (["explain", "--problem", "/nonexistent.json"], "--problem"),
            (["run", "--problem", "/"], "--problem: '/' is a folder"),
            (["run", "--page-size", "16"], "--page-size: needs --kv paged; it is dense"),
            (["run", "--kv", "ragged", "--layout", "hnd"], "--layout: needs --kv paged"),
            (["explain", "--page-table", "csr"], "--page-table: needs --kv paged"),
            (["check", "--backend", "abacus"], "--backend"),
            (["check", "--isa", "mmx"], "--isa"),
            (["check", "--backend", "emu:sm100", "--kernel", "sm100.abacus"], "--kernel"),
            (["check", "--filter", "no such case"], "--filter"),
            (["check", "--backend", "reference", "--isa", "avx2"], "--isa"),
            (["check", "--every", "0"], "--every"),
            (["check", "--random", "-1"], "--random"),
            (["check", "--seed", "2"], "--seed requires --random"),
            (["check", "--jobs", "-1"], "--jobs"),
            (["check", "--jobs", "2"], "--jobs"),
            (["bench", "--cases", "/nonexistent.json"], "--cases"),
            (["bench", "--cases", "/"], "--cases: '/' is a folder"),
            (["bench", "nonsense"], "GRID"),
            (["bench", "--threads", "0"], "--threads"),
            (["bench", "--filter", "nonsense"], "--filter"),
            (["bench", "--seconds", "0"], "--seconds"),
            (["info", "--threads", "-1"], "--threads"),
            (["emulate", "no/such"], "no/such"),
            (["emulate", "demo/relay", "--mode", "fast"], "--mode"),
            (["emulate", "demo/relay", "--seed", "-1"], "--seed"),
            (["emulate", "demo/relay", "--seeds", "0"], "--seeds"),
            (["emulate", "demo/relay", "--trace", "/nonexistent/t.json"], "--trace"),
            (["emulate", "demo/relay", "--trace", "t.json", "--mode", "all"], "--trace"),
            (["emulate", "all", "--trace", "t.json"], "--trace"),
            (["emulate", "--mutate"], "--mutate"),
            (["emulate", "planted/race", "--mutate"], "--mutate"),
        ]:
            self.assert_fails(arguments, flag)

    def test_the_engine_s_own_message_reaches_the_user(self):
        result = pagoda("run", "--q-heads", "5", "--kv-heads", "2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("num_q_heads", result.stderr)

    def test_every_command_has_help(self):
        for command in ["info", "check", "run", "explain", "bench", "emulate"]:
            result = pagoda(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("--json", result.stdout)

    def test_info_reports_machine_and_ceilings(self):
        info = json.loads(pagoda("info", "--json", "--threads", "1").stdout)
        self.assertIn("scalar", info["isa_levels"])
        self.assertIn("cpu", [backend["name"] for backend in info["backends"]])
        self.assertGreater(info["ceilings"]["memory"][-1]["bytes_per_second_one_thread"], 1e8)
        self.assertNotIn("\033", pagoda("info", "--no-ceilings").stdout)

    def test_isa_levels_follow_the_environment(self):
        info = json.loads(pagoda("info", "--json", "--no-ceilings", PAGODA_ISA="scalar").stdout)
        self.assertEqual(info["isa_in_use"], "scalar")

    def test_an_unknown_isa_in_the_environment_is_an_error(self):
        for command in [["info", "--no-ceilings"], ["run", *SMALL], ["explain"]]:
            result = pagoda(*command, PAGODA_ISA="sse9")
            self.assertEqual(result.returncode, 2, command)
            self.assertIn('PAGODA_ISA is "sse9"; must be scalar, avx2', result.stderr)
        self.assertEqual(pagoda("run", *SMALL, "--isa", "scalar", PAGODA_ISA="sse9").returncode, 0)

    def test_run_agrees_with_the_reference_and_repeats(self):
        runs = [
            json.loads(pagoda("run", *SMALL, "--json", "--threads", "1").stdout) for _ in range(2)
        ]
        self.assertTrue(runs[0]["passed"])
        self.assertGreater(runs[0]["median_seconds"], 0)
        self.assertEqual(runs[0]["checksum"], runs[1]["checksum"])
        other = json.loads(pagoda("run", *SMALL, "--json", "--threads", "1", "--seed", "2").stdout)
        self.assertNotEqual(runs[0]["checksum"], other["checksum"])

    def test_run_reads_a_problem_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "problem.json"
            path.write_text(
                '{"seqlen_q": [3, 1], "kv": "paged", "page_size": 4, "q-heads": 2, "kv-heads": 1}'
            )
            run = json.loads(
                pagoda("run", "--problem", str(path), "--iterations", "1", "--json").stdout
            )
            again = pagoda(
                "run", "--problem", str(path), "--kv", "dense", "--iterations", "1", "--json"
            )
        self.assertEqual(json.loads(again.stdout)["problem"]["kv"], "dense")
        self.assertEqual(run["problem"]["seqlen-q"], [3, 1])
        self.assertTrue(run["passed"])

    def test_explain_lists_every_kernel_with_a_reason(self):
        explained = json.loads(pagoda("explain", *SMALL[:-2], "--json").stdout)
        selected = [kernel for kernel in explained["kernels"] if kernel["is_selected"]]
        self.assertEqual(len(selected), 1)
        self.assertEqual(explained["plan"]["kernel"], selected[0]["name"])
        for kernel in explained["kernels"]:
            self.assertTrue(kernel["is_selected"] or kernel["reason"], kernel)
        # No memory is touched: a cache of 763 GiB can be explained on any machine. (ThreadSanitizer
        # leaves about 1 TiB of address space.)
        self.assertEqual(
            pagoda("explain", "--seqlen-kv", "100000000", "--seqlen-q", "1").returncode, 0
        )

    def test_check_counts_and_ends_with_the_line(self):
        arguments = ["check", "--isa", "scalar", "--filter", "hd64", "--every", "9"]
        result = pagoda(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"^\d+ cases on cpu:scalar")
        self.assertRegex(result.stdout.splitlines()[-1], r"^\d+ passed, 0 failed, \d+ skipped$")
        report = json.loads(pagoda(*arguments, "--json").stdout)
        self.assertEqual(report["cases"], report["passed"] + report["failed"] + report["skipped"])

    def test_check_plans_without_running(self):
        arguments = ["check", "--plan", "--backend", "emu:sm90", "--filter", "*gqa2_hd128_bf16_*"]
        result = pagoda(*arguments, "--verbose")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^served +emu:sm90  \S+: sm90\.d128\.bf16$")
        self.assertRegex(result.stdout.splitlines()[-1], r"^\d+ served, 0 failed, \d+ skipped$")
        report = json.loads(pagoda(*arguments, "--json").stdout)
        self.assertEqual(report["passed"], 0)
        self.assertEqual(report["cases"], report["served"] + report["skipped"])
        none = pagoda(*arguments, "--kernel", "sm90.d64.bf16")
        self.assertEqual(none.returncode, 1)
        self.assertRegex(none.stdout.splitlines()[-1], r"^0 served, 0 failed, \d+ skipped$")

    def test_check_on_the_emulator_says_why_it_skips(self):
        arguments = [
            "check",
            "--backend",
            "emu:sm90",
            "--filter",
            "*gqa2_hd64_fp*_causal_mixed*",
            "--jobs",
            "2",
        ]
        tensor_cores = [*arguments, "--kernel", "sm90.*"]
        result = pagoda(*tensor_cores)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"skipped +reason")
        self.assertRegex(result.stdout, r"queries are fp32")
        report = json.loads(pagoda(*tensor_cores, "--json").stdout)
        self.assertGreater(report["passed"], 5)
        self.assertEqual(
            sum(reason["count"] for reason in report["skip_reasons"]), report["skipped"]
        )
        bounded = json.loads(pagoda(*arguments, "--max-multiply-adds", "0.001", "--json").stdout)
        self.assertEqual(bounded["passed"], 0)
        self.assertIn("million multiply-adds", str(bounded["skip_reasons"]))
        named = json.loads(pagoda(*arguments, "--kernel", "sm90.d96.f16", "--json").stdout)
        self.assertEqual(
            {r["kernel"] for r in named["reports"] if r["verdict"] == "passed"}, {"sm90.d96.f16"}
        )
        sampled = json.loads(pagoda(*arguments, "--every", "5", "--json").stdout)
        self.assertEqual(sampled["cases"], -(-report["cases"] // 5))

    def test_a_back_end_that_can_t_run_here_says_why(self):
        info = json.loads(pagoda("info", "--json", "--no-ceilings").stdout)
        for backend in info["backends"]:
            if backend["is_available"]:
                continue
            for command in ["check", "run", "explain", "bench"]:
                self.assert_fails([command, "--backend", backend["name"]], backend["description"])

    def test_run_and_explain_on_the_emulator(self):
        for kernels in ["sm90", "sm100"]:
            problem = ["--backend", f"emu:{kernels}", "--dtype", "bf16", *SMALL[:-2]]
            problem += ["--kernel", f"{kernels}.*"]  # Hopper leaves small decodes to sm80.*
            run = json.loads(pagoda("run", *problem, "--iterations", "1", "--json").stdout)
            self.assertTrue(run["passed"])
            self.assertTrue(run["kernel"].startswith(f"{kernels}."))
            explained = json.loads(pagoda("explain", *problem, "--json").stdout)
            self.assertEqual(explained["plan"]["kernel"], run["kernel"])

    def test_emulated_back_ends_have_the_multiprocessors_that_are_asked_for(self):
        decode = ["--dtype", "bf16", "--seqlen-q", "1", "--seqlen-kv", "20000"]
        for kernels in ["sm90", "sm100"]:
            for num_sms in [4, 132, 148]:
                result = pagoda(
                    "explain",
                    "--backend",
                    f"emu:{kernels}",
                    "--kernel",
                    f"{kernels}.*",
                    *decode,
                    "--num-sms",
                    str(num_sms),
                    "--json",
                )
                ctas = json.loads(result.stdout)["plan"]["work_items"]  # sm90: two a multiprocessor
                self.assertEqual(ctas, 2 * num_sms if kernels == "sm90" else num_sms)
        self.assert_fails(["explain", "--num-sms", "4"], "back end 'cpu' is not emulated")
        self.assert_fails(
            ["check", "--backend", "emu:sm90", "--num-sms", "-1"], "must be from 0 to 1024"
        )

    def test_decode_with_large_heads_is_split_over_all_multiprocessors_of_a_b200(self):
        result = pagoda(
            "explain",
            *("--backend", "emu:sm100", "--num-sms", "148", "--dtype", "bf16", "--json"),
            *("--head-dim", "256", "--q-heads", "8", "--kv-heads", "1"),
            *("--seqlen-q", "1", "--seqlen-kv", "131072", "--mask", "causal"),
        )
        explained = json.loads(result.stdout)
        chosen = [kernel["name"] for kernel in explained["kernels"] if kernel["reason"] == ""]
        self.assertEqual(chosen, ["sm100.d256.bf16"])
        self.assertEqual(explained["plan"]["work_items"], 148)
        self.assertEqual(explained["plan"]["split_rows"], 8)

    def test_check_fails_where_nothing_could_run(self):
        result = pagoda("check", "--backend", "emu:sm90", "--kernel", "sm90.*",
                        "--filter", "*_fp32_*", "--every", "400")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout.splitlines()[-1], r"^0 passed, 0 failed, \d+ skipped$")

    def test_explain_gives_the_blackwell_kernels_reasons_without_a_gpu(self):
        def reasons(*arguments):
            result = pagoda("explain", "--backend", "emu:sm100", "--json", *arguments)
            return {
                kernel["name"]: kernel["reason"] for kernel in json.loads(result.stdout)["kernels"]
            }

        expected = {
            "sm100.d64.bf16": "head dims 128 x 128 exceed 64 x 64",
            "sm100.d128.bf16": "",  # chosen
            "sm100.d64.f16": "queries are bf16, these are for fp16",
            "sm100.d128.f16": "queries are bf16, these are for fp16",
            "sm100.d64.f8e4m3": "queries are bf16, these are for fp8_e4m3",
            "sm100.d128.f8e4m3": "queries are bf16, these are for fp8_e4m3",
        }
        self.assertLessEqual(
            expected.items(), reasons("--dtype", "bf16", "--head-dim", "128").items()
        )
        # CTA pairs: by rule.
        prefill = ["--dtype", "bf16", "--batch", "4", "--padded", "--num-sms", "148"]
        filled = reasons(*prefill, "--seqlen-q", "512", "--mask", "none")
        self.assertEqual(filled["sm100.pair.d128.bf16"], "")
        self.assertIn("CTA pairs serve it", filled["sm100.d128.bf16"])
        for arguments, why in [
            (["--seqlen-q", "256", "--mask", "none"], "64 tiles of a pair's rows for 74 pairs"),
            (["--seqlen-q", "512", "--mask", "causal"], "its rows see different keys"),
        ]:
            chosen = reasons(*prefill, *arguments)
            self.assertEqual(chosen["sm100.d128.bf16"], "")
            self.assertIn(why, chosen["sm100.pair.d128.bf16"])
        # One of the slow kernels serves it: every other one says why not, and it why none does.
        rejected = reasons("--dtype", "fp32", "--head-dim", "64")
        selected = rejected.pop("simt.d128")
        self.assertIn("slow, but no faster kernel serves this call", selected)
        self.assertIn("with Q, K and V in bf16, sm100.d64.bf16 does", selected)
        slower = [rejected.pop("simt.d256"), rejected.pop("simt.d576")]
        self.assertEqual(slower, ["not selected: simt.d128 is ranked higher"] * 2)
        self.assertTrue(all("queries are fp32" in reason for reason in rejected.values()), rejected)

    def test_bench_takes_cases_from_a_file(self):
        cases = [
            {
                "name": "one",
                "family": "mine",
                "problem": {"seqlen-q": 3, "q-heads": 2, "kv-heads": 1},
            }
        ]
        for text in [json.dumps(cases), json.dumps({"cases": cases})]:
            result = pagoda("bench", "--cases", "-", "--list", "--json", text_in=text)
            listed = json.loads(result.stdout)
            self.assertEqual([(c["name"], c["grid"]) for c in listed], [("one", "mine")])
        arguments = ["--cases", "-", "--repeats", "2", "--threads", "1", "--json"]
        report = json.loads(pagoda("bench", *arguments, text_in=json.dumps(cases)).stdout)
        self.assertEqual(report["cases"][0]["rows"][0]["repeats"], 2)
        for text, complaint in [
            ("{}", "no list"),
            ('[{"name": 1}]', "entry 0"),
            ("[", "not JSON"),
            ("[]", "has no cases"),
            ('{"cases": []}', "has no cases"),
            (
                '[{"name": "a", "problem": {"page_size": 4}}]',
                "problem.page-size: needs problem.kv paged",
            ),
        ]:
            result = pagoda("bench", "--cases", "-", text_in=text)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn(complaint, result.stderr)

    def test_the_worker_measures_and_tells_errors(self):
        requests = [
            {
                "op": "prepare",
                "problem": {"seqlen-q": 3, "q-heads": 2, "kv-heads": 1},
                "threads": 1,
            },
            {"op": "run", "iterations": 3},
            {"op": "back_to_back", "iterations": 3},
            {
                "op": "prepare",
                "problem": {"seqlen-q": 3, "q-heads": 3, "kv-heads": 2},
                "threads": 1,
            },
        ]
        text = "".join(json.dumps(request) + "\n" for request in requests)
        replies = [
            json.loads(line)
            for line in pagoda("bench", "--worker", text_in=text).stdout.splitlines()
        ]
        self.assertTrue(replies[0]["passed"])
        self.assertEqual([len(reply["seconds"]) for reply in replies[1:3]], [3, 1])
        self.assertIn("num_q_heads", replies[3]["error"])

    def test_bench_writes_its_report(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "report.json"
            arguments = ["--quick", "--filter", "decode", "--threads", "1", "--repeats", "2"]
            result = pagoda("bench", "decode", *arguments, "--out", str(out))
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(out.read_text())
        self.assertEqual(report["cases"][0]["rows"][0]["repeats"], 2)
        for case in report["cases"]:
            self.assertIn(case["rows"][0]["bound_by"], ["compute", "exp", "L2", "L3", "DRAM"])
            self.assertTrue(case["passed"])

    def test_emulate_lists_and_runs_its_kernels(self):
        listed = json.loads(pagoda("emulate", "--json").stdout)["kernels"]
        clean = [kernel["name"] for kernel in listed if not kernel["planted"]]
        self.assertIn("demo/relay", clean)
        report = json.loads(pagoda("emulate", "demo/", "--seeds", "2", "--json").stdout)
        self.assertEqual(report["failed"], 0)
        self.assertEqual(report["runs"], 2 * 4 * len(report["kernels"]))
        text = pagoda("emulate", "demo/relay", "--mode", "lazy", "--seed", "9", "--seeds", "3")
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertEqual(text.stdout.splitlines()[-1], "3 runs, 0 failed")

    def test_emulate_reports_each_planted_bug_and_how_to_see_it_again(self):
        listed = json.loads(pagoda("emulate", "--json").stdout)["kernels"]
        planted = [kernel for kernel in listed if kernel["planted"]]
        self.assertEqual(len(planted), 5)
        for kernel in planted:
            result = pagoda("emulate", kernel["name"], "--seeds", "1")
            self.assertEqual(result.returncode, 1, kernel)
            self.assertIn("\n" + kernel["planted"] + ": ", result.stdout)
            again = next(line for line in result.stdout.splitlines() if "  again: pagoda " in line)
            replayed = [pagoda(*again.split("pagoda ")[1].split()) for _ in range(2)]
            self.assertEqual(replayed[0].returncode, 1)
            # All but the table of speeds.
            reports = [run.stdout.split("\n\n", 1)[1] for run in replayed]
            self.assertEqual(reports[0], reports[1])
            self.assertIn(kernel["planted"], reports[0])

    def test_the_emulator_page_shows_what_the_command_prints(self):
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "emulator.md"
        blocks = [block.splitlines() for block in page.read_text().split("```")[1::2]]
        shown = [block[1:] for block in blocks if block[1].startswith("$ pagoda emulate planted/")]
        self.assertEqual(len(shown), 5)
        for command, *lines in shown:
            printed = pagoda(*command.split()[2:]).stdout
            self.assertIn("\n".join(lines), printed, command)

    def test_emulate_writes_a_trace_that_is_chrome_json(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("a.json", "b.json")]
            for path in paths:
                result = pagoda("emulate", "demo/copy_ring", "--mode", "lazy", "--trace", str(path))
                self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(paths[0].read_text(), paths[1].read_text())
            events = json.loads(paths[0].read_text())["traceEvents"]
        self.assertEqual({event["ph"] for event in events}, {"M", "X", "s", "f"})
        names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual({"warp 4: load", "warp 0: work", "bulk_load"}, names)
        starts = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
        ends = {event["id"]: event["ts"] for event in events if event["ph"] == "f"}
        self.assertEqual(starts.keys(), ends.keys())
        self.assertTrue(all(starts[flow] < ends[flow] for flow in starts))
        # Spans of a track nest.
        tracks = {}
        for event in events:
            if event["ph"] == "X":
                stack = tracks.setdefault((event["pid"], event["tid"]), [])
                while stack and stack[-1] <= event["ts"]:
                    stack.pop()
                end = event["ts"] + event["dur"]
                self.assertTrue(not stack or end <= stack[-1], event)
                stack.append(end)

    def test_emulate_scores_mutants(self):
        score = json.loads(pagoda("emulate", "demo/relay", "--mutate", "--json").stdout)
        self.assertEqual(score["killed"], score["mutants"])
        sites = score["kernels"][0]["sites"]
        self.assertIn("mbarrier_wait", {site["primitive"] for site in sites})
        self.assertEqual({site["file"] for site in sites}, {"relay.hpp"})
        # The page has a row with the current score of every kernel. Those of attention kernels take
        # minutes (`pagoda emulate all --mutate`), so this checks only that their rows exist.
        page = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "emulator.md").read_text()
        names = [
            kernel["name"]
            for kernel in json.loads(pagoda("emulate", "--json").stdout)["kernels"]
            if not kernel["name"].startswith("planted/")
        ]
        for name in names:
            self.assertIn(f"| {name} | ", page)
        small = [name for name in names if name.startswith(("demo/", "operand/", "states/"))]
        self.assertGreater(len(small), 5)
        for kernel in json.loads(pagoda("emulate", *small, "--mutate", "--json").stdout)["kernels"]:
            self.assertIn(f"| {kernel['name']} | {kernel['mutants']} | {kernel['killed']} |", page)
        text = pagoda("emulate", "demo/relay", "--mutate").stdout
        self.assertRegex(text.splitlines()[-1], r"^mutation score: \d+ of \d+, 100.0 %$")

    def test_worker_answers_every_line(self):
        problem = {"seqlen-q": 4, "q-heads": 2, "kv-heads": 1, "head-dim": 64}
        requests = [{"op": "run"}, {"op": "prepare", "problem": problem, "threads": 1},
                    {"op": "run", "iterations": 3}, {"op": "release"}, {"op": "dance"}]
        lines = "".join(json.dumps(request) + "\n" for request in requests) + "no json\n"
        result = pagoda("bench", "--worker", text_in=lines)
        self.assertEqual(result.returncode, 0)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(answers), len(requests) + 1)
        self.assertTrue(answers[1]["passed"])
        self.assertEqual(len(answers[2]["seconds"]), 3)
        for rejected in (answers[0], answers[4], answers[5]):
            self.assertIn("error", rejected)


if __name__ == "__main__":
    PAGODA = sys.argv.pop(1)
    unittest.main()
