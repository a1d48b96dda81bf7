"""FlashAttention's inference calls, served by Pagoda: change the import.

    from pagoda.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

Arguments may have the names of FlashAttention 2, 3 or 4 (block_table and page_table, learnable_sink
and s_aux, ...). By position they are those of version 2; what only the others have goes by name.
Every argument is honoured or refused with an error that names it; arguments that change speed and
not results are checked and have no further effect where Pagoda has nothing to set: pack_gqa,
sm_margin, deterministic (every call is). Forward only.

Results: `out`; with return_softmax_lse or return_lse (out, lse); with return_attn_probs
FlashAttention 2's (out, lse, None). LSE is natural, [batch, num_heads, seqlen_q] or [num_heads,
total_q]; -infinity for rows without keys.

Batches, indices, lengths, offsets and page ids are checked before anything is written: their shapes
and types always, their values in host memory. Those in GPU memory are not read.
"""

from __future__ import annotations

from typing import Any

import torch

import pagoda.torch as ops
from pagoda.calls import described, explain, integer
from pagoda.checks import check_integers, check_offsets, has_memory, is_on_host
from pagoda.errors import Unsupported, invalid
from pagoda.kv_cache import KVCache
from pagoda.mask import Mask
from pagoda.rotary import apply_rotary

__all__ = [
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "get_scheduler_metadata",
]


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    **others: Any,
) -> Any:
    """q: [batch, seqlen_q, num_heads, head_dim]; k, v: [batch, seqlen_k, num_heads_k, head_dim].

    By name: q_descale, k_descale, v_descale, attention_chunk, num_splits, learnable_sink (s_aux),
    out, return_lse.
    """
    return _attend(
        q,
        KVCache(k, v),
        {},
        others,
        dropout_p=dropout_p,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        softcap=softcap,
        alibi_slopes=alibi_slopes,
        deterministic=deterministic,
        return_attn_probs=return_attn_probs,
    )


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor | None = None,
    cu_seqlens_k: torch.Tensor | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    **others: Any,
) -> Any:
    """q: [total_q, num_heads, head_dim] with cu_seqlens_q, else padded [batch, seqlen_q, ...].

    k, v: [total_k, num_heads_k, head_dim] with cu_seqlens_k; pages [num_pages, page_size,
    num_heads_k, head_dim] with block_table (page_table) and seqused_k, or cu_seqlens_k for their
    lengths; else padded [batch, seqlen_k, ...]. By name also seqused_q, and those of
    flash_attn_func.
    """
    table = _one_of("block_table", block_table, "page_table", others.pop("page_table", None))
    seqused_k = others.pop("seqused_k", None)
    if table is not None:
        if seqused_k is None:
            if cu_seqlens_k is None:
                raise invalid("seqused_k", "None", "must be given with a block table")
            seqused_k = cu_seqlens_k.diff()
        kv = KVCache(k, v, block_table=table, seqlens_kv=seqused_k)
    else:
        kv = KVCache(k, v, cu_seqlens_kv=cu_seqlens_k, seqlens_kv=seqused_k)
    rows = {
        "cu_seqlens_q": cu_seqlens_q,
        "seqlens_q": others.pop("seqused_q", None),
        "max_seqlen_q": max_seqlen_q or 0,
        "max_seqlen_kv": max_seqlen_k or 0,
    }
    others.pop("min_seqlen_k", None)  # a bound that needs no check
    return _attend(
        q,
        kv,
        rows,
        others,
        dropout_p=dropout_p,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        softcap=softcap,
        alibi_slopes=alibi_slopes,
        deterministic=deterministic,
        return_attn_probs=return_attn_probs,
    )


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    **others: Any,
) -> Any:
    """q: [batch, seqlen_q, num_heads, head_dim], or [total_q, ...] with cu_seqlens_q.

    k_cache, v_cache: [batch_cache, seqlen_cache, num_heads_k, head_dim], or pages with block_table
    (page_table). k, v: [batch, seqlen_new, num_heads_k, head_dim], or [total_new, ...] with
    cu_seqlens_k_new: appended in place at cache_seqlens before the attention, which sees them.
    rotary_cos, rotary_sin: [max_position, rotary_dim / 2], applied to q and k at their positions,
    which start at rotary_seqlens or else cache_seqlens. By name also max_seqlen_q, and those of
    flash_attn_func.
    """
    table = _one_of("block_table", block_table, "page_table", others.pop("page_table", None))
    cu_seqlens_q = others.pop("cu_seqlens_q", None)
    cu_seqlens_k_new = others.pop("cu_seqlens_k_new", None)
    rotary_seqlens = others.pop("rotary_seqlens", None)
    max_seqlen_q = others.pop("max_seqlen_q", None)
    has_lse = others.pop("return_lse", False) or return_softmax_lse
    arguments, results = _common(
        {**others, "num_splits": num_splits, "return_lse": has_lse},
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        softcap=softcap,
        alibi_slopes=alibi_slopes,
    )
    batch = cu_seqlens_q.shape[0] - 1 if cu_seqlens_q is not None else q.shape[0]
    table = _pages(table, cache_batch_idx, k_cache, batch)
    _check_new(k, v, cu_seqlens_k_new, batch)
    added = 0
    if k is not None:
        added = k.shape[1] if cu_seqlens_k_new is None else cu_seqlens_k_new.diff()
    capacity = table.shape[1] * k_cache.shape[1]
    room = capacity - added if isinstance(added, int) else capacity
    if cache_seqlens is None:
        if k is not None:
            raise invalid("cache_seqlens", "None", "must be given: it says where k goes")
        cache_seqlens = capacity
    cache_seqlens = _lengths(cache_seqlens, batch, room, q.device)
    if rotary_cos is not None and k is None:
        raise invalid("rotary_cos", "given", "must be None: without k there is nothing to append")
    if (rotary_cos is None) != (rotary_sin is None):
        raise invalid("rotary_sin", "alone", "rotary_cos and rotary_sin must be given together")

    seqlens_kv = (cache_seqlens + added).to(torch.int32)
    kv = KVCache(k_cache, v_cache, block_table=table, seqlens_kv=seqlens_kv)
    rows_of = {
        "cu_seqlens_q": cu_seqlens_q,
        "max_seqlen_q": max_seqlen_q or 0,
        "leftpad_kv": cache_leftpad,
    }
    if k is None or v is None:
        return _run(q, kv, rows_of, arguments, results)
    # All arguments are checked before anything is appended.
    _check_attention(q, kv, rows_of, arguments, results)
    append_scales = {
        name: _append_scale(name, arguments[name])
        for name in ("k_scale", "v_scale")
        if name in arguments
    }
    new_batch, new_offset = _token_index(k, cu_seqlens_k_new)
    if rotary_cos is not None and rotary_sin is not None:
        start = cache_seqlens
        if rotary_seqlens is not None:
            check_integers("rotary_seqlens", rotary_seqlens, batch, largest=rotary_cos.shape[0])
            start = rotary_seqlens
        turn = {"cos": rotary_cos, "sin": rotary_sin, "interleaved": rotary_interleaved}
        q_batch, q_offset = _token_index(q, cu_seqlens_q)
        # Without a mask all queries of a sequence have one position.
        is_local = arguments["mask"] is not None
        q = _rotated(q, start[q_batch] + (q_offset if is_local else 0), turn)
        k = _rotated(k, start[new_batch] + new_offset, turn)
    ops.append_kv(
        k.reshape(-1, *k.shape[-2:]),
        v.reshape(-1, *v.shape[-2:]),
        k_cache,
        v_cache,
        _slots(table, k_cache.shape[1], new_batch, cache_seqlens[new_batch] + new_offset),
        **append_scales,
    )
    return _run(q, kv, rows_of, arguments, results)


