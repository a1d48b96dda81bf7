"""pagoda.torch: eager calls, opcheck, torch.compile; and PyTorch tensors in pagoda's own calls."""

import numpy as np
import pytest
from reference import assert_close, assert_lse, attention, positions

import pagoda
from pagoda import KVCache, Mask

torch = pytest.importorskip("torch")
from grids import DEVICE, WIDEST  # noqa: E402

import pagoda.torch as ops  # noqa: E402

DTYPES = list(dict.fromkeys([WIDEST, torch.float16, torch.bfloat16]))


@pytest.fixture
def device():
    return DEVICE


@pytest.fixture
def call(device):
    """A decode step over pages: q, KVCache, and k and v of each sequence in float64."""

    def make(dtype=WIDEST, rows=1):
        g = torch.Generator().manual_seed(5)
        q = torch.randn((2, rows, 4, 64), generator=g).to(dtype)
        k, v = (torch.randn((6, 8, 2, 64), generator=g).to(dtype) for _ in range(2))
        k[5], v[5] = float("nan"), float("nan")  # a page of nobody
        table = torch.tensor([[1, 3, -1], [4, 0, -1]], dtype=torch.int32)
        lengths = torch.tensor([13, 9], dtype=torch.int32)
        sequences = [
            [
                t[table[b, :2].long()].double().numpy().reshape(-1, 2, 64)[: lengths[b]]
                for t in (k, v)
            ]
            for b in range(2)
        ]
        q, k, v, table, lengths = (t.to(device) for t in (q, k, v, table, lengths))
        return q, KVCache(k, v, block_table=table, seqlens_kv=lengths), sequences

    return make


