"""Which arrays a call takes, and how it refuses others."""

import numpy as np
import pytest
from conftest import DTYPES, poisoned
from reference import assert_close, attention

import pagoda
from pagoda import KVCache, Mask


class Producer:
    """An array that has DLPack's two methods and nothing else; `versioned`: DLPack 1.x."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned
        self.dtype, self.shape = array.dtype, array.shape

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        assert stream is None, "host memory has no stream"
        if options and not self.versioned:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [True, False])
def test_any_dlpack_producer_will_do(versioned, normal):
    q, k, v = (normal((1, 4, 2, 64)) for _ in range(3))
    out = poisoned(q.shape)
    q_, k_, v_, out_ = (Producer(a, versioned) for a in (q, k, v, out))
    pagoda.attention(q_, KVCache(k_, v_), out=out_)
    assert_close(out[0], attention(q[0], k[0], v[0])[0])
    pagoda.attention(q_, KVCache(k_, v_), out=out_, out_dtype=np.float32)
    with pytest.raises(pagoda.InvalidArgument, match="^out is None"):
        pagoda.attention(q_, KVCache(k_, v_))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_strides_are_followed(dtype, normal):
    packed = normal((1, 5, 3, 2, 64), dtype)  # q, k, v of each token together
    q, k, v = packed[:, :, 0], packed[:, :, 1], packed[:, :, 2]
    out = poisoned((2, 5, 1, 64), dtype).transpose(2, 1, 0, 3)  # heads outermost
    pagoda.attention(q, (k, v), out=out)
    assert_close(out[0], attention(q[0], k[0], v[0])[0], dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_read_only_arrays_are_read_and_never_written(dtype, normal):
    q, k, v = (normal((1, 4, 2, 64), dtype) for _ in range(3))
    out = poisoned(q.shape, dtype)
    for array in (q, k, v, out):
        array.flags.writeable = False
    pagoda.attention(q, (k, v))
    with pytest.raises(pagoda.InvalidArgument) as error:
        pagoda.attention(q, (k, v), out=out)
    assert (error.value.field, error.value.value) == ("out", "read-only")
    assert error.value.limit == "must be writable"
    assert np.isnan(out.astype(np.float32)).all()


def test_an_out_that_shares_memory_with_an_input_is_refused(normal):
    rows = normal((4, 3, 4, 128))  # q in the first 64 columns, gaps between its rows
    q, k = rows[:2, ..., :64], normal((2, 3, 4, 64))
    with pytest.raises(pagoda.InvalidArgument, match="^out.data is inside q; "):
        pagoda.attention(q, (k, k), out=rows[1:3, ..., :64])
    expected = pagoda.attention(q, (k, k))
    pagoda.attention(q, (k, k), out=rows[1:3, ..., 64:])  # the gaps
    assert (rows[1:3, ..., 64:] == expected).all()
    memory = normal((2 * 3 * 4 * 64,))
    bias = Mask.additive(memory[:9].reshape(1, 3, 3))
    with pytest.raises(pagoda.InvalidArgument, match=r"^out.data is inside mask.nodes\[0\].tensor"):
        pagoda.attention(q, (k, k), mask=bias, out=memory.reshape(2, 3, 4, 64))


def test_empty_arrays_are_taken(normal):
    q, k, none = normal((2, 3, 4, 64)), normal((2, 5, 2, 64)), normal((2, 0, 2, 64))
    out, lse = pagoda.attention(q, (none, none), return_lse=True)
    assert (out == 0).all() and (lse == -np.inf).all()
    out, lse = pagoda.attention(q[:0], (k[:0], k[:0]), out=poisoned((0, 3, 4, 64)), return_lse=True)
    assert out.shape == (0, 3, 4, 64) and lse.shape == (0, 3, 4)
    assert pagoda.attention(normal((2, 0, 4, 64)), (k, k)).shape == (2, 0, 4, 64)
    ragged = KVCache(k[0], k[0], cu_seqlens_kv=np.zeros(1, np.int32))
    out = pagoda.attention(normal((0, 4, 64)), ragged, cu_seqlens_q=np.zeros(1, np.int32))
    assert out.shape == (0, 4, 64)

    cache = poisoned((1, 8, 2, 64))
    pagoda.append_kv(normal((0, 2, 64)), normal((0, 2, 64)), cache, cache.copy(), np.arange(0))
    assert np.isnan(cache).all()
    out, lse = pagoda.merge_states(normal((2, 0, 4, 64)), normal((2, 0, 4)))
    assert out.shape == (0, 4, 64) and lse.shape == (0, 4)


def field_of_records(array):
    """The same values between bytes of other fields: no stride is a multiple of the element."""
    row = np.dtype([("values", array.dtype, array.shape[-1:]), ("other", "u1")])
    records = np.zeros(array.shape[:-1], row)
    records["values"] = array
    return records["values"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_arrays_that_dlpack_refuses_are_not_reinterpreted(dtype, normal):
    q, k = normal((1, 4, 2, 64), dtype), normal((1, 4, 2, 64), dtype)
    out = poisoned(q.shape, dtype)
    with pytest.raises(pagoda.InvalidArgument, match="must be a multiple of the element") as error:
        pagoda.attention(q, (field_of_records(k), k), out=out)
    assert error.value.field.startswith("kv.k.strides[") and error.value.value.endswith("bytes")
    one = field_of_records(k[:, :1, :1])  # strides that nothing uses
    expected, _ = attention(q[0], k[0, :1, :1], k[0, :1, :1])
    assert_close(pagoda.attention(q, (one, one))[0], expected, dtype)
    if dtype == "bfloat16":
        return
    big = lambda array: array.astype(array.dtype.newbyteorder(">"))  # noqa: E731
    sinks, lengths, cache = np.ones(2, np.float32), np.array([4], np.int32), k.copy()
    for field, call in {
        "q.dtype": lambda: pagoda.attention(big(q), (k, k), out=out),
        "sinks.dtype": lambda: pagoda.attention(q, (k, k), sinks=big(sinks), out=out),
        "kv.seqlens_kv.dtype": lambda: pagoda.attention(
            q, KVCache(k, k, seqlens_kv=big(lengths)), out=out
        ),
        "out.dtype": lambda: pagoda.attention(q, (k, k), out=big(out)),
        "k_cache.dtype": lambda: pagoda.append_kv(k[0], k[0], big(k), cache, np.arange(4)),
        "slot_mapping.dtype": lambda: pagoda.append_kv(
            k[0], k[0], cache, cache.copy(), big(np.arange(4))
        ),
    }.items():
        with pytest.raises(pagoda.InvalidArgument, match="must have the byte order") as error:
            call()
        assert error.value.field == field
    assert np.isnan(out).all() and (cache == k).all()


BAD = {
    "q: not an array": (lambda a: a.update(q=object()), "q is a object; must be an array"),
    "q: float64": (lambda a: a.update(q=a["q"].astype(np.float64)), "q.dtype is float64; must be"),
    "q: complex": (lambda a: a.update(q=a["q"].astype(np.complex64)), "q.dtype is"),
    "k: rank": (lambda a: a.update(kv=(a["kv"][0][0], a["kv"][1])), "kv.k.ndim is 3"),
    "v: heads": (lambda a: a.update(kv=(a["kv"][0], a["kv"][1][:, :, :1])), "kv.v.shape[2] is 1"),
    "heads": (lambda a: a.update(q=a["q"][:, :, :1].repeat(3, 2)), "q.shape[2] is 3"),
    "lengths: int64": (
        lambda a: a.update(kv=KVCache(*a["kv"], seqlens_kv=np.array([4]))),
        "kv.seqlens_kv.dtype is int64; must be int32",
    ),
    "lse: float64": (
        lambda a: a.update(lse=np.full((1, 4, 2), np.nan)),
        "lse.dtype is float64; must be float32",
    ),
    "k_scale: float64": (
        lambda a: a.update(k_scale=np.ones(2)),
        "kv_scales.k_per_head.dtype is float64; must be float32",
    ),
    "bias: float64": (
        lambda a: a.update(mask=Mask.additive(np.zeros((1, 4, 4)))),
        "mask.nodes[0].tensor.dtype is float64; must be float32",
    ),
    "lengths: too long": (
        lambda a: a.update(kv=KVCache(*a["kv"], seqlens_kv=np.array([5], np.int32))),
        "kv.seqlens_kv[0] is 5",
    ),
    "scale": (
        lambda a: a.update(softmax_scale=0.0),
        "softmax_scale is 0; must be finite and above 0",
    ),
    "k_scale": (lambda a: a.update(k_scale=0), "k_scale is 0; must be finite and above 0"),
    "q_scale": (lambda a: a.update(q_scale=2.0), "q_scale is 2"),
    **{
        f"{name}: 0 as float32": (
            lambda a, name=name: a.update({name: 1e-50}),
            f"{name} is 1e-50; must be finite and above 0 as float32",
        )
        for name in ("softmax_scale", "q_scale", "k_scale", "v_scale", "out_scale")
    },
    "v_scale: infinite as float32": (lambda a: a.update(v_scale=1e50), "v_scale is 1e+50; must be"),
    "softcap: 0 as float32": (
        lambda a: a.update(softcap=1e-50),
        "softcap is 1e-50; must be 0 (off) or finite and above 0 as float32",
    ),
    "softcap": (lambda a: a.update(softcap=-1.0), "score_mod.softcap is -1"),
    **{
        f"{name}: {value!r:.9}": (
            lambda a, name=name, value=value: a.update({name: value}),
            f"{name} is {text}; must be {wanted}",
        )
        for name, value, text, wanted in (
            ("softcap", "2.0", "'2.0'", "a number"),
            ("softmax_scale", 10**400, "a int", "a number"),
            ("out_scale", [1.0], "a list", "a number"),
            ("max_seqlen_q", 2.5, "2.5", "an integer of 32 bits"),
            ("max_seqlen_kv", 2**40, "1099511627776", "an integer of 32 bits"),
            ("num_kv_splits", "2", "'2'", "an integer of 32 bits"),
            ("kernel", 3, "3", "a str"),
            ("zero_padding_rows", 2, "2", "True or False"),
        )
    },
    "page_size: text": (
        lambda a: a.update(kv=KVCache(*a["kv"], page_size="4")),
        "kv.page_size is '4'; must be an integer of 32 bits",
    ),
    "window of a fraction": (
        lambda a: a.update(mask=Mask.causal() & Mask.window(1.5, 0)),
        "mask.nodes[1].left is 1.5; must be an integer of 64 bits",
    ),
    "window: right": (
        lambda a: a.update(mask=Mask.window(0, 2**70)),
        "mask.nodes[0].right is 1180591620717411303424; must be an integer of 64 bits",
    ),
    "chunk of None": (
        lambda a: a.update(mask=Mask.chunked(None)),
        "mask.nodes[0].chunk is None; must be an integer of 64 bits",
    ),
    "sinks": (lambda a: a.update(sinks=np.zeros(3, np.float32)), "sinks.shape[0] is 3"),
    "layout": (
        lambda a: a.update(kv=KVCache(*a["kv"], layout="HDN")),
        "kv.layout is 'HDN'; must be",
    ),
    "lse_base": (lambda a: a.update(lse_base=2), "lse_base is 2; must be one of e, 2"),
    "schedule": (lambda a: a.update(schedule="fast"), "schedule is 'fast'; must be one of"),
    "two kinds of cache": (
        lambda a: a.update(
            kv=KVCache(
                *a["kv"],
                cu_seqlens_kv=np.array([0, 4], np.int32),
                block_table=np.zeros((1, 1), np.int32),
            )  # fmt: skip
        ),
        "kv.block_table is given; must be null: kv.cu_seqlens_kv is given",
    ),
    "window": (lambda a: a.update(mask=Mask.chunked(0)), "mask.nodes"),
    "mask array": (lambda a: a.update(mask=Mask.padding(3)), "mask.valid_lengths is a int"),
    "too many masks": (
        lambda a: a.update(
            mask=__import__("functools").reduce(lambda x, y: x & y, [Mask.causal()] * 9)
        ),  # fmt: skip
        "mask.num_nodes is 17",
    ),
    "biases under or": (
        lambda a: a.update(mask=Mask.additive(np.zeros((1, 4, 4), np.float32)) | Mask.causal()),
        "mask.nodes",
    ),
    "stream": (lambda a: a.update(stream="main"), "stream is a str; must be None"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_by_name_before_anything_is_written(name, normal):
    q, k, v = (normal((1, 4, 2, 64)) for _ in range(3))
    out, lse = poisoned(q.shape), poisoned(q.shape[:3])
    arguments = {"q": q, "kv": (k, v), "out": out, "lse": lse}
    change, message = BAD[name]
    change(arguments)
    with pytest.raises(pagoda.InvalidArgument) as error:
        pagoda.attention(**arguments)
    assert str(error.value).startswith(message), str(error.value)
    assert isinstance(error.value, ValueError)
    assert error.value.field and f"{error.value.field} is {error.value.value}; " in str(error.value)
    assert np.isnan(out).all() and np.isnan(lse).all()


def test_an_unknown_argument_is_a_type_error(normal):
    q, k, v = (normal((1, 4, 2, 64)) for _ in range(3))
    with pytest.raises(TypeError, match="no argument is called causal"):
        pagoda.attention(q, (k, v), causal=True)


def test_arrays_are_not_copied_and_not_kept(normal):
    import sys

    q, k, v = (normal((1, 4, 2, 64), "bfloat16") for _ in range(3))
    counts = [sys.getrefcount(a) for a in (q, k, v)]
    for _ in range(3):
        pagoda.attention(q, (k, v), mask=Mask.causal())
        with pytest.raises(pagoda.InvalidArgument):
            pagoda.attention(q, (k, v), q_scale=3.0)
    assert [sys.getrefcount(a) for a in (q, k, v)] == counts


def test_ml_dtypes_arrays_are_read_in_place(normal):
    k = normal((1, 4, 2, 64), "bfloat16")
    q = normal((1, 1, 2, 64), "bfloat16")
    out = poisoned(q.shape, "bfloat16")
    plan = pagoda.plan(q, (k, k), out=out)
    k[...] = np.ones((), DTYPES["bfloat16"])  # a copy would not see this
    plan.run()
    assert (out.astype(np.float32) == 1).all()


def test_arrays_of_jax_are_read_in_place(normal):
    jax = pytest.importorskip("jax")
    of_jax = lambda x: jax.device_put(x, jax.devices("cpu")[0])  # noqa: E731
    q, k, v = (normal((1, 4, 2, 64), "bfloat16") for _ in range(3))
    out = poisoned(q.shape, "bfloat16")
    pagoda.attention(of_jax(q), (of_jax(k), of_jax(v)), out=out)
    assert_close(out[0], attention(q[0], k[0], v[0])[0], "bfloat16")
    with pytest.raises(pagoda.InvalidArgument, match="^out is None"):
        pagoda.attention(of_jax(q), (k, v))


def test_import_loads_no_framework():
    import subprocess
    import sys

    code = "import sys, pagoda; print({'torch', 'numpy', 'transformers'} & sys.modules.keys())"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "set()\n"
