"""Sampled parameter grids: attention in float64 by its definition in PyTorch, FlashAttention's own
rule for errors, and the count of refusals."""

import collections
import math

import torch

import pagoda

torch.set_num_threads(1)  # thousands of tiny tensors

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The widest type of queries that the device's kernels serve.
WIDEST = torch.float32 if DEVICE == "cpu" else torch.bfloat16


def on_device(x):
    if isinstance(x, dict):
        return {k: on_device(v) for k, v in x.items()}
    if isinstance(x, tuple):
        return tuple(map(on_device, x))
    return x.to(DEVICE) if isinstance(x, torch.Tensor) else x


def visible_keys(rows, keys, left=-1, right=-1, chunk=0, q_start=None):
    """bool [rows, keys], queries at the end of the keys unless q_start says where."""
    q = torch.arange(rows)[:, None] + (keys - rows if q_start is None else q_start)
    k = torch.arange(keys)[None, :]
    seen = torch.ones(rows, keys, dtype=torch.bool)
    if left >= 0:
        seen &= k >= q - left
    if right >= 0:
        seen &= k <= q + right
    if chunk:
        seen &= torch.div(k, chunk, rounding_mode="floor") == torch.div(
            q, chunk, rounding_mode="floor"
        )
    return seen


def attention(q, k, v, dtype, *, visible, scale=None, softcap=0.0, slopes=None, bias=None,
              sinks=None):  # fmt: skip
    """(O, natural LSE [rows, heads]) of one sequence, computed in `dtype`; q [rows, heads, d]."""
    q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    s = torch.einsum("qhd,khd->hqk", q * scale, k)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if slopes is not None:
        rows, keys = visible.shape
        distance = torch.arange(keys)[None, :] - torch.arange(rows)[:, None] - (keys - rows)
        s = s - slopes.to(dtype)[:, None, None] * distance.abs()
    if bias is not None:
        s = s + bias.to(dtype)
    s = s.masked_fill(~visible, -math.inf)
    if sinks is not None:
        sink = sinks.to(dtype)[:, None, None].expand(-1, s.shape[1], 1)
        s = torch.cat((s, sink), dim=2)
        v = torch.cat((v, torch.zeros_like(v[:1]) if len(v) else v.new_zeros(1, *v.shape[1:])))
    if s.shape[2] == 0:
        return v.new_zeros(q.shape[0], q.shape[1], v.shape[2]), s.new_full(s.shape[:2], -math.inf).T
    lse = torch.logsumexp(s.double(), dim=2)
    p = torch.softmax(s, dim=2).nan_to_num(0)
    return torch.einsum("hqk,khd->qhd", p, v), lse.T


def assert_within_rule(out, expected, same_type, what):
    """FlashAttention's rule: at most twice the error of PyTorch in the tensors' own type."""
    assert out.shape == expected.shape, what
    error = (out.double() - expected).abs()
    limit = 2 * (same_type.double() - expected).abs().max() if out.numel() else 0
    rounding = 2 * (expected.abs().max() * torch.finfo(out.dtype).eps) if out.numel() else 0
    assert not error.isnan().any(), what
    assert error.max() <= limit + rounding + 1e-5 if out.numel() else True, (
        what,
        error.max(),
        limit,
    )


class Tally:
    """How many combinations were right, and how many were refused for which argument."""

    def __init__(self):
        self.right = 0
        self.refused = collections.Counter()

    def run(self, call, allowed):
        """The result of call(), or None if it was refused by the name of one in `allowed`."""
        try:
            result = call()
        except (pagoda.Unsupported, pagoda.InvalidArgument) as error:
            assert error.field in allowed, (error.field, str(error))
            self.refused[error.field] += 1
            return None
        assert not allowed, f"{allowed} must be refused"
        return result

    def __str__(self):
        reasons = ", ".join(f"{name} {n}" for name, n in self.refused.most_common())
        return f"{self.right} right, {self.refused.total()} refused: {reasons}"


def check_samples(function, count):
    """function(seed, tally) of `count` seeds; each counts one result or one refusal."""
    tally = Tally()
    for seed in range(count):
        function(seed, tally)
    print(f"{function.__name__}: {tally}")
    assert tally.right + tally.refused.total() == count
    assert tally.right > 0.7 * count