def check(out, q, sequences, causal=False):
    dtype = str(out.dtype).removeprefix("torch.")
    for b, (k, v) in enumerate(sequences):
        q_pos, k_pos = positions(q.shape[1], len(k))
        expected, _ = attention(
            q[b].double().cpu().numpy(), k, v, visible=k_pos <= q_pos if causal else None
        )
        assert_close(out[b].double().cpu().numpy(), expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operator_and_library_give_the_attention(dtype, call):
    q, cache, sequences = call(dtype, rows=3)
    out = torch.full_like(q, float("nan"))
    assert ops.attention(q, cache, mask=Mask.causal(), out=out) is out
    check(out, q, sequences, causal=True)
    check(ops.attention(q, cache), q, sequences)
    check(pagoda.attention(q, cache), q, sequences)
    out.fill_(float("nan"))
    plan = pagoda.plan(q, cache, out=out)
    plan.run()
    check(out, q, sequences)


def test_fp8_tensors_are_taken(device):
    g = torch.Generator().manual_seed(1)
    q = torch.randn((1, 2, 2, 64), generator=g).to(torch.bfloat16)
    k, v = (torch.randn((1, 9, 2, 64), generator=g).to(torch.float8_e4m3fn) for _ in range(2))
    expected, _ = attention(
        q[0].double().numpy(), k[0].double().numpy() * 0.5, v[0].double().numpy()
    )
    out = ops.attention(q.to(device), (k.to(device), v.to(device)), k_scale=0.5)
    assert np.abs(out[0].double().cpu().numpy() - expected).max() < 0.03


ARGUMENTS = {
    "plain": {},
    "mask": {"mask": Mask.causal() & Mask.window(5, 0)},
    "lse": {"return_lse": True, "lse_base": "2"},
    "sinks": {"sinks": torch.tensor([0.1, 1.0, -1.0, 0.5]), "softmax_scale": 0.2, "softcap": 3.0},
    "bits": {
        "mask": Mask.bits(
            torch.full((2, 1), 0x1FF, dtype=torch.uint32).view(-1), torch.tensor([0, 1, 2])
        )
    },  # fmt: skip
}


def moved(arguments, device):
    named = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    if "mask" in named:
        arrays = tuple(a.to(device) for a in named["mask"].arrays)
        named["mask"] = Mask(named["mask"].program, arrays)
    return named


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_of_a_whole_graph_gives_the_eager_result(name, dynamic, call, device):
    torch.compiler.reset()
    arguments = moved(ARGUMENTS[name], device)
    q, cache, _ = call()

    def step(q, k, v, table, lengths):
        kv = KVCache(k, v, block_table=table, seqlens_kv=lengths)
        out = ops.attention(q * 2, kv, **arguments)
        return [t + 1 for t in (out if isinstance(out, tuple) else (out,))]

    inputs = (q, cache.k, cache.v, cache.block_table, cache.seqlens_kv)
    expected = step(*inputs)
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for got, want in zip(compiled(*inputs), expected):
        assert torch.equal(got, want)


def test_a_compiled_step_writes_the_cache_and_reads_it(call):
    torch.compiler.reset()
    q, cache, _ = call()
    new = torch.randn((2, 2, 64), dtype=q.dtype, device=q.device)
    slots = torch.tensor([3 * 8 + 4, 0 * 8 + 0], device=q.device)  # the last key of each sequence

    def step(q, k, v, new, slots):
        ops.append_kv(new, new, k, v, slots)
        kv = KVCache(k, v, block_table=cache.block_table, seqlens_kv=cache.seqlens_kv)
        return ops.attention(q, kv)

    copies = [cache.k.clone(), cache.v.clone()]
    expected = step(q, *copies, new, slots)
    others = [cache.k.clone(), cache.v.clone()]
    got = torch.compile(step, fullgraph=True)(q, *others, new, slots)
    assert torch.equal(got, expected) and torch.equal(others[0][3, 4], new[0])
    assert not torch.equal(expected, ops.attention(q, cache))


def test_opcheck_of_every_operator(call):
    q, cache, _ = call()
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)
    check_op = torch.library.opcheck
    check_op(
        torch.ops.pagoda.attention.default,
        (q, cache.k, cache.v, out, cache.seqlens_kv, cache.block_table, True, 0.3),
        {"lse": lse},
    )
    sinks = torch.zeros(4, device=q.device)
    words, offsets = moved(ARGUMENTS["bits"], q.device)["mask"].arrays
    check_op(
        torch.ops.pagoda.attention.default,
        (q, cache.k, cache.v, out, cache.seqlens_kv, cache.block_table),
        {
            "row_max": lse,
            "mask": [7, 0, 0],
            "mask_arrays": [words, offsets],
            "arrays": [None] * 9 + [sinks] + [None] * 2,
            "numbers": [0, 8, 0, 0, 1, 0, 0, 0],
            "scales": [2.0, 1.0, 1.0, 1.0, 1.0],
        },
    )
    new = torch.randn((2, 2, 64), dtype=q.dtype, device=q.device)
    slots = torch.tensor([3, -1], device=q.device)
    k, v = cache.k.nan_to_num(), cache.v.nan_to_num()
    check_op(torch.ops.pagoda.append_kv.default, (new, new, k, v, slots))
    parts, logs = (
        torch.randn((2, 3, 4, 8), device=q.device),
        torch.randn((2, 3, 4), device=q.device),
    )
    check_op(
        torch.ops.pagoda.merge_states.default,
        (parts, logs, torch.empty_like(parts[0]), torch.empty_like(logs[0])),
        {"lse_base": 1},
    )


@pytest.mark.parametrize("name", ["attention", "append_kv", "merge_states"])
def test_the_kernels_are_not_python(name):
    """One of Python would take the GIL and several microseconds."""
    dispatch = torch._C._dispatch_dump(f"pagoda::{name}")
    for key in ("CPU", "CUDA"):
        (line,) = [text for text in dispatch.splitlines() if text.startswith(f"{key}: ")]
        assert "torch_operators.cpp" in line, line


def test_fake_tensors_run_nothing(call):
    from torch._subclasses import FakeTensorMode

    q, cache, _ = call()
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(t) for t in (q, cache.k, cache.v, cache.block_table)]
        lengths = mode.from_tensor(cache.seqlens_kv)
        kv = KVCache(*fakes[1:3], block_table=fakes[3], seqlens_kv=lengths)
        out, lse = ops.attention(fakes[0], kv, return_lse=True)
    assert out.shape == q.shape and lse.shape == q.shape[:3] and lse.dtype == torch.float32


