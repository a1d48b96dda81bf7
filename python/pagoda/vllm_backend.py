"""PagodaBackend: decoder attention of vLLM over its paged cache, without host lengths or plans.

Rows of any lengths run in one launch whose sizes are upper bounds, so that a CUDA graph serves
every batch that fits: AttentionCGSupport.ALWAYS. What is not served is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import vllm.envs
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
)

import pagoda.torch as ops
from pagoda.errors import Unsupported, invalid
from pagoda.kv_cache import KVCache
from pagoda.mask import Mask

if TYPE_CHECKING:
    from vllm.v1.attention.backend import CommonAttentionMetadata

__all__ = ["PagodaBackend", "PagodaImpl", "PagodaMetadata", "PagodaMetadataBuilder"]

_FP8 = ("fp8", "fp8_e4m3")
_LAYOUT = "HND"  # of vLLM's logical shape [num_blocks, num_kv_heads, block_size, 2 * head_size]


@dataclass
class PagodaMetadata:
    """A batch. Tensors are vLLM's, on the device."""

    num_actual_tokens: int  # rows of the queries, with those that pad a CUDA graph's batch
    query_start_loc: torch.Tensor  # int32 [num_reqs + 1]
    seq_lens: torch.Tensor  # int32 [num_reqs]
    block_table: torch.Tensor  # int32 [num_reqs, max_blocks]
    slot_mapping: torch.Tensor  # int64 [num_tokens]
    max_query_len: int  # upper bounds
    max_seq_len: int
    causal: bool
    may_have_padding: bool  # rows past the last request, which become 0


class PagodaMetadataBuilder(AttentionMetadataBuilder[PagodaMetadata]):
    """Passes vLLM's tensors on: there is nothing to plan."""

    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS
    supports_update_block_table: bool = True
    supports_draft_decode_metadata_update: bool = True

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> PagodaMetadata:
        """Reads no tensor on the device."""
        batch = common_attn_metadata
        if not isinstance(batch.causal, bool):
            raise Unsupported("causal differs between requests; must be a bool", "causal")
        for name in ("mm_req_doc_ranges", "rswa_prefix_lens", "encoder_seq_lens"):
            if getattr(batch, name, None) is not None:
                raise Unsupported(f"{name} is given; Pagoda does not have it", name)
        return PagodaMetadata(
            num_actual_tokens=batch.num_actual_tokens,
            query_start_loc=batch.query_start_loc,
            seq_lens=batch.seq_lens,
            block_table=batch.block_table_tensor,
            slot_mapping=batch.slot_mapping,
            max_query_len=batch.max_query_len,
            max_seq_len=batch.max_seq_len,
            causal=batch.causal,
            may_have_padding=int(batch.query_start_loc_cpu[-1]) != batch.num_actual_tokens,
        )

    def build_for_cudagraph_capture(
        self, common_attn_metadata: CommonAttentionMetadata
    ) -> PagodaMetadata:
        """Replays may have any lengths up to the model's, and fewer tokens than the capture."""
        metadata = self.build(0, common_attn_metadata)
        metadata.max_seq_len = max(
            metadata.max_seq_len, self.vllm_config.model_config.max_model_len
        )
        metadata.may_have_padding = True
        return metadata

    def update_block_table(
        self, metadata: PagodaMetadata, blk_table: torch.Tensor, slot_mapping: torch.Tensor
    ) -> PagodaMetadata:
        """The same batch over another group of caches."""
        fields = {**vars(metadata), "block_table": blk_table, "slot_mapping": slot_mapping}
        return PagodaMetadata(**fields)

    def update_draft_decode_metadata(self, metadata: PagodaMetadata) -> None:
        """Nothing: the metadata refers to vLLM's own buffers."""


