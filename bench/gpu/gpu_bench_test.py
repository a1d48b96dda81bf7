#!/usr/bin/env python3
"""Tests of `./dev gpu`'s Python without a GPU: counts, ratios, targets, the phases with fake
programs, the page. usage: gpu_bench_test.py [PAGODA]: with the pagoda command, the sampled cases
must exist.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
sys.path.append(str(HERE.parent / "peers"))

import gpu_page
import merge_logs
import phases
import python_phase
import ratio_table
import ratios
import sharded_check
import watched
import work

PAGODA = None
GRID = json.loads((HERE / "grid.json").read_text())
NAMES = [case["name"] for case in GRID["cases"]]


def problem(**more):
    return {
        "batch": 2,
        "seqlen-q": 4,
        "seqlen-kv": 4,
        "q-heads": 6,
        "kv-heads": 3,
        "head-dim": 8,
        "dtype": "bf16",
        **more,
    }


def row(case, ours=None, **peers):
    contenders = {
        "pagoda": (
            {"median_seconds": ours, "spread": 0.01, "passed": True}
            if ours
            else {"error": "it died"}
        )
    }
    contenders |= {
        name: {"median_seconds": seconds, "spread": 0.02} for name, seconds in peers.items()
    }
    grid_case = next((c for c in GRID["cases"] if c["name"] == case), None)
    return {
        "case": case,
        "family": case.split(".")[0],
        "problem": grid_case["problem"] if grid_case else problem(),
        "contenders": contenders,
        **({"beside": grid_case["beside"]} if grid_case and "beside" in grid_case else {}),
    }


class Work(unittest.TestCase):
    def test_causal_pairs_are_those_that_a_loop_counts(self):
        for queries, keys in ((1, 1), (1, 7), (4, 4), (3, 9), (5, 5)):
            counted = sum(
                key <= keys - queries + query for query in range(queries) for key in range(keys)
            )
            asked = problem(mask="causal") | {"seqlen-q": queries, "seqlen-kv": keys}
            self.assertEqual(work.visible_pairs(asked), counted)

    def test_flops_and_bytes_of_a_small_problem(self):
        self.assertEqual(work.flops(problem()), 2 * 2 * 6 * 16 * (8 + 8))
        self.assertEqual(work.bytes_moved(problem()), 2 * (2 * 4 * 6 * 16 + 2 * 4 * 3 * 16))
        narrow = problem() | {"v-head-dim": 4, "kv-dtype": "fp8_e4m3"}
        self.assertEqual(work.bytes_moved(narrow), 2 * 2 * 4 * 6 * 12 + 2 * 4 * 3 * 12)

    def test_long_decode_is_bound_by_memory_and_long_prefill_by_the_matrix_rate(self):
        ceilings = {"copy_bytes": 4e12, "matmul_flops": 8e14}
        by_name = {case["name"]: case["problem"] for case in GRID["cases"]}
        self.assertEqual(work.bound(by_name["decode.b64.k4096"], ceilings), "copy bandwidth")
        self.assertEqual(work.bound(by_name["prefill.d128.s8192.full"], ceilings), "matrix rate")
        self.assertIsNone(work.bound(problem(), {}))


class Ratios(unittest.TestCase):
    def test_the_median_of_the_turns_medians_counts(self):
        found = ratios.summary([[1.0, 2.0, 9.0], [3.0, 3.0], [100.0, 4.0, 4.0]])
        self.assertEqual(found["median_seconds"], 3.0)
        self.assertAlmostEqual(found["spread"], (4 - 2) / 3)
        self.assertEqual((found["turns"], found["runs"], found["min_seconds"]), (3, 8, 1.0))

    def test_above_one_says_that_we_are_faster(self):
        rows = [
            row("a", 1.0, cudnn=2.0),
            row("b", 2.0, cudnn=1.0),
            row("c", None, cudnn=1.0),
            row("d", 1.0),
        ]
        self.assertEqual([ratios.ratio(r, "cudnn") for r in rows], [2.0, 0.5, None, None])
        self.assertEqual(ratios.wins(rows, "cudnn"), (1, 2))

    def judge(self, rows, **target):
        target = {
            "name": "t",
            "cases": ["decode.b1.k*"],
            "metric": "ratio",
            "peer": "cudnn",
            **target,
        }
        names = ["decode.b1.k1024", "decode.b1.k2048"]
        return ratios.judge(target, rows, {"copy_bytes": 4e12, "matmul_flops": 8e14}, names)

    def test_the_worst_case_decides_a_target(self):
        rows = [row("decode.b1.k1024", 1.0, cudnn=0.9), row("decode.b1.k2048", 1.0, cudnn=0.8)]
        met, missed = self.judge(rows, at_least=0.8), self.judge(rows, at_least=0.85)
        self.assertEqual((met["verdict"], missed["verdict"]), ("met", "missed"))
        self.assertEqual((missed["worst"], missed["worst_case"]), (0.8, "decode.b1.k2048"))

    def test_a_target_with_a_missing_case_is_not_met(self):
        one = row("decode.b1.k1024", 1.0, cudnn=2.0)
        self.assertEqual(self.judge([one], at_least=0.8)["verdict"], "incomplete")
        self.assertEqual(
            self.judge([one, row("decode.b1.k2048")], at_least=0.8)["verdict"], "incomplete"
        )
        self.assertEqual(self.judge([], at_least=0.8)["verdict"], "not measured")

    def test_a_wrong_result_misses_a_target(self):
        rows = [row("decode.b1.k1024", 1.0, cudnn=2.0), row("decode.b1.k2048", 1.0, cudnn=2.0)]
        rows[1]["contenders"]["pagoda"]["passed"] = False
        self.assertEqual(self.judge(rows, at_least=0.8)["verdict"], "missed")

    def test_times_are_compared_with_the_case_beside(self):
        rows = [row("decode.b64.k4096", 2.0), row("fp8.b64.k4096", 1.1)]
        target = {"name": "t", "cases": ["fp8.*"], "metric": "time_beside", "at_most": 0.6}
        judged = ratios.judge(target, rows, {}, ["fp8.b64.k4096"])
        self.assertEqual((judged["worst"], judged["verdict"]), (0.55, "met"))

    def test_shares_of_the_copy_bandwidth(self):
        seconds = work.bytes_moved(row("decode.b64.k4096", 1.0)["problem"]) / 3e12
        target = {
            "name": "t",
            "cases": ["decode.b64.k4096"],
            "metric": "copy_share",
            "at_least": 0.7,
        }
        judged = ratios.judge(
            target, [row("decode.b64.k4096", seconds)], {"copy_bytes": 4e12}, ["decode.b64.k4096"]
        )
        self.assertAlmostEqual(judged["worst"], 0.75)


class Grid(unittest.TestCase):
    def test_names_are_unique_and_every_case_can_be_counted(self):
        self.assertEqual(len(NAMES), len(set(NAMES)))
        for case in GRID["cases"]:
            self.assertGreater(work.flops(case["problem"]), 0)
            self.assertIn(case.get("beside", NAMES[0]), NAMES)
            self.assertLessEqual(set(case["peers"]), {"cudnn", "fa2"})

    def test_every_target_has_cases(self):
        for target in GRID["targets"]:
            self.assertGreater(ratios.judge(target, [], {}, NAMES)["cases"], 0, target["name"])

    def test_every_sampled_filter_selects_one_case(self):
        if PAGODA is None:
            self.skipTest("no pagoda command given")
        for case in json.loads((HERE / "sanitizer_sample.json").read_text())["cases"]:
            command = [PAGODA, "check", "--list", "--json", "--filter", case["filter"]]
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            self.assertEqual(len(json.loads(found)["cases"]), 1, case["filter"])


class Watched(unittest.TestCase):
    def test_a_command_ends_at_its_limit_with_what_it_had_printed(self):
        finished = watched.run(["sh", "-c", "echo begun; sleep 60"], 0.5)
        self.assertIsNone(finished.code)
        self.assertEqual(finished.lines, ["begun"])


class ShardedChecks(unittest.TestCase):
    def setUp(self):
        self.silence, sharded_check.SILENCE_SECONDS = sharded_check.SILENCE_SECONDS, 2
        self.folder = tempfile.TemporaryDirectory()
        self.pagoda = f"{self.folder.name}/pagoda"
        pathlib.Path(self.pagoda).symlink_to(HERE / "fake_gpu_programs.py")
        os.environ["FAKE_FAULTS"] = "1"

    def tearDown(self):
        sharded_check.SILENCE_SECONDS = self.silence
        self.folder.cleanup()
        del os.environ["FAKE_FAULTS"]

    def test_a_case_that_hangs_or_faults_costs_itself_only(self):
        names = sharded_check.list_cases([self.pagoda, "check"], "")
        command = [self.pagoda, "check", "--backend", "cuda", "--verbose"]
        checker = sharded_check.ShardedCheck(command, names, lambda: 60, lambda text: None)
        verdicts = checker.run(2)
        self.assertEqual(list(verdicts), names)
        bad = {
            name: message for name, (verdict, message) in verdicts.items() if verdict == "failed"
        }
        self.assertEqual(set(bad), {"csr_a_b_hangs", "ragged_a_b_ends", "dense_a_b_sticks"})
        self.assertEqual(bad["csr_a_b_hangs"], "it hangs")
        self.assertIn("illegal memory access", bad["dense_a_b_sticks"])
        found = sharded_check.summary(verdicts)
        self.assertEqual((found["passed"], found["failed"], found["skipped"]), (8, 3, 1))
        self.assertEqual(found["skipped_because"], {"no memory": 1})

    def test_a_failure_keeps_the_lines_that_belong_to_it(self):
        found = sharded_check.verdicts_of(
            [
                "failed   emu:sm90  a_b: the emulator found:",
                "race: two writes",
                "  by x",
                "passed   emu:sm90  a_c",
                "  of nobody",
                "failed   cuda sm80.*  a_d: no",
                "target  passed",
                "cuda         1",
            ]
        )
        self.assertEqual(
            found,
            {
                "a_b": ("failed", "the emulator found: race: two writes by x"),
                "a_c": ("passed", ""),
                "a_d": ("failed", "no"),
            },
        )

    def test_without_time_nothing_passes(self):
        checker = sharded_check.ShardedCheck(
            [self.pagoda, "check"], ["dense_a_b_1"], lambda: 0, lambda text: None
        )
        self.assertEqual(checker.run(1)["dense_a_b_1"], ("failed", "no time left"))

    def test_shards_part_the_table(self):
        shards = sharded_check.shards_of(["a_b_c_1", "a_b_cd_1", "a_b_c_2", "a_b_c"])
        self.assertEqual(
            shards,
            {"a_b_c_*": ["a_b_c_1", "a_b_c_2"], "a_b_cd_*": ["a_b_cd_1"], "*a_b_c": ["a_b_c"]},
        )


class Sanitizers(unittest.TestCase):
    def read(self, *lines, code=0, tool="memcheck"):
        return phases.read_sanitizer(
            tool, "*a", watched.Finished(code, ["passed   cuda  a", *lines])
        )

    def test_only_a_summary_of_zero_is_clean(self):
        self.assertEqual(self.read("========= ERROR SUMMARY: 0 errors")["status"], "clean")
        self.assertEqual(
            self.read("========= ERROR SUMMARY: 3 errors", code=99)["status"], "reports"
        )
        self.assertEqual(self.read(code=0)["status"], "failed")
        self.assertEqual(self.read("========= ERROR SUMMARY: 0 errors", code=1)["status"], "failed")
        self.assertEqual(self.read(code=None)["status"], "timed out")
        self.assertEqual(self.read("========= Device not supported", code=1)["status"], "skipped")

    def test_hazards_are_reported_and_errors_fail(self):
        hazard = self.read(
            "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)",
            code=99,
            tool="racecheck",
        )
        error = self.read("========= ERROR SUMMARY: 1 error", code=99)
        self.assertIn("to_explain", phases.judge_sanitizers([hazard]))
        self.assertEqual(phases.judge_sanitizers([hazard])["status"], "hazards")
        self.assertEqual(phases.judge_sanitizers([hazard, error])["status"], "failed")


class WholeRun(unittest.TestCase):
    """Runs every phase with fake programs once; the tests check its log."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        for name in (
            "pagoda",
            "primitive_tests",
            "graph_test",
            "functor_gpu_test",
            "example_06_cuda_graph",
            "peer_calls_test",
            "compute-sanitizer",
            "python_with_torch",
        ):
            (root / name).symlink_to(HERE / "fake_gpu_programs.py")
        command = [
            sys.executable,
            str(HERE / "run_phases.py"),
            "--bin",
            str(root),
            "--json",
            str(root / "log.json"),
            "--python",
            str(root / "python_with_torch"),
            "--bench-filter",
            "decode.b,fp8,d192x128.s2048",
        ]
        environment = dict(os.environ, PATH=f"{root}:{os.environ['PATH']}")
        cls.result = subprocess.run(command, capture_output=True, text=True, env=environment)
        cls.log = json.loads((root / "log.json").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_failing_phase_does_not_keep_the_others_from_running(self):
        statuses = {name: result["status"] for name, result in self.log["phases"].items()}
        self.assertEqual(
            statuses,
            {
                "primitives": "failed",
                "check": "passed",
                "random": "passed",
                "graph": "skipped",
                "example": "skipped",
                "functors": "failed",
                "peers": "failed",
                "sanitize": "hazards",
                "bench": "failed",
                "replay": "passed",
                "python": "skipped",
                "model": "skipped",
            },
            self.result.stdout + self.result.stderr,
        )
        self.assertEqual(self.result.returncode, 1)

    def test_counts_arrive_in_the_log(self):
        found = self.log["phases"]
        self.assertEqual((found["primitives"]["passed"], found["primitives"]["failed"]), (3, 1))
        self.assertEqual((found["check"]["passed"], found["check"]["skipped"]), (4, 1))
        self.assertEqual((found["peers"]["passed"], found["peers"]["failed"]), (1, 1))
        self.assertEqual(
            found["sanitize"]["counts"]["memcheck"]["clean"], len(found["sanitize"]["runs"]) // 4
        )
        self.assertEqual((found["replay"]["checked_rows"], found["replay"]["mismatches"]), (5, 0))

    def test_ratios_are_those_of_the_faked_times(self):
        rows = {r["case"]: r for r in self.log["phases"]["bench"]["report"]["rows"]}
        self.assertAlmostEqual(ratios.ratio(rows["decode.b64.k4096"], "cudnn"), 2.0, places=3)
        self.assertAlmostEqual(ratios.ratio(rows["decode.b64.k4096"], "fa2"), 0.5, places=3)
        self.assertIn("back_to_back_seconds", rows["decode.b1.k1024"]["contenders"]["pagoda"])

    def test_a_worker_that_dies_costs_its_case_only(self):
        rows = {r["case"]: r for r in self.log["phases"]["bench"]["report"]["rows"]}
        self.assertIn(
            "illegal memory access", rows["decode.b128.k8192"]["contenders"]["pagoda"]["error"]
        )
        unmeasured = [
            name for name, r in rows.items() if "median_seconds" not in r["contenders"]["pagoda"]
        ]
        self.assertEqual(unmeasured, ["decode.b128.k8192", "fp8.b128.k8192"])

    def test_python_tests_run_once_each_in_processes_of_their_own(self):
        tests = ["test_a.py::test_one", "test_a.py::test_sampled_combinations[x]",
                 "test_a.py::test_sampled_combinations[y]", "test_b.py::test_torch_compile[z]",
                 "test_b.py::test_two"]  # fmt: skip
        self.assertEqual(
            python_phase.shards(tests),
            [[tests[1]], [tests[2]], [tests[3]],
             ["test_a.py", f"--deselect={tests[1]}", f"--deselect={tests[2]}"],
             ["test_b.py", f"--deselect={tests[3]}"]],
        )  # fmt: skip
        self.assertEqual(
            python_phase.counts(["3 passed, 1 skipped in 1s", "1 failed, 2 error", "nothing"]),
            {"passed": 3, "failed": 3, "skipped": 1},
        )

    def test_the_log_names_no_folder_of_this_machine(self):
        self.assertEqual(
            self.log["command"],
            "./dev gpu --json log.json --python python_with_torch "
            "--bench-filter decode.b,fp8,d192x128.s2048",
        )
        for result in self.log["phases"].values():
            self.assertNotIn(str(HERE), result.get("command", ""))

    def test_the_page_says_targets_wins_and_losses(self):
        page = gpu_page.section(
            "h200", dict(self.log, device={"name": "NVIDIA H200", "driver": "580.1"})
        )
        for text in (
            "NVIDIA H200",
            "580.1",
            "Ahead of cudnn",
            "Ahead of fa2 in 0 of",
            "Behind fa2:",
            "0.50x",
            "2.00x",
            "decode.b64.k4096",
            "share of the copy bandwidth",
            "missed",
            "met",
            "racecheck",
            "--bench-filter",
        ):
            self.assertIn(text, page)

    def test_a_bench_in_two_halves_merges(self):
        first, second = json.loads(json.dumps(self.log)), json.loads(json.dumps(self.log))
        rows = first["phases"]["bench"]["report"]["rows"]
        second["phases"] = {"bench": second["phases"]["bench"]}
        second["phases"]["bench"]["report"]["rows"] = [
            r for r in rows if r["case"] == "decode.b64.k4096"
        ]
        first["phases"]["bench"]["report"]["rows"] = [
            r for r in rows if r["case"] != "decode.b64.k4096"
        ]
        merged = merge_logs.merge([first, second])
        self.assertEqual(set(merged["phases"]), set(self.log["phases"]))
        self.assertEqual(
            [r["case"] for r in merged["phases"]["bench"]["report"]["rows"]],
            [r["case"] for r in rows],
        )
        self.assertTrue(ratio_table.render(merged["phases"]["bench"]["report"]))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PAGODA = sys.argv.pop(1)
    unittest.main()
