"""attention(), plan(), explain(), append_kv(), merge_states(): the library's calls over arrays."""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Any, TypedDict, Union

from pagoda import _core
from pagoda.allocation import dtype_name, empty, zeroed_bytes
from pagoda.errors import invalid
from pagoda.info import Kernel
from pagoda.kv_cache import LAYOUTS, KVCache
from pagoda.mask import Mask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Unpack

    KV = Union[KVCache, tuple[Any, Any]]

LOG_BASES = {"e": 0, "2": 1}
SCHEDULES = {"automatic": 0, "transient": 1, "persistent": 2, "queue": 3, "stream-k": 4}


class Arguments(TypedDict, total=False):
    """The arguments by name of attention(), plan() and explain(). None = absent.

    Rows
        cu_seqlens_q: int32 [batch + 1], offsets of ragged queries. seqlens_q: int32 [batch], used
        rows of each sequence; O of the others is 0. cache_lengths: int32 [batch], position of each
        sequence's first query; default seqlen_kv - seqlen_q. max_seqlen_q, max_seqlen_kv: upper
        bounds in tokens, which size launches where lengths are in GPU memory; 0 = by the shapes.
        leftpad_kv: int32 [batch], rows of K and V before each sequence's first key, which belong to
        its length in seqlens_kv and not to its keys. zero_padding_rows: writes 0 to the rows of a
        ragged O past cu_seqlens_q[batch].
    Scores
        softmax_scale: default 1 / sqrt(head_dim_qk). mask: a Mask. softcap: s = softcap * tanh(s /
        softcap); 0 = off. alibi_slopes: float32 [num_q_heads]. sinks: float32 [num_q_heads], logits
        that enter the denominator only.
    Scales
        q_scale: of fp8 queries, a number, or float32 [num_q_heads] or [num_kv_heads], or [batch,
        either]. k_scale, v_scale: of the cache, a number, or float32 [num_kv_heads] or [batch,
        num_kv_heads]. Arrays of any strides.
        value = scale * stored element. out_scale: of an fp8 out, which stores value / out_scale.
    Outputs
        out: the shape of q with head_dim_vo, of any of the four types; allocated if None, of type
        out_dtype (default: q's, bfloat16 for fp8 queries). return_lse: returns (out, lse). lse:
        float32, the shape of q without its last dimension, any strides. lse_base: "e" or "2".
        row_max: float32 as lse, the largest score of each row.
    Execution
        backend: a name that info() lists; default: the one of q's memory. kernel: a name that
        explain() lists, or how names begin and a *. schedule: "automatic", "transient",
        "persistent", "queue" or "stream-k". num_kv_splits: 0 = the kernel chooses.
        is_batch_invariant: a sequence's result does not depend on the rest of the batch.
        checks_indices: also checks the contents of page tables. stream: for GPUs, an integer or a
        stream of PyTorch or CuPy; default: the current stream of q's framework, if that is PyTorch,
        else the default stream.
    """

    cu_seqlens_q: Any
    seqlens_q: Any
    cache_lengths: Any
    max_seqlen_q: int
    max_seqlen_kv: int
    leftpad_kv: Any
    zero_padding_rows: bool
    softmax_scale: float | None
    mask: Mask | None
    softcap: float
    alibi_slopes: Any
    sinks: Any
    q_scale: Any
    k_scale: Any
    v_scale: Any
    out_scale: float
    out: Any
    out_dtype: Any
    return_lse: bool
    lse: Any
    lse_base: str
    row_max: Any
    backend: str
    kernel: str
    schedule: str
    num_kv_splits: int
    is_batch_invariant: bool
    checks_indices: bool
    stream: Any


ARGUMENT_NAMES = frozenset(Arguments.__annotations__)
_EVERY_KEY = Mask.none()


