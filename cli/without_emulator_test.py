#!/usr/bin/env python3
"""The command in a build without the emulator says what it lacks, and does the rest.

    without_emulator_test.py PAGODA
"""

import json
import subprocess
import sys
import unittest

PAGODA = sys.argv.pop(1)


def pagoda(*args):
    return subprocess.run([PAGODA, *args], capture_output=True, text=True)


class WithoutEmulator(unittest.TestCase):
    def test_info_names_what_is_not_in_the_build(self):
        text = pagoda("info", "--no-ceilings").stdout
        self.assertRegex(text, r"emu:\*\s+not in this build")
        info = json.loads(pagoda("info", "--no-ceilings", "--json").stdout)
        self.assertIs(info["has_emulator"], False)
        self.assertFalse([b["name"] for b in info["backends"] if b["name"].startswith("emu:")])

    def test_emulate_says_how_to_get_it(self):
        self.assertRegex(pagoda("--help").stdout, r"emulate\s+Not available: this build has no emulator")
        result = pagoda("emulate", "demo/relay", "--seeds", "3")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("PAGODA_BUILD_EMULATOR=ON", result.stderr)

    def test_an_emulated_back_end_is_an_error(self):
        result = pagoda("check", "--backend", "emu:sm90", "--every", "100")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("emu:sm90", result.stderr)

    def test_the_cpu_is_checked_as_ever(self):
        result = pagoda("check", "--backend", "cpu", "--every", "100")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout.splitlines()[-1], r"^[1-9]\d* passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
