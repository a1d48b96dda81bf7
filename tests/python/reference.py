"""Attention of one sequence in float64 by its definition, and the comparison with a result."""

import math

import numpy as np

EPSILON = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4}


def scores_of(q, k, softmax_scale=None, softcap=0.0, slopes=None, bias=None, cache_length=None):
    """Scores [heads, rows, keys] of q [rows, num_q_heads, d] and k [keys, num_kv_heads, d]."""
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    scale = 1 / math.sqrt(q.shape[2]) if softmax_scale is None else softmax_scale
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if slopes is not None:
        q_pos, k_pos = positions(q.shape[0], k.shape[0], cache_length)
        scores += np.asarray(slopes, np.float64)[:, None, None] * (k_pos - q_pos)
    return scores if bias is None else scores + bias


def positions(rows, keys, cache_length=None):
    """Positions of the queries, as a column, and of the keys."""
    first = keys - rows if cache_length is None else cache_length
    return np.arange(rows)[:, None] + first, np.arange(keys)[None, :]


def attention(q, k, v, visible=None, sinks=None, **scores):
    """(O [rows, num_q_heads, d_vo], LSE [rows, num_q_heads]) in float64."""
    s = scores_of(q, k, **scores)
    if visible is not None:
        s = np.where(visible, s, -np.inf)
    v = np.repeat(np.asarray(v, np.float64), s.shape[0] // v.shape[1], axis=1)
    if sinks is not None:  # one more key, with a value of zeros
        sink = np.broadcast_to(np.asarray(sinks, np.float64)[:, None, None], (*s.shape[:2], 1))
        s = np.concatenate([s, sink], axis=2)
        v = np.concatenate([v, np.zeros((1, *v.shape[1:]))])
    if s.shape[2] == 0:
        out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
        return out, np.full(out.shape[:2], -np.inf)
    largest = s.max(axis=2, keepdims=True)
    weights = np.exp(s - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, largest + np.log(total), -np.inf)[:, :, 0]
    out = np.einsum("hqk,khd->qhd", weights / np.where(total > 0, total, 1), v)
    return out, lse.T


def largest_error(out, expected, dtype):
    """The largest error of `out`, in units of what its type may cost: below 1 is right.

    A unit is the error of rounding the inputs, the probabilities and the output to `dtype`, for
    values of about 1: 4 roundings of the expected value and 2 of 1, plus 2e-6 for float32 sums
    (scores of 64 products among them). Of 3,000 draws of 12 x 2 rows over 12 keys in float32 the
    worst value needs 0.6 of this.
    """
    out = np.asarray(out).astype(np.float64)
    assert out.shape == expected.shape, (out.shape, expected.shape)
    unit = EPSILON[dtype] * (4 * np.abs(expected) + 2) / 2 + 2e-6
    error = np.abs(out - expected)
    return math.inf if np.isnan(error).any() else float((error / unit).max(initial=0))


def assert_close(out, expected, dtype="float32"):
    error = largest_error(out, expected, dtype)
    assert error <= 1, f"the error is {error:.3g} times the limit for {dtype}"


def assert_lse(lse, expected, tolerance=2e-5):
    """`tolerance` is absolute; rows without keys must agree exactly."""
    lse = np.asarray(lse, np.float64)
    empty = np.isneginf(expected)
    assert (np.isneginf(lse) == empty).all()
    assert np.abs(lse[~empty] - expected[~empty]).max(initial=0) <= tolerance