class _Call:
    """A call's arguments as _core takes them; allocates the outputs that are left out."""

    def __init__(self, q: Any, kv: KV, arguments: Mapping[str, Any]) -> None:
        kv = as_cache(kv)
        get = given(arguments).get
        q_scale, q_per_head = split_scale(get("q_scale", 1.0))
        k_scale, k_per_head = split_scale(get("k_scale", 1.0))
        v_scale, v_per_head = split_scale(get("v_scale", 1.0))
        self.q = q
        self.out = get("out")
        self.lse = get("lse")
        if self.out is None or get("return_lse"):
            check_array("q", q)
            check_array("kv.v", kv.v)
        if self.out is not None:
            if (out_dtype := get("out_dtype")) is not None:
                check_out_dtype(self.out, dtype_name(self.out, out_dtype))
        else:
            self.out = empty(
                q, (*q.shape[:-1], kv.v.shape[-1]), default_out_dtype(q, get("out_dtype"))
            )
        if self.lse is None and get("return_lse"):
            self.lse = empty(q, tuple(q.shape[:-1]), "float32")
        # The order of _core.ARRAYS.
        self.arrays = (
            q,
            self.out,
            self.lse,
            get("row_max"),
            kv.k,
            kv.v,
            kv.seqlens_kv,
            kv.cu_seqlens_kv,
            kv.block_table,
            kv.indptr,
            kv.indices,
            kv.last_page_len,
            get("cu_seqlens_q"),
            get("seqlens_q"),
            get("cache_lengths"),
            k_per_head,
            v_per_head,
            get("alibi_slopes"),
            get("sinks"),
            get("leftpad_kv"),
            q_per_head,
        )
        mask = get("mask", _EVERY_KEY)
        self.mask, self.mask_arrays = mask.program, mask.arrays
        self.numbers = (
            choice("kv.layout", kv.layout, LAYOUTS),
            0 if kv.page_size is None else integer("kv.page_size", kv.page_size),
            get("max_seqlen_q", 0),
            get("max_seqlen_kv", 0),
            get("softmax_scale"),
            get("softcap", 0.0),
            q_scale,
            k_scale,
            v_scale,
            get("out_scale", 1.0),
            choice("lse_base", get("lse_base", "e"), LOG_BASES),
            get("zero_padding_rows", False),
        )
        self.options = (
            get("backend", ""),
            get("kernel", ""),
            choice("schedule", get("schedule", "automatic"), SCHEDULES),
            get("num_kv_splits", 0),
            get("is_batch_invariant", False),
            get("checks_indices", False),
        )
        self.stream = get("stream")


def attention(q: Any, kv: KV, **arguments: Unpack[Arguments]) -> Any:
    """O = softmax(mask(softmax_scale * Q K^T) + bias) V over a dense, ragged or paged cache.

    q: [batch, seqlen_q, num_q_heads, head_dim_qk], or [total_q, num_q_heads, head_dim_qk] with
    cu_seqlens_q. kv: a KVCache, or (k, v) for a dense one. num_q_heads is a multiple of
    num_kv_heads; head dims are multiples of 8 up to 576. The other arguments: see Arguments.

    Returns out, or (out, lse) with return_lse. A row without visible keys has O = 0 and LSE =
    -infinity. Raises InvalidArgument (before anything is written), Unsupported, NotFound,
    OutOfMemory. On a GPU the call launches into the stream and returns.
    """
    call = _Call(q, kv, arguments)
    _core.run_attention(
        call.arrays, call.mask, call.mask_arrays, call.numbers, call.options, call.stream
    )
    return (call.out, call.lse) if arguments.get("return_lse") else call.out


