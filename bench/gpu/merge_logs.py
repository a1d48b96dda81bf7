#!/usr/bin/env python3
"""Merges logs of `./dev gpu` (phases run one at a time, or a grid in parts) into one.
usage: merge_logs.py LOG... OUT. A phase of a later log replaces that of an earlier one. Rows of the
grid are joined; a measured row replaces an unmeasured one. Ceilings are the means of the parts.
"""

import json
import pathlib
import sys

import ratios

GRID = json.loads((pathlib.Path(__file__).resolve().parent / "grid.json").read_text())
NAMES = [case["name"] for case in GRID["cases"]]


def is_measured(row):
    return "median_seconds" in row["contenders"].get("pagoda", {})


def merge_reports(first, second):
    """Two parts of the grid: the second's header, the rows of both in the grid's order."""
    rows = {row["case"]: row for row in first["rows"]}
    for row in second["rows"]:
        if is_measured(row) or not is_measured(rows.get(row["case"], {"contenders": {}})):
            rows[row["case"]] = row
    ordered = [rows[name] for name in NAMES if name in rows]
    ceilings = {
        key: (first["ceilings"].get(key, value) + value) / 2 if isinstance(value, float) else value
        for key, value in second["ceilings"].items()
    } or first["ceilings"]
    return {
        **first,
        **second,
        "peers": first["peers"] | second["peers"],
        "rows": ordered,
        "ceilings": ceilings,
        "seconds": first.get("seconds", 0) + second.get("seconds", 0),
        "targets": [ratios.judge(target, ordered, ceilings, NAMES) for target in GRID["targets"]],
    }


def merge_bench(first, second):
    if "report" not in first or "report" not in second:
        return second if "report" in second else first
    report = merge_reports(first["report"], second["report"])
    bad = [phase for phase in (first, second) if phase["status"] == "failed"]
    return {
        **second,
        "status": "failed" if bad else second["status"],
        "why": "; ".join(p["why"] for p in bad),
        "seconds": first["seconds"] + second["seconds"],
        "rows": len(report["rows"]),
        "measured": sum(map(is_measured, report["rows"])),
        "report": report,
    }


def merge(logs):
    result = {**logs[0], "phases": {}}
    for log in logs:
        for name, phase in log["phases"].items():
            known = result["phases"].get(name)
            result["phases"][name] = (
                merge_bench(known, phase) if known and name == "bench" else phase
            )
    commands = [log["command"] for log in logs]
    return {**result, "command": "; ".join(dict.fromkeys(commands))}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    logs = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:-1]]
    pathlib.Path(sys.argv[-1]).write_text(json.dumps(merge(logs), indent=1) + "\n")


if __name__ == "__main__":
    main()
