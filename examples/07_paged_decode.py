"""Token after token of two sequences over a paged KV cache: append_kv, then attention.

Checks its result against attention over all tokens at once: `python examples/07_paged_decode.py`.
"""

import numpy as np

import pagoda

BATCH, STEPS, HEADS, KV_HEADS, DIM, PAGE = 2, 40, 8, 2, 64, 16
rng = np.random.default_rng(0)
q, k, v = (
    rng.standard_normal((STEPS, BATCH, heads, DIM), np.float32)
    for heads in (HEADS, KV_HEADS, KV_HEADS)
)

pages_of = -(-STEPS // PAGE)
shape = (BATCH * pages_of, PAGE, KV_HEADS, DIM)
k_pages, v_pages = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
table = rng.permutation(BATCH * pages_of).astype(np.int32).reshape(BATCH, pages_of)
out = np.empty_like(q)
for t in range(STEPS):
    slots = table[:, t // PAGE].astype(np.int64) * PAGE + t % PAGE
    pagoda.append_kv(k[t], v[t], k_pages, v_pages, slots)
    lengths = np.full(BATCH, t + 1, np.int32)
    cache = pagoda.KVCache(k_pages, v_pages, block_table=table, seqlens_kv=lengths)
    pagoda.attention(q[t][:, None], cache, out=out[t][:, None])

whole = [np.ascontiguousarray(x.swapaxes(0, 1)) for x in (q, k, v)]
expected = pagoda.attention(whole[0], whole[1:], mask=pagoda.Mask.causal())
error = np.abs(out.swapaxes(0, 1) - expected).max()
print(f"largest difference: {error:.1e}")
assert error < 1e-5