class PagodaImpl(AttentionImpl[PagodaMetadata]):
    """One layer."""

    can_return_lse_for_decode: bool = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
        **others: Any,
    ) -> None:
        if attn_type != AttentionType.DECODER:
            raise Unsupported(f"attn_type is {attn_type}; must be decoder", "attn_type")
        for name, value in others.items():
            if value:
                raise Unsupported(f"{name} is given; Pagoda does not have it", name)
        if not PagodaBackend.supports_kv_cache_dtype(kv_cache_dtype):
            raise Unsupported(f"kv_cache_dtype is {kv_cache_dtype}; must be one of "
                              f"{PagodaBackend.supported_kv_cache_dtypes}",
                              "kv_cache_dtype")  # fmt: skip
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sinks = sinks
        self.alibi_slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes)
        self._masks = {True: Mask.causal(), False: Mask.none()}
        if sliding_window is not None:
            left = sliding_window - 1
            self._masks = {True: Mask.window(left, 0), False: Mask.window(left, left)}
        self._scores = {"softmax_scale": self.scale, "softcap": logits_soft_cap or 0.0}
        self._is_batch_invariant = bool(vllm.envs.VLLM_BATCH_INVARIANT)

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: PagodaMetadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """query: [num_tokens, num_heads, head_size]; kv_cache: [num_blocks, num_kv_heads,
        block_size, 2 * head_size], any strides; output: as query, or its heads in one dimension.
        Rows past the last request are 0 in `output`."""
        for name, scale in (("output_scale", output_scale),
                            ("output_block_scale", output_block_scale)):  # fmt: skip
            if scale is not None:
                raise Unsupported(f"{name} is given; Pagoda does not have it", name)
        if attn_metadata is None:  # vLLM measures memory
            return output.fill_(0)
        batch = attn_metadata
        k, v = self._pages(kv_cache)
        rows = batch.num_actual_tokens
        out = output.view(-1, self.num_heads, self.head_size)
        arguments: dict[str, Any] = dict(self._scores)
        if batch.may_have_padding:
            arguments["zero_padding_rows"] = True
        if self._is_batch_invariant:
            arguments["is_batch_invariant"] = True
        if self.sinks is not None:
            arguments["sinks"] = self.sinks.detach().float()  # weights may be loaded again
        if self.alibi_slopes is not None:
            if not batch.causal:  # -slope * |k - q| there, not slope * (k - q)
                raise Unsupported("alibi_slopes is given; needs causal attention", "alibi_slopes")
            if self.alibi_slopes.device != query.device:
                self.alibi_slopes = self.alibi_slopes.to(query.device)
            arguments["alibi_slopes"] = self.alibi_slopes
        if self.kv_cache_dtype in _FP8:
            arguments.update(zip(("k_scale", "v_scale"), self._scales(layer)))
        ops.attention(
            query[:rows].view(rows, self.num_heads, self.head_size),
            KVCache(k, v, seqlens_kv=batch.seq_lens, block_table=batch.block_table,
                    layout=_LAYOUT),
            out=out[:rows],
            cu_seqlens_q=batch.query_start_loc,
            max_seqlen_q=batch.max_query_len,
            max_seqlen_kv=batch.max_seq_len,
            mask=self._masks[batch.causal],
            **arguments,
        )  # fmt: skip
        return output

    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Writes the new tokens into their slots; those past slot_mapping and those of negative
        slots pad the batch."""
        k, v = self._pages(kv_cache)
        count = slot_mapping.shape[0]
        k_scale, v_scale = self._scales(layer) if self.kv_cache_dtype in _FP8 else (1.0, 1.0)
        ops.append_kv(key[:count], value[:count], k, v, slot_mapping, layout=_LAYOUT,
                      k_scale=k_scale, v_scale=v_scale)  # fmt: skip

    def _pages(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        expected = (self.num_kv_heads, 2 * self.head_size)
        if kv_cache.ndim != 4 or (kv_cache.shape[1], kv_cache.shape[3]) != expected:
            raise invalid("kv_cache.shape", tuple(kv_cache.shape),
                          f"must be [num_blocks, {expected[0]}, block_size, {expected[1]}] "
                          "(vLLM 0.32 or later)")  # fmt: skip
        if self.kv_cache_dtype in _FP8 and kv_cache.dtype != torch.float8_e4m3fn:
            kv_cache = kv_cache.view(torch.float8_e4m3fn)
        return kv_cache[..., : self.head_size], kv_cache[..., self.head_size :]

    def _scales(self, layer: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Of each head, on the device."""
        k, v = layer._k_scale, layer._v_scale
        return k.reshape(-1).expand(self.num_kv_heads), v.reshape(-1).expand(self.num_kv_heads)


class PagodaBackend(AttentionBackend):
    """What vLLM asks before it selects a backend."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = ["auto", "float16", "bfloat16", *_FP8]
    forward_includes_kv_cache_update: bool = False

    @staticmethod
    def get_name() -> str:
        return "PAGODA"

    @staticmethod
    def get_impl_cls() -> type[PagodaImpl]:
        return PagodaImpl

    @staticmethod
    def get_builder_cls() -> type[PagodaMetadataBuilder]:
        return PagodaMetadataBuilder

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % 8 == 0 and 8 <= head_size <= 512

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_per_head_quant_scales(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return True

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return capability.major >= 8