def get_scheduler_metadata(*arguments: Any, **named: Any) -> None:
    """None: Pagoda's calls need no metadata, and accept None for it."""


# Arguments of one version or another that must be None.
_REFUSED = (
    "qv",
    "gather_kv_indices",
    "score_mod",
    "score_mod_bwd",
    "mask_mod",
    "aux_tensors",
    "aux_scalars",
    "block_sparse_tensors",
    "block_sparse_tensors_bwd",
    "scheduler_metadata",
    "seqlen_k_per_split",
)
# Arguments without an effect on results, and their types.
_SPEED: dict[str, tuple[type, ...]] = {
    "pack_gqa": (bool, type(None)),
    "sm_margin": (int,),
    "disable_scheduler_metadata": (bool,),
    "fa_version": (int,),
}


def _attend(
    q: torch.Tensor, kv: KVCache, rows: dict[str, Any], others: dict[str, Any], **common: Any
) -> Any:
    return _run(q, kv, rows, *_common(others, **common))


def _run(
    q: torch.Tensor, kv: KVCache, rows: dict[str, Any], arguments: dict[str, Any], results: str
) -> Any:
    named = _named(q, kv, rows, arguments, results)
    out = ops.attention(q, kv, **named)
    if results == "out":
        return out
    lse = named["lse"].transpose(-1, -2)
    return (out, lse, None) if results == "triple" else (out, lse)


