#!/usr/bin/env python3
"""Makes the golden files in this folder: attention in NumPy float64, whole matrices at a time.

It shares nothing with the library but the definitions in include/pagoda. Needs numpy; where torch
can be imported, the cases that scaled_dot_product_attention can express are checked against it too.

    python3 make_golden.py            rewrites the files
    python3 make_golden.py --check    compares instead, changes nothing
"""

import argparse
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent


def draw(rng, *shape):
    """Normal numbers in sixteenths: exact in fp32, fp16 and bf16, and short to print."""
    return np.clip(np.round(rng.standard_normal(shape) * 16), -127, 127) / 16


def masked_scores(case, b, q, k):
    """Scores of sequence b: [heads, rows, keys], hidden pairs -inf."""
    heads, rows, keys = q.shape[1], q.shape[0], k.shape[0]
    group = heads // k.shape[1]
    s = np.einsum("ihd,jhd->hij", q, np.repeat(k, group, axis=1)) * case["softmax_scale"][0]
    if "softcap" in case:
        s = case["softcap"][0] * np.tanh(s / case["softcap"][0])
    row = np.arange(rows)[:, None] + (keys - rows)
    col = np.arange(keys)[None, :]
    if "alibi_slopes" in case:
        s = s + np.array(case["alibi_slopes"])[:, None, None] * (col - row)
    if "additive" in case:
        s = s + case["additive"][b, :, :rows, :keys]
    if "relative_bias" in case:
        extent = (case["relative_bias"].shape[1] - 1) // 2
        near = np.abs(col - row) <= extent
        s = s + np.where(
            near, case["relative_bias"][:, np.clip(col - row + extent, 0, 2 * extent)], 0
        )
    keep = np.ones((rows, keys), bool)
    if "window" in case:
        left, right = case["window"]
        keep &= (col >= row - left) & (col <= row + right)
    if "chunk" in case:
        keep &= (col // case["chunk"][0]) == (row // case["chunk"][0])
    if "causal" in case:
        keep &= col <= row
    if "prefix" in case:  # OR: the first keys are always visible
        keep |= col < case["prefix"][0]
    return np.where(keep, s, -np.inf)


def attention(case, b, q, k, v):
    s = masked_scores(case, b, q, k)
    heads, rows, keys = s.shape
    sinks = np.array(case["sinks"]) if "sinks" in case else np.full(heads, -np.inf)
    # The sink is one more key whose value is zero.
    s = np.concatenate([s, np.broadcast_to(sinks[:, None, None], (heads, rows, 1))], axis=2)
    top = s.max(axis=2, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(axis=2, keepdims=True)
    p = (e / np.where(total == 0, 1, total))[:, :, :keys]
    o = np.einsum("hij,jhd->ihd", p, np.repeat(v, heads // v.shape[1], axis=1))
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, np.log(total) + np.where(np.isinf(top), 0, top), -np.inf)
    return o, lse[:, :, 0].T, top[:, :, 0].T


def check_with_torch(case, b, q, k, v, o):
    if "softcap" in case:
        return False
    try:
        import torch
    except (ImportError, OSError):
        return False
    # Everything but q.k goes in as one additive mask.
    zero = np.zeros_like
    bias = masked_scores(case, b, zero(q), zero(k))
    if "sinks" in case:  # one more key, whose score is the sink and whose value is zero
        sinks = np.broadcast_to(np.array(case["sinks"])[:, None, None], bias.shape[:2] + (1,))
        bias = np.concatenate([bias, sinks], axis=2)
        k, v = (np.concatenate([x, zero(x[:1])]) for x in (k, v))
    seen = ~np.isneginf(bias).all(axis=2).T  # torch gives NaN where a row sees nothing
    as_torch = lambda x: torch.from_numpy(np.ascontiguousarray(x.swapaxes(0, 1)))[None]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        got = torch.nn.functional.scaled_dot_product_attention(
            as_torch(q), as_torch(k), as_torch(v), attn_mask=torch.from_numpy(bias)[None],
            scale=case["softmax_scale"][0], enable_gqa=True)
    got = got[0].numpy().swapaxes(0, 1)
    np.testing.assert_allclose(got[seen], o[seen], rtol=1e-12, atol=1e-13)
    return True


def cases():
    """name -> what the call is: heads (q, kv), dims (qk, vo), lengths (q, kv), then its options."""
    mixed = [(3, 6), (1, 9), (4, 4)]
    base = dict(heads=(4, 2), dims=(8, 8), lengths=mixed, softmax_scale=[0.375])
    some = lambda rng, *shape: draw(rng, *shape)
    hidden = lambda rng, *shape: np.where(rng.random(shape) < 0.2, -np.inf, draw(rng, *shape))
    return {
        "gqa": dict(base, heads=(6, 2), dims=(8, 16)),
        "causal_bottom_right": dict(base, causal=[1], lengths=[(3, 7), (5, 5), (4, 2)]),
        "window": dict(base, window=[2, 1]),
        "chunked_causal": dict(base, chunk=[3], causal=[1]),
        "softcap": dict(base, softcap=[2.5], causal=[1]),
        "sinks": dict(base, sinks=[0.5, -3.0, 8.0, 0.0], causal=[1], lengths=[(3, 7), (4, 2)]),
        "alibi": dict(base, alibi_slopes=[0.5, 0.25, 0.125, 0.0625], causal=[1]),
        "additive": dict(base, additive=(hidden, (3, 4, 4, 9))),
        "relative_bias": dict(base, relative_bias=(some, (4, 5))),
        "window_or_prefix": dict(base, window=[1, 0], prefix=[2], lengths=[(3, 9), (1, 6)]),
        "paged": dict(base, causal=[1], page_size=[4], lengths=[(3, 6), (1, 9), (2, 8), (1, 1)]),
        "everything": dict(
            base,
            causal=[1],
            window=[4, 0],
            page_size=[2],
            sinks=[1.0, 2.0, -1.0, 0.0],
            softcap=[3.0],
            alibi_slopes=[0.5, 0.25, 0.125, 0.0625],
        ),
    }


def page(rng, page_size, ks, vs):
    """Scatters sequences over shuffled pages; returns the caches and the block table."""
    counts = [-(-len(k) // page_size) for k in ks]
    ids = list(rng.permutation(sum(counts) + 1))  # one page stays unused
    k_cache = np.full((len(ids), page_size) + ks[0].shape[1:], np.nan)
    v_cache = np.full((len(ids), page_size) + vs[0].shape[1:], np.nan)
    table = np.full((len(ks), max(counts)), -1)
    for b, (k, v) in enumerate(zip(ks, vs)):
        for j in range(len(k)):
            if j % page_size == 0:
                table[b, j // page_size] = ids.pop()
            k_cache[table[b, j // page_size], j % page_size] = k[j]
            v_cache[table[b, j // page_size], j % page_size] = v[j]
    return k_cache, v_cache, table


def gather(cache, table, b, length, page_size):
    return cache[table[b, np.arange(length) // page_size], np.arange(length) % page_size]


def line(name, values):
    values = np.asarray(values)
    if values.dtype.kind == "f":
        text = " ".join(repr(float(x)) for x in values.ravel())
    else:
        text = " ".join(str(x) for x in values.ravel())
    return f"{name} {text}\n"


def make(name, case):
    rng = np.random.default_rng(sum(map(ord, name)))
    case = {
        key: value[0](rng, *value[1]) if isinstance(value, tuple) and callable(value[0]) else value
        for key, value in case.items()
    }
    (q_heads, kv_heads), (dim_qk, dim_vo) = case["heads"], case["dims"]
    qs = [draw(rng, n, q_heads, dim_qk) for n, _ in case["lengths"]]
    ks = [draw(rng, n, kv_heads, dim_qk) for _, n in case["lengths"]]
    vs = [draw(rng, n, kv_heads, dim_vo) for _, n in case["lengths"]]
    text = "# Made by make_golden.py; NumPy float64.\n"
    text += line("heads", case["heads"]) + line("dims", case["dims"])
    text += line("seqlens_q", [n for n, _ in case["lengths"]])
    text += line("seqlens_kv", [n for _, n in case["lengths"]])
    if "page_size" in case:
        size = case["page_size"][0]
        k_cache, v_cache, table = page(rng, size, ks, vs)
        ks = [gather(k_cache, table, b, len(k), size) for b, k in enumerate(ks)]
        vs = [gather(v_cache, table, b, len(v), size) for b, v in enumerate(vs)]
        text += line("block_table", table) + line("k", k_cache) + line("v", v_cache)
    else:
        text += line("k", np.concatenate(ks)) + line("v", np.concatenate(vs))
    text += line("q", np.concatenate(qs))
    for key, value in case.items():
        if key not in ("heads", "dims", "lengths"):
            text += line(key, value)
            if hasattr(value, "shape"):
                text += line(key + "_shape", value.shape)
    results = [attention(case, b, *qkv) for b, qkv in enumerate(zip(qs, ks, vs))]
    checked = [check_with_torch(case, b, *qkv, results[b][0])
               for b, qkv in enumerate(zip(qs, ks, vs))]
    print(f"{name}: {'agrees with torch' if all(checked) else 'numpy only'}")
    for i, key in enumerate(("out", "lse", "row_max")):
        text += line(key, np.concatenate([r[i] for r in results]))
    return text


def agree(a, b):
    """Same words, and numbers up to the last digits: those depend on NumPy's build."""
    def same(x, y):
        try:
            return x == y or np.isclose(float(x), float(y), rtol=1e-13, atol=1e-14, equal_nan=True)
        except ValueError:
            return False
    a, b = a.split(), b.split()
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for name, case in cases().items():
        path = HERE / f"{name}.txt"
        text = make(name, case)
        if not check:
            path.write_text(text)
        elif not agree(path.read_text(), text):
            sys.exit(f"{path.name} differs from what this script makes")


if __name__ == "__main__":
    main()
