"""The GPU sections of docs/performance.md, from the logs of `./dev gpu` in bench/results/gpu/."""

import json
import pathlib
import textwrap

import phases
import ratio_table

ROOT = pathlib.Path(__file__).resolve().parents[2]

METHOD = """Each contender is a separate process; they take turns. Before every run a memset larger
than L2 flushes the cache, and CUDA events surround that single run: a kernel of a few microseconds
is timed with a cold cache and with its launch overlapped by the memset, for Pagoda and the peers
alike. The table "one call of many" has the times of many back-to-back calls, host time included.
FLOPs count visible pairs; bytes count Q, K, V and O once (`bench/gpu/work.py`). The peers read
contiguous K and V, [batch, heads, length, depth]; Pagoda's decode reads pages of 64 keys in random
order."""


def range_of(clocks, name, unit):
    found = clocks.get(name)
    return (
        f"{found['min']:.0f} to {found['max']:.0f} {unit}, median {found['median']:.0f}"
        if found
        else "not read"
    )


def prose(line):
    """The line, wrapped at 100 columns."""
    hanging = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, 100, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def command_block(command):
    """The command, which may be several separated by `;`, as a shell block wrapped at 100
    columns."""
    lines = []
    for part in command.split("; "):
        wrapped = textwrap.wrap(part, 94, break_long_words=False, break_on_hyphens=False)
        lines.append(" \\\n    ".join(wrapped))
    return "\n".join(["```sh", *lines, "```"])


def device_lines(log, report):
    device, clocks = log.get("device", {}), report.get("clocks", {})
    versions = next(iter(report["peers"].values()), {})
    lines = [
        f"{device.get('name', 'unknown device')}, driver {device.get('driver', '?')}, "
        f"{log['date'][:10]}; "
        f"Pagoda {log.get('pagoda_version', '?')}"
        + (
            f", built by nvcc {log['built'].get('nvcc', '?')} "
            f"from revision {log['built'].get('revision', '?')}"
            + (f" ({log['built']['rows']})" if "rows" in log["built"] else "")
            if log.get("built")
            else ""
        )
        + "."
    ]
    if versions:
        lines.append(
            f"Peers: PyTorch {versions.get('torch')}, cuDNN {versions.get('cudnn')}, "
            f"CUDA {versions.get('cuda')}."
        )
    for name, why in report.get("peers_not_measured", {}).items():
        lines.append(f"{name} was not measured: {why}.")
    lines.append(
        f"During the run: SM clock {range_of(clocks, 'sm_mhz', 'MHz')}; "
        f"power {range_of(clocks, 'power_w', 'W')}."
    )
    ceilings = report["ceilings"]
    if ceilings:
        lines.append(
            f"Measured in the same run: copy {ceilings['copy_bytes'] * 1e-9:.0f} GB/s "
            f"(read and written), "
            f"bf16 matrix product {ceilings['matmul_flops'] * 1e-12:.0f} TFLOP/s."
        )
    return lines


def phase_lines(results):
    """The results of the other phases, one line each."""
    lines = []
    for name, result in results.items():
        if name == "bench":
            continue
        counts = phases.counts_of(result)
        if name == "sanitize" and "counts" in result:
            counts = "; ".join(
                f"{tool}: " + ", ".join(f"{n} {what}" for what, n in found.items() if n)
                for tool, found in result["counts"].items()
                if any(found.values())
            )
        lines.append(f"- {name}: {result['status']}" + (f" ({counts})" if counts else "")
                     + (f". {result['why'].splitlines()[0]}" if result.get("why") else ""))
    return lines


def section(name, log):
    """One device's part of the page; without a table if the log has no benchmark."""
    report = log["phases"].get("bench", {}).get("report")
    lines = [f"\n## {name}\n"]
    if report:
        lines += map(prose, device_lines(log, report))
    lines += ["", command_block(log["command"]), "", *map(prose, phase_lines(log["phases"])), ""]
    if report and report["rows"]:
        lines += [METHOD, "", "```", ratio_table.render(report), "```", ""]
    return "\n".join(lines)


def sections():
    return "".join(section(path.stem, json.loads(path.read_text()))
                   for path in sorted((ROOT / "bench/results/gpu").glob("*.json")))
