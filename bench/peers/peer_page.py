"""Sections of docs/performance.md on the libraries of others: bench/results/peers/*.json.

A file has one interleaved run: {"what", "device", "driver", "revision", "date", "versions": {name:
version}, "ceilings": {"copy_bytes", "matmul_flops"} where measured, "rows": [{"case", "family",
"us": {contender: median}, "wrong": [contenders whose output is not that of float64]}]}.
"""

import json
import math
import pathlib

import gpu_page

ROOT = pathlib.Path(__file__).resolve().parents[2]


def best_peer(row):
    """(name, us) of the fastest peer with a right result; (None, None) where there is none."""
    peers = {
        name: us
        for name, us in row["us"].items()
        if name != "pagoda" and name not in row.get("wrong", [])
    }
    return min(peers.items(), key=lambda peer: peer[1]) if peers else (None, None)


def ratio(row):
    """The best peer's time over Pagoda's, or None."""
    us = best_peer(row)[1]
    return us / row["us"]["pagoda"] if us and "pagoda" in row["us"] else None


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def family_lines(rows):
    families = {}
    for row in rows:
        if ratio(row):
            families.setdefault(row["family"], []).append(row)
    lines = [f"{'family':<16}  rows  mean   least  least in"]
    for family, members in families.items():
        least = min(members, key=ratio)
        mean = geometric_mean([ratio(row) for row in members])
        lines.append(
            f"{family:<16}  {len(members):>4}  {mean:.2f}x  {ratio(least):.2f}x  {least['case']}"
        )
    everything = [ratio(row) for row in rows if ratio(row)]
    lines.append(
        f"{'all':<16}  {len(everything):>4}  {geometric_mean(everything):.2f}x  {min(everything):.2f}x"
    )
    return lines


def table_lines(rows):
    peers = sorted({name for row in rows for name in row["us"]} - {"pagoda"})
    width = max(len(row["case"]) for row in rows)
    lines = ["  ".join([f"{'case, us':<{width}}", *(f"{n:>10}" for n in ["pagoda", *peers]), " best"])]
    for row in rows:
        cells = []
        for name in ["pagoda", *peers]:
            us = row["us"].get(name)
            mark = "!" if name in row.get("wrong", []) else ""
            cells.append(f"{'' if us is None else f'{us:.1f}{mark}':>10}")
        found = ratio(row)
        lines.append("  ".join([f"{row['case']:<{width}}", *cells, f"{found:.2f}x" if found else ""]))
    return [line.rstrip() for line in lines]


def section(path):
    result = json.loads(path.read_text())
    rows, measured = result["rows"], ""
    if ceilings := result.get("ceilings"):
        measured = (
            f" Measured in the same run: copy {ceilings['copy_bytes'] * 1e-9:.0f} GB/s, "
            f"bf16 matrix product {ceilings['matmul_flops'] * 1e-12:.0f} TFLOP/s."
        )
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    behind = [f"{row['case']} {ratio(row):.2f}x" for row in rows if (ratio(row) or 1) < 1]
    lines = [f"\n## {path.stem}, beside other libraries\n"]
    for text in (
        result["what"],
        f"{result['device']}, driver {result['driver']}, {result['date']}; revision "
        f"{result['revision']}. Peers: {versions}.{measured}",
        "best: the time of the fastest peer over Pagoda's. An exclamation mark: its result is wrong, "
        "so that it does not count.",
        f"Behind in {len(behind)} of {sum(ratio(row) is not None for row in rows)} rows"
        f"{': ' if behind else ''}{', '.join(behind)}.",
    ):
        lines += [gpu_page.prose(text), ""]
    lines += ["```", *family_lines(rows), "", *table_lines(rows), "```", ""]
    return "\n".join(lines)


def sections():
    return "".join(map(section, sorted((ROOT / "bench/results/peers").glob("*.json"))))