def plan(q: Any, kv: KV, **arguments: Unpack[Arguments]) -> _core.Plan:
    """Prepares an attention() call to be run often, by Plan.run(); `out` must be given.

    The plan keeps the arrays, and serves every call of the same shapes, strides and types: of other
    arrays that are given to run(), and in GPU memory of other lengths up to the planned maxima.
    `stream`: where run() launches unless it is given another. Raises as attention() does; writes
    nothing.
    """
    if arguments.get("out") is None:
        raise invalid("out", "None", "must be given: the plan writes there")
    if arguments.get("return_lse") and arguments.get("lse") is None:
        raise invalid("lse", "None", "must be given with return_lse: the plan writes there")
    call = _Call(q, kv, arguments)

    def allocate(count: int) -> Any:
        return zeroed_bytes(q, count)

    return _core.Plan(
        call.arrays, call.mask, call.mask_arrays, call.numbers, call.options, call.stream, allocate
    )


def explain(q: Any, kv: KV, **arguments: Unpack[Arguments]) -> list[Kernel]:
    """Every kernel of the call's back end in order of preference, with the decision on each.

    Takes the arguments of attention() and runs nothing.
    """
    call = _Call(q, kv, arguments)
    return [
        Kernel(*k)
        for k in _core.explain(call.arrays, call.mask, call.mask_arrays, call.numbers, call.options)
    ]


def append_kv(
    k_new: Any,
    v_new: Any,
    k_cache: Any,
    v_cache: Any,
    slot_mapping: Any,
    *,
    layout: str = "NHD",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
    backend: str = "",
    checks_indices: bool = False,
    stream: Any = None,
) -> None:
    """Writes new keys and values into a paged cache, in place, converting to the cache's type.

    k_new: [num_tokens, num_kv_heads, head_dim_qk]; v_new: the same with head_dim_vo; float32,
    float16 or bfloat16. k_cache, v_cache: pages by `layout` (KVCache). slot_mapping: int64
    [num_tokens], page * page_size + row; negative = the token is skipped. k_scale, v_scale: of an
    fp8 cache, stored element = value / scale; a number or float32 [num_kv_heads].
    Raises InvalidArgument, before anything is written.
    """
    k_number, k_per_head = split_scale(k_scale)
    v_number, v_per_head = split_scale(v_scale)
    backend = "" if backend is None else text("backend", backend)
    _core.append_kv(
        k_new,
        v_new,
        slot_mapping,
        k_cache,
        v_cache,
        choice("layout", layout, LAYOUTS),
        k_number,
        v_number,
        k_per_head,
        v_per_head,
        backend,
        flag("checks_indices", checks_indices),
        stream,
    )


def merge_states(
    partial_out: Any,
    partial_lse: Any,
    *,
    out: Any = None,
    lse: Any = None,
    lse_base: str = "e",
    row_mask: Any = None,
    backend: str = "",
    stream: Any = None,
) -> tuple[Any, Any]:
    """Merges attention over disjoint sets of keys. Returns (out, lse).

    partial_out: [num_parts, total_q, num_q_heads, head_dim_vo]; partial_lse: float32 [num_parts,
    total_q, num_q_heads], of base lse_base ("e" or "2"). out: [total_q, num_q_heads, head_dim_vo],
    lse: float32 [total_q, num_q_heads]; allocated if None. row_mask: bool or uint8 [total_q]; rows
    with 0 keep what out and lse hold, which must be given then. A part with LSE = -infinity is
    ignored, whatever it holds.
    """
    check_kept_rows(row_mask, out=out, lse=lse)
    check_array("partial_out", partial_out)
    check_array("partial_lse", partial_lse)
    backend = "" if backend is None else text("backend", backend)
    if out is None:
        out = empty(partial_out, tuple(partial_out.shape[1:]))
    if lse is None:
        lse = empty(partial_lse, tuple(partial_lse.shape[1:]))
    base = choice("lse_base", lse_base, LOG_BASES)
    _core.merge_states(partial_out, partial_lse, out, lse, base, row_mask, backend, stream)
    return out, lse


def release_workspaces() -> None:
    """Frees the workspaces that attention() keeps: of the calling thread, and of all GPUs.

    CUDA graphs that have captured attention() must not be launched any more; those of plans may.
    """
    _core.release_workspaces()


