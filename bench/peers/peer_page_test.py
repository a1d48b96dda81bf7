#!/usr/bin/env python3
"""peer_page: which peer counts, and what a section says of a row that is lost."""

import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "gpu")]

import peer_page

WON = {"case": "a.won", "family": "a", "us": {"pagoda": 10.0, "x": 12.0, "y": 15.0}, "wrong": []}
LOST = {"case": "a.lost", "family": "a", "us": {"pagoda": 10.0, "x": 8.0}, "wrong": []}
WRONG = {"case": "b.wrong", "family": "b", "us": {"pagoda": 10.0, "x": 1.0}, "wrong": ["x"]}


class PeerPage(unittest.TestCase):
    def test_the_fastest_peer_counts(self):
        self.assertEqual(peer_page.best_peer(WON), ("x", 12.0))
        self.assertAlmostEqual(peer_page.ratio(LOST), 0.8)

    def test_a_peer_with_a_wrong_result_does_not(self):
        self.assertIsNone(peer_page.ratio(WRONG))

    def section_of(self, rows, **more):
        log = {
            "what": "What.", "device": "GPU", "driver": "1", "revision": "r", "date": "d",
            "versions": {"x": 1}, "rows": rows, **more,
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.json"
            path.write_text(json.dumps(log))
            return peer_page.section(path)

    def test_a_section_names_what_is_lost(self):
        ceilings = {"copy_bytes": 1e9, "matmul_flops": 1e12}
        text = self.section_of([WON, LOST, WRONG], ceilings=ceilings)
        self.assertIn("Behind in 1 of 2 rows: a.lost 0.80x.", text)
        self.assertIn("Measured in the same run: copy 1 GB/s", text)
        self.assertIn("1.0!", text)
        self.assertRegex(text, r"a +2 +0\.98x +0\.80x +a\.lost")

    def test_a_section_without_losses_or_ceilings_leaves_them_out(self):
        text = self.section_of([WON])
        self.assertIn("Behind in 0 of 1 rows.", text)
        self.assertNotIn("Measured", text)


if __name__ == "__main__":
    unittest.main()
