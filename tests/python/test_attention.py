"""pagoda.attention over dense, ragged and paged caches, against float64."""

import numpy as np
import pytest
from conftest import DTYPES, poisoned
from reference import assert_close, assert_lse, attention, largest_error, positions

import pagoda
from pagoda import KVCache, Mask

HEADS, KV_HEADS, DIM = 6, 2, 64
LENGTHS_Q = [3, 1, 0, 5]
LENGTHS_KV = [37, 16, 8, 0]


def paged(k, v, lengths, page_size, layout, rng):
    """The sequences of ragged k and v in shuffled pages; NaN in every other slot."""
    counts = [-(-n // page_size) for n in lengths]
    total = sum(counts) + 3
    order = rng.permutation(total).astype(np.int32)
    width = max(counts) + 2
    table = np.full((len(lengths), width), -1, np.int32)  # unused entries: no page
    shape = (total, page_size, KV_HEADS, DIM)
    k_pages, v_pages = poisoned(shape, k.dtype.name), poisoned(shape, v.dtype.name)
    first = page = 0
    for b, n in enumerate(lengths):
        table[b, : counts[b]] = order[page : page + counts[b]]
        page += counts[b]
        for i in range(n):
            slot = table[b, i // page_size], i % page_size
            k_pages[slot], v_pages[slot] = k[first + i], v[first + i]
        first += n
    if layout == "HND":
        k_pages = np.ascontiguousarray(k_pages.transpose(0, 2, 1, 3))
        v_pages = np.ascontiguousarray(v_pages.transpose(0, 2, 1, 3))
    return k_pages, v_pages, table, counts


def caches(kind, k, v, rng):
    """A KVCache with the sequences of ragged k and v."""
    lengths = np.array(LENGTHS_KV, np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    if kind == "ragged":
        return KVCache(k, v, cu_seqlens_kv=offsets)
    if kind == "dense":
        shape = (len(LENGTHS_KV), 40, KV_HEADS, DIM)
        dense_k, dense_v = poisoned(shape, k.dtype.name), poisoned(shape, v.dtype.name)
        for b, n in enumerate(LENGTHS_KV):
            dense_k[b, :n] = k[offsets[b] : offsets[b + 1]]
            dense_v[b, :n] = v[offsets[b] : offsets[b + 1]]
        return KVCache(dense_k, dense_v, seqlens_kv=lengths)
    _, size, layout = kind.split("-")
    size = int(size)
    k_pages, v_pages, table, counts = paged(k, v, LENGTHS_KV, size, layout, rng)
    if kind.startswith("csr"):
        indices = np.concatenate([table[b, :n] for b, n in enumerate(counts)]).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        last = np.array([(n - 1) % size + 1 if n else 0 for n in LENGTHS_KV], np.int32)
        return KVCache(
            k_pages, v_pages, indptr=indptr, indices=indices, last_page_len=last, layout=layout
        )
    return KVCache(k_pages, v_pages, block_table=table, seqlens_kv=lengths, layout=layout)


def each(q, k, v):
    """The sequences of the ragged arrays."""
    q_at = np.cumsum([0, *LENGTHS_Q])
    k_at = np.cumsum([0, *LENGTHS_KV])
    for b in range(len(LENGTHS_Q)):
        rows = slice(q_at[b], q_at[b + 1])
        keys = slice(k_at[b], k_at[b + 1])
        yield b, rows, q[rows], k[keys], v[keys]


KINDS = ["dense", "ragged", "table-1-NHD", "table-16-NHD", "table-5-HND", "csr-16-NHD", "csr-3-HND"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_cache_gives_the_attention_of_its_sequences(kind, dtype, normal, rng):
    q = normal((sum(LENGTHS_Q), HEADS, DIM), dtype)
    k = normal((sum(LENGTHS_KV), KV_HEADS, DIM), dtype)
    v = normal((sum(LENGTHS_KV), KV_HEADS, DIM), dtype)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS_Q)]).astype(np.int32)
    out, lse = poisoned(q.shape, dtype), poisoned(q.shape[:2])
    returned = pagoda.attention(
        q, caches(kind, k, v, rng), cu_seqlens_q=offsets, mask=Mask.causal(), out=out, lse=lse
    )
    assert returned is out
    for _, rows, q_b, k_b, v_b in each(q, k, v):
        q_pos, k_pos = positions(len(q_b), len(k_b))
        expected, expected_lse = attention(q_b, k_b, v_b, visible=k_pos <= q_pos)
        assert_close(out[rows], expected, dtype)
        assert_lse(lse[rows], expected_lse)


def test_a_result_that_is_two_percent_off_is_found(normal):
    for dtype in ("float32", "float16", "bfloat16"):
        q, k, v = (normal((16, 2, DIM), dtype) for _ in range(3))
        expected, _ = attention(q, k, v)
        assert largest_error(expected, expected, dtype) == 0
        assert largest_error(expected * 1.02, expected, dtype) > 1
        swapped = expected.copy()
        swapped[[3, 4]] = swapped[[4, 3]]
        assert largest_error(swapped, expected, dtype) > 1


N, M = 9, 21
Q_POS, K_POS = positions(N, M)
LIMITS = np.array([13], np.int32)
BIAS = np.linspace(-2, 2, HEADS * N * M, dtype=np.float32).reshape(1, HEADS, N, M)
TABLE = np.linspace(-1, 1, HEADS * 11, dtype=np.float32).reshape(HEADS, 11)
KEPT = np.random.default_rng(3).random((N, M)) < 0.4


def packed(kept):
    words = np.zeros((kept.shape[0], -(-kept.shape[1] // 32)), np.uint32)
    for i, k in zip(*np.nonzero(kept)):
        words[i, k // 32] |= np.uint32(1 << (k % 32))
    return words.reshape(-1), np.array([0, words.size], np.int64)


def relative(table):
    distance = K_POS - Q_POS
    inside = np.abs(distance) <= 5
    return np.where(inside, table[:, np.clip(distance + 5, 0, 10)], 0)


MASKS = {
    "none": (Mask.none(), True, None),
    "causal": (Mask.causal(), K_POS <= Q_POS, None),
    "window": (Mask.window(4, 2), (K_POS >= Q_POS - 4) & (K_POS <= Q_POS + 2), None),
    "open window": (Mask.window(-1, 2), K_POS <= Q_POS + 2, None),
    "chunked": (
        Mask.chunked(8) & Mask.causal(),
        (K_POS // 8 == Q_POS // 8) & (K_POS <= Q_POS),
        None,
    ),
    "padding": (Mask.padding(LIMITS), K_POS < 13, None),
    "additive": (Mask.additive(BIAS), True, BIAS[0]),
    "relative": (Mask.relative_bias(TABLE), True, relative(TABLE)),
    "bits": (Mask.bits(*packed(KEPT)), KEPT, None),
    "or": (
        Mask.window(2, 0) | Mask.bits(*packed(KEPT)) & Mask.causal(),
        ((K_POS >= Q_POS - 2) & (K_POS <= Q_POS)) | (KEPT & (K_POS <= Q_POS)),
        None,
    ),
    "and none": (Mask.none() & Mask.causal(), K_POS <= Q_POS, None),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_and_their_combinations(name, normal):
    mask, visible, bias = MASKS[name]
    q = normal((1, N, HEADS, DIM))
    k, v = normal((1, M, KV_HEADS, DIM)), normal((1, M, KV_HEADS, DIM))
    out = pagoda.attention(q, (k, v), mask=mask, out=poisoned(q.shape))
    assert_close(out[0], attention(q[0], k[0], v[0], visible=visible, bias=bias)[0])


def test_score_mods_sinks_and_scale(normal):
    q = normal((1, N, HEADS, DIM))
    k, v = normal((1, M, KV_HEADS, DIM)), normal((1, M, KV_HEADS, 32))
    slopes = np.geomspace(0.5, 0.01, HEADS).astype(np.float32)
    sinks = np.linspace(-2, 3, HEADS).astype(np.float32)
    out, lse = pagoda.attention(
        q, (k, v), softmax_scale=0.3, softcap=2.5, alibi_slopes=slopes, sinks=sinks, return_lse=True
    )
    expected, expected_lse = attention(
        q[0], k[0], v[0], softmax_scale=0.3, softcap=2.5, slopes=slopes, sinks=sinks
    )
    assert_close(out[0], expected)
    assert_lse(lse[0], expected_lse)


def test_lse_of_base_2_and_of_heads_before_rows(normal):
    q, k, v = normal((2, N, HEADS, DIM)), normal((2, M, 2, DIM)), normal((2, M, 2, DIM))
    lse = poisoned((2, HEADS, N))
    pagoda.attention(q, (k, v), lse=lse.transpose(0, 2, 1), lse_base="2")
    for b in range(2):
        expected = attention(q[b], k[b], v[b])[1] / np.log(2)
        assert_lse(lse[b].T, expected)


def test_cache_lengths_and_used_rows(normal):
    q, k, v = normal((2, N, HEADS, DIM)), normal((2, M, 2, DIM)), normal((2, M, 2, DIM))
    out = pagoda.attention(
        q,
        (k, v),
        mask=Mask.causal(),
        cache_lengths=np.array([0, 7], np.int32),
        seqlens_q=np.array([N, 4], np.int32),
        out=poisoned(q.shape),
    )
    for b, (first, rows) in enumerate([(0, N), (7, 4)]):
        q_pos, k_pos = positions(rows, M, first)
        expected, _ = attention(q[b, :rows], k[b], v[b], visible=k_pos <= q_pos)
        assert_close(out[b, :rows], expected)
        assert (out[b, rows:] == 0).all()


@pytest.mark.parametrize("q_dtype", ["bfloat16", "float8_e4m3fn"])
def test_fp8_caches_with_scales(q_dtype, normal):
    q = normal((1, N, HEADS, DIM), q_dtype)
    k, v = (normal((1, M, KV_HEADS, DIM), "float8_e4m3fn") for _ in range(2))
    per_head = np.array([0.5, 2.0], np.float32)
    q_scale = {"q_scale": 0.7} if q_dtype == "float8_e4m3fn" else {}
    out = pagoda.attention(q, (k, v), k_scale=0.8, v_scale=per_head, **q_scale)
    assert out.dtype == DTYPES["bfloat16"]
    q64 = q[0].astype(np.float64) * q_scale.get("q_scale", 1)
    v64 = v[0].astype(np.float64) * per_head[None, :, None]
    expected, _ = attention(q64, k[0].astype(np.float64) * 0.8, v64)
    # Kernels may round the queries' scores and P to bfloat16; V has values up to 8.
    assert np.abs(out[0].astype(np.float64) - expected).max() < 0.05


def test_left_padding_and_scales_of_each_sequence(normal):
    q = normal((2, 3, HEADS, DIM), "float8_e4m3fn")
    k, v = (normal((2, M, KV_HEADS, DIM), "float8_e4m3fn") for _ in range(2))
    left, lengths = np.array([4, 0], np.int32), np.array([M, 15], np.int32)
    k[0, :4] = v[0, :4] = np.nan
    scales = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(3, 2, KV_HEADS)
    out = pagoda.attention(
        q,
        KVCache(k, v, seqlens_kv=lengths),
        leftpad_kv=left,
        mask=Mask.causal(),
        q_scale=scales[0],
        k_scale=scales[1],
        v_scale=scales[2],
        out_dtype="float32",
    )
    for b in range(2):
        by_head = [s[b][None, :, None].astype(np.float64) for s in scales]
        q64 = q[b].astype(np.float64) * np.repeat(by_head[0], HEADS // KV_HEADS, axis=1)
        keys = slice(left[b], lengths[b])
        k64, v64 = (x[b, keys].astype(np.float64) * s for x, s in zip((k, v), by_head[1:]))
        q_pos, k_pos = positions(3, len(k64))
        expected, _ = attention(q64, k64, v64, visible=k_pos <= q_pos)
        assert np.abs(out[b] - expected).max() < 0.05


def test_rows_past_the_last_sequence_are_zeroed_on_request(normal):
    q, k, v = normal((7, 2, DIM)), normal((5, 2, DIM)), normal((5, 2, DIM))
    offsets_q, offsets_kv = np.array([0, 3, 4], np.int32), np.array([0, 2, 5], np.int32)
    out = poisoned(q.shape)
    named = {"cu_seqlens_q": offsets_q, "out": out}
    cache = KVCache(k, v, cu_seqlens_kv=offsets_kv)
    with pytest.raises(pagoda.InvalidArgument, match="cu_seqlens_q"):
        pagoda.attention(q, cache, **named)
    pagoda.attention(q, cache, zero_padding_rows=True, **named)
    assert (out[4:] == 0).all()
    assert_close(out[:3], attention(q[:3], k[:2], v[:2])[0])


def test_out_of_another_type(normal):
    q, k, v = (normal((1, 4, 2, DIM), "bfloat16") for _ in range(3))
    expected, _ = attention(q[0], k[0], v[0])
    assert_close(pagoda.attention(q, (k, v), out_dtype="float32")[0], expected, "bfloat16")
    out = poisoned(q.shape, "float8_e4m3fn")
    pagoda.attention(q, (k, v), out=out, out_scale=0.01)
    assert_close(out[0].astype(np.float64) * 0.01, expected, "float8_e4m3fn")


def test_the_reference_backend_is_reached_by_name(normal):
    q, k, v = (normal((1, 4, 2, DIM)) for _ in range(3))
    out = pagoda.attention(q, (k, v), backend="reference")
    assert_close(out[0], attention(q[0], k[0], v[0])[0])
    with pytest.raises(pagoda.NotFound) as error:
        pagoda.attention(q, (k, v), backend="abacus")
    assert error.value.field == "backend" and isinstance(error.value, LookupError)
