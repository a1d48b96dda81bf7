"""plan, explain, append_kv, merge_states, info."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import DTYPES, poisoned
from reference import assert_close, assert_lse, attention

import pagoda
from pagoda import KVCache, Mask


@pytest.fixture
def call(normal):
    """A decode call over pages: (arguments of plan, k and v of each sequence)."""
    q = normal((2, 1, 4, 64))
    k, v = normal((5, 8, 2, 64)), normal((5, 8, 2, 64))
    table = np.array([[1, 3], [4, 0]], np.int32)
    lengths = np.array([13, 9], np.int32)
    cache = KVCache(k, v, block_table=table, seqlens_kv=lengths)
    sequences = [
        (k[table[b]].reshape(-1, 2, 64)[: lengths[b]], v[table[b]].reshape(-1, 2, 64)[: lengths[b]])
        for b in range(2)
    ]
    return q, cache, sequences


def check(out, q, sequences):
    for b, (k, v) in enumerate(sequences):
        assert_close(out[b], attention(q[b], k, v)[0])


def test_a_plan_runs_on_its_own_arrays_and_on_others(call, normal):
    q, cache, sequences = call
    out = poisoned(q.shape)
    plan = pagoda.plan(q, cache, out=out, mask=Mask.causal())
    assert np.isnan(out).all(), "a plan writes nothing"
    plan.run()
    check(out, q, sequences)
    assert plan.kernel.startswith("cpu.") and plan.flops == 2 * 22 * 4 * 128

    other_q, other_out = normal(q.shape), poisoned(q.shape)
    plan.run(other_q, other_out)
    check(other_out, other_q, sequences)

    swapped = cache.block_table[::-1].copy()
    again = poisoned(q.shape)
    plan.run(q, again, block_table=swapped, k=cache.k, v=cache.v)
    expected = [
        (cache.k[t].reshape(-1, 2, 64)[:n], cache.v[t].reshape(-1, 2, 64)[:n])
        for t, n in zip(swapped, cache.seqlens_kv)
    ]
    check(again, q, expected)

    out[:] = np.nan  # what run() was given did not take the place of the planned arrays
    plan.run()
    check(out, q, sequences)


def test_a_plan_refuses_what_differs_and_writes_nothing(call, normal):
    q, cache, _ = call
    out = poisoned(q.shape)
    plan = pagoda.plan(q, cache, out=out)
    with pytest.raises(
        pagoda.InvalidArgument, match=r"seqlen_kv\[1\] is 10; the plan was made for 9"
    ):
        plan.run(seqlens_kv=np.array([13, 10], np.int32))
    with pytest.raises(pagoda.InvalidArgument, match="^q.seqlen_q is 2; the plan was made for 1"):
        plan.run(normal((2, 2, 4, 64)), poisoned((2, 2, 4, 64)))
    with pytest.raises(pagoda.InvalidArgument, match="^table is no array of the call"):
        plan.run(table=cache.block_table)
    assert np.isnan(out).all()
    with pytest.raises(pagoda.InvalidArgument, match="^out is None"):
        pagoda.plan(q, cache)


def test_a_plan_keeps_its_arrays(call):
    q, cache, sequences = call
    out = poisoned(q.shape)
    expected_q = q.copy()
    plan = pagoda.plan(q.copy(), KVCache(cache.k.copy(), cache.v.copy(),
                       block_table=cache.block_table.copy(), seqlens_kv=cache.seqlens_kv.copy()),
                       out=out, mask=Mask.padding(np.array([13, 9], np.int32)))  # fmt: skip
    garbage = [np.full((1 << 14,), np.nan, np.float32) for _ in range(64)]  # reuse freed memory
    plan.run()
    check(out, expected_q, sequences)
    del garbage


def test_threads_share_a_plan_with_a_workspace(normal):
    q = normal((1, 1, 1, 64))
    k, v = normal((1, 1 << 15, 1, 64)), normal((1, 1 << 15, 1, 64))
    plan = pagoda.plan(q, (k, v), out=poisoned(q.shape), num_kv_splits=8)
    assert plan.workspace_bytes > 0 and plan.num_split_rows == 1
    queries = [normal(q.shape) for _ in range(4)]
    outs = [poisoned(q.shape) for _ in queries]

    def work(i):
        for _ in range(20):
            plan.run(queries[i], outs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(queries))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for query, out in zip(queries, outs):
        assert_close(out[0], attention(query[0], k[0], v[0])[0])


def test_the_gil_is_released_while_a_call_runs(normal):
    q, k, v = (normal((1, 500, 2, 64)) for _ in range(3))
    count, stop = [0], threading.Event()

    def work():
        while not stop.wait(0.001):
            count[0] += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=work)
    thread.start()
    sys.setswitchinterval(1000)  # from here on, this thread gives the GIL away itself or not at all
    try:
        before = count[0]
        pagoda.attention(q, (k, v), backend="reference")
        after = count[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after > before


def test_explain_names_one_selected_kernel_and_reasons(call):
    q, cache, _ = call
    kernels = pagoda.explain(q, cache, mask=Mask.causal())
    assert [k.is_selected for k in kernels].count(True) == 1
    for kernel in kernels:
        assert kernel.is_selected == (kernel.reason == "")
    with pytest.raises(pagoda.Unsupported):  # the CPU has one schedule
        pagoda.attention(q, cache, schedule="stream-k")
    chosen = next(k for k in kernels if not k.is_selected and k.can_run)
    plan = pagoda.plan(q, cache, out=poisoned(q.shape), kernel=chosen.name)
    assert plan.kernel == chosen.name


@pytest.mark.parametrize(
    "name, values",
    [
        ("max_seqlen_q", [2.5, "2", 1 << 40]),
        ("max_seqlen_kv", [2.5, "2", -(1 << 40)]),
        ("num_kv_splits", [2.5, "2", 1 << 40]),
        ("softmax_scale", ["1", [1.0]]),
        ("softcap", ["1", np.ones(3)]),
        ("out_scale", ["1", [1.0]]),
        ("zero_padding_rows", ["no", []]),
        ("is_batch_invariant", ["no"]),
        ("checks_indices", ["no"]),
        ("mask", [True, False, "causal", np.ones((2, 1, 13))]),
        ("backend", [3]),
        ("kernel", [3]),
    ],
)
def test_an_argument_of_another_type_is_named(name, values, call):
    q, cache, _ = call
    out = poisoned(q.shape)
    for value in values:
        for function in (pagoda.attention, pagoda.plan, pagoda.explain):
            with pytest.raises(pagoda.InvalidArgument, match=f"^{name} is .*; must ") as error:
                function(q, cache, out=out, **{name: value})
            assert error.value.field == name
    assert np.isnan(out).all()


def test_none_is_an_argument_that_is_absent(call):
    q, cache, sequences = call
    names = pagoda.calls.ARGUMENT_NAMES - {"return_lse"}
    cache = KVCache(cache.k, cache.v, block_table=cache.block_table, seqlens_kv=cache.seqlens_kv,
                    page_size=None)  # fmt: skip
    check(pagoda.attention(q, cache, **dict.fromkeys(names)), q, sequences)


def test_scalars_of_numpy_are_numbers(call):
    q, cache, _ = call
    given = {"softmax_scale": 0.25, "softcap": 2.0, "num_kv_splits": 1, "is_batch_invariant": True}
    scalars = {name: np.asarray(value)[()] for name, value in given.items()}
    scalars["softcap"] = np.float32(2)
    assert (pagoda.attention(q, cache, **given) == pagoda.attention(q, cache, **scalars)).all()


def test_what_is_no_array_and_no_cache_is_named(call):
    q, cache, _ = call
    for field, wrong in (
        ("q", lambda: pagoda.attention(None, cache)),
        ("q", lambda: pagoda.attention([1.0], cache)),
        ("kv", lambda: pagoda.attention(q, None)),
        ("kv", lambda: pagoda.attention(q, (cache.k, cache.v, cache.v))),
        ("kv.v", lambda: pagoda.attention(q, (cache.k, None))),
        ("kv.page_size", lambda: pagoda.attention(q, KVCache(cache.k, cache.v, page_size="8"))),
        ("checks_indices", lambda: pagoda.append_kv(q, q, q, q, q, checks_indices="no")),
        ("backend", lambda: pagoda.append_kv(q, q, q, q, q, backend=3)),
        ("partial_out", lambda: pagoda.merge_states(None, q)),
        ("backend", lambda: pagoda.merge_states(q, q, backend=3)),
    ):
        with pytest.raises(pagoda.InvalidArgument, match="; must ") as error:
            wrong()
        assert error.value.field == field


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_append_kv_writes_its_slots_only(layout, normal):
    k_new, v_new = normal((3, 2, 16)), normal((3, 2, 16))
    shape = (4, 8, 2, 16)
    k, v = poisoned(shape), poisoned(shape)
    pages = [
        np.ascontiguousarray(a.transpose(0, 2, 1, 3)) if layout == "HND" else a for a in (k, v)
    ]
    pagoda.append_kv(k_new, v_new, *pages, np.array([9, -1, 31], np.int64), layout=layout)
    k, v = (a.transpose(0, 2, 1, 3) if layout == "HND" else a for a in pages)
    for cache, new in ((k, k_new), (v, v_new)):
        flat = cache.reshape(32, 2, 16)
        assert (flat[9] == new[0]).all() and (flat[31] == new[2]).all()
        assert np.isnan(np.delete(flat, [9, 31], axis=0)).all()


def test_append_kv_converts_to_fp8_with_scales(normal):
    k_new, v_new = normal((2, 2, 16), "bfloat16"), normal((2, 2, 16), "bfloat16")
    k, v = poisoned((1, 2, 2, 16), "float8_e4m3fn"), poisoned((1, 2, 2, 16), "float8_e4m3fn")
    per_head = np.array([0.25, 4], np.float32)
    pagoda.append_kv(k_new, v_new, k, v, np.arange(2), k_scale=per_head, v_scale=0.5)
    expected = (k_new.astype(np.float32) / per_head[:, None]).astype(DTYPES["float8_e4m3fn"])
    assert (k[0] == expected).all()
    assert (v[0] == (v_new.astype(np.float32) / 0.5).astype(DTYPES["float8_e4m3fn"])).all()


def test_append_kv_refuses_scales_that_float32_does_not_hold(normal):
    new = normal((2, 2, 16), "bfloat16")
    k, v = poisoned((1, 2, 2, 16), "float8_e4m3fn"), poisoned((1, 2, 2, 16), "float8_e4m3fn")
    for name, scale in (("k_scale", 1e-50), ("v_scale", 1e50), ("v_scale", 0.0)):
        with pytest.raises(pagoda.InvalidArgument, match="finite and above 0") as error:
            pagoda.append_kv(new, new, k, v, np.arange(2), **{name: scale})
        assert error.value.field == name
    assert np.isnan(k.astype(np.float32)).all() and np.isnan(v.astype(np.float32)).all()


def test_options_of_the_wrong_type_are_refused_by_name(normal):
    new, cache = normal((2, 2, 16)), normal((1, 2, 2, 16))
    for name, value in (("backend", 3), ("checks_indices", 2), ("k_scale", 10**400)):
        with pytest.raises(pagoda.InvalidArgument) as error:
            pagoda.append_kv(new, new, cache, cache.copy(), np.arange(2), **{name: value})
        assert error.value.field == name
    with pytest.raises(pagoda.InvalidArgument, match="^backend is 3; must be a str"):
        pagoda.merge_states(normal((2, 3, 4, 8)), normal((2, 3, 4)), backend=3)


@pytest.mark.parametrize("base", ["e", "2"])
def test_merged_parts_are_the_whole(base, normal):
    q, k, v = normal((1, 4, 2, 64)), normal((1, 30, 2, 64)), normal((1, 30, 2, 64))
    parts = [
        pagoda.attention(q, (k[:, a:b], v[:, a:b]), return_lse=True, lse_base=base)
        for a, b in ((0, 11), (11, 11), (11, 30))
    ]
    out, lse = pagoda.merge_states(
        np.stack([o[0] for o, _ in parts]), np.stack([s[0] for _, s in parts]), lse_base=base
    )
    expected, expected_lse = attention(q[0], k[0], v[0])
    assert_close(out, expected)
    assert_lse(lse, expected_lse / (np.log(2) if base == "2" else 1))
    rows = np.array([1, 0, 1, 0], bool)
    kept, kept_lse = poisoned(out.shape), poisoned(lse.shape)
    stacked = np.stack([o[0] for o, _ in parts]), np.stack([s[0] for _, s in parts])
    masked = {"lse_base": base, "row_mask": rows}
    pagoda.merge_states(*stacked, out=kept, lse=kept_lse, **masked)
    assert (kept[rows] == out[rows]).all() and np.isnan(kept[~rows]).all()
    assert (kept_lse[rows] == lse[rows]).all() and np.isnan(kept_lse[~rows]).all()
    for given, absent in ({"out": kept}, "lse"), ({"lse": kept_lse}, "out"):
        with pytest.raises(pagoda.InvalidArgument, match=f"^{absent} is None; must be given with"):
            pagoda.merge_states(*stacked, **given, **masked)
    with pytest.raises(pagoda.InvalidArgument, match="^row_mask"):
        pagoda.merge_states(*stacked, out=kept, lse=kept_lse, row_mask=rows[:0])


def test_out_dtype_is_that_of_out(call):
    q, kv, _ = call
    for same in ("float32", "single", "f4", np.float32, np.dtype("float32")):
        pagoda.attention(q, kv, out=np.empty_like(q), out_dtype=same)
    out = poisoned(q.shape)
    with pytest.raises(pagoda.InvalidArgument, match="^out.dtype is float32; must be out_dtype, f"):
        pagoda.attention(q, kv, out=out, out_dtype="float16")
    with pytest.raises(pagoda.InvalidArgument, match="must be out_dtype, abacus"):
        pagoda.attention(q, kv, out=out, out_dtype="abacus")
    with pytest.raises(pagoda.InvalidArgument, match="^out_dtype is abacus; must be a dtype of numpy"):
        pagoda.attention(q, kv, out_dtype="abacus")
    assert np.isnan(out).all()


def test_a_plan_has_an_lse_of_the_caller_or_none(call):
    q, kv, _ = call
    out, lse = np.empty_like(q), poisoned(q.shape[:-1])
    with pytest.raises(pagoda.InvalidArgument, match="^lse is None; must be given with return_lse"):
        pagoda.plan(q, kv, out=out, return_lse=True)
    pagoda.plan(q, kv, out=out, lse=lse, return_lse=True).run()
    assert not np.isnan(lse).any()


def test_info_lists_the_back_ends():
    info = pagoda.info()
    by_name = {b.name: b for b in info.backends}
    assert by_name["cpu"].is_available and by_name["cpu"].memory == "cpu"
    assert {"reference", "cuda", "hip"} <= by_name.keys()
    assert info.version == pagoda.__version__ and str(info).startswith(f"pagoda {info.version}")


def test_the_command_is_installed_with_the_package():
    # Beside the interpreter, or where `pip install --target` puts it.
    places = (Path(sys.executable).parent, Path(pagoda.__file__).parents[1] / "bin")
    command = next(p / "pagoda" for p in places if (p / "pagoda").exists())
    result = subprocess.run(
        [command, "info", "--json"], capture_output=True, text=True, check=False
    )
    if "was built without the command" in result.stderr:
        pytest.skip("this wheel was built without CLI11, fmt, nlohmann-json or simdjson")
    assert result.returncode == 0 and "cpu" in result.stdout


def test_release_workspaces_leaves_later_calls_working(normal):
    q, k, v = (normal((1, 4, 2, 64)) for _ in range(3))
    pagoda.attention(q, (k, v))
    pagoda.release_workspaces()
    assert_close(pagoda.attention(q, (k, v))[0], attention(q[0], k[0], v[0])[0])
