"""Random inputs of a problem for the peers, and a reference for one of its rows."""

import numpy as np

PATTERN = 524287  # prime: repeated data match no row or page
DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}  # bf16 as its bits


def to_bf16_bits(values):
    """Round to nearest even; the values are finite."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_storage(array):
    """float64 of what is stored."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def random_array(shape, dtype, seed):
    """Uniform values of variance 1; large arrays repeat a pattern."""
    generator = np.random.default_rng(seed)
    count = int(np.prod(shape))
    pattern = generator.uniform(-(3**0.5), 3**0.5, min(PATTERN, count)).astype(np.float32)
    pattern = to_bf16_bits(pattern) if dtype == "bf16" else pattern.astype(DTYPES[dtype])
    array = np.empty(count, DTYPES[dtype])
    for begin in range(0, count, PATTERN):
        array[begin : begin + PATTERN] = pattern[: min(PATTERN, count - begin)]
    return array.reshape(shape)


def one_row(q, k, v):
    """softmax(q k^T / sqrt(d)) v in float64; q [d], k [n, d], v [n, d]."""
    q, k, v = from_storage(q), from_storage(k), from_storage(v)
    scores = k @ q / np.sqrt(q.size)
    weights = np.exp(scores - scores.max())
    return weights @ v / weights.sum()


def relative_error(got, expected):
    got = from_storage(np.asarray(got))
    error = float(np.abs(got - expected).max() / np.abs(expected).max())
    return error if np.isfinite(error) else float("inf")


class UnsupportedProblem(Exception):
    """The peer can't express the problem."""


def uniform_lengths(problem):
    """(batch, seqlen_q, seqlen_kv); the peers have no batches of mixed lengths."""
    lengths = problem["seqlen-q"], problem["seqlen-kv"]
    if any(isinstance(length, list) for length in lengths):
        raise UnsupportedProblem("sequences of different lengths")
    return problem["batch"], *lengths
