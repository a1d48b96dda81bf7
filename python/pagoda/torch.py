"""PyTorch operators: pagoda's calls for torch.compile, fake tensors and CUDA graphs.

attention(), append_kv() and merge_states() take the arguments of pagoda's functions of these names
and launch into PyTorch's current stream. They call torch.ops.pagoda.*, whose schemas declare what
is written and whose kernels are C++. Forward only: tensors that require grad are refused. A CUDA
graph can capture them after one run on the same stream, or a pagoda.plan(), which keeps its own
workspace.

An operator that is called by itself, or in a compiled graph, raises RuntimeError with Pagoda's
message; it has no derivative and does not look for tensors that require grad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pagoda import _core
from pagoda.calls import (
    LOG_BASES,
    SCHEDULES,
    Arguments,
    as_cache,
    check_mask,
    choice,
    check_kept_rows,
    check_out_dtype,
    default_out_dtype,
    described,
    flag,
    given,
    integer,
    number,
    split_scale,
)
from pagoda.errors import from_status, invalid
from pagoda.kv_cache import LAYOUTS, KVCache
from pagoda.mask import Mask

if TYPE_CHECKING:
    from typing_extensions import Unpack

_library = torch.library.Library("pagoda", "DEF")
# Inductor keeps the strides that a call has: the library reads any, and so may the caller.
_tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)

# The fewer arguments a schema has, and the fewer lists a call passes, the less PyTorch spends on
# it: what decode and prefill seldom need is in the lists at the end. The kernels
# (python/src/torch_operators.cpp) read the same order.
#   arrays: those of _ARRAYS, in its order. numbers: layout, page_size, lse_base, schedule,
#   num_kv_splits, is_batch_invariant, checks_indices, zero_padding_rows. scales: softcap, q_scale,
#   k_scale, v_scale, out_scale. is_causal: the mask is Mask.causal(), which is quicker to pass than
#   `mask`.
_ARRAYS = (
    "seqlens_q", "cache_lengths", "cu_seqlens_kv", "indptr", "indices", "last_page_len", "k_scale",
    "v_scale", "alibi_slopes", "sinks", "leftpad_kv", "q_scale",
)  # fmt: skip
_library.define(
    """attention(Tensor q, Tensor k, Tensor v, Tensor(a!) out, Tensor? seqlens_kv=None,
    Tensor? block_table=None, bool is_causal=False, float? softmax_scale=None,
    Tensor? cu_seqlens_q=None, SymInt max_seqlen_q=0, SymInt max_seqlen_kv=0,
    Tensor(b!)? lse=None, Tensor(c!)? row_max=None, SymInt[]? mask=None,
    Tensor[]? mask_arrays=None, Tensor?[]? arrays=None, SymInt[]? numbers=None,
    float[]? scales=None, str? backend=None, str? kernel=None) -> ()""",
    tags=_tags,
)
_library.define(
    """append_kv(Tensor k_new, Tensor v_new, Tensor(a!) k_cache, Tensor(b!) v_cache,
    Tensor slot_mapping, int layout=0, float k_scale=1.0, float v_scale=1.0,
    Tensor? k_per_head=None, Tensor? v_per_head=None, bool checks_indices=False) -> ()""",
    tags=_tags,
)
_library.define(
    """merge_states(Tensor partial_out, Tensor partial_lse, Tensor(a!) out, Tensor(b!) lse,
    int lse_base=0, Tensor? row_mask=None) -> ()""",
    tags=_tags,
)
_core.register_torch_operators()


def _named_tensors(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors of an argument, which is one or a list of them, with their names in errors."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if not isinstance(value, (list, tuple)):
        return []
    names = _ARRAYS if name == "arrays" else [f"{name}[{i}]" for i in range(len(value))]
    return [(n, x) for n, x in zip(names, value) if isinstance(x, torch.Tensor)]


def _refuse_mixed_meta(tensors: list[tuple[str, torch.Tensor]]) -> None:
    """PyTorch takes the fake implementation for a call with any tensor on the meta device, and
    would leave the outputs of the others as they are."""
    first_name, first = tensors[0]
    for name, tensor in tensors[1:]:
        if (tensor.device.type == "meta") != (first.device.type == "meta"):
            limit = f"must be {first.device}, the device of {first_name}"
            raise invalid(f"{name}.device", tensor.device, limit)


def _register_fake(operator: Any) -> None:
    """The fake implementation, which has nothing to make: the outputs are arguments."""
    names = [argument.name for argument in operator._schema.arguments]

    def fake(*arguments: Any, **named: Any) -> None:
        values = [*zip(names, arguments), *named.items()]
        _refuse_mixed_meta([pair for n, value in values for pair in _named_tensors(n, value)])

    torch.library.register_fake(operator._name, fake, lib=_library)


_attention_operator = torch.ops.pagoda.attention.default
_append_operator = torch.ops.pagoda.append_kv.default
_merge_operator = torch.ops.pagoda.merge_states.default
for _operator in (_attention_operator, _append_operator, _merge_operator):
    _register_fake(_operator)

_CAUSAL = Mask.causal().program


def _failure(error: Exception) -> Exception:
    """Pagoda's exception for one that an operator has raised, and that is being handled."""
    failure = _core.operator_failure()
    return error if failure is None else from_status(*failure)


