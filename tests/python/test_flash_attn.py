"""pagoda.flash_attn over sampled parameters: right by FlashAttention's rule, or refused by name."""

import math
import random

import pytest

torch = pytest.importorskip("torch")
import grids  # noqa: E402
from grids import DEVICE, WIDEST, on_device  # noqa: E402

import pagoda  # noqa: E402
from pagoda.flash_attn import (  # noqa: E402
    flash_attn_func,
    flash_attn_varlen_func,
    flash_attn_with_kvcache,
    get_scheduler_metadata,
)



@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


class Case:
    """One sampled combination of what all functions have."""

    def __init__(self, seed, has_slopes=True):
        self.random = r = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = r.choice([torch.float16, torch.bfloat16])
        self.heads, self.kv_heads = r.choice([(1, 1), (4, 4), (6, 2), (6, 1), (8, 2)])
        self.dim = r.choice([8, 32, 40, 64, 96, 128])
        self.v_dim = self.dim if r.random() < 0.8 else r.choice([16, 64])
        self.batch = r.choice([1, 2, 3])
        self.causal = r.random() < 0.5
        self.window = r.choice([(-1, -1), (-1, -1), (None, None), (5, 0), (3, 2), (-1, 4), (7, -1)])
        self.chunk = r.choice([0, 0, 0, 6])
        self.softcap = r.choice([0.0, 0.0, 4.0])
        self.scale = r.choice([None, None, 0.3])
        self.named = {}
        self.refused = set()  # the argument that must be named, where one is not served
        self.sinks = self.slopes = self.left_out = None
        if r.random() < 0.25:
            self.sinks = self.normal(self.heads).to(r.choice([torch.float32, self.dtype]))
            self.named[r.choice(["learnable_sink", "s_aux"])] = self.sinks
        if self.chunk:
            self.named["attention_chunk"] = self.chunk
        left, right = (-1 if side is None else side for side in self.window)
        self.left, self.right = left, 0 if self.causal else right
        if has_slopes and r.random() < 0.2:
            slopes = torch.rand(self.heads, generator=self.generator)
            self.slopes = slopes
            kind = r.choice(["heads", "shared", "rows"]) if self.batch > 1 else "heads"
            if self.right != 0:
                self.refused.add("alibi_slopes")
            if kind == "rows":
                slopes = slopes.repeat(self.batch, 1)
                self.refused.add("alibi_slopes")
            slopes = on_device(slopes)  # before expand(): a copy of a view has rows of its own
            self.slopes_argument = slopes.expand(self.batch, -1) if kind == "shared" else slopes
        self.common = {
            "softmax_scale": self.scale,
            "causal": self.causal,
            "window_size": self.window,
            "softcap": self.softcap,
            "alibi_slopes": None if self.slopes is None else self.slopes_argument,
        }
        if r.random() < 0.3:
            self.named["num_splits"] = r.choice([0, 1, 3])
        if r.random() < 0.1:
            self.named.update(pack_gqa=r.choice([None, True, False]), sm_margin=r.choice([0, 8]))
        if r.random() < 0.06:
            name, value = r.choice(
                [("qv", torch.zeros(1)), ("score_mod", print), ("mask_mod", print),
                 ("scheduler_metadata", torch.zeros(1)), ("num_splits", 200),
                 ("block_sparse_tensors", ()), ("gather_kv_indices", torch.zeros(1))]
            )  # fmt: skip
            self.named[name] = value
            self.refused.add(name)

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def tensor(self, *shape):
        return self.normal(*shape).to(self.dtype)

    def lengths(self, largest, least=0):
        return [self.random.randint(least, largest) for _ in range(self.batch)]

    def check(self, out, lse, sequences, tally):
        """sequences: (rows of out, rows of lse [heads, rows], q, k, v) of each."""
        for b, (rows, lse_rows, q, k, v) in enumerate(sequences):
            if self.left_out:
                k, v = k[self.left_out[b] :], v[self.left_out[b] :]
            seen = grids.visible_keys(len(q), len(k), self.left, self.right, self.chunk)
            keywords = {
                "visible": seen,
                "scale": self.scale,
                "softcap": self.softcap,
                "slopes": self.slopes,
                "sinks": self.sinks,
            }
            expected, expected_lse = grids.attention(q, k, v, torch.float64, **keywords)
            same_type, _ = grids.attention(q, k, v, self.dtype, **keywords)
            grids.assert_within_rule(rows(out).cpu(), expected, same_type, vars(self))
            if lse is not None:
                got = lse_rows(lse).cpu().double()
                torch.testing.assert_close(got, expected_lse.T.double(), atol=2e-3, rtol=1e-3)
        tally.right += 1

    def results(self):
        """Names that ask for the LSE, and how to take (out, lse) from the result."""
        kind = self.random.choice(["out", "probs", "lse"])
        if kind == "out":
            return {}, lambda r: (r, None)
        if kind == "lse":
            return {"return_lse": True}, lambda r: r
        return {"return_attn_probs": True}, lambda r: r[:2]


def offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def dense(seed, tally):
    case = Case(seed)
    r = case.random
    rows, keys = r.choice([1, 1, 2, 5, 17]), r.choice([1, 3, 16, 33])
    q = case.tensor(case.batch, rows, case.heads, case.dim)
    k = case.tensor(case.batch, keys, case.kv_heads, case.dim)
    v = case.tensor(case.batch, keys, case.kv_heads, case.v_dim)
    dropout = 0.1 if r.random() < 0.02 else 0.0
    if dropout:
        case.refused.add("dropout_p")
    wanted, split = case.results()
    common = case.common
    scale, causal = common.pop("softmax_scale"), common.pop("causal")
    result = tally.run(
        lambda: flash_attn_func(
            *map(on_device, (q, k, v)), dropout, scale, causal, **on_device(common),
            **on_device(case.named), **wanted,
        ),
        case.refused,
    )  # fmt: skip
    if result is not None:
        case.check(
            *split(result),
            [
                (lambda o, b=b: o[b], lambda s, b=b: s[b], q[b], k[b], v[b])
                for b in range(case.batch)
            ],
            tally,
        )


def varlen(seed, tally):
    case = Case(seed)
    r = case.random
    q_lengths, k_lengths = case.lengths(9), case.lengths(40)
    q = case.tensor(sum(q_lengths), case.heads, case.dim)
    k = case.tensor(sum(k_lengths), case.kv_heads, case.dim)
    v = case.tensor(sum(k_lengths), case.kv_heads, case.v_dim)
    cu_q, cu_k = offsets(q_lengths), offsets(k_lengths)
    wanted, split = case.results()
    bounds = (max(q_lengths), max(k_lengths)) if r.random() < 0.8 else (None, None)
    named = {}
    used = k_lengths
    k_argument, v_argument, cu_k_argument = k, v, cu_k
    if r.random() < 0.5:
        page_size = r.choice([1, 4, 16])
        k_argument, table = paged(case, k, k_lengths, page_size)
        v_argument, _ = paged(case, v, k_lengths, page_size, table)
        named[r.choice(["block_table", "page_table"])] = table
        if r.random() < 0.5:
            named["seqused_k"], cu_k_argument = torch.tensor(k_lengths, dtype=torch.int32), None
    elif r.random() < 0.3:
        used = [r.randint(0, n) for n in k_lengths]
        named["seqused_k"] = torch.tensor(used, dtype=torch.int32)
    result = tally.run(
        lambda: flash_attn_varlen_func(
            *map(on_device, (q, k_argument, v_argument, cu_q, cu_k_argument)), *bounds,
            **on_device(case.common), **on_device(case.named), **on_device(named), **wanted,
        ),
        case.refused,
    )  # fmt: skip
    if result is None:
        return
    sequences = []
    for b in range(case.batch):
        rows = slice(cu_q[b], cu_q[b + 1])
        keys = slice(cu_k[b], cu_k[b] + used[b])
        sequences.append(
            (
                lambda o, rows=rows: o[rows],
                lambda s, rows=rows: s[:, rows],
                q[rows],
                k[keys],
                v[keys],
            )
        )
    case.check(*split(result), sequences, tally)


