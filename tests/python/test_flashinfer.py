"""pagoda.flashinfer over sampled parameters: right by FlashAttention's rule, or refused by name."""

import math
import random

import pytest

torch = pytest.importorskip("torch")
import grids  # noqa: E402
from grids import DEVICE, WIDEST, on_device  # noqa: E402

import pagoda  # noqa: E402
import pagoda.flashinfer as fi  # noqa: E402

REFUSED_AT_PLAN = [
    ("pos_encoding_mode", "ROPE_LLAMA"), ("rope_theta", 1e4), ("rope_scale", 2.0),
    ("seq_lens", torch.zeros(1)), ("block_tables", torch.zeros(1)),
]  # fmt: skip
REFUSED_AT_RUN = [("kv_cache_sf", torch.zeros(1)), ("skip_softmax_threshold_scale_factor", 1.0)]


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


class Case:
    """Sampled sequences in shuffled pages, and the arguments that plan() and run() share."""

    def __init__(self, seed, rows_of):
        self.random = r = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = r.choice([torch.float16, torch.bfloat16])
        self.heads, self.kv_heads = r.choice([(4, 4), (6, 2), (8, 1), (2, 1)])
        self.dim = r.choice([16, 64, 128])
        self.layout = r.choice(["NHD", "HND"])
        self.page_size = r.choice([1, 3, 8, 16])
        batch = r.choice([1, 2, 4])
        self.rows = rows_of(r, batch)
        self.keys = [max(n, r.randint(0, 40)) if r.random() < 0.9 else n for n in self.rows]
        self.q = self.tensor(sum(self.rows), self.heads, self.dim)
        self.k = [self.tensor(n, self.kv_heads, self.dim) for n in self.keys]
        self.v = [self.tensor(n, self.kv_heads, self.dim) for n in self.keys]
        self.scale = r.choice([None, 0.2])
        self.softcap = r.choice([None, 0.0, 5.0])
        self.window = r.choice([-1, -1, 0, 6])
        self.plan = {"sm_scale": self.scale, "logits_soft_cap": self.softcap}
        self.run, self.refused, self.sinks, self.slopes = {}, set(), None, None
        self.factor, self.v_factor = 1.0, 1.0
        if r.random() < 0.2:
            self.sinks = torch.randn(self.heads, generator=self.generator)
            self.run["sinks"] = self.sinks
        if r.random() < 0.3:
            q_scale, k_scale, v_scale = r.choice([None, 0.5]), r.choice([None, 1.5]), 0.75
            self.factor = (q_scale or 1) * (k_scale or 1)
            self.v_factor = v_scale
            if r.random() < 0.5 and k_scale:
                k_scale, v_scale = torch.tensor(k_scale), torch.tensor([v_scale])
            self.run.update(q_scale=q_scale, k_scale=k_scale, v_scale=v_scale)
        if r.random() < 0.5:
            self.plan["window_left"] = self.window
        else:
            self.run["window_left"] = self.window
        self.has_lse = r.random() < 0.5
        self.run["return_lse"] = self.has_lse
        if r.random() < 0.15:
            self.plan["pos_encoding_mode"] = "ALIBI"
            self.slopes = slopes_by_formula(self.heads)
            if self.softcap:
                self.refused.add("logits_soft_cap")
            if self.has_lse:
                self.refused.add("return_lse")
        if r.random() < 0.1:
            self.plan["disable_split_kv"] = True
        if r.random() < 0.1:
            self.plan["fixed_split_size"] = 64
        if r.random() < 0.05:
            name, value = r.choice(REFUSED_AT_PLAN)
            self.plan[name] = value
            self.refused.add(name)
        elif r.random() < 0.04:
            name, value = r.choice(REFUSED_AT_RUN)
            self.run[name] = value
            self.refused.add(name)

    def tensor(self, *shape):
        return torch.randn(shape, generator=self.generator).to(self.dtype)

    def pages(self):
        """(indptr, indices, last_page_len) and the cache as (k, v) or one tensor."""
        counts = [-(-n // self.page_size) for n in self.keys]
        order = torch.randperm(sum(counts) + 1, generator=self.generator)
        shape = (len(order), 2, self.page_size, self.kv_heads, self.dim)
        cache = torch.full(shape, math.nan, dtype=self.dtype)
        at = 0
        for b, n in enumerate(self.keys):
            for i in range(n):
                page = order[at + i // self.page_size]
                cache[page, 0, i % self.page_size] = self.k[b][i]
                cache[page, 1, i % self.page_size] = self.v[b][i]
            at += counts[b]
        if self.layout == "HND":
            cache = cache.transpose(2, 3).contiguous()
        last = [(n - 1) % self.page_size + 1 if n else 0 for n in self.keys]
        indptr = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        table = (indptr, order[:-1].to(torch.int32), torch.tensor(last, dtype=torch.int32))
        is_pair = self.random.random() < 0.5
        return table, (cache[:, 0].clone(), cache[:, 1].clone()) if is_pair else cache

    def check(self, result, tally, causal, custom=None):
        out, lse = result if self.has_lse else (result, None)
        at = 0
        for b, (rows, keys) in enumerate(zip(self.rows, self.keys)):
            q = self.q[at : at + rows]
            seen = grids.visible_keys(rows, keys, self.window, 0 if causal else -1)
            if custom is not None:
                seen = grids.visible_keys(rows, keys, self.window) & custom[b]
            scale = (1 / math.sqrt(self.dim) if self.scale is None else self.scale) * self.factor
            named = {"visible": seen, "scale": scale, "softcap": self.softcap or 0.0,
                     "sinks": self.sinks}  # fmt: skip
            if self.slopes is not None:
                distance = torch.arange(keys)[None] - torch.arange(rows)[:, None] - (keys - rows)
                named["bias"] = self.slopes[:, None, None] * distance
            expected, expected_lse = grids.attention(
                q, self.k[b], self.v[b], torch.float64, **named
            )
            same, _ = grids.attention(q, self.k[b], self.v[b], self.dtype, **named)
            grids.assert_within_rule(
                out[at : at + rows].cpu(),
                expected * self.v_factor,
                same * self.v_factor,
                vars(self),
            )
            if lse is not None:
                torch.testing.assert_close(
                    lse[at : at + rows].cpu().double(), expected_lse.double() / math.log(2),
                    atol=3e-3, rtol=1e-3,
                )  # fmt: skip
            at += rows
        tally.right += 1


def slopes_by_formula(heads):
    def of_power(n):
        start = 2 ** (-8 / n)
        return [start ** (i + 1) for i in range(n)]

    power = 2 ** math.floor(math.log2(heads))
    more = of_power(2 * power)[0::2][: heads - power]
    return torch.tensor(of_power(power) + more)


def prefill(seed, tally):
    case = Case(seed, lambda r, n: [r.randint(0, 9) for _ in range(n)])
    r = case.random
    (indptr, indices, last), cache = case.pages()
    causal, custom, named = r.random() < 0.5, None, {}
    if r.random() < 0.25:
        custom = [torch.rand(n, m, generator=case.generator) < 0.6
                  for n, m in zip(case.rows, case.keys)]  # fmt: skip
        if r.random() < 0.5:
            named["custom_mask"] = torch.cat([c.flatten() for c in custom])
        else:
            named["packed_custom_mask"] = torch.cat([packed(c.flatten()) for c in custom])
    elif r.random() < 0.03:
        named["use_fp16_qk_reduction"] = True
        case.refused.add("use_fp16_qk_reduction")
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(torch.empty(0), case.layout)
    qo_indptr = torch.tensor([0, *case.rows]).cumsum(0).to(torch.int32)

    def call():
        wrapper.plan(
            *on_device((qo_indptr, indptr, indices, last)), case.heads, case.kv_heads, case.dim,
            case.page_size, causal=causal, q_data_type=case.dtype, **case.plan, **named,
        )  # fmt: skip
        return wrapper.run(*on_device((case.q, cache)), **on_device(case.run))

    result = tally.run(call, case.refused)
    if result is not None:
        case.check(result, tally, causal, custom)


def packed(bits):
    padded = torch.zeros(-(-len(bits) // 8) * 8, dtype=torch.uint8)
    padded[: len(bits)] = bits
    return (padded.view(-1, 8) << torch.arange(8, dtype=torch.uint8)).sum(1).to(torch.uint8)


def ragged(seed, tally):
    case = Case(seed, lambda r, n: [r.randint(0, 9) for _ in range(n)])
    r = case.random
    k, v = torch.cat(case.k), torch.cat(case.v)
    if case.layout == "HND":
        k, v = k.transpose(0, 1).contiguous(), v.transpose(0, 1).contiguous()
    causal, custom, named = r.random() < 0.5, None, {}
    if r.random() < 0.25:
        custom = [torch.rand(n, m, generator=case.generator) < 0.6
                  for n, m in zip(case.rows, case.keys)]  # fmt: skip
        named["custom_mask"] = torch.cat([c.flatten() for c in custom])
    if "kv_cache_sf" in case.run:  # no argument here; o_scale is
        case.run["o_scale"] = case.run.pop("kv_cache_sf")
        case.refused = case.refused - {"kv_cache_sf"} | {"o_scale"}
    wrapper = fi.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(0), case.layout)
    offsets = [torch.tensor([0, *n]).cumsum(0).to(torch.int32) for n in (case.rows, case.keys)]

    def call():
        wrapper.plan(
            *on_device(tuple(offsets)), case.heads, case.kv_heads, case.dim, causal=causal,
            q_data_type=case.dtype, **case.plan, **named,
        )  # fmt: skip
        return wrapper.run(*on_device((case.q, k, v)), **on_device(case.run))

    result = tally.run(call, case.refused)
    if result is not None:
        case.check(result, tally, causal, custom)


REFUSED_BY_MLA = ["profiler_buffer", "kv_len", "page_table", "o_scale", "ckv_scale_arr"]


def mla(seed, tally):
    r = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    dtype = r.choice([torch.float16, torch.bfloat16])
    ckv, kpe = r.choice([(512, 64), (512, 0), (256, 64), (128, 16)])
    heads, page_size, causal = r.choice([1, 4, 16]), r.choice([1, 4, 16]), r.random() < 0.6
    batch = r.choice([1, 2, 4])
    rows = [r.choice([1, 1, 2, 5]) for _ in range(batch)]
    keys = [max(n, r.randint(0, 40)) for n in rows]
    scale = r.choice([1 / math.sqrt(192), 0.05])
    q = torch.randn(sum(rows), heads, ckv + kpe, generator=g).to(dtype)
    counts = [-(-n // page_size) for n in keys]
    order = torch.randperm(sum(counts) + 1, generator=g)
    cache = torch.full((len(order), page_size, ckv + kpe), math.nan, dtype=dtype)
    sequences, page = [], 0
    for n, count in zip(keys, counts):
        tokens = torch.randn(n, ckv + kpe, generator=g).to(dtype)
        padded = torch.full((count * page_size, ckv + kpe), math.nan, dtype=dtype)
        padded[:n] = tokens
        cache[order[page : page + count]] = padded.view(count, page_size, -1)
        sequences.append(tokens)
        page += count
    cache = on_device(cache)
    parts = cache[..., :ckv], cache[..., ckv:]
    if r.random() < 0.5:  # two tensors
        parts = tuple(x.clone() for x in parts)
    run, refused = {"return_lse": r.random() < 0.5, "return_lse_base_on_e": r.random() < 0.5}, set()
    if r.random() < 0.05:
        name = r.choice(REFUSED_BY_MLA)
        run[name], refused = torch.zeros(1), {name}
    elif r.random() < 0.05:
        run["ckv_scale"], run["kpe_scale"], refused = 0.5, 0.25, {"kpe_scale"}
    factor = 1.0
    if not refused and r.random() < 0.3:
        factor = run["ckv_scale"] = run["kpe_scale"] = 0.5
    table = [torch.tensor([0, *n]).cumsum(0) for n in (rows, counts)]
    wrapper = fi.BatchMLAPagedAttentionWrapper(torch.empty(0))

    def call():
        wrapper.plan(
            *on_device((*table, order[:-1], torch.tensor(keys))), heads, ckv, kpe, page_size,
            causal, scale, dtype, dtype,
        )  # fmt: skip
        q_nope, q_pe = on_device((q[..., :ckv].contiguous(), q[..., ckv:].contiguous()))
        return wrapper.run(q_nope, q_pe, *parts, **on_device(run))

    result = tally.run(call, refused)
    if result is None:
        return
    out, lse = result if run["return_lse"] else (result, None)
    base = 1 if run["return_lse_base_on_e"] else math.log(2)
    at = 0
    for n, tokens in zip(rows, sequences):
        seen = grids.visible_keys(n, len(tokens), right=0 if causal else -1)
        k, v = tokens[:, None], tokens[:, None, :ckv]
        named = {"visible": seen, "scale": scale * factor}
        expected, expected_lse = grids.attention(
            q[at : at + n], k, v, torch.float64, **named
        )
        same, _ = grids.attention(q[at : at + n], k, v, dtype, **named)
        what = (seed, ckv, kpe, heads, page_size, rows, keys, causal)
        grids.assert_within_rule(out[at : at + n].cpu(), expected * factor, same * factor, what)
        if lse is not None:
            got = lse[at : at + n].cpu().double()
            torch.testing.assert_close(got, expected_lse / base, atol=3e-3, rtol=1e-3)
        at += n
    tally.right += 1


def decode(seed, tally):
    rows = random.Random(seed).choice([1, 1, 1, 3])
    case = Case(seed, lambda r, n: [rows] * n)
    (indptr, indices, last), cache = case.pages()
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0), case.layout)

    def call():
        wrapper.plan(
            *on_device((indptr, indices, last)), case.heads, case.kv_heads, case.dim,
            case.page_size, data_type=case.dtype, q_len_per_req=rows, **case.plan,
        )  # fmt: skip
        return wrapper.run(*on_device((case.q, cache)), **on_device(case.run))

    result = tally.run(call, case.refused)
    if result is not None:
        case.check(result, tally, causal=True)


def mixed(seed, tally):
    case = Case(seed, lambda r, n: [r.choice([1, 1, 5]) for _ in range(n)])
    (indptr, indices, _), cache = case.pages()
    causal = case.random.random() < 0.7
    # BatchAttention has fewer arguments.
    case.window, case.sinks, case.slopes, case.has_lse = -1, None, None, True
    q_scale = case.run.get("q_scale")
    case.factor /= q_scale or 1
    case.refused -= {"return_lse", "seq_lens", "block_tables", "rope_theta", "rope_scale",
                     "pos_encoding_mode", "logits_soft_cap",
                     "skip_softmax_threshold_scale_factor"}  # fmt: skip
    named = {n: v for n, v in case.run.items() if n in ("k_scale", "v_scale", "kv_cache_sf")}
    planned_cap = case.softcap
    if case.random.random() < 0.3:
        named["logits_soft_cap"] = case.softcap = 3.0  # instead of the plan's
    wrapper = fi.BatchAttention(case.layout, DEVICE)

    def call():
        wrapper.plan(
            *on_device((torch.tensor([0, *case.rows]).cumsum(0), indptr, indices)),
            torch.tensor(case.keys, device=DEVICE), case.heads, case.kv_heads, case.dim, case.dim,
            case.page_size, causal, case.scale, planned_cap, case.dtype, case.dtype,
        )  # fmt: skip
        return wrapper.run(*on_device((case.q, cache)), **on_device(named))

    result = tally.run(call, case.refused)
    if result is not None:
        case.check(result, tally, causal)


def single(seed, tally):
    case = Case(seed, lambda r, n: [r.choice([1, 6])])
    r = case.random
    case.rows, case.keys = case.rows[:1], case.keys[:1]
    case.q = case.q[: case.rows[0]]
    k, v = (x[0].transpose(0, 1) if case.layout == "HND" else x[0] for x in (case.k, case.v))
    case.sinks = None
    case.refused -= {
        "seq_lens",
        "block_tables",
        "kv_cache_sf",
        "skip_softmax_threshold_scale_factor",
    }
    not_here = ("disable_split_kv", "fixed_split_size", "seq_lens", "block_tables")
    named = {n: x for n, x in case.plan.items() if n not in not_here}
    named.update(window_left=case.window, return_lse=case.has_lse)
    scales = [case.run.get(n) for n in ("q_scale", "k_scale", "v_scale")]
    inputs = on_device((case.q, k, v))
    causal = r.random() < 0.5
    if case.rows == [1] and r.random() < 0.7:
        causal = True
        names = dict(zip(("q_scale", "k_scale", "v_scale"), scales))
        call = (
            lambda: fi.single_decode_with_kv_cache(  # noqa: E731
                inputs[0][0], *inputs[1:], case.layout, **on_device(names), **named
            )
        )
        result = tally.run(call, case.refused)
        if result is not None:
            result = tuple(x[None] for x in result) if case.has_lse else result[None]
    else:
        names = dict(zip(("scale_q", "scale_k", "scale_v"), scales))
        call = lambda: fi.single_prefill_with_kv_cache(  # noqa: E731
            *inputs, causal=causal, kv_layout=case.layout, **on_device(names), **named
        )
        result = tally.run(call, case.refused)
    if result is not None:
        case.check(result, tally, causal)


@pytest.mark.parametrize(
    "function, count",
    [(prefill, 700), (ragged, 500), (decode, 600), (mixed, 300), (single, 400), (mla, 300)],
)
def test_sampled_combinations_are_right_or_refused_by_name(function, count):
    grids.check_samples(function, count)


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_appended_tokens_are_at_their_positions(layout):
    k, v = torch.randn(5, 2, 16), torch.randn(5, 2, 16)
    cache = torch.full((4, 2, 4, 2, 16), math.nan)
    if layout == "HND":
        cache = cache.transpose(2, 3).contiguous()
    indptr, indices = torch.tensor([0, 2, 3], dtype=torch.int32), torch.tensor([3, 0, 2]).int()
    last = torch.tensor([2, 3], dtype=torch.int32)
    lengths = fi.get_seq_lens(indptr, last, 4)
    assert lengths.tolist() == [6, 3]
    batch, positions = fi.get_batch_indices_positions(torch.tensor([0, 3, 5]), lengths, 5)
    assert batch.tolist() == [0, 0, 0, 1, 1] and positions.tolist() == [3, 4, 5, 1, 2]
    cache = on_device(cache)
    fi.append_paged_kv_cache(
        *on_device((k, v, batch, positions)), cache, *on_device((indices, indptr, last)), layout
    )
    cache = cache.cpu()
    pages = cache.transpose(2, 3) if layout == "HND" else cache
    places = [(3, 3), (0, 0), (0, 1), (2, 1), (2, 2)]
    for i, (page, row) in enumerate(places):
        assert torch.equal(pages[page, 0, row], k[i]) and torch.equal(pages[page, 1, row], v[i])
    assert pages.isnan().all(-1).all(-1).sum() == 4 * 2 * 4 - 10


on_cpu = pytest.mark.skipif(DEVICE == "cuda", reason="values in GPU memory are not read")


def appended(**named):
    """Appends two tokens to two sequences of two pages each; returns the cache."""
    new = torch.ones(2, 2, 16)
    arguments = {
        "append_key": new,
        "append_value": new,
        "batch_indices": torch.tensor([0, 1], dtype=torch.int32),
        "positions": torch.tensor([3, 1], dtype=torch.int32),
        "kv_indices": torch.arange(4, dtype=torch.int32),
        "kv_indptr": torch.tensor([0, 2, 4], dtype=torch.int32),
        "kv_last_page_len": torch.tensor([4, 4], dtype=torch.int32),
        **named,
    }
    cache = torch.zeros(4, 2, 4, 2, 16, device=DEVICE)
    try:
        fi.append_paged_kv_cache(paged_kv_cache=cache, **on_device(arguments))
    except pagoda.InvalidArgument:
        assert not cache.any(), "a refused call has appended"
        raise
    return cache


@pytest.mark.parametrize(
    "name, values, field",
    [
        ("positions", torch.tensor([3.0, 1.0]), "positions.dtype"),
        ("positions", torch.tensor([3]), "positions.shape"),
        ("batch_indices", torch.tensor([0, 1, 1]), "batch_indices.shape"),
        ("kv_indices", torch.arange(4.0), "kv_indices.dtype"),
        ("kv_indptr", torch.tensor([0, 2, 4]).float(), "kv_indptr.dtype"),
        ("kv_last_page_len", torch.tensor([4]), "kv_last_page_len.shape"),
        pytest.param("positions", torch.tensor([8, 1]), "positions[0]", marks=on_cpu),
        pytest.param("positions", torch.tensor([3, -1]), "positions[1]", marks=on_cpu),
        pytest.param("batch_indices", torch.tensor([0, 2]), "batch_indices[1]", marks=on_cpu),
        pytest.param("batch_indices", torch.tensor([-1, 0]), "batch_indices[0]", marks=on_cpu),
        pytest.param("kv_indices", torch.arange(4) + (1 << 32), "kv_indices[0]", marks=on_cpu),
        pytest.param("kv_indices", torch.tensor([0, 1, -1, 3]), "kv_indices[2]", marks=on_cpu),
        pytest.param("kv_indptr", torch.tensor([0, 2, 5]), "kv_indptr[2]", marks=on_cpu),
        pytest.param("kv_indptr", torch.tensor([0, 3, 2]), "kv_indptr", marks=on_cpu),
    ],
)
def test_appended_tokens_outside_of_their_pages_are_refused(name, values, field):
    with pytest.raises(pagoda.InvalidArgument) as error:
        appended(**{name: values})
    assert error.value.field == field


@pytest.mark.parametrize("positions", [[8, 1], [3, -1]])
def test_values_that_are_not_read_skip_tokens_outside_of_their_pages(positions, monkeypatch):
    """As in GPU memory, on every device."""
    for module in ("checks", "flashinfer"):
        monkeypatch.setattr(f"pagoda.{module}.is_on_host", lambda x: False)
    cache = appended(positions=torch.tensor(positions, dtype=torch.int32))
    assert cache.any(-1).any(-1).sum() == 2, "K and V of the token that is inside"


@pytest.mark.parametrize(
    "cache, field",
    [
        (torch.zeros(4, 3, 4, 2, 16), "paged_kv_cache.shape[1]"),
        ((torch.zeros(4, 4, 2, 16),) * 3, "paged_kv_cache"),
    ],
)
def test_a_cache_that_is_no_pair_is_refused(cache, field):
    new, table = torch.ones(2, 2, 16), torch.tensor([0, 1], dtype=torch.int32)
    with pytest.raises(pagoda.InvalidArgument) as error:
        fi.append_paged_kv_cache(new, new, table, table, cache, table, table, table[:1])
    assert error.value.field == field


def test_page_tables_of_other_types_are_refused_by_plan():
    table = {"indptr": [0, 1], "indices": [1], "last_page_len": [3]}
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(None)
    for name, values, field in (
        ("indices", torch.tensor([1.0]), "indices.dtype"),
        ("indptr", torch.tensor([[0, 1]]), "indptr.shape"),
        ("last_page_len", [3], "last_page_len"),
        ("indices", torch.tensor([1 + (1 << 32)]), "indices[0]"),
    ):
        tensors = {n: torch.tensor(x) for n, x in table.items()} | {name: values}
        with pytest.raises(pagoda.InvalidArgument) as error:
            wrapper.plan(**tensors, num_qo_heads=2, num_kv_heads=2, head_dim=16, page_size=4)
        assert error.value.field == field


@on_cpu
@pytest.mark.parametrize("page", [-1, 2])
def test_page_ids_outside_of_the_cache_are_refused_by_run(page):
    table = [torch.tensor(x, dtype=torch.int32) for x in ([0, 1], [page], [3])]
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(None)
    wrapper.plan(*table, 2, 2, 16, 4, data_type="float32")
    with pytest.raises(pagoda.InvalidArgument, match=f"kv.indices.* is {page}"):
        wrapper.run(torch.zeros(1, 2, 16), torch.zeros(2, 2, 4, 2, 16))
    mla = fi.BatchMLAPagedAttentionWrapper(None)
    mla.plan(torch.tensor([0, 1]), *table, 1, 64, 16, 4, True, 0.1, "float32", "float32")
    with pytest.raises(pagoda.InvalidArgument, match=f"kv_indices.* is {page}"):
        parts = (torch.zeros(2, 4, n) for n in (64, 16))
        mla.run(torch.zeros(1, 1, 64), torch.zeros(1, 1, 16), *parts)


def test_merged_states_are_those_of_all_keys():
    q, k, v = (torch.randn(n, 2, 64, dtype=WIDEST, device=DEVICE) for n in (3, 20, 20))
    near = {"atol": 1e-5, "rtol": 1e-5} if WIDEST is torch.float32 else {"atol": 2e-2, "rtol": 2e-2}

    def part(a, b):
        return fi.single_prefill_with_kv_cache(q, k[a:b], v[a:b], return_lse=True)

    whole = part(0, 20)
    pair = fi.merge_state(*part(0, 8), *part(8, 20))
    parts = [part(0, 5), part(5, 6), part(6, 20)]
    three = fi.merge_states(*(torch.stack(x, 1) for x in zip(*parts)))
    for merged in (pair, three):
        for got, want in zip(merged, whole):
            torch.testing.assert_close(got, want, **near)
    (v_a, s_a), (v_b, s_b) = part(0, 8), part(8, 20)
    kept = v_a.clone(), s_a.clone()
    mask = on_device(torch.tensor([True, False, True]))
    fi.merge_state_in_place(v_a, s_a, v_b, s_b, mask)
    for got, want, old in zip((v_a, s_a), whole, kept):
        torch.testing.assert_close(got[mask], want[mask], **near)
        assert torch.equal(got[1], old[1])


def test_run_names_what_differs_from_the_plan():
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(None)
    q, cache = torch.zeros(1, 2, 16), torch.zeros(2, 2, 4, 2, 16)
    with pytest.raises(pagoda.InvalidArgument, match="^plan is not called"):
        wrapper.run(q, cache)
    table = [torch.tensor(x, dtype=torch.int32) for x in ([0, 1], [1], [3])]
    for arguments, field in (
        ((4, 2, 16, 4), "num_qo_heads"), ((2, 1, 16, 4), "num_kv_heads"),
        ((2, 2, 32, 4), "head_dim_qk"), ((2, 2, 16, 8), "page_size"),
    ):  # fmt: skip
        wrapper.plan(*table, *arguments, data_type="float32")
        with pytest.raises(pagoda.InvalidArgument) as error:
            wrapper.run(q, cache)
        assert error.value.field == field
    wrapper.plan(*table, 2, 2, 16, 4)
    with pytest.raises(pagoda.InvalidArgument, match="^q_data_type is torch.float32"):
        wrapper.run(q, cache)


def test_graph_buffers_are_filled_by_plan_and_read_by_run():
    q = torch.randn(2, 2, 64)
    cache = torch.randn(8, 2, 4, 2, 64)
    buffers = [torch.full((n,), 7, dtype=torch.int32) for n in (3, 8, 2)]
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(None, "NHD", True, False, *buffers)
    plain = fi.BatchDecodeWithPagedKVCacheWrapper(None)
    for table in (([0, 2, 3], [1, 4, 2], [3, 4]), ([0, 1, 4], [6, 5, 2, 0], [1, 2])):
        table = [torch.tensor(x, dtype=torch.int32) for x in table]
        for w in (wrapper, plain):
            w.plan(*table, 2, 2, 64, 4, data_type=torch.float32)
        assert buffers[0].tolist() == table[0].tolist()
        assert torch.equal(wrapper.run(q, cache), plain.run(q, cache))
    buffers[1] = buffers[0].clone()
    ragged = fi.BatchPrefillWithRaggedKVCacheWrapper(None, "NHD", True, *buffers[:2])
    of_mla = [torch.zeros(n).int() for n in (2, 2, 4, 1)]
    mla = fi.BatchMLAPagedAttentionWrapper(None, True, *of_mla)
    places = []
    for lengths in ([0, 2, 5], [0, 3, 4]):
        offsets = torch.tensor(lengths, dtype=torch.int32)
        ragged.plan(torch.tensor([0, 1, 2]), offsets, 2, 2, 64, q_data_type="float32")
        assert torch.equal(buffers[1], offsets)
        mla.plan(torch.tensor([0, 1]), torch.tensor([0, 1]), offsets[1:2], offsets[2:] - 1, 1, 64,
                 0, 4, True, 0.1, "float32", "float32")  # fmt: skip
        assert mla._buffers["kv_len_arr"].item() == lengths[2] - 1
        places.append([x.data_ptr() for x in (*mla._cache.values(), *ragged._cache.values())])
        assert mla._cache["last_page_len"].item() == lengths[2] - 1
    assert places[0] == places[1], "a captured graph would read other memory"
    with pytest.raises(pagoda.InvalidArgument, match="^paged_kv_indices_buffer is None"):
        fi.BatchDecodeWithPagedKVCacheWrapper(None, "NHD", True, False, buffers[0])


def test_the_batch_of_a_graph_is_fixed():
    buffers = [torch.zeros(n, dtype=torch.int32) for n in (3, 3, 8, 2)]
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(None, "NHD", True, *buffers)

    def plan(qo, indptr, pages, last, **more):
        arrays = (torch.tensor(x, dtype=torch.int32) for x in (qo, indptr, pages, last))
        wrapper.plan(*arrays, 2, 2, 64, 4, q_data_type="float32", **more)

    plan([0, 2, 5], [0, 1, 3], [4, 2, 0], [2, 1])
    planned = [buffer.clone() for buffer in buffers]
    with pytest.raises(pagoda.InvalidArgument, match="^qo_indptr_buf is of 3 elements; must have 2"):
        plan([0, 2], [0, 1], [4], [2])
    with pytest.raises(pagoda.InvalidArgument, match=r"^qo_indptr\[2\] is 6; must be at most 5"):
        plan([0, 3, 6], [0, 1, 3], [4, 2, 0], [2, 1])
    with pytest.raises(pagoda.Unsupported, match="^custom_mask is given"):
        plan([0, 1, 2], [0, 1, 2], [4, 2], [1, 1], custom_mask=torch.ones(2, dtype=torch.bool))
    assert all(torch.equal(*pair) for pair in zip(buffers, planned))
    q, cache = torch.randn(5, 2, 64), torch.randn(8, 2, 4, 2, 64)
    plan([0, 1, 3], [0, 1, 3], [4, 2, 0], [2, 1])
    assert wrapper.run(q[:3], cache).isfinite().all()
    with pytest.raises(pagoda.InvalidArgument, match=r"^q.shape\[0\] is 2; must be 3"):
        wrapper.run(q[:2], cache)
    with pytest.raises(pagoda.InvalidArgument, match="^paged_kv_last_page_len"):
        plan([0, 2, 5], [0, 1, 3], [4, 2, 0], [2, 9])
    assert wrapper.run(q[:3], cache).isfinite().all(), "the plan before is still in force"


@pytest.mark.parametrize(
    ("arrays", "field"),
    [
        (([], [0, 1, 3], [4, 2, 0], [2, 1]), "qo_indptr.shape"),
        (([0, 3, 2], [0, 1, 3], [4, 2, 0], [2, 1]), "qo_indptr[1]"),
        (([0, 2, 5], [0, 2, 1], [4, 2, 0], [2, 1]), "paged_kv_indptr"),
        (([0, 2, 5], [0, 1, 4], [4, 2, 0], [2, 1]), "paged_kv_indptr[2]"),
        (([0, 2, 5], [0, 1, 3], [4, 2, 0], [2, 5]), "paged_kv_last_page_len[1]"),
        (([0, 2, 5], [0, 1, 3], [4, 2, 0], [2]), "paged_kv_last_page_len.shape"),
    ],
)
def test_plan_checks_arrays_in_host_memory(arrays, field):
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(None)
    with pytest.raises(pagoda.InvalidArgument) as error:
        wrapper.plan(*(torch.tensor(x, dtype=torch.int32) for x in arrays), 2, 2, 64, 4)
    assert error.value.field == field


def test_run_takes_the_rows_and_the_type_of_the_plan():
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(None)
    arrays = ([0, 2, 5], [0, 1, 3], [4, 2, 0], [2, 1])
    arrays = [torch.tensor(x, dtype=torch.int32) for x in arrays]
    wrapper.plan(*arrays, 2, 2, 64, 4, q_data_type="float32", o_data_type="float32")
    q, cache = torch.randn(6, 2, 64), torch.randn(8, 2, 4, 2, 64)
    with pytest.raises(pagoda.InvalidArgument, match=r"^q.shape\[0\] is 6; must be 5"):
        wrapper.run(q, cache)
    out = torch.full((5, 2, 64), math.nan, dtype=torch.float16)
    with pytest.raises(pagoda.InvalidArgument, match="^out.dtype is torch.float16; the plan was"):
        wrapper.run(q[:5], cache, out=out)
    assert out.isnan().all()
    assert wrapper.run(q[:5], cache).shape == (5, 2, 64)
