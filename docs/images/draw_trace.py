"""Draws a trace of `pagoda emulate --trace` as SVG: a row a track, time from left to right.

    pagoda emulate demo/copy_ring --mode lazy --trace trace.json
    python3 docs/images/draw_trace.py trace.json docs/images/copy_ring.svg --steps 600 6000 --tracks \
        "warp 4: load" "bulk_load" "bulk_load 2" "bulk_load 3" "warp 0: work" "warp 3: work" "bulk_store"

Spans of the same name are numbered on their track, so that item n can be followed from row to row.
"""

import argparse
import collections
import html
import json

COLOURS = {"work": "#8fc98b", "async": "#8db6e8", "wait": "#e4e1da", "role": "#ffffff", "arrive": "#c0504d"}
LEFT, RIGHT, ROW, BAR, TOP = 120, 12, 40, 24, 34


def read(path, cta):
    events = [e for e in json.load(open(path))["traceEvents"] if e["pid"] == cta]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [e for e in events if e["ph"] != "M"], names


def draw(events, names, tracks, first, last, width):
    scale = (width - LEFT - RIGHT) / (last - first)
    rows = {tid: TOP + i * ROW for i, tid in enumerate(tracks)}
    height = TOP + len(tracks) * ROW + 26

    def x(step):
        return LEFT + (min(max(step, first), last) - first) * scale

    out = []
    labels = []  # on top of everything

    def text(at, y, size, colour, words, anchor="start"):
        labels.append(
            f'<text x="{at:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>"
        )

    for tid, y in rows.items():
        text(LEFT - 8, y + BAR / 2 + 4, 12, "#222", names[tid], "end")
        out.append(f'<line x1="{LEFT}" y1="{y + BAR}" x2="{width - RIGHT}" y2="{y + BAR}" stroke="#bbb"/>')
    # An operation of the engine carries the number of its issue, on whichever track it runs.
    engines = sorted((e for e in events if e["ph"] == "X" and e["cat"] == "async"), key=lambda e: e["ts"])
    seen = collections.Counter()
    number = {}
    for event in engines + sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        if id(event) in number:
            continue
        kind = event["name"] if event["cat"] == "async" else (event["tid"], event["name"])
        number[id(event)] = seen[kind]
        seen[kind] += 1
    for event in events:
        if event["ph"] != "X" or event["tid"] not in rows or event["cat"] == "role":
            continue
        begin, end = event["ts"], event["ts"] + event["dur"]
        if end < first or begin > last:
            continue
        y, wide = rows[event["tid"]], max((x(end) - x(begin)), 1.5)
        if event["cat"] == "arrive":
            out.append(f'<rect x="{x(begin):.1f}" y="{y}" width="2" height="{BAR}" fill="{COLOURS["arrive"]}"/>')
            continue
        inset = 5 if event["cat"] == "wait" else 0
        out.append(
            f'<rect x="{x(begin):.1f}" y="{y + inset}" width="{wide:.1f}" height="{BAR - 2 * inset}" '
            f'fill="{COLOURS[event["cat"]]}" stroke="#777" stroke-width="0.6"/>'
        )
        label = event["name"] if event["cat"] == "wait" else f'{event["name"]} {number[id(event)]}'
        short = str(number[id(event)]) if event["cat"] != "wait" else ""
        label = label if wide > 6.2 * len(label) else short if wide > 7 * len(short) else ""
        if event["cat"] == "work":  # waits may lie within
            text(x(max(begin, first)) + 3, y + BAR / 2 + 4, 10, "#222", label)
        else:
            text((x(max(begin, first)) + x(end)) / 2, y + BAR / 2 + 4, 10, "#222", label, "middle")
        if short and not label:
            text(x(end) + 2, y + BAR / 2 + 4, 10, "#222", short)
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    for start in (e for e in events if e["ph"] == "s" and e["id"] in ends):
        end = ends[start["id"]]
        if start["tid"] not in rows or end["tid"] not in rows:
            continue
        if start["ts"] < first or end["ts"] > last:
            continue
        y1, y2 = (rows[e["tid"]] + BAR / 2 for e in (start, end))
        out.append(
            f'<path d="M{x(start["ts"]):.1f},{y1} L{x(end["ts"]):.1f},{y2}" stroke="#c0504d" '
            f'fill="none" stroke-width="1.1" marker-end="url(#tip)"/>'
        )
    legend = [("work", "work"), ("async", "copy in flight"), ("wait", "wait"), ("arrive", "arrival; arrow: the wait it ends")]
    at = LEFT
    for kind, words in legend:
        out.append(f'<rect x="{at}" y="10" width="14" height="12" fill="{COLOURS[kind]}" stroke="#777" stroke-width="0.6"/>')
        text(at + 19, 20, 11, "#222", words)
        at += 40 + 6.2 * len(words)
    text(width - RIGHT, height - 8, 11, "#555", f"steps {first} to {last}: order, not time", "end")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif"><defs><marker id="tip" markerWidth="7" markerHeight="6" refX="6" '
        f'refY="3" orient="auto"><path d="M0,0 L7,3 L0,6 z" fill="#c0504d"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>' + "\n".join(out + labels) + "</svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("picture")
    parser.add_argument("--cta", type=int, default=0)
    parser.add_argument("--steps", type=int, nargs=2, metavar=("FIRST", "LAST"), required=True)
    parser.add_argument("--tracks", nargs="*", help="rows from top to bottom; without: all")
    parser.add_argument("--width", type=int, default=1100)
    arguments = parser.parse_args()
    events, names = read(arguments.trace, arguments.cta)
    by_name = {name: tid for tid, name in names.items()}
    tracks = [by_name[name] for name in arguments.tracks] if arguments.tracks else sorted(names)
    with open(arguments.picture, "w") as file:
        file.write(draw(events, names, tracks, *arguments.steps, arguments.width))


if __name__ == "__main__":
    main()