def paged(case, x, lengths, page_size, table=None):
    """x in shuffled pages, NaN elsewhere, and the block table."""
    counts = [-(-n // page_size) for n in lengths]
    total = sum(counts) + 2
    if table is None:
        order = torch.randperm(total, generator=case.generator).to(torch.int32)
        table = torch.zeros(case.batch, max([1, *counts]), dtype=torch.int32)
        at = 0
        for b, n in enumerate(counts):
            table[b, :n] = order[at : at + n]
            at += n
    pages = torch.full((total, page_size, *x.shape[1:]), math.nan, dtype=x.dtype)
    at = 0
    for b, n in enumerate(lengths):
        for i in range(n):
            pages[table[b, i // page_size], i % page_size] = x[at + i]
        at += n
    return pages, table


def rotated(x, cos, sin, positions, interleaved):
    """By complex numbers: an independent definition. x: [rows, heads, d] in float64."""
    half = cos.shape[1]
    turn = torch.complex(cos[positions].double(), sin[positions].double())[:, None]
    x = x.double()
    part = x[..., : 2 * half]
    pairs = part.unflatten(-1, (half, 2)) if interleaved else part.unflatten(-1, (2, half)).mT
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    flat = turned.flatten(-2) if interleaved else turned.mT.flatten(-2)
    return torch.cat((flat, x[..., 2 * half :]), -1)


def kvcache(seed, tally):
    case = Case(seed)
    r = case.random
    rows = r.choice([1, 1, 3, 6])
    added = r.choice([0, 0, 1, rows])
    capacity = 24
    lengths = case.lengths(capacity - added)
    page_size = r.choice([None, None, 1, 4, 8])
    q = case.tensor(case.batch, rows, case.heads, case.dim)
    named, index = {}, list(range(case.batch))
    if page_size is None:
        cached = case.batch + 2
        k_cache = case.tensor(cached, capacity, case.kv_heads, case.dim)
        v_cache = case.tensor(cached, capacity, case.kv_heads, case.v_dim)
        if r.random() < 0.5:
            index = r.sample(range(cached), case.batch)
            named["cache_batch_idx"] = torch.tensor(index, dtype=torch.int32)
        else:
            k_cache, v_cache = k_cache[: case.batch].clone(), v_cache[: case.batch].clone()
        k_of, v_of = (lambda b: k_cache[index[b]]), (lambda b: v_cache[index[b]])
    else:
        per_sequence = capacity // page_size
        k_cache = case.tensor(case.batch * per_sequence + 1, page_size, case.kv_heads, case.dim)
        v_cache = case.tensor(case.batch * per_sequence + 1, page_size, case.kv_heads, case.v_dim)
        order = torch.randperm(len(k_cache), generator=case.generator)[: case.batch * per_sequence]
        table = order.view(case.batch, -1)
        named[r.choice(["block_table", "page_table"])] = table.to(torch.int32)
        k_of = lambda b: k_cache[table[b]].flatten(0, 1)  # noqa: E731
        v_of = lambda b: v_cache[table[b]].flatten(0, 1)  # noqa: E731
    expected_k = k_cache.clone()
    k_seq = [k_of(b)[: lengths[b]] for b in range(case.batch)]
    v_seq = [v_of(b)[: lengths[b]] for b in range(case.batch)]
    q_seq = list(q)
    new = ()
    if added:
        k_new = case.tensor(case.batch, added, case.kv_heads, case.dim)
        v_new = case.tensor(case.batch, added, case.kv_heads, case.v_dim)
        new = (k_new, v_new)
        if case.dim >= 32 and r.random() < 0.5:
            half = r.choice([8, case.dim // 2])
            angles = torch.rand(capacity + 8, half, generator=case.generator) * 6
            cos, sin = angles.cos().to(case.dtype), angles.sin().to(case.dtype)
            interleaved = r.random() < 0.5
            named.update(rotary_cos=cos, rotary_sin=sin, rotary_interleaved=interleaved)
            is_local = case.causal or (case.left, case.right) != (-1, -1) or case.chunk
            for b, n in enumerate(lengths):
                at = n + torch.arange(rows) if is_local else torch.full((rows,), n)
                q_seq[b] = rotated(q[b], cos, sin, at, interleaved).to(case.dtype)
                at = n + torch.arange(added)
                k_new = k_new.clone() if b == 0 else k_new
                k_new[b] = rotated(k_new[b], cos, sin, at, interleaved).to(case.dtype)
        k_seq = [torch.cat((k_seq[b], k_new[b])) for b in range(case.batch)]
        v_seq = [torch.cat((v_seq[b], v_new[b])) for b in range(case.batch)]
    if r.random() < 0.2:
        case.left_out = [r.randint(0, n) for n in lengths]
        named["cache_leftpad"] = torch.tensor(case.left_out, dtype=torch.int32)
    if case.random.random() < 0.5 and len(set(lengths)) == 1:
        seqlens = lengths[0]
    else:
        seqlens = torch.tensor(lengths, dtype=torch.int32)
    q_argument = q
    if r.random() < 0.3:
        q_argument = q.flatten(0, 1)
        named.update(cu_seqlens_q=offsets([rows] * case.batch), max_seqlen_q=rows)
    has_lse = r.random() < 0.5
    k_device, v_device = on_device(k_cache.clone()), on_device(v_cache.clone())
    result = tally.run(
        lambda: flash_attn_with_kvcache(
            on_device(q_argument), k_device, v_device, *map(on_device, new),
            cache_seqlens=on_device(seqlens), return_softmax_lse=has_lse,
            **on_device(case.common), **on_device(case.named), **on_device(named),
        ),
        case.refused,
    )  # fmt: skip
    if result is None:
        assert torch.equal(k_device.cpu(), k_cache), "a refused call has appended"
        return
    out, lse = result if has_lse else (result, None)
    out = out.view(case.batch, rows, case.heads, case.v_dim)
    if lse is not None and q_argument.ndim == 3:
        lse = lse.unflatten(1, (case.batch, rows)).transpose(0, 1)
    case.check(
        out,
        lse,
        [(lambda o, b=b: o[b], lambda s, b=b: s[b], q_seq[b], k_seq[b], v_seq[b])
         for b in range(case.batch)],
        tally,
    )  # fmt: skip
    # What the cache holds now: the new tokens in their places, all else as it was.
    k_cache, v_cache = k_device.cpu(), v_device.cpu()
    for b, n in enumerate(lengths):
        torch.testing.assert_close(k_of(b)[: n + added], k_seq[b], atol=2e-2, rtol=2e-2)
        assert torch.equal(v_of(b)[: n + added], v_seq[b])
    changed = (k_cache != expected_k).flatten(2).any(2).sum()
    assert changed <= added * case.batch


@pytest.mark.parametrize("function, count", [(dense, 1500), (varlen, 1800), (kvcache, 1700)])
def test_sampled_combinations_are_right_or_refused_by_name(function, count):
    grids.check_samples(function, count)


def test_the_rule_finds_a_result_that_is_two_percent_off():
    case = Case(3, has_slopes=False)
    q, k, v = case.tensor(5, 2, 64), case.tensor(9, 2, 64), case.tensor(9, 2, 64)
    seen = grids.visible_keys(5, 9)
    expected, _ = grids.attention(q, k, v, torch.float64, visible=seen)
    same, _ = grids.attention(q, k, v, case.dtype, visible=seen)
    grids.assert_within_rule(expected.to(case.dtype), expected, same, "")
    with pytest.raises(AssertionError):
        grids.assert_within_rule((expected * 1.02).to(case.dtype), expected, same, "")


@pytest.mark.skipif(
    DEVICE == "cuda" and torch.cuda.get_device_capability()[0] != 10,
    reason="e4m3 queries are served on the CPU and on sm_100",
)
def test_fp8_with_descales_of_each_sequence():
    g = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 12, h, 64, generator=g).to(torch.float8_e4m3fn) for h in (4, 2, 2)]
    scales = [torch.rand(2, 2, generator=g) + 0.5 for _ in inputs]
    named = dict(zip(("q_descale", "k_descale", "v_descale"), scales))
    out = flash_attn_func(*map(on_device, inputs), causal=True, **on_device(named))
    assert out.dtype == torch.bfloat16
    for b in range(2):
        parts = [
            x[b].double() * s[b].double().repeat_interleave(x.shape[2] // 2)[:, None]
            for x, s in zip(inputs, scales)
        ]
        expected, _ = grids.attention(
            *parts, torch.float64, visible=grids.visible_keys(12, 12, right=0)
        )
        assert (out[b].cpu().double() - expected).abs().max() < 0.1


@pytest.mark.parametrize(
    "named, field",
    [
        ({"page_table": torch.zeros(1, 1, dtype=torch.int32),
          "block_table": torch.zeros(1, 1, dtype=torch.int32)}, "page_table"),
        ({"k": torch.zeros(1, 1, 2, 64)}, "v"),
        ({"k": torch.zeros(1, 1, 2, 64), "v": torch.zeros(1, 1, 2, 64), "cache_seqlens": None},
         "cache_seqlens"),
        ({"rotary_cos": torch.zeros(9, 8), "rotary_sin": torch.zeros(9, 8)}, "rotary_cos"),
        ({"window_size": (-3, 0)}, "window_size"),
        ({"sm_margin": None}, "sm_margin"),
    ],
)  # fmt: skip
def test_wrong_calls_name_the_argument(named, field):
    q, cache = torch.zeros(1, 1, 2, 64), torch.zeros(1, 8, 2, 64)
    arguments = {"cache_seqlens": 3, **named}
    with pytest.raises(pagoda.Error) as error:
        flash_attn_with_kvcache(*map(on_device, (q, cache, cache.clone())), **on_device(arguments))
    assert error.value.field == field


def decode(batch=2, **named):
    """The result of a decode step over a dense cache of two sequences of 16 tokens."""
    q = torch.ones(batch, 1, 4, 64, dtype=WIDEST)
    cache = [torch.zeros(2, 16, 2, 64, dtype=WIDEST, device=DEVICE) for _ in range(2)]
    arguments = {"q": q, "cache_seqlens": 9, **named}
    return flash_attn_with_kvcache(k_cache=cache[0], v_cache=cache[1], **on_device(arguments))


on_cpu = pytest.mark.skipif(DEVICE == "cuda", reason="values in GPU memory are not read")


def int32(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    "named, field",
    [
        ({"batch": 4}, "k_cache.shape[0]"),
        ({"cache_batch_idx": int32(0)}, "cache_batch_idx.shape"),
        ({"cache_batch_idx": torch.zeros(2)}, "cache_batch_idx.dtype"),
        ({"block_table": int32(0, 1)}, "block_table.shape"),
        ({"block_table": int32(0, 1)[None]}, "block_table.shape"),
        ({"cache_seqlens": int32(3)}, "cache_seqlens.shape"),
        ({"cache_seqlens": torch.zeros(2)}, "cache_seqlens.dtype"),
        ({"cache_seqlens": -1}, "cache_seqlens"),
        ({"cache_seqlens": 17}, "cache_seqlens"),
        ({"cache_seqlens": 2.5}, "cache_seqlens"),
        ({"cache_batch_idx": [0, 1]}, "cache_batch_idx"),
        ({"num_splits": "2"}, "num_splits"),
        ({"attention_chunk": -1}, "attention_chunk"),
        pytest.param({"cache_batch_idx": int32(0, 7)}, "cache_batch_idx[1]", marks=on_cpu),
        pytest.param({"cache_batch_idx": int32(0, -1)}, "cache_batch_idx[1]", marks=on_cpu),
        pytest.param({"cache_batch_idx": int32(0, 10**8)}, "cache_batch_idx[1]", marks=on_cpu),
        pytest.param({"cache_batch_idx": torch.tensor([0, 1 << 32])}, "cache_batch_idx[1]",
                     marks=on_cpu),
        pytest.param({"block_table": int32(0, -1)[:, None]}, "kv.block_table[1]", marks=on_cpu),
        pytest.param({"block_table": int32(0, 2)[:, None]}, "kv.block_table[1]", marks=on_cpu),
        pytest.param({"cache_seqlens": int32(3, -1)}, "cache_seqlens[1]", marks=on_cpu),
        pytest.param({"cache_seqlens": int32(3, 17)}, "cache_seqlens[1]", marks=on_cpu),
    ],
)  # fmt: skip
def test_what_is_outside_of_the_cache_is_refused_by_name(named, field):
    with pytest.raises(pagoda.InvalidArgument) as error:
        decode(**named)
    assert error.value.field == field


@on_cpu
def test_page_ids_of_varlen_calls_are_checked():
    q, pages = torch.ones(2, 4, 64), torch.zeros(3, 16, 2, 64)
    with pytest.raises(pagoda.InvalidArgument, match=r"block_table\[1\] is -1"):
        flash_attn_varlen_func(
            q, pages, pages, int32(0, 1, 2), block_table=int32(2, -1)[:, None],
            seqused_k=int32(4, 4),
        )  # fmt: skip


def test_sequences_of_the_cache_may_be_more_than_those_of_the_batch():
    assert decode(batch=1).shape == (1, 1, 4, 64)
    assert decode(batch=1, cache_batch_idx=int32(1)).shape == (1, 1, 4, 64)


@pytest.mark.parametrize("name", ["return_lse", "return_softmax_lse"])
def test_the_cache_call_returns_the_lse_by_either_name(name):
    out, lse = decode(**{name: True})
    assert out.shape == (2, 1, 4, 64) and lse.shape == (2, 4, 1)
    torch.testing.assert_close(lse.cpu(), torch.full((2, 4, 1), math.log(9)), atol=1e-3, rtol=0)


def refused_append(named):
    """The error of a call that appends a token to each sequence, and the caches after it."""
    new = torch.ones(2, 1, 2, 64, dtype=WIDEST)
    caches = [torch.zeros(2, 16, 2, 64, dtype=WIDEST, device=DEVICE) for _ in range(2)]
    arguments = {
        "q": torch.ones(2, 1, 4, 64, dtype=WIDEST),
        "k": new,
        "v": new,
        "cache_seqlens": int32(3, 4),
        **named,
    }
    with pytest.raises(pagoda.Error) as error:
        flash_attn_with_kvcache(k_cache=caches[0], v_cache=caches[1], **on_device(arguments))
    return error.value, caches


ROTARY = {"rotary_cos": torch.ones(20, 8), "rotary_sin": torch.ones(20, 8)}


@pytest.mark.parametrize(
    "named, field",
    [
        ({"softcap": -1.0}, "score_mod.softcap"),
        ({"softmax_scale": -1.0}, "softmax_scale"),
        ({"q": torch.ones(2, 1, 3, 64, dtype=WIDEST)}, "q.shape[2]"),
        ({"q": torch.ones(2, 1, 4, 32, dtype=WIDEST)}, "kv.k.shape[3]"),
        ({"out": torch.ones(2, 1, 4, 32, dtype=WIDEST)}, "out.shape[3]"),
        ({"s_aux": torch.zeros(3)}, "sinks.shape[0]"),
        ({"attention_chunk": -1}, "attention_chunk"),
        ({"max_seqlen_q": "1"}, "max_seqlen_q"),
        ({"cache_leftpad": torch.zeros(2)}, "leftpad_kv.dtype"),
        ({"cache_seqlens": 16}, "cache_seqlens"),
        ({"k": torch.ones(1, 1, 2, 64, dtype=WIDEST), "v": torch.ones(1, 1, 2, 64, dtype=WIDEST)},
         "k.shape"),
        ({"v": torch.ones(1, 2, 2, 64, dtype=WIDEST)}, "v.shape"),
        ({"cu_seqlens_k_new": int32(0, 1)}, "cu_seqlens_k_new.shape"),
        ({**ROTARY, "rotary_sin": torch.ones(20, 7)}, "rotary_sin.shape"),
        ({"rotary_cos": torch.ones(9, 33), "rotary_sin": torch.ones(9, 33)}, "rotary_cos.shape[1]"),
        ({**ROTARY, "rotary_seqlens": int32(1)}, "rotary_seqlens.shape"),
        pytest.param({"cache_seqlens": int32(-1, 4)}, "cache_seqlens[0]", marks=on_cpu),
        pytest.param({"cache_seqlens": int32(3, 16)}, "cache_seqlens[1]", marks=on_cpu),
        pytest.param({"cache_leftpad": int32(9, 9)}, "leftpad_kv[0]", marks=on_cpu),
        pytest.param({"cache_batch_idx": int32(0, 2)}, "cache_batch_idx[1]", marks=on_cpu),
        pytest.param({"block_table": int32(0, -1)[:, None]}, "kv.block_table[1]", marks=on_cpu),
        pytest.param({**ROTARY, "rotary_seqlens": int32(-1, 1)}, "rotary_seqlens[0]", marks=on_cpu),
        pytest.param({**ROTARY, "rotary_seqlens": int32(1, 20)}, "rotary_cos.shape[0]",
                     marks=on_cpu),
        pytest.param({"k": torch.ones(2, 2, 64), "v": torch.ones(2, 2, 64),
                      "cu_seqlens_k_new": int32(0, 1, 3)}, "cu_seqlens_k_new[2]", marks=on_cpu),
        pytest.param({"k": torch.ones(2, 2, 64), "v": torch.ones(2, 2, 64),
                      "cu_seqlens_k_new": int32(1, 0, 2)}, "cu_seqlens_k_new", marks=on_cpu),
        pytest.param({"k": torch.ones(2, 2, 64), "v": torch.ones(2, 2, 64),
                      "cu_seqlens_k_new": int32(0, 1, 1)}, "cu_seqlens_k_new[2]", marks=on_cpu),
    ],
)  # fmt: skip
def test_a_refused_call_has_appended_nothing(named, field):
    error, caches = refused_append(named)
    assert error.field == field
    assert not any(cache.any() for cache in caches)


def test_values_that_are_not_read_skip_tokens_outside_of_the_cache(monkeypatch):
    """As in GPU memory, on every device."""
    monkeypatch.setattr("pagoda.checks.is_on_host", lambda x: False)
    new = torch.ones(2, 1, 2, 64, dtype=WIDEST)
    caches = [torch.zeros(2, 16, 2, 64, dtype=WIDEST, device=DEVICE) for _ in range(2)]
    arguments = {"k": new, "v": new, "cache_seqlens": int32(-1, 4)}
    q = on_device(torch.ones(2, 1, 4, 64, dtype=WIDEST))
    flash_attn_with_kvcache(q, *caches, **on_device(arguments))
    for cache in caches:
        assert cache.any(-1).any(-1).nonzero().tolist() == [[1, 4]]


def test_a_call_that_requires_grad_has_appended_nothing():
    q = torch.ones(2, 1, 4, 64, dtype=WIDEST, device=DEVICE, requires_grad=True)
    with torch.enable_grad():
        error, caches = refused_append({"q": q})
    assert error.field == "q" and not any(cache.any() for cache in caches)


def test_a_call_without_a_kernel_has_appended_nothing(monkeypatch):
    from pagoda.info import Kernel

    kernels = [Kernel("one", "cpu", False, False, "lacks it")]
    monkeypatch.setattr("pagoda.flash_attn.explain", lambda *_, **__: kernels)
    error, caches = refused_append({})
    assert isinstance(error, pagoda.Unsupported) and "one: lacks it" in str(error)
    assert not any(cache.any() for cache in caches)


def test_unknown_arguments_are_type_errors_and_metadata_is_none():
    q = on_device(torch.zeros(1, 1, 2, 64, dtype=WIDEST))
    with pytest.raises(TypeError, match="no argument is called flavour"):
        flash_attn_func(q, q, q, flavour=1)
    metadata = get_scheduler_metadata(1, 1, 8, 2, 2, 64, None)
    assert flash_attn_func(q, q, q, scheduler_metadata=metadata).shape == q.shape


def test_a_tensor_that_requires_grad_is_refused():
    q = torch.zeros(1, 1, 2, 64, requires_grad=True)
    with torch.enable_grad(), pytest.raises(pagoda.InvalidArgument, match="^q is a tensor that"):
        flash_attn_func(q, q, q)


def test_compiles_as_a_whole_graph():
    torch.compiler.reset()
    q, cache, new = (
        torch.randn(shape, dtype=WIDEST) for shape in ((2, 1, 4, 64), (2, 16, 2, 64), (2, 1, 2, 64))
    )
    lengths = torch.tensor([3, 7], dtype=torch.int32)

    def step(q, k_cache, v_cache, new, lengths):
        return flash_attn_with_kvcache(
            q, k_cache, v_cache, new, new, cache_seqlens=lengths, causal=True
        )

    first = [on_device(x.clone()) for x in (cache, cache)]
    second = [on_device(x.clone()) for x in (cache, cache)]
    q, new, lengths = map(on_device, (q, new, lengths))
    expected = step(q, *first, new, lengths)
    got = torch.compile(step, fullgraph=True)(q, *second, new, lengths)
    assert torch.equal(got, expected) and torch.equal(first[0], second[0])


@pytest.mark.parametrize("by_head", [False, True])
def test_new_tokens_are_stored_with_the_descales_of_an_fp8_cache(by_head):
    """Read back as k_descale * stored, so the attention sees the tokens that were given."""
    q, new = (torch.randn(2, 3, h, 64, generator=torch.Generator().manual_seed(h)) for h in (4, 2))
    q, new = q.to(torch.bfloat16), new.to(torch.bfloat16)
    descale = torch.tensor([0.25, 0.5] if by_head else [0.25, 0.25]).expand(2, 2)
    caches = [torch.zeros(2, 8, 2, 64).to(torch.float8_e4m3fn) for _ in range(2)]
    named = {"k_descale": descale, "v_descale": descale}
    out = flash_attn_with_kvcache(
        on_device(q), *map(on_device, caches), on_device(new), on_device(new),
        cache_seqlens=on_device(torch.zeros(2, dtype=torch.int32)), causal=True,
        **on_device(named),
    )  # fmt: skip
    for b in range(2):
        expected, _ = grids.attention(
            q[b], new[b], new[b], torch.float64, visible=grids.visible_keys(3, 3, -1, 0)
        )
        error = (out[b].cpu().double() - expected).abs().max() / expected.abs().max()
        assert error < 0.1, "e4m3 has three bits of mantissa"
    named["k_descale"] = torch.full((2, 2), 0.5)
    with pytest.raises(pagoda.Unsupported, match="^k_descale is of"):
        flash_attn_with_kvcache(
            q, *caches, new, new, cache_seqlens=torch.zeros(2, dtype=torch.int32), **named
        )