def test_merged_parts_are_the_whole(device):
    q, k, v = (torch.randn((1, 12, 2, 64), dtype=WIDEST, device=device) for _ in range(3))
    parts = [
        ops.attention(q, (k[:, s], v[:, s]), return_lse=True) for s in (slice(0, 5), slice(5, 12))
    ]
    out, lse = ops.merge_states(
        torch.stack([o[0] for o, _ in parts]), torch.stack([s[0] for _, s in parts])
    )
    expected, expected_lse = attention(*(t[0].double().cpu().numpy() for t in (q, k, v)))
    assert_close(out.double().cpu(), expected, str(WIDEST).removeprefix("torch."))
    assert_lse(lse.cpu(), expected_lse)


@pytest.mark.parametrize("function", [ops.attention, pagoda.attention])
def test_tensors_that_require_grad_are_refused(function, call):
    q, cache, sequences = call()
    q.requires_grad_()
    with pytest.raises(
        pagoda.InvalidArgument, match="q is a tensor that requires grad; attention is"
    ):
        function(q, cache)
    with torch.no_grad():
        check(function(q, cache), q.detach(), sequences)


def test_the_raw_operator_has_no_derivative(call):
    q, cache, _ = call()
    out = torch.empty_like(q)
    operator = torch.ops.pagoda.attention
    operator(q.requires_grad_(), cache.k, cache.v, out, cache.seqlens_kv, cache.block_table)
    assert not out.requires_grad and out.grad_fn is None


def test_every_argument_reaches_the_library_as_without_the_operator(call):
    q, cache, _ = call(rows=3)
    g = torch.Generator().manual_seed(2)
    pages = [t.nan_to_num().transpose(1, 2).contiguous() for t in (cache.k, cache.v)]
    counts = cache.block_table.new_tensor([2, 4])
    compressed = {
        "indptr": cache.block_table.new_tensor([0, 2, 4]),
        "indices": cache.block_table[:, :2].flatten(),
        "last_page_len": cache.block_table.new_tensor([5, 1]),
    }
    kv = KVCache(*pages, **compressed, layout="HND", page_size=8)
    given = {
        "seqlens_q": counts.new_tensor([3, 2]), "cache_lengths": counts.new_tensor([10, 4]),
        "leftpad_kv": counts.new_tensor([1, 0]),
        "sinks": torch.randn(4, generator=g).to(q.device),
        "k_scale": torch.tensor([0.5, 2.0], device=q.device), "v_scale": 0.75, "softcap": 3.0,
        "softmax_scale": 0.2, "lse_base": "2", "num_kv_splits": 1, "is_batch_invariant": True,
        "checks_indices": q.device.type == "cpu", "out_dtype": "float32", "return_lse": True,
        "max_seqlen_q": 3, "max_seqlen_kv": 16, "zero_padding_rows": False, "mask": Mask.causal(),
    }  # fmt: skip
    slopes = {**given, "alibi_slopes": torch.rand(4, generator=g).to(q.device)}
    words = {**given, "mask": Mask.causal() & Mask.window(9, 0)}
    for arguments in (given, slopes, words):
        expected = pagoda.attention(q, kv, **arguments)
        for got, want in zip(ops.attention(q, kv, **arguments), expected):
            assert torch.equal(got, want)
        for name in given.keys() - {"return_lse", "max_seqlen_q", "max_seqlen_kv", "num_kv_splits",
                                    "is_batch_invariant", "checks_indices", "zero_padding_rows",
                                    "out_dtype", "lse_base"}:  # fmt: skip
            fewer = {n: x for n, x in arguments.items() if n != name}
            assert not torch.equal(ops.attention(q, kv, **fewer)[0], expected[0]), name
    names = {b.name for b in pagoda.info().backends if b.is_available}
    row_max = torch.empty(q.shape[:3], device=q.device)
    backend = "cpu" if q.device.type == "cpu" else "cuda"
    assert backend in names
    ops.attention(q, cache, row_max=row_max, backend=backend)
    assert torch.isfinite(row_max).all()
    for attend in (ops.attention, pagoda.attention):
        out = torch.empty_like(q)
        attend(q, cache, out=out, out_dtype=out.dtype)
        attend(q, cache, out=out.float(), out_dtype="float")  # an alias
        with pytest.raises(pagoda.InvalidArgument, match="must be out_dtype, float64"):
            attend(q, cache, out=out, out_dtype="double")
        with pytest.raises(pagoda.InvalidArgument, match="must be out_dtype, abacus"):
            attend(q, cache, out=out, out_dtype="abacus")
        with pytest.raises(pagoda.InvalidArgument, match="^out_dtype is abacus; must be a dtype of"):
            attend(q, cache, out_dtype="abacus")
    with pytest.raises(pagoda.NotFound, match="kernel is"):
        ops.attention(q, cache, kernel="abacus")
    tiny = ("softmax_scale", "softcap", "q_scale", "k_scale", "v_scale", "out_scale")
    wrong = [("max_seqlen_q", 1 << 40), ("k_scale", 0.0), ("softmax_scale", 0.0)]
    for name, value in wrong + [(name, 1e-50) for name in tiny]:  # 0 as float32
        with pytest.raises(pagoda.InvalidArgument) as error:
            ops.attention(q, cache, **{name: value})
        assert error.value.field == name
    new, slots = cache.k[0, :2], torch.tensor([0, 1], device=q.device)
    with pytest.raises(pagoda.InvalidArgument, match="k_scale is 1e-50"):
        ops.append_kv(new, new, cache.k, cache.v, slots, k_scale=1e-50)


