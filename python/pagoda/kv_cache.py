"""KVCache: dense, ragged or paged keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LAYOUTS = {"NHD": 0, "HND": 1}


@dataclass(frozen=True)
class KVCache:
    """Keys and values. It owns no memory; the arrays that are given decide its kind.

    Dense (nothing else, or seqlens_kv alone)
        k: [batch, max_seqlen_kv, num_kv_heads, head_dim_qk]; v: the same with head_dim_vo.
        seqlens_kv: int32 [batch], valid keys; None = all.
    Ragged (cu_seqlens_kv)
        k: [total_kv, num_kv_heads, head_dim_qk]. cu_seqlens_kv: int32 [batch + 1], starts at 0,
        non-decreasing. seqlens_kv: int32 [batch], used keys of each sequence; None = all.
    Paged (block_table and seqlens_kv)
        k: [num_pages, page_size, num_kv_heads, head_dim_qk] in layout "NHD", [num_pages,
        num_kv_heads, page_size, head_dim_qk] in "HND". block_table: int32 [batch,
        max_pages_per_seq], page index in k and v. seqlens_kv: int32 [batch], in tokens.
    Paged in compressed rows (indptr, indices and last_page_len)
        k: as paged. indptr: int32 [batch + 1]; indices: int32 [indptr[batch]]; last_page_len: int32
        [batch], 1..page_size.

    Element types: float32, float16, bfloat16, float8_e4m3fn. Any strides with a contiguous last
    dimension. Slots past the end of a sequence may hold anything, NaN included. page_size: 0 = as
    the shape says; otherwise it must equal that.
    """

    k: Any
    v: Any
    seqlens_kv: Any = None
    cu_seqlens_kv: Any = None
    block_table: Any = None
    indptr: Any = None
    indices: Any = None
    last_page_len: Any = None
    layout: str = "NHD"
    page_size: int = 0
