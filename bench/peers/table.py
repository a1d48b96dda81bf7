"""The comparison as a table: Pagoda's times and rates, each peer's time and the ratio."""

GREEN, RED, RESET = "\033[32m", "\033[31m", "\033[0m"


def format_seconds(seconds):
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return (
                f"{seconds * factor:.3g} {unit}"
                if seconds * factor < 100
                else f"{seconds * factor:.0f} {unit}"
            )
    return f"{seconds:.2f} s"


def rate(row, seconds):
    """GFLOP/s for prefill; GB/s of Q, K, V and O for decode."""
    ours = row["contenders"]["pagoda"]
    if row["grid"] == "decode":
        return f"{ours['bytes'] / seconds * 1e-9:.1f} GB/s"
    return f"{ours['flops'] / seconds * 1e-9:.0f} GF/s"


def peer_cells(row, peer):
    entry = row["contenders"][peer]
    if "unsupported" in entry:
        return ["-", "", ""]
    ratio = entry["median_seconds"] / row["contenders"]["pagoda"]["median_seconds"]
    substitute = "" if entry["dtype"] == row["problem"]["dtype"] else f" ({entry['dtype']})"
    wrong = "" if entry["max_relative_error"] < 0.05 else " WRONG"
    return [format_seconds(entry["median_seconds"]) + substitute + wrong,
            rate(row, entry["median_seconds"]), f"{ratio:.2f}x"]


def render(rows, peers, versions, has_color=None):
    """The table as text; a ratio above 1 = Pagoda is faster by that factor."""
    import os
    import sys

    if has_color is None:
        has_color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    header = ["case", "threads", "pagoda", "rate", "of roofline", "bound"]
    for peer in peers:
        header += [f"{peer} {versions[peer].split('+')[0]}", "rate", "ratio"]
    lines = [header]
    for row in rows:
        ours = row["contenders"]["pagoda"]
        seconds = ours["median_seconds"]
        cells = [
            row["case"],
            str(row["threads"]),
            format_seconds(seconds) + ("" if ours["passed"] else " WRONG"),
            rate(row, seconds),
            f"{100 * ours['roofline_seconds'] / seconds:.0f} %",
            ours["bound_by"],
        ]
        for peer in peers:
            cells += peer_cells(row, peer)
        lines.append(cells)
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = []
    for line in lines:
        padded = [
            cell.ljust(w) if i in (0, 5) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths))
        ]
        if has_color:
            padded = [paint(cell) for cell in padded]
        text.append("  ".join(padded).rstrip())
    text.append(
        "ratio: the peer's time over Pagoda's; above 1 Pagoda is faster. (fp16), (fp32): the type "
        "that stands in where the peer has no bf16."
    )
    return "\n".join(text)


def paint(cell):
    text = cell.strip()
    if not text.endswith("x") or not text[:-1].replace(".", "").isdigit():
        return cell
    return (GREEN if float(text[:-1]) >= 1 else RED) + cell + RESET