def test_errors_of_operators_are_pagodas(call):
    q, cache, _ = call()
    with pytest.raises(pagoda.InvalidArgument) as error:
        ops.attention(q, cache, sinks=torch.zeros(3, device=q.device))
    assert error.value.field == "sinks.shape[0]"
    with pytest.raises(pagoda.InvalidArgument, match="^stream is given"):
        ops.attention(q, cache, stream=0)
    with pytest.raises(RuntimeError, match="^kv.seqlens_kv"):
        torch.ops.pagoda.attention(q, cache.k, cache.v, torch.empty_like(q), q, cache.block_table)
    with pytest.raises(pagoda.InvalidArgument) as error:  # a failure before it is not this one
        ops.append_kv(q[:, 0], q[:, 0], cache.k, cache.v, cache.block_table)
    assert error.value.field.startswith(("k_new", "slot_mapping"))


def with_grad(*shape):
    return torch.ones(shape, device=DEVICE, requires_grad=True)


@pytest.mark.parametrize(
    "name, named",
    [
        ("out", lambda: {"out": with_grad(2, 1, 4, 64)}),
        ("lse", lambda: {"lse": with_grad(2, 1, 4)}),
        ("row_max", lambda: {"row_max": with_grad(2, 1, 4)}),
        ("q_scale", lambda: {"q_scale": with_grad(2)}),
        ("k_scale", lambda: {"k_scale": with_grad(2)}),
        ("v_scale", lambda: {"v_scale": with_grad(2)}),
        ("sinks", lambda: {"sinks": with_grad(4)}),
        ("alibi_slopes", lambda: {"alibi_slopes": with_grad(4)}),
        ("mask.bias", lambda: {"mask": Mask.additive(with_grad(2, 1, 13))}),
        (
            "mask.table",
            lambda: {
                "mask": Mask.additive(torch.zeros(2, 1, 13, device=DEVICE))
                & Mask.relative_bias(with_grad(4, 5))
            },
        ),
    ],
)
def test_every_tensor_that_requires_grad_is_refused(name, named, call):
    q, cache, _ = call()
    with pytest.raises(pagoda.InvalidArgument, match="is a tensor that requires grad") as error:
        ops.attention(q, cache, **named())
    assert error.value.field == name


def test_merged_and_appended_tensors_that_require_grad_are_refused():
    parts, logs = torch.ones(2, 3, 4, 8, device=DEVICE), torch.ones(2, 3, 4, device=DEVICE)
    new, cache = torch.ones(2, 2, 8, device=DEVICE), torch.zeros(2, 4, 2, 8, device=DEVICE)
    slots = torch.arange(2, device=DEVICE)
    fp8 = [cache.to(torch.float8_e4m3fn) for _ in range(2)]
    for field, wrong in (
        ("out", lambda: ops.merge_states(parts, logs, out=with_grad(3, 4, 8))),
        ("lse", lambda: ops.merge_states(parts, logs, lse=with_grad(3, 4))),
        ("k_cache", lambda: ops.append_kv(new, new, with_grad(2, 4, 2, 8), cache, slots)),
        ("v_cache", lambda: ops.append_kv(new, new, cache, with_grad(2, 4, 2, 8), slots)),
        ("k_scale", lambda: ops.append_kv(new, new, *fp8, slots, k_scale=with_grad(2))),
        ("v_scale", lambda: ops.append_kv(new, new, *fp8, slots, v_scale=with_grad(2))),
    ):
        with pytest.raises(pagoda.InvalidArgument, match="is a tensor that requires grad") as error:
            wrong()
        assert error.value.field == field


