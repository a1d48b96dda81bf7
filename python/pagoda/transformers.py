"""Whole models of Hugging Face Transformers: attn_implementation="pagoda".

    import pagoda.transformers
    pagoda.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="pagoda")

Sliding windows, soft caps, sinks, grouped heads, padded batches, dynamic and static caches and
continuous batching (generate_batch, see register) are served. Inference only.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

import pagoda.torch as ops
from pagoda.errors import Unsupported, invalid
from pagoda.kv_cache import KVCache
from pagoda.mask import Mask

__all__ = ["attention_forward", "register"]


def register(*, continuous_batching: bool = False) -> None:
    """Makes "pagoda" an attention implementation. May be called again.

    continuous_batching: also serves "paged|eager", which generate_batch() takes for a model that
    was loaded with "eager" or with that name. Transformers has no other name for it that a package
    outside of its own can register.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("pagoda", attention_forward)
    # bool [batch, 1, seqlen_q, seqlen_kv], or None where causality says all.
    AttentionMaskInterface.register("pagoda", sdpa_mask)
    if continuous_batching:
        AttentionInterface.register("paged|eager", attention_forward)


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    cache: Any = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Transformers' attention function. query: [batch, num_heads, seqlen_q, head_dim]; key, value:
    [batch, num_kv_heads, seqlen_kv, head_dim]. Returns ([batch, seqlen_q, num_heads, head_dim],
    None).

    attention_mask: windows, chunks and padding are in it. Transformers leaves it out where the
    first query of several sees one key, the second two and so on (the cache may be longer), and
    where a single query sees all keys.
    """
    if dropout:
        raise Unsupported(f"dropout is {dropout}; must be 0: inference only", "dropout")
    if others.get("output_attentions"):
        raise Unsupported(
            "output_attentions is True; weights are never stored", "output_attentions"
        )
    if cache is not None:  # continuous batching: the keys of all sequences, and a mask
        key, value = _update(cache, key, value, module.layer_idx, others)
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    batch, _, rows, _ = query.shape
    if attention_mask is not None:
        _check_shape(attention_mask, batch, rows, key.shape[2])
    mask, cache_lengths = _mask(attention_mask), None
    if attention_mask is None and is_causal and rows > 1:
        mask = Mask.causal()
        cache_lengths = torch.zeros(batch, dtype=torch.int32, device=query.device)
    if position_bias is not None:
        bias = Mask.additive(position_bias.float().contiguous())
        mask = bias if mask is None else mask & bias
    out = ops.attention(
        query.transpose(1, 2),
        KVCache(key.transpose(1, 2), value.transpose(1, 2)),
        softmax_scale=scaling,
        softcap=softcap or 0.0,
        sinks=None if s_aux is None else s_aux.float(),
        mask=mask,
        cache_lengths=cache_lengths,
    )
    return out, None


def _update(
    cache: Any, key: torch.Tensor, value: torch.Tensor, layer: int, others: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Stores the new keys and values [1, num_kv_heads, seqlen, head_dim] of continuous batching and
    returns those of all sequences of the batch in the same layout.
    """
    states = {"key_states": key, "value_states": value, "layer_idx": layer}
    if _takes_kwargs(type(cache)):
        return cache.update(**states, kwargs=others)
    indices = {name: others[name] for name in ("read_index", "write_index")}
    key, value = cache.update(**states, **indices)  # [seqlen_kv, num_kv_heads, head_dim]
    return key.transpose(0, 1)[None], value.transpose(0, 1)[None]


@torch.compiler.assume_constant_result  # torch.compile need not trace inspect
def _takes_kwargs(cache_type: type) -> bool:
    """PagedAttentionCache.update() takes the indices by name up to Transformers 5.18, and all
    further arguments of the attention function as "kwargs" since 5.19.
    """
    return "kwargs" in _parameters(cache_type.update)


@functools.cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _check_shape(given: torch.Tensor, batch: int, rows: int, keys: int) -> None:
    shape = tuple(given.shape)
    if len(shape) != 4 or shape[2:] != (rows, keys) or shape[0] not in (1, batch):
        limit = f"must be [1 or {batch}, num_heads or 1, {rows}, {keys}], by query and key"
        raise invalid("attention_mask.shape", shape, limit)


def _mask(given: torch.Tensor | None) -> Mask | None:
    if given is None:
        return None
    if given.dtype != torch.bool:
        return Mask.additive(given.float())
    if given.shape[1] == 1:
        return _bits(given)
    bias = torch.zeros(given.shape, dtype=torch.float32, device=given.device)
    return Mask.additive(bias.masked_fill_(~given, -torch.inf))  # differs by head


_packed: tuple[Any, int, Mask] | None = None  # the mask of the step, which all its layers share


def _bits(given: torch.Tensor) -> Mask:
    """A bool mask [batch, 1, seqlen_q, seqlen_kv] in words of 32 keys."""
    global _packed
    if torch.compiler.is_compiling() or given.is_inference():  # these count no versions
        return _pack(given)
    if _packed is not None and _packed[0]() is given and _packed[1] == given._version:
        return _packed[2]
    mask = _pack(given)
    _packed = (weakref.ref(given), given._version, mask)
    return mask


def _pack(given: torch.Tensor) -> Mask:
    batch, _, rows, keys = given.shape
    width = -(-keys // 32)
    bits = torch.nn.functional.pad(given[:, 0], (0, width * 32 - keys)).view(batch, rows, width, 32)
    place = torch.arange(32, device=given.device)
    words = (bits.long() << place).sum(-1).to(torch.uint32).reshape(-1)
    row_offsets = torch.arange(batch + 1, device=given.device) * (rows * width)
    return Mask.bits(words, row_offsets)
