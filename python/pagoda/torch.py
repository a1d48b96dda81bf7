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
    ARGUMENT_NAMES,
    LOG_BASES,
    SCHEDULES,
    Arguments,
    choice,
    default_out_dtype,
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
    """Pagoda's exception for one that an operator has raised.

    The failure that is kept may be an older one, of an operator that was called by itself.
    """
    failure = _core.operator_failure()
    if failure is None or failure[2] not in str(error):
        return error
    return from_status(*failure)


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


def _empty(like: torch.Tensor, shape: tuple[int, ...], dtype: Any = None) -> torch.Tensor:
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype)
    return torch.empty(shape, dtype=like.dtype if dtype is None else dtype, device=like.device)


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
    if not isinstance(kv, KVCache):
        kv = KVCache(*kv)
    k, v = kv.k, kv.v
    # What is not given stays at the schema's default, which is quicker than to pass it.
    named: dict[str, Any] = {}
    if others or not _is_plain(kv):
        _add_others(named, kv, others)
    if torch.is_grad_enabled():
        refuse_grad(q=q, k=k, v=v, out=out, lse=lse, **others)
        for name, array in () if mask is None else zip(mask.array_names, mask.arrays):
            refuse_grad(**{name: array})
    if out is None:
        out = _empty(q, (*q.shape[:-1], v.shape[-1]), default_out_dtype(q, out_dtype))
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
        positional += (softmax_scale, cu_seqlens_q, max_seqlen_q or 0, max_seqlen_kv or 0)
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
    for name in arguments:
        if name not in ARGUMENT_NAMES:
            raise TypeError(f"no argument is called {name}")
    if arguments.get("stream") is not None:
        raise invalid("stream", "given", "must be None: set PyTorch's current stream instead")
    for name in ("row_max", "backend", "kernel"):
        if name in arguments:
            named[name] = arguments[name]

    def given(name: str, default: Any) -> Any:
        value = arguments.get(name)
        return default if value is None else value

    q_scale, q_per_head = split_scale(given("q_scale", 1.0))
    k_scale, k_per_head = split_scale(given("k_scale", 1.0))
    v_scale, v_per_head = split_scale(given("v_scale", 1.0))
    arrays = [
        given("seqlens_q", None), given("cache_lengths", None), kv.cu_seqlens_kv, kv.indptr,
        kv.indices, kv.last_page_len, k_per_head, v_per_head, given("alibi_slopes", None),
        given("sinks", None), given("leftpad_kv", None), q_per_head,
    ]  # fmt: skip
    numbers = [
        choice("kv.layout", kv.layout, LAYOUTS),
        kv.page_size,
        choice("lse_base", given("lse_base", "e"), LOG_BASES),
        choice("schedule", given("schedule", "automatic"), SCHEDULES),
        given("num_kv_splits", 0),
        int(given("is_batch_invariant", False)),
        int(given("checks_indices", False)),
        int(given("zero_padding_rows", False)),
    ]
    scales = [given("softcap", 0.0), q_scale, k_scale, v_scale, given("out_scale", 1.0)]
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
    k_number, k_per_head = split_scale(k_scale)
    v_number, v_per_head = split_scale(v_scale)
    refuse_grad(k_new=k_new, v_new=v_new, k_cache=k_cache, v_cache=v_cache, k_scale=k_scale,
                v_scale=v_scale)  # fmt: skip
    try:
        _append_operator(
            k_new, v_new, k_cache, v_cache, slot_mapping, choice("layout", layout, LAYOUTS),
            k_number, v_number, k_per_head, v_per_head, checks_indices,
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
