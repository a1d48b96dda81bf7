"""Medians, ratios and targets of a measured grid: the maths of the tables, no printing."""

import fnmatch
import statistics

import work


def summary(turns):
    """The median of the medians of one contender's turns (lists of seconds), and the spread of
    these medians divided by it."""
    medians = [statistics.median(turn) for turn in turns if turn]
    middle = statistics.median(medians)
    return {"median_seconds": middle, "min_seconds": min(min(turn) for turn in turns if turn),
            "spread": (max(medians) - min(medians)) / middle, "turns": len(medians),
            "runs": sum(len(turn) for turn in turns)}


def seconds_of(row, contender):
    """None if the contender was not measured."""
    return row["contenders"].get(contender, {}).get("median_seconds")


def ratio(row, peer):
    """The peer's time over Pagoda's: above 1 Pagoda is faster. None if either is missing."""
    ours, theirs = seconds_of(row, "pagoda"), seconds_of(row, peer)
    return theirs / ours if ours and theirs else None


def time_beside(row, rows):
    """Our time over that of the case it is compared with, in the same run."""
    other = next((r for r in rows if r["case"] == row.get("beside")), None)
    ours, theirs = seconds_of(row, "pagoda"), other and seconds_of(other, "pagoda")
    return ours / theirs if ours and theirs else None


def metric(row, rows, ceilings, target):
    if target["metric"] == "ratio":
        return ratio(row, target["peer"])
    if target["metric"] == "time_beside":
        return time_beside(row, rows)
    ours = seconds_of(row, "pagoda")
    return work.shares(row["problem"], ours, ceilings)[1] if ours else None


def judge(target, rows, ceilings, all_cases):
    """A target with its verdict: met only if every case of it in the grid was measured, is
    correct and is within the limit. Names the worst case. all_cases: the names of the grid's
    cases."""
    def is_meant(name):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in target["cases"])

    matching = [row for row in rows if is_meant(row["case"])]
    num_cases = sum(map(is_meant, all_cases))
    values = {r["case"]: metric(r, rows, ceilings, target) for r in matching}
    wrong = [
        r["case"] for r in matching if not r["contenders"].get("pagoda", {}).get("passed", True)
    ]
    known = {case: value for case, value in values.items() if value is not None}
    result = {"name": target["name"], "cases": num_cases, "measured": len(known)}
    result |= {key: target[key] for key in ("at_least", "at_most") if key in target}
    if known:
        choose = min if "at_least" in target else max
        worst = choose(known, key=known.get)
        result |= {"worst": known[worst], "worst_case": worst}
    is_within = known and ("at_least" not in target or result["worst"] >= target["at_least"]) and (
        "at_most" not in target or result["worst"] <= target["at_most"])
    result["verdict"] = (
        "missed"
        if known and not is_within or wrong
        else "not measured" if not known else "incomplete" if len(known) < num_cases else "met"
    )
    return result


def bad_cases(rows):
    """The cases with a wrong result or an error of Pagoda; skipped cases do not count."""
    return [
        row["case"]
        for row in rows
        if "error" in row["contenders"].get("pagoda", {})
        or not row["contenders"].get("pagoda", {}).get("passed", True)
    ]


def wins(rows, peer):
    """(rows where Pagoda is at least as fast, rows that both ran)."""
    values = [value for value in (ratio(row, peer) for row in rows) if value is not None]
    return sum(value >= 1 for value in values), len(values)


def families(rows, ceilings):
    """The bound of each family of cases, and the least, median and largest share of that
    ceiling."""
    result = {}
    for row in rows:
        ours = seconds_of(row, "pagoda")
        what = work.bound(row["problem"], ceilings)
        if not ours or what is None:
            continue
        share = work.shares(row["problem"], ours, ceilings)[what == "copy bandwidth"]
        result.setdefault((row["family"], what), []).append((share, row["case"]))
    return [{"family": family, "bound": what, "cases": len(found),
             "least": min(found)[0], "least_case": min(found)[1],
             "median": statistics.median(share for share, _ in found),
             "largest": max(found)[0], "largest_case": max(found)[1]}
            for (family, what), found in result.items()]
