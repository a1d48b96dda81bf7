"""The tables of a measured grid as plain text: ratios, wins and losses, targets, bounds of
families."""

import textwrap

import ratios
import work


def format_seconds(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.3f} ms"


def aligned(lines, num_left=1):
    """Rows of cells as lines; the first columns to the left."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) if i < num_left else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def own_cells(row, ceilings):
    ours = row["contenders"].get("pagoda", {})
    if "median_seconds" not in ours:
        return [ours.get("error", row.get("left_out", "not measured"))[:40], "", "", "", ""]
    seconds = ours["median_seconds"]
    compute, copy = work.shares(row["problem"], seconds, ceilings)
    return [
        format_seconds(seconds) + ("" if ours.get("passed", True) else " WRONG"),
        f"{100 * ours['spread']:.0f} %",
        f"{work.flops(row['problem']) / seconds * 1e-12:.0f} | "
        f"{work.bytes_moved(row['problem']) / seconds * 1e-9:.0f}",
        percent(compute),
        percent(copy),
    ]


def peer_cells(row, peer):
    entry = row["contenders"].get(peer)
    if entry is None:
        return ["", ""]
    if "median_seconds" not in entry:
        return ["can't", ""]
    value = ratios.ratio(row, peer)
    wrong = "" if entry.get("max_relative_error", 0) < 0.05 else " WRONG"
    return [
        format_seconds(entry["median_seconds"]) + wrong,
        "" if value is None else f"{value:.2f}x",
    ]


def render_cases(rows, peers, ceilings):
    header = ["case", "pagoda", "spread", "TFLOP/s | GB/s", "of matmul", "of copy"]
    for peer in peers:
        header += [peer, "ratio"]
    lines = [header + ["relative to"]]
    for row in rows:
        cells = [row["case"], *own_cells(row, ceilings)]
        for peer in peers:
            cells += peer_cells(row, peer)
        beside = ratios.time_beside(row, rows)
        lines.append(cells + ["" if beside is None else f"{beside:.2f} x {row['beside']}"])
    return aligned(lines)


def render_wins(rows, peers):
    """How often Pagoda is ahead of each peer, and every case where it is not."""
    lines = []
    for peer in peers:
        won, total = ratios.wins(rows, peer)
        lines.append(f"Ahead of {peer} in {won} of {total} rows.")
        lost = sorted(
            (ratios.ratio(row, peer), row["case"])
            for row in rows
            if (ratios.ratio(row, peer) or 1) < 1
        )
        if lost:
            named = ", ".join(f"{case} {value:.2f}x" for value, case in lost)
            lines.append(
                textwrap.fill(
                    f"Behind {peer}: {named}.", 100, subsequent_indent="  ", break_on_hyphens=False
                )
            )
    return "\n".join(lines)


def render_targets(judged):
    lines = [["target", "wanted", "worst", "verdict", "in case"]]
    for entry in judged:
        wanted = f">= {entry['at_least']:g}" if "at_least" in entry else f"<= {entry['at_most']:g}"
        worst = f"{entry['worst']:.2f}" if "worst" in entry else "-"
        measured = (
            ""
            if entry["measured"] == entry["cases"]
            else f" ({entry['measured']} of {entry['cases']} cases)"
        )
        lines.append(
            [entry["name"], wanted, worst, entry["verdict"] + measured, entry.get("worst_case", "")]
        )
    return aligned(lines)


def render_families(found):
    if not found:
        return ""
    lines = [["family", "bound", "cases", "least", "median", "largest", "least in", "largest in"]]
    for entry in found:
        lines.append(
            [
                entry["family"],
                entry["bound"],
                str(entry["cases"]),
                percent(entry["least"]),
                percent(entry["median"]),
                percent(entry["largest"]),
                entry["least_case"],
                entry["largest_case"],
            ]
        )
    return aligned(lines, num_left=2)


def render_back_to_back(rows):
    lines = [["case", "contender", "one call of many, nothing flushed"]]
    for row in rows:
        for name, entry in row["contenders"].items():
            if "back_to_back_seconds" in entry:
                lines.append([row["case"], name, format_seconds(entry["back_to_back_seconds"])])
    return aligned(lines, num_left=2) if len(lines) > 1 else ""


def render(report):
    """The tables of a report, as in the output of `./dev gpu` and in docs/performance.md."""
    rows, peers, ceilings = report["rows"], list(report["peers"]), report["ceilings"]
    parts = [
        render_cases(rows, peers, ceilings),
        render_wins(rows, peers),
        render_back_to_back(rows),
        render_families(ratios.families(rows, ceilings)),
        render_targets(report["targets"]),
    ]
    return "\n\n".join(part for part in parts if part)