def test_a_meta_tensor_among_others_is_refused_by_name(call):
    q, cache, _ = call()
    parts, logs = torch.ones(2, 3, 4, 8, device=DEVICE), torch.ones(2, 3, 4, device=DEVICE)
    new, slots = torch.ones(2, 2, 64, dtype=q.dtype, device=DEVICE), torch.arange(2, device="meta")
    k, v = (torch.zeros(2, 9, 2, 64, dtype=q.dtype, device=DEVICE) for _ in range(2))
    bias = Mask.additive(torch.zeros(2, 1, 9, device=DEVICE))
    for field, wrong in (
        ("k", lambda: ops.attention(q, (k.to("meta"), v))),
        ("v", lambda: ops.attention(q, (k, v.to("meta")))),
        ("k", lambda: ops.attention(q.to("meta"), (k, v))),
        ("out", lambda: ops.attention(q, (k, v), out=torch.empty_like(q, device="meta"))),
        ("sinks", lambda: ops.attention(q.to("meta"), (k.to("meta"), v.to("meta")), sinks=logs)),
        ("mask_arrays[0]",
         lambda: ops.attention(q.to("meta"), (k.to("meta"), v.to("meta")), mask=bias)),
        ("slot_mapping", lambda: ops.append_kv(new, new, k, v, slots)),
        ("partial_lse", lambda: ops.merge_states(parts, logs.to("meta"))),
    ):  # fmt: skip
        with pytest.raises(pagoda.InvalidArgument) as error:
            wrong()
        assert error.value.field == f"{field}.device"
    assert not k.any() and not v.any()


def test_meta_tensors_alone_have_shapes():
    q, k = torch.empty(2, 1, 4, 64, device="meta"), torch.empty(2, 9, 2, 64, device="meta")
    out, lse = ops.attention(q, (k, k), return_lse=True)
    assert out.is_meta and out.shape == q.shape and lse.shape == (2, 1, 4)
    slots = torch.empty(9, dtype=torch.int64, device="meta")
    ops.append_kv(k[0], k[0], k, k.clone(), slots)
    merged, _ = ops.merge_states(out, lse)
    assert merged.is_meta and merged.shape == out.shape[1:]


def test_a_failure_is_not_reported_again_for_a_later_error(call):
    q, cache, _ = call()
    with pytest.raises(RuntimeError, match="^kv.seqlens_kv"):
        torch.ops.pagoda.attention(q, cache.k, cache.v, torch.empty_like(q), q, cache.block_table)
    with pytest.raises(RuntimeError, match="for argument 'out'") as error:  # PyTorch's own
        ops.attention(q, cache, out="nowhere")
    assert not isinstance(error.value, pagoda.Error)


WRONG_ARGUMENTS = {
    "max_seqlen_q": [2.5, "2", 1 << 40],
    "max_seqlen_kv": [2.5, "2", -(1 << 40)],
    "num_kv_splits": [2.5, "2", 1 << 40],
    "softmax_scale": ["1", [1.0]],
    "softcap": ["1", [1.0], np.ones(3)],
    "out_scale": ["1", [1.0]],
    "is_batch_invariant": ["no", []],
    "mask": [True, "causal", np.ones(3)],
    "backend": [3],
    "kernel": [3],
    "sinks": [[1.0] * 4],
    "k_scale": ["1"],
}


@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
def test_a_wrong_argument_is_named(name, call):
    q, cache, _ = call()
    for value in WRONG_ARGUMENTS[name]:
        with pytest.raises(pagoda.InvalidArgument, match="; must ") as error:
            ops.attention(q, cache, **{name: value})
        assert error.value.field == name