def _named(
    q: torch.Tensor, kv: KVCache, rows: dict[str, Any], arguments: dict[str, Any], results: str
) -> dict[str, Any]:
    """The arguments of pagoda.torch.attention()."""
    named = {**rows, **arguments}
    if kv.block_table is not None and q.device.type == "cpu":
        named["checks_indices"] = True
    if results != "out":
        *outer, heads, _ = q.shape
        lse = torch.empty((*outer[:-1], heads, outer[-1]), dtype=torch.float32, device=q.device)
        named["lse"] = lse.transpose(-1, -2)
    return named


def _check_attention(
    q: torch.Tensor, kv: KVCache, rows: dict[str, Any], arguments: dict[str, Any], results: str
) -> None:
    """Raises what _run() would raise. A graph that is traced is checked when it runs."""
    if not has_memory(q):
        return
    kernels = explain(q, kv, **_named(q, kv, rows, arguments, results))
    if not any(kernel.is_selected for kernel in kernels):
        best = kernels[0]
        reason = f"{best.name}: {best.reason} (the first of {len(kernels)} kernels)"
        raise Unsupported(f"no kernel can serve this call: {reason}", "backend")


def _common(
    others: dict[str, Any],
    *,
    softmax_scale: float | None,
    causal: bool,
    window_size: tuple[int | None, int | None],
    softcap: float,
    alibi_slopes: torch.Tensor | None,
    dropout_p: float = 0.0,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> tuple[dict[str, Any], str]:
    """The arguments of every function as pagoda.torch.attention() has them, and which results are
    returned: "out", "pair", "triple". others: arguments by name; all are used or refused."""
    others = dict(others)
    if dropout_p != 0:
        raise Unsupported(f"dropout_p is {dropout_p}; must be 0", "dropout_p")
    for name in _REFUSED:
        if others.pop(name, None) is not None:
            raise Unsupported(f"{name} is given; Pagoda does not have it", name)
    for name, types in {**_SPEED, "deterministic": (bool,)}.items():
        value = others.pop(name, deterministic if name == "deterministic" else types[0]())
        if not isinstance(value, types):
            raise invalid(name, repr(value), f"must be of {' or '.join(t.__name__ for t in types)}")
    num_splits = max(integer("num_splits", others.pop("num_splits", 0)), 0)
    if num_splits > 128:
        raise Unsupported(f"num_splits is {num_splits}; must be at most 128", "num_splits")
    sinks = _one_of(
        "learnable_sink", others.pop("learnable_sink", None), "s_aux", others.pop("s_aux", None)
    )
    left, right = _window(window_size)
    right = 0 if causal else right
    descales = {name: others.pop(f"{name}_descale", None) for name in ("q", "k", "v")}
    arguments = {
        "softmax_scale": softmax_scale,
        "softcap": softcap,
        "sinks": None if sinks is None else sinks.float(),
        "num_kv_splits": num_splits,
        "out": others.pop("out", None),
        "mask": _mask(left, right, others.pop("attention_chunk", 0)),
        "alibi_slopes": _slopes(alibi_slopes, is_causal=right == 0),
        **{f"{name}_scale": scale for name, scale in descales.items() if scale is not None},
    }
    is_pair = others.pop("return_lse", False)
    if others:
        raise TypeError(f"no argument is called {next(iter(others))}")
    return arguments, "triple" if return_attn_probs else "pair" if is_pair else "out"


def _mask(left: int, right: int, chunk: int) -> Mask | None:
    mask = None
    if (left, right) == (-1, 0):
        mask = Mask.causal()
    elif (left, right) != (-1, -1):
        mask = Mask.window(left, right)
    if not chunk:
        return mask
    if chunk < 0:
        raise invalid("attention_chunk", chunk, "must be at least 0")
    return Mask.chunked(chunk) if mask is None else Mask.chunked(chunk) & mask


def _slopes(slopes: torch.Tensor | None, *, is_causal: bool) -> torch.Tensor | None:
    """FlashAttention adds -slope * |k - q|, Pagoda slope * (k - q): the same for keys up to q."""
    if slopes is None:
        return None
    if not is_causal:
        raise Unsupported("alibi_slopes is given; needs causal=True", "alibi_slopes")
    return _shared_row("alibi_slopes", slopes).contiguous() if slopes.ndim == 2 else slopes


def _one_of(name: str, value: Any, other_name: str, other: Any) -> Any:
    if value is not None and other is not None:
        raise invalid(other_name, "given", f"must be None: {name} is its other name")
    return other if value is None else value


def _window(window_size: tuple[int | None, int | None]) -> tuple[int, int]:
    left, right = (-1 if side is None else side for side in window_size)
    if left < -1 or right < -1:
        raise Unsupported(f"window_size is {window_size}; must be at least -1", "window_size")
    return left, right


def _shared_row(name: str, values: torch.Tensor) -> torch.Tensor:
    """values[0] of [batch, num_heads], where all sequences have the same."""
    if values.shape[0] != 1 and values.stride(0) != 0:
        raise Unsupported(
            f"{name} is of [{values.shape[0]}, ...]; one row for all sequences is served: "
            "[1, num_heads], or expanded from it",
            name,
        )
    return values[0]


def _pages(
    table: torch.Tensor | None,
    cache_batch_idx: torch.Tensor | None,
    k_cache: torch.Tensor,
    batch: int,
) -> torch.Tensor:
    """The block table. A dense cache is one of pages as long as a sequence."""
    if table is not None:
        if cache_batch_idx is not None:
            raise invalid("cache_batch_idx", "given", "must be None: block_table selects the pages")
        if table.ndim != 2 or table.shape[0] != batch:
            limit = f"must be [{batch}, max_pages_per_seq], with the batch of q"
            raise invalid("block_table.shape", tuple(table.shape), limit)
        return table
    sequences = k_cache.shape[0]
    if cache_batch_idx is not None:
        check_integers("cache_batch_idx", cache_batch_idx, batch, largest=sequences - 1)
        return cache_batch_idx.to(torch.int32).view(-1, 1)
    if sequences < batch:
        limit = f"must be at least the batch of q, {batch}, without cache_batch_idx"
        raise invalid("k_cache.shape[0]", sequences, limit)
    return torch.arange(batch, dtype=torch.int32, device=k_cache.device).view(-1, 1)


def _append_scale(name: str, scale: Any) -> Any:
    """The scale of new tokens: stored element = value / scale. One number, or [num_heads_k]."""
    if isinstance(scale, torch.Tensor) and scale.ndim == 2:
        return _shared_row(name.replace("_scale", "_descale"), scale)
    return scale


def _check_new(
    k: torch.Tensor | None, v: torch.Tensor | None, cu_seqlens: torch.Tensor | None, batch: int
) -> None:
    """Checks the new tokens against each other and against the batch of q."""
    if k is None and v is None:
        return
    if k is None or v is None:
        raise invalid("k" if k is None else "v", "None", "k and v must be given together")
    if v.shape[:-1] != k.shape[:-1]:
        limit = f"must be that of k, {tuple(k.shape)}, except for head_dim"
        raise invalid("v.shape", tuple(v.shape), limit)
    if cu_seqlens is not None:
        total = k.shape[0]
        check_offsets("cu_seqlens_k_new", cu_seqlens, batch, total)
        if is_on_host(cu_seqlens) and cu_seqlens[-1] != total:
            limit = f"must be the tokens of k, {total}"
            raise invalid(f"cu_seqlens_k_new[{batch}]", int(cu_seqlens[-1]), limit)
    elif k.ndim != 4 or k.shape[0] != batch:
        limit = f"must be [{batch}, seqlen_new, num_heads_k, head_dim], with the batch of q"
        raise invalid("k.shape", tuple(k.shape), limit)


def _lengths(lengths: Any, batch: int, largest: int, device: torch.device) -> torch.Tensor:
    """cache_seqlens as a tensor [batch], each in [0, largest]."""
    if isinstance(lengths, torch.Tensor):
        check_integers("cache_seqlens", lengths, batch, largest=largest)
        return lengths
    if not isinstance(lengths, int):
        raise invalid("cache_seqlens", described(lengths), "must be an int or an int32 tensor")
    if not torch.compiler.is_compiling() and not 0 <= lengths <= largest:
        raise invalid("cache_seqlens", lengths, f"must be in [0, {largest}]")
    return torch.full((batch,), lengths, dtype=torch.int32, device=device)


def _rotated(x: torch.Tensor, positions: torch.Tensor, turn: dict[str, Any]) -> torch.Tensor:
    cos, sin = turn["cos"], turn["sin"]
    if sin.shape != cos.shape:
        raise invalid("rotary_sin.shape", tuple(sin.shape), f"must be that of cos, {cos.shape}")
    if 2 * cos.shape[-1] > x.shape[-1]:
        limit = f"must be at most head_dim / 2 = {x.shape[-1] // 2}"
        raise invalid("rotary_cos.shape[1]", cos.shape[-1], limit)
    if is_on_host(positions) and (positions >= cos.shape[0]).any():
        limit = f"must be above the largest position, {int(positions.max())}"
        raise invalid("rotary_cos.shape[0]", cos.shape[0], limit)
    return apply_rotary(x, positions=positions, **turn)


def _token_index(
    x: torch.Tensor, cu_seqlens: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sequence of each token of x, and its place there: as [batch, seqlen], or [total]."""
    if cu_seqlens is None:
        batch = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
        return batch.expand(-1, x.shape[1]), torch.arange(x.shape[1], device=x.device)
    token = torch.arange(x.shape[0], device=x.device, dtype=cu_seqlens.dtype)
    batch = torch.searchsorted(cu_seqlens[1:].contiguous(), token, right=True)
    # Rows past the last sequence pad the batch: they are nobody's, and nothing is read for them.
    batch = batch.clamp(max=cu_seqlens.shape[0] - 2)
    return batch, token - cu_seqlens[batch]


def _slots(
    table: torch.Tensor, page_size: int, batch: torch.Tensor, position: torch.Tensor
) -> torch.Tensor:
    """The slot of each new token. One outside of its sequence's pages is skipped."""
    column = position // page_size
    is_inside = (position >= 0) & (column < table.shape[1])
    page = table[batch, column.clamp(0, table.shape[1] - 1).long()].long()
    slot = page * page_size + position % page_size
    return torch.where(is_inside, slot, -1).reshape(-1)