def refuse_grad(**values: Any) -> None:
    """Raises where autograd would have to pass through: the library has no backward."""
    if torch.is_grad_enabled():
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and value.requires_grad:
                raise invalid(
                    name,
                    "a tensor that requires grad",
                    "attention is forward only: call it under torch.no_grad() or detach the tensor",
                )


def _check_tensors(values: dict[str, Any]) -> None:
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            raise invalid(name, described(value), "must be a torch.Tensor")


def _length(name: str, value: Any) -> Any:
    """A bound in tokens; None = 0. Those of torch.compile are symbols."""
    if value is None or isinstance(value, (int, torch.SymInt)):
        return value or 0
    return integer(name, value)


def _dtype(dtype: Any) -> Any:
    """A dtype by its name; what is none stays what it is."""
    return getattr(torch, dtype, dtype) if isinstance(dtype, str) else dtype


def _empty(like: torch.Tensor, shape: tuple[int, ...], dtype: Any = None) -> torch.Tensor:
    dtype = like.dtype if dtype is None else _dtype(dtype)
    if not isinstance(dtype, torch.dtype):
        raise invalid("out_dtype", dtype, "must be a dtype of torch, or its name")
    return torch.empty(shape, dtype=dtype, device=like.device)


def attention(
    q: torch.Tensor,
    kv: Any,
    *,
    mask: Mask | None = None,
    out: torch.Tensor | None = None,
    out_dtype: Any = None,
    lse: torch.Tensor | None = None,
    return_lse: bool = False,
    softmax_scale: float | None = None,
    cu_seqlens_q: torch.Tensor | None = None,
    max_seqlen_q: int = 0,
    max_seqlen_kv: int = 0,
    **others: Unpack[Arguments],  # type: ignore[misc]
) -> Any:
    """pagoda.attention() as an operator: the same arguments but `stream`, the same results."""
    kv = as_cache(kv)
    k, v = kv.k, kv.v
    if not (
        isinstance(q, torch.Tensor) and isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)
    ):
        _check_tensors({"q": q, "kv.k": k, "kv.v": v})
    # What is not given stays at the schema's default, which is quicker than to pass it.
    named: dict[str, Any] = {}
    if others or not _is_plain(kv):
        _add_others(named, kv, others)
    if mask is not None:
        check_mask("mask", mask)
    if torch.is_grad_enabled():
        refuse_grad(q=q, k=k, v=v, out=out, lse=lse, **others)
        for name, array in () if mask is None else zip(mask.array_names, mask.arrays):
            refuse_grad(**{name: array})
    if out is None:
        out = _empty(q, (*q.shape[:-1], v.shape[-1]), default_out_dtype(q, out_dtype))
    elif out_dtype is not None:
        check_out_dtype(out, _dtype(out_dtype))
    if lse is None and return_lse:
        lse = _empty(q, q.shape[:-1], torch.float32)
    if lse is not None:
        named["lse"] = lse
    is_causal = False
    if mask is not None and mask.program:
        is_causal = mask.program == _CAUSAL
        if not is_causal:
            named["mask"] = mask.program
            named["mask_arrays"] = mask.arrays
    positional: tuple[Any, ...] = (q, k, v, out, kv.seqlens_kv, kv.block_table, is_causal)
    if softmax_scale is not None or cu_seqlens_q is not None or max_seqlen_q or max_seqlen_kv:
        positional += (
            None if softmax_scale is None else number("softmax_scale", softmax_scale),
            cu_seqlens_q,
            _length("max_seqlen_q", max_seqlen_q),
            _length("max_seqlen_kv", max_seqlen_kv),
        )
    try:
        _attention_operator(*positional, **named)
    except RuntimeError as error:
        raise _failure(error) from None
    return (out, lse) if return_lse else out