def test_tensors_of_another_kind_are_named(call):
    q, cache, _ = call()
    logs = torch.ones(2, 3, 4, device=DEVICE)
    for field, wrong in (
        ("q", lambda: ops.attention(None, cache)),
        ("q", lambda: ops.attention([1.0], cache)),
        ("kv", lambda: ops.attention(q, None)),
        ("kv", lambda: ops.attention(q, (cache.k, cache.v, cache.v))),
        ("kv.v", lambda: ops.attention(q, (cache.k, None))),
        ("kv.page_size", lambda: ops.attention(q, KVCache(cache.k, cache.v, page_size="8"))),
        ("slot_mapping", lambda: ops.append_kv(q[0], q[0], cache.k, cache.v, [0])),
        ("k_scale", lambda: ops.append_kv(q[0], q[0], cache.k, cache.v, logs, k_scale="1")),
        ("partial_lse", lambda: ops.merge_states(logs, [1.0])),
    ):
        with pytest.raises(pagoda.InvalidArgument, match="; must ") as error:
            wrong()
        assert error.value.field == field


def test_none_is_an_argument_that_is_absent(call):
    q, cache, sequences = call()
    names = pagoda.calls.ARGUMENT_NAMES - {"return_lse"}
    cache = KVCache(cache.k, cache.v, block_table=cache.block_table, seqlens_kv=cache.seqlens_kv,
                    page_size=None)  # fmt: skip
    for attention_of in (ops.attention, pagoda.attention):
        check(attention_of(q, cache, **dict.fromkeys(names)), q, sequences)


def test_negated_views_are_refused_by_name(call):
    q, cache, _ = call(torch.float32)
    negated = torch.complex(q, q).conj().imag
    assert negated.is_neg()
    out = torch.zeros_like(q)
    with pytest.raises(pagoda.InvalidArgument, match="^q is a negated view; .*resolve_neg"):
        pagoda.attention(negated, cache, out=out)
    with pytest.raises(pagoda.InvalidArgument, match="^out is a negated view"):
        pagoda.attention(q, cache, out=torch._neg_view(out))
    assert (out == 0).all()
    assert torch.equal(pagoda.attention(negated.resolve_neg(), cache), pagoda.attention(-q, cache))


def test_a_plan_refuses_arrays_whose_memory_was_replaced(call):
    q, cache, sequences = call()
    out, bias = torch.zeros_like(q), torch.zeros((2, 1, 16), device=q.device)
    for name in ("q", "mask.bias"):
        plan = pagoda.plan(q, cache, out=out, mask=Mask.additive(bias))
        plan.run()
        check(out, q, sequences)
        out.zero_()
        tensor = {"q": q, "mask.bias": bias}[name]
        tensor.data = tensor.clone()  # frees what the plan has
        with pytest.raises(pagoda.InvalidArgument, match="when the plan was made") as error:
            plan.run()
        assert error.value.field == f"{name}.data" and (out == 0).all()
        if name == "q":
            plan.run(q)
            check(out, q, sequences)
            out.zero_()


def test_an_error_is_not_that_of_an_earlier_operator(call):
    q, cache, _ = call()
    operator = torch.ops.pagoda.attention
    out = torch.empty_like(q)

    def fail():  # nobody asks about this one
        with pytest.raises(RuntimeError, match="^kv.v.shape"):
            operator(q, cache.k, cache.v[:1], out, cache.seqlens_kv, cache.block_table)

    fail()
    try:
        operator(q, cache.k, cache.v, out, max_seqlen_q="4")  # PyTorch refuses the type
    except RuntimeError as error:
        assert not isinstance(ops._failure(error), pagoda.InvalidArgument)
    fail()
    operator(q, cache.k, cache.v, out, cache.seqlens_kv, cache.block_table)
    assert pagoda._core.operator_failure() is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="captures a CUDA graph")
@pytest.mark.parametrize("planned", [True, False])
def test_a_captured_graph_follows_lengths_on_the_device(planned, call):
    q, cache, sequences = call()
    out = torch.empty_like(q)
    plan = pagoda.plan(q, cache, out=out)
    run = plan.run if planned else lambda: ops.attention(q, cache, out=out)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    for lengths in ((13, 9), (5, 16), (0, 1)):
        cache.seqlens_kv.copy_(torch.tensor(lengths, dtype=torch.int32))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        cut = [[t[:n] for t in pair] for pair, n in zip(sequences, lengths)]
        for b in range(2):
            if lengths[b] <= len(sequences[b][0]):
                check(out[b : b + 1], q[b : b + 1], cut[b : b + 1])
        assert not out.isnan().any()