def as_cache(kv: Any) -> KVCache:
    """kv, or the dense cache of (k, v)."""
    if isinstance(kv, KVCache):
        return kv
    if not hasattr(kv, "__len__") or len(kv) != 2:
        raise invalid("kv", described(kv), "must be a KVCache or (k, v)")
    k, v = kv
    return KVCache(k, v)


def check_array(name: str, value: Any) -> None:
    """InvalidArgument if it has no shape."""
    if not hasattr(value, "shape"):
        raise invalid(name, described(value), "must be an array: NumPy, PyTorch, CuPy, JAX, ...")


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not None; numbers, names and masks are checked."""
    checked = {}
    for name, value in arguments.items():
        if name not in ARGUMENT_NAMES:
            raise TypeError(f"no argument is called {name}")
        if value is not None:
            check = _CHECKS.get(name)
            checked[name] = value if check is None else check(name, value)
    return checked


def integer(name: str, value: Any) -> int:
    """An integer of 32 bits, those of NumPy included."""
    number: int | None = None
    with contextlib.suppress(TypeError):
        number = operator.index(value)
    if number is None or not -(1 << 31) <= number < 1 << 31:
        raise invalid(name, described(value), "must be an integer of 32 bits")
    return number


def number(name: str, value: Any) -> float:
    """A number: a Python number, or a scalar of NumPy or PyTorch."""
    if isinstance(value, (int, float)):
        return value
    if not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0:
        raise invalid(name, described(value), "must be a number")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """A bool, 0 or 1, or a scalar of NumPy or PyTorch."""
    is_flag = value in (0, 1) if isinstance(value, int) else getattr(value, "ndim", None) == 0
    if not is_flag:
        raise invalid(name, described(value), "must be True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise invalid(name, described(value), "must be a str")
    return value


def check_mask(name: str, value: Any) -> Mask:
    """A Mask."""
    if not isinstance(value, Mask):
        raise invalid(name, described(value), "must be a Mask: Mask.causal(), Mask.window(), ...")
    return value


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "mask": check_mask,
    **dict.fromkeys(("max_seqlen_q", "max_seqlen_kv", "num_kv_splits"), integer),
    **dict.fromkeys(("softmax_scale", "softcap", "out_scale"), number),
    **dict.fromkeys(
        ("zero_padding_rows", "is_batch_invariant", "checks_indices", "return_lse"), flag
    ),
    **dict.fromkeys(("backend", "kernel"), text),
}


def described(value: Any) -> str:
    """A value in an error: a number or a name itself, the type of another."""
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    return f"a {type(value).__name__}"


def choice(name: str, value: str, values: dict[str, int]) -> int:
    """The number of a named value; InvalidArgument if there is no such name."""
    try:
        return values[value]
    except (KeyError, TypeError):
        raise invalid(name, repr(value), f"must be one of {', '.join(values)}") from None


def split_scale(scale: Any) -> tuple[float, Any]:
    """A scale of the whole tensor and those of its heads, None where there are none."""
    return (scale, None) if isinstance(scale, (int, float)) else (1.0, scale)


def check_kept_rows(row_mask: Any, **outputs: Any) -> None:
    """The rows that a row_mask keeps need outputs that hold something."""
    for name, output in outputs.items():
        if row_mask is not None and output is None:
            raise invalid(name, "None", "must be given with row_mask: rows with 0 keep it")


def check_out_dtype(out: Any, out_dtype: Any) -> None:
    """out_dtype, a dtype or its full name (dtype_name), must be that of a given `out`."""
    given, wanted = (str(dtype).rpartition(".")[2] for dtype in (out.dtype, out_dtype))
    if given != wanted:
        raise invalid("out.dtype", given, f"must be out_dtype, {wanted}")


def default_out_dtype(q: Any, out_dtype: Any) -> Any:
    if out_dtype is None and str(q.dtype).endswith("float8_e4m3fn"):
        return "bfloat16"
    return out_dtype