def _is_plain(kv: KVCache) -> bool:
    """Dense, or paged by a block table."""
    return (
        kv.cu_seqlens_kv is None and kv.indptr is None and kv.indices is None
        and kv.last_page_len is None and kv.layout == "NHD" and not kv.page_size
    )  # fmt: skip


def _add_others(named: dict[str, Any], kv: KVCache, arguments: Any) -> None:
    """Adds what decode and prefill seldom need to `named`, most of it in the schema's lists."""
    arguments = given(arguments)
    get = arguments.get
    if "stream" in arguments:
        raise invalid("stream", "given", "must be None: set PyTorch's current stream instead")
    for name in ("row_max", "backend", "kernel"):
        if name in arguments:
            named[name] = arguments[name]
    q_scale, q_per_head = split_scale(get("q_scale", 1.0))
    k_scale, k_per_head = split_scale(get("k_scale", 1.0))
    v_scale, v_per_head = split_scale(get("v_scale", 1.0))
    # The order of _ARRAYS.
    arrays = [
        get("seqlens_q"), get("cache_lengths"), kv.cu_seqlens_kv, kv.indptr, kv.indices,
        kv.last_page_len, k_per_head, v_per_head, get("alibi_slopes"), get("sinks"),
        get("leftpad_kv"), q_per_head,
    ]  # fmt: skip
    _check_tensors({name: x for name, x in zip(_ARRAYS, arrays) if x is not None})
    numbers = [
        choice("kv.layout", kv.layout, LAYOUTS),
        0 if kv.page_size is None else integer("kv.page_size", kv.page_size),
        choice("lse_base", get("lse_base", "e"), LOG_BASES),
        choice("schedule", get("schedule", "automatic"), SCHEDULES),
        get("num_kv_splits", 0),
        int(get("is_batch_invariant", False)),
        int(get("checks_indices", False)),
        int(get("zero_padding_rows", False)),
    ]
    scales = [get("softcap", 0.0), q_scale, k_scale, v_scale, get("out_scale", 1.0)]
    if any(array is not None for array in arrays):
        named["arrays"] = arrays
    if any(numbers):
        named["numbers"] = numbers
    if scales != [0.0, 1.0, 1.0, 1.0, 1.0]:
        named["scales"] = scales


def append_kv(
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    *,
    layout: str = "NHD",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
    checks_indices: bool = False,
) -> None:
    """pagoda.append_kv() as an operator."""
    _check_tensors({"k_new": k_new, "v_new": v_new, "k_cache": k_cache, "v_cache": v_cache,
                    "slot_mapping": slot_mapping})  # fmt: skip
    k_number, k_per_head = split_scale(k_scale)
    v_number, v_per_head = split_scale(v_scale)
    per_head = {"k_scale": k_per_head, "v_scale": v_per_head}
    _check_tensors({name: x for name, x in per_head.items() if x is not None})
    refuse_grad(k_new=k_new, v_new=v_new, k_cache=k_cache, v_cache=v_cache, k_scale=k_scale,
                v_scale=v_scale)  # fmt: skip
    try:
        _append_operator(
            k_new, v_new, k_cache, v_cache, slot_mapping, choice("layout", layout, LAYOUTS),
            k_number, v_number, k_per_head, v_per_head,
            flag("checks_indices", checks_indices),
        )  # fmt: skip
    except RuntimeError as error:
        raise _failure(error) from None


def merge_states(
    partial_out: torch.Tensor,
    partial_lse: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
    lse_base: str = "e",
    row_mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """pagoda.merge_states() as an operator."""
    _check_tensors({"partial_out": partial_out, "partial_lse": partial_lse})
    check_kept_rows(row_mask, out=out, lse=lse)
    refuse_grad(partial_out=partial_out, partial_lse=partial_lse, out=out, lse=lse)
    out = torch.empty_like(partial_out[0]) if out is None else out
    lse = torch.empty_like(partial_lse[0]) if lse is None else lse
    base = choice("lse_base", lse_base, LOG_BASES)
    try:
        _merge_operator(partial_out, partial_lse, out, lse, base, row_mask)
    except RuntimeError as error:
        raise _failure(error) from None
    return out, lse


__all__ = ["KVCache", "append_kv", "attention", "merge_states"]
