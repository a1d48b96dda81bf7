"""The work of a problem, for all contenders: FLOPs of visible pairs, bytes of Q, K, V and O."""

ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8_e4m3": 1}


def visible_pairs(problem):
    """(query, key) pairs of one head of one sequence; causal is bottom-right aligned."""
    queries, keys = problem["seqlen-q"], problem["seqlen-kv"]
    if problem.get("mask", "none") == "none":
        return queries * keys
    if problem["mask"] != "causal" or queries > keys:
        raise ValueError(
            f"no count for mask {problem['mask']} with {queries} queries and {keys} keys"
        )
    return queries * keys - queries * (queries - 1) // 2


def flops(problem):
    """Two products of two operations a multiply-add: 2 * pairs * (depth of K + depth of V)."""
    depths = problem["head-dim"] + problem.get("v-head-dim", problem["head-dim"])
    return 2 * problem["batch"] * problem["q-heads"] * visible_pairs(problem) * depths


def bytes_moved(problem):
    """Q, K, V read once, O written once; page tables and partial results are not counted."""
    depth = problem["head-dim"]
    depths = depth + problem.get("v-head-dim", depth)
    key_depths = depth if problem.get("v-inside-k") else depths
    q_bytes = ELEMENT_BYTES[problem["dtype"]]
    kv_bytes = ELEMENT_BYTES[problem.get("kv-dtype", problem["dtype"])]
    rows = problem["batch"] * problem["seqlen-q"] * problem["q-heads"] * q_bytes
    keys = problem["batch"] * problem["seqlen-kv"] * problem["kv-heads"] * kv_bytes
    return rows * depths + keys * key_depths


def shares(problem, seconds, ceilings):
    """(share of the matrix rate, share of the copy bandwidth); None = ceiling not measured."""
    compute, copy = ceilings.get("matmul_flops"), ceilings.get("copy_bytes")
    return (flops(problem) / seconds / compute if compute else None,
            bytes_moved(problem) / seconds / copy if copy else None)


def bound(problem, ceilings):
    """The bound of a perfect kernel: "matrix rate" or "copy bandwidth"; None without ceilings."""
    compute, copy = shares(problem, 1.0, ceilings)
    if compute is None or copy is None:
        return None
    return "matrix rate" if compute > copy else "copy bandwidth"
