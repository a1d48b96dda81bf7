"""FlashInfer's attention wrappers, served by Pagoda: change the import.

    from pagoda.flashinfer import BatchDecodeWithPagedKVCacheWrapper

Every argument is honoured or refused with an error that names it. Arguments that choose among
FlashInfer's own kernels (backend, use_tensor_cores, enable_pdl, non_blocking) and its workspace
buffers have no effect: Pagoda chooses and keeps its own. Forward only. LSE has base 2.

With use_cuda_graph, plan() copies into the buffers that the constructor was given, and a captured
run() reads them again. custom_mask is packed on the host: plan() with one synchronises.

Page ids, indices and positions are checked before anything is written: their types always, their
values in host memory. Those in GPU memory are not read; a token there whose position is outside of
the pages of its sequence is skipped. A graph's batch is fixed: its buffers have as many elements as
the arrays of every plan, but for page ids.
"""

from __future__ import annotations

from typing import Any

import torch

import pagoda.torch as ops
from pagoda.calls import described
from pagoda.checks import check_fits_int32, check_integers, check_offsets, is_on_host
from pagoda.errors import Unsupported, invalid
from pagoda.kv_cache import LAYOUTS, KVCache
from pagoda.mask import Mask

__all__ = [
    "BatchAttention",
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchMLAPagedAttentionWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
    "BatchPrefillWithRaggedKVCacheWrapper",
    "append_paged_kv_cache",
    "get_batch_indices_positions",
    "get_seq_lens",
    "merge_state",
    "merge_state_in_place",
    "merge_states",
    "single_decode_with_kv_cache",
    "single_prefill_with_kv_cache",
    "single_prefill_with_kv_cache_return_lse",
]


class _Wrapper:
    """What the wrappers share: the arrays of the cache, the scores, run()."""

    def __init__(self, kv_layout: str, use_cuda_graph: bool, buffers: dict[str, Any]) -> None:
        if kv_layout not in LAYOUTS:
            raise invalid("kv_layout", repr(kv_layout), f"must be one of {', '.join(LAYOUTS)}")
        self._layout = kv_layout
        self._buffers = buffers if use_cuda_graph else {}
        if use_cuda_graph:
            for name, buffer in buffers.items():
                if buffer is None:
                    raise invalid(name, "None", "must be given with use_cuda_graph")
        self._is_planned = False
        self._rows: int | None = None  # of the queries, where plan() could read them
        self._most_rows: int | None = None  # of the plans of a graph

    def _place(self, name: str, array: torch.Tensor, device: torch.device) -> torch.Tensor:
        """The array on the device, int32; in a graph's buffer, where there is one."""
        buffer = self._buffers.get(name)
        if buffer is None:
            return array.to(device=device, dtype=torch.int32)
        if "indices" in name:
            if len(array) > len(buffer):
                limit = f"must have at least {len(array)}"
                raise invalid(name, f"of {len(buffer)} elements", limit)
            buffer[: len(array)].copy_(array)
        else:  # a captured run() reads all of it
            if len(array) != len(buffer):
                limit = f"must have {len(array)}: a graph's batch is fixed"
                raise invalid(name, f"of {len(buffer)} elements", limit)
            buffer.copy_(array)
        return buffer

    def _check_rows(self, name: str, qo_indptr: torch.Tensor) -> int | None:
        """Checks the offsets of query rows that are in host memory. Returns their end."""
        if not is_on_host(qo_indptr):
            return None
        rows, most = _end_of(name, qo_indptr), self._most_rows
        check_offsets(name, qo_indptr, len(qo_indptr) - 1, rows)
        if self._buffers and most is not None and rows > most:
            limit = f"must be at most {most}, the rows of the first plan: a graph reads so many"
            raise invalid(f"{name}[{len(qo_indptr) - 1}]", rows, limit)
        return rows

    def _plan(
        self,
        cache: dict[str, torch.Tensor],
        *,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int,
        page_size: int | None,
        q_data_type: Any,
        kv_data_type: Any,
        o_data_type: Any,
        num_kv_splits: int = 0,
        is_batch_invariant: bool = False,
        rows: int | None = None,
        **scores: Any,
    ) -> None:
        self._cache = cache
        self._rows = rows
        self._most_rows = rows if self._most_rows is None else self._most_rows
        self._heads = {"num_qo_heads": num_qo_heads, "num_kv_heads": num_kv_heads}
        self._dims = {"head_dim_qk": head_dim_qk, "head_dim_vo": head_dim_vo}
        self._page_size = page_size
        self._dtypes = {
            "q_data_type": _dtype(q_data_type),
            "kv_data_type": _dtype(q_data_type if kv_data_type is None else kv_data_type),
        }
        self._out_dtype = None if o_data_type is None else _dtype(o_data_type)
        self._scores = scores
        self._execution = {"num_kv_splits": num_kv_splits, "is_batch_invariant": is_batch_invariant}
        self._is_planned = True

    def _run(
        self,
        q: torch.Tensor,
        k_and_v: tuple[torch.Tensor, torch.Tensor],
        cu_seqlens_q: torch.Tensor | None,
        *,
        out: torch.Tensor | None,
        lse: torch.Tensor | None,
        return_lse: bool,
        scales: tuple[Any, Any, Any],
        sinks: torch.Tensor | None = None,
        lse_base: str = "2",
        **other_scores: Any,
    ) -> Any:
        """other_scores: those that are not None take the place of the plan's."""
        if not self._is_planned:
            raise invalid("plan", "not called", "plan() must be called before run()")
        k, v = k_and_v
        self._check(q, k, v)
        if cu_seqlens_q is not None:
            self._check_total(q.shape[0])
        if out is not None and self._out_dtype not in (None, out.dtype):
            raise invalid("out.dtype", out.dtype, f"the plan was made for {self._out_dtype}")
        scores = {
            name: value if other_scores.get(name) is None else other_scores[name]
            for name, value in self._scores.items()
        }
        arguments = _scores(q, **scores, return_lse=return_lse or lse is not None)
        kv = KVCache(k, v, **self._cache, layout=self._layout)
        if "indices" in self._cache and q.device.type == "cpu":
            arguments["checks_indices"] = True
        return ops.attention(
            q,
            kv,
            cu_seqlens_q=cu_seqlens_q,
            **arguments,
            **_scales(*scales, self._heads["num_kv_heads"]),
            **self._execution,
            sinks=None if sinks is None else sinks.float(),
            out=out,
            out_dtype=self._out_dtype,
            lse=lse,
            lse_base=lse_base,
            return_lse=return_lse,
        )

    def _custom_mask(
        self,
        custom_mask: torch.Tensor | None,
        packed: torch.Tensor | None,
        *queries_and_keys: Any,
    ) -> Mask | None:
        if self._buffers:  # a captured run() would read a mask that the next plan() frees
            _refuse(custom_mask=custom_mask, packed_custom_mask=packed)
        return _custom_mask(custom_mask, packed, *queries_and_keys)

    def _check_total(self, rows: int) -> None:
        """Rows past the last sequence are not computed: in a graph alone they pad a batch."""
        if self._rows is None or rows == self._rows or (self._buffers and rows > self._rows):
            return
        raise invalid("q.shape[0]", rows, f"must be {self._rows}, the last offset of the queries")

    def _check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        rows, heads = (-3, -2) if self._layout == "NHD" else (-2, -3)
        for name, planned, found in (
            ("q_data_type", self._dtypes["q_data_type"], q.dtype),
            ("kv_data_type", self._dtypes["kv_data_type"], k.dtype),
            ("num_qo_heads", self._heads["num_qo_heads"], q.shape[-2]),
            ("num_kv_heads", self._heads["num_kv_heads"], k.shape[heads]),
            ("page_size", self._page_size, None if self._page_size is None else k.shape[rows]),
            ("head_dim_qk", self._dims["head_dim_qk"], q.shape[-1]),
            ("head_dim_vo", self._dims["head_dim_vo"], v.shape[-1]),
        ):
            if planned != found:
                raise invalid(name, found, f"the plan was made for {planned}")


class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    """Ragged queries over a paged cache: prefill, append, mixed batches."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor | None = None,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        paged_kv_indptr_buf: torch.Tensor | None = None,
        paged_kv_indices_buf: torch.Tensor | None = None,
        paged_kv_last_page_len_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: Any = None,
        jit_kwargs: Any = None,
    ) -> None:
        _refuse(custom_mask_buf=custom_mask_buf, mask_indptr_buf=mask_indptr_buf,
                jit_args=jit_args, jit_kwargs=jit_kwargs)  # fmt: skip
        super().__init__(
            kv_layout,
            use_cuda_graph,
            {
                "qo_indptr_buf": qo_indptr_buf,
                "paged_kv_indptr_buf": paged_kv_indptr_buf,
                "paged_kv_indices_buf": paged_kv_indices_buf,
                "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf,
            },
        )

    def plan(
        self,
        qo_indptr: torch.Tensor,
        paged_kv_indptr: torch.Tensor,
        paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        non_blocking: bool = True,
        prefix_len_ptr: Any = None,
        token_pos_in_items_ptr: Any = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: Any = None,
        seq_lens: Any = None,
        seq_lens_q: Any = None,
        block_tables: Any = None,
        max_token_per_sequence: Any = None,
        max_sequence_kv: Any = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
    ) -> None:
        """qo_indptr: int32 [batch + 1]; paged_kv_*: int32, the pages of each sequence."""
        _refuse(rope_scale=rope_scale, rope_theta=rope_theta, prefix_len_ptr=prefix_len_ptr,
                token_pos_in_items_ptr=token_pos_in_items_ptr, max_item_len_ptr=max_item_len_ptr,
                use_fp16_qk_reduction=use_fp16_qk_reduction or None,
                token_pos_in_items_len=token_pos_in_items_len or None, seq_lens=seq_lens,
                seq_lens_q=seq_lens_q, block_tables=block_tables,
                max_token_per_sequence=max_token_per_sequence,
                max_sequence_kv=max_sequence_kv)  # fmt: skip
        check_fits_int32(qo_indptr=qo_indptr, paged_kv_indptr=paged_kv_indptr,
                         paged_kv_indices=paged_kv_indices,
                         paged_kv_last_page_len=paged_kv_last_page_len)  # fmt: skip
        device = paged_kv_indices.device
        rows = self._check_rows("qo_indptr", qo_indptr)
        _check_pages_of("paged_kv", paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len,
                        len(qo_indptr) - 1, page_size)  # fmt: skip
        mask = self._custom_mask(
            custom_mask,
            packed_custom_mask,
            qo_indptr,
            lambda: get_seq_lens(paged_kv_indptr, paged_kv_last_page_len, page_size),
            device,
        )
        self._qo_indptr = self._place("qo_indptr_buf", qo_indptr, device)
        self._plan(
            {
                "indptr": self._place("paged_kv_indptr_buf", paged_kv_indptr, device),
                "indices": self._place("paged_kv_indices_buf", paged_kv_indices, device),
                "last_page_len": self._place(
                    "paged_kv_last_page_len_buf", paged_kv_last_page_len, device
                ),
            },
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim_qk=head_dim_qk,
            head_dim_vo=head_dim_qk if head_dim_vo is None else head_dim_vo,
            rows=rows,
            page_size=page_size,
            q_data_type=q_data_type,
            kv_data_type=kv_data_type,
            o_data_type=o_data_type,
            num_kv_splits=1 if disable_split_kv else 0,
            is_batch_invariant=fixed_split_size is not None,
            mask=mask,
            causal=causal,
            pos_encoding_mode=pos_encoding_mode,
            sm_scale=sm_scale,
            window_left=window_left,
            logits_soft_cap=logits_soft_cap,
        )

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        kv_cache_sf: Any = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        use_fp16_softmax: bool | None = None,
        uses_spcompress: bool | None = None,
    ) -> Any:
        """q: [qo_indptr[batch], num_qo_heads, head_dim_qk]; paged_kv_cache: (k, v), or one tensor
        [num_pages, 2, ...]. Returns out, or (out, lse [.., num_qo_heads]) with return_lse."""
        _refuse(args=args or None, kv_cache_sf=kv_cache_sf,
                skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor,
                use_fp16_softmax=use_fp16_softmax, uses_spcompress=uses_spcompress)  # fmt: skip
        return self._run(
            q,
            _unpack(paged_kv_cache),
            getattr(self, "_qo_indptr", None),
            out=out,
            lse=lse,
            return_lse=return_lse,
            scales=(q_scale, k_scale, v_scale),
            window_left=window_left,
            sinks=sinks,
        )


class BatchPrefillWithRaggedKVCacheWrapper(_Wrapper):
    """Ragged queries over ragged keys and values."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor | None = None,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        kv_indptr_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: Any = None,
        jit_kwargs: Any = None,
    ) -> None:
        _refuse(custom_mask_buf=custom_mask_buf, mask_indptr_buf=mask_indptr_buf,
                jit_args=jit_args, jit_kwargs=jit_kwargs)  # fmt: skip
        buffers = {"qo_indptr_buf": qo_indptr_buf, "kv_indptr_buf": kv_indptr_buf}
        super().__init__(kv_layout, use_cuda_graph, buffers)
        self._are_heads_first = kv_layout == "HND"
        self._layout = "NHD"  # of the views that run() makes

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        non_blocking: bool = True,
        prefix_len_ptr: Any = None,
        token_pos_in_items_ptr: Any = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: Any = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        **others: Any,
    ) -> None:
        """qo_indptr, kv_indptr: int32 [batch + 1]."""
        _refuse(rope_scale=rope_scale, rope_theta=rope_theta, prefix_len_ptr=prefix_len_ptr,
                token_pos_in_items_ptr=token_pos_in_items_ptr, max_item_len_ptr=max_item_len_ptr,
                use_fp16_qk_reduction=use_fp16_qk_reduction or None,
                token_pos_in_items_len=token_pos_in_items_len or None, **others)  # fmt: skip
        check_fits_int32(qo_indptr=qo_indptr, kv_indptr=kv_indptr)
        device = self._buffers.get("kv_indptr_buf", kv_indptr).device
        rows = self._check_rows("qo_indptr", qo_indptr)
        if is_on_host(kv_indptr):
            end = _end_of("kv_indptr", kv_indptr)
            check_offsets("kv_indptr", kv_indptr, len(qo_indptr) - 1, end)
        mask = self._custom_mask(
            custom_mask, packed_custom_mask, qo_indptr.cpu(), lambda: kv_indptr.cpu().diff(), device
        )
        self._qo_indptr = self._place("qo_indptr_buf", qo_indptr, device)
        self._plan(
            {"cu_seqlens_kv": self._place("kv_indptr_buf", kv_indptr, device)},
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim_qk=head_dim_qk,
            head_dim_vo=head_dim_qk if head_dim_vo is None else head_dim_vo,
            rows=rows,
            page_size=None,
            q_data_type=q_data_type,
            kv_data_type=kv_data_type,
            o_data_type=o_data_type,
            num_kv_splits=1 if disable_split_kv else 0,
            is_batch_invariant=fixed_split_size is not None,
            mask=mask,
            causal=causal,
            pos_encoding_mode=pos_encoding_mode,
            sm_scale=sm_scale,
            window_left=window_left,
            logits_soft_cap=logits_soft_cap,
        )

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *args: Any,
        q_scale: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        o_scale: Any = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
    ) -> Any:
        """q: [qo_indptr[batch], num_qo_heads, head_dim_qk]; k, v: [kv_indptr[batch], num_kv_heads,
        head_dim], heads first in HND. Returns out, or (out, lse) with return_lse."""
        _refuse(
            args=args or None,
            o_scale=o_scale,
            skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor,
        )
        if self._are_heads_first:
            k, v = k.transpose(0, 1), v.transpose(0, 1)
        return self._run(
            q,
            (k, v),
            getattr(self, "_qo_indptr", None),
            out=out,
            lse=lse,
            return_lse=return_lse,
            scales=(q_scale, k_scale, v_scale),
            window_left=window_left,
            sinks=sinks,
        )


class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    """One query, or q_len_per_req causal ones, of each sequence over a paged cache."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor | None = None,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: torch.Tensor | None = None,
        paged_kv_indices_buffer: torch.Tensor | None = None,
        paged_kv_last_page_len_buffer: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: Any = None,
    ) -> None:
        _refuse(jit_args=jit_args)
        super().__init__(
            kv_layout,
            use_cuda_graph,
            {
                "paged_kv_indptr_buffer": paged_kv_indptr_buffer,
                "paged_kv_indices_buffer": paged_kv_indices_buffer,
                "paged_kv_last_page_len_buffer": paged_kv_last_page_len_buffer,
            },
        )

    def plan(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        window_right: int = 0,
        logits_soft_cap: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        data_type: Any = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        non_blocking: bool = True,
        block_tables: Any = None,
        seq_lens: Any = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
    ) -> None:
        """indptr, indices, last_page_len: int32, the pages of each sequence."""
        _refuse(rope_scale=rope_scale, rope_theta=rope_theta, block_tables=block_tables,
                seq_lens=seq_lens, window_right=window_right or None)  # fmt: skip
        check_fits_int32(indptr=indptr, indices=indices, last_page_len=last_page_len)
        device = indices.device
        _check_pages_of("", indptr, indices, last_page_len, len(last_page_len), page_size)
        self._q_len = q_len_per_req
        self._plan(
            {
                "indptr": self._place("paged_kv_indptr_buffer", indptr, device),
                "indices": self._place("paged_kv_indices_buffer", indices, device),
                "last_page_len": self._place(
                    "paged_kv_last_page_len_buffer", last_page_len, device
                ),
            },
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim_qk=head_dim,
            head_dim_vo=head_dim,
            page_size=page_size,
            q_data_type=q_data_type if data_type is None else data_type,
            kv_data_type=kv_data_type if data_type is None else data_type,
            o_data_type=o_data_type,
            num_kv_splits=1 if disable_split_kv else 0,
            is_batch_invariant=fixed_split_size is not None,
            mask=None,
            causal=True,  # a single query at the end sees all keys
            pos_encoding_mode=pos_encoding_mode,
            sm_scale=sm_scale,
            window_left=window_left,
            logits_soft_cap=logits_soft_cap,
        )

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        q_len_per_req: int | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """q: [batch * q_len_per_req, num_qo_heads, head_dim]. Returns out, or (out, lse)."""
        _refuse(
            args=args or None,
            kv_cache_sf=kv_cache_sf,
            skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor,
        )
        rows = getattr(self, "_q_len", 1) if q_len_per_req is None else q_len_per_req

        def padded(x: torch.Tensor | None) -> torch.Tensor | None:
            return None if x is None else x.unflatten(0, (-1, rows))

        result = self._run(
            q.unflatten(0, (-1, rows)),
            _unpack(paged_kv_cache),
            None,
            out=padded(out),
            lse=padded(lse),
            return_lse=return_lse,
            scales=(q_scale, k_scale, v_scale),
            window_left=window_left,
            sinks=sinks,
        )
        if return_lse:
            return result[0].flatten(0, 1), result[1].flatten(0, 1)
        return result.flatten(0, 1)


class BatchAttention(_Wrapper):
    """Prefill and decode in one batch, with the lengths of the sequences instead of their last
    pages."""

    def __init__(self, kv_layout: str = "NHD", device: str = "cuda") -> None:
        super().__init__(kv_layout, False, {})
        self._device = torch.device(device)

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_len_arr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int,
        page_size: int,
        causal: bool = False,
        sm_scale: float | None = None,
        logits_soft_cap: float | None = None,
        q_data_type: Any = torch.bfloat16,
        kv_data_type: Any = torch.bfloat16,
        use_profiler: bool = False,
    ) -> None:
        """kv_len_arr: int32 [batch], in tokens; kv_indptr must count exactly their pages."""
        _refuse(use_profiler=use_profiler or None)
        check_fits_int32(qo_indptr=qo_indptr, kv_indptr=kv_indptr, kv_indices=kv_indices,
                         kv_len_arr=kv_len_arr)  # fmt: skip
        last = _last_page_len(kv_indptr, kv_len_arr, page_size)
        rows = self._check_rows("qo_indptr", qo_indptr)
        _check_pages_of("kv", kv_indptr, kv_indices, last, len(qo_indptr) - 1, page_size)
        self._qo_indptr = qo_indptr.to(self._device, torch.int32)
        self._plan(
            {
                "indptr": kv_indptr.to(self._device, torch.int32),
                "indices": kv_indices.to(self._device, torch.int32),
                "last_page_len": last.to(self._device, torch.int32),
            },
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim_qk=head_dim_qk,
            head_dim_vo=head_dim_vo,
            rows=rows,
            page_size=page_size,
            q_data_type=q_data_type,
            kv_data_type=kv_data_type,
            o_data_type=None,
            mask=None,
            causal=causal,
            pos_encoding_mode="NONE",
            sm_scale=sm_scale,
            window_left=-1,
            logits_soft_cap=logits_soft_cap,
        )

    def run(
        self,
        q: torch.Tensor,
        kv_cache: Any,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        k_scale: Any = None,
        v_scale: Any = None,
        logits_soft_cap: float = 0.0,
        profiler_buffer: Any = None,
        kv_cache_sf: Any = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (out, lse). logits_soft_cap: 0 = the plan's."""
        _refuse(profiler_buffer=profiler_buffer, kv_cache_sf=kv_cache_sf)
        return self._run(
            q,
            _unpack(kv_cache),
            getattr(self, "_qo_indptr", None),
            out=out,
            lse=lse,
            return_lse=True,
            scales=(None, k_scale, v_scale),
            logits_soft_cap=logits_soft_cap or None,
        )


class BatchMLAPagedAttentionWrapper(_Wrapper):
    """Multi-head latent attention with absorbed projections: K of a token is its compressed vector
    and its rotary part, V the former.

    ckv_cache and kpe_cache are read in place where they are neighbours in one tensor [num_pages,
    page_size, head_dim_ckv + head_dim_kpe]; else run() copies the pages of the plan together.
    """

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor | None = None,
        use_cuda_graph: bool = False,
        qo_indptr: torch.Tensor | None = None,
        kv_indptr: torch.Tensor | None = None,
        kv_indices: torch.Tensor | None = None,
        kv_len_arr: torch.Tensor | None = None,
        backend: str = "auto",
    ) -> None:
        buffers = {"qo_indptr": qo_indptr, "kv_indptr": kv_indptr, "kv_indices": kv_indices,
                   "kv_len_arr": kv_len_arr}  # fmt: skip
        super().__init__("NHD", use_cuda_graph, buffers)
        if use_cuda_graph:
            self._buffers["last_page_len"] = torch.empty_like(kv_len_arr)

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_len_arr: torch.Tensor,
        num_heads: int,
        head_dim_ckv: int,
        head_dim_kpe: int,
        page_size: int,
        causal: bool,
        sm_scale: float,
        q_data_type: Any,
        kv_data_type: Any,
        use_profiler: bool = False,
    ) -> None:
        """qo_indptr: int32 [batch + 1]; kv_indptr, kv_indices: int32, the pages of each sequence;
        kv_len_arr: int32 [batch], in tokens."""
        _refuse(use_profiler=use_profiler or None)
        check_fits_int32(qo_indptr=qo_indptr, kv_indptr=kv_indptr, kv_indices=kv_indices,
                         kv_len_arr=kv_len_arr)  # fmt: skip
        device = self._buffers.get("kv_indices", kv_indices).device
        last = _last_page_len(kv_indptr, kv_len_arr, page_size)
        rows = self._check_rows("qo_indptr", qo_indptr)
        _check_pages_of("kv", kv_indptr, kv_indices, last, len(qo_indptr) - 1, page_size)
        self._place("kv_len_arr", kv_len_arr, device)
        self._qo_indptr = self._place("qo_indptr", qo_indptr, device)
        self._parts = {"head_dim_ckv": head_dim_ckv, "head_dim_kpe": head_dim_kpe}
        self._plan(
            {
                "indptr": self._place("kv_indptr", kv_indptr, device),
                "indices": self._place("kv_indices", kv_indices, device),
                "last_page_len": self._place("last_page_len", last, device),
            },
            num_qo_heads=num_heads,
            num_kv_heads=1,
            head_dim_qk=head_dim_ckv + head_dim_kpe,
            head_dim_vo=head_dim_ckv,
            rows=rows,
            page_size=page_size,
            q_data_type=q_data_type,
            kv_data_type=kv_data_type,
            o_data_type=None,
            mask=None,
            causal=causal,
            pos_encoding_mode="NONE",
            sm_scale=sm_scale,
            window_left=-1,
            logits_soft_cap=None,
        )

    def run(
        self,
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        profiler_buffer: Any = None,
        kv_len: Any = None,
        page_table: Any = None,
        return_lse_base_on_e: bool = False,
        o_scale: Any = None,
        *,
        ckv_scale: Any = None,
        ckv_scale_arr: Any = None,
        kpe_scale: Any = None,
    ) -> Any:
        """q_nope: [total_q, num_heads, head_dim_ckv], already times W_UK; q_pe: [.., head_dim_kpe];
        ckv_cache: [num_pages, page_size, head_dim_ckv]; kpe_cache: [.., head_dim_kpe]. The scales
        of an fp8 cache must be equal. Returns out [total_q, num_heads, head_dim_ckv], or (out, lse
        [total_q, num_heads]) with return_lse."""
        _refuse(profiler_buffer=profiler_buffer, kv_len=kv_len, page_table=page_table,
                o_scale=o_scale, ckv_scale_arr=ckv_scale_arr)  # fmt: skip
        if not self._is_planned:
            raise invalid("plan", "not called", "plan() must be called before run()")
        for name, found in (
            ("head_dim_ckv", q_nope), ("head_dim_kpe", q_pe),
            ("head_dim_ckv", ckv_cache), ("head_dim_kpe", kpe_cache),
        ):  # fmt: skip
            if found.shape[-1] != self._parts[name]:
                raise invalid(name, found.shape[-1], f"the plan was made for {self._parts[name]}")
        if kpe_scale is not ckv_scale and kpe_scale != ckv_scale:
            raise Unsupported(f"kpe_scale is {kpe_scale}; must be ckv_scale", "kpe_scale")
        planned = self._cache
        keys = _neighbours(ckv_cache, kpe_cache)
        if keys is None:
            used = planned["indices"].long()
            _check_pages(used, planned["indptr"], ckv_cache.shape[0])
            used = used.clamp(0, ckv_cache.shape[0] - 1)  # past the plan's a buffer holds anything
            keys = torch.cat((ckv_cache[used], kpe_cache[used]), -1)
            here = torch.arange(len(used), device=used.device, dtype=torch.int32)
            self._cache = {**planned, "indices": here}
        keys = keys.unsqueeze(2)
        try:
            return self._run(
                torch.cat((q_nope, q_pe), -1),
                (keys, keys[..., : ckv_cache.shape[-1]]),
                self._qo_indptr,
                out=out,
                lse=lse,
                return_lse=return_lse,
                scales=(None, ckv_scale, ckv_scale),
                lse_base="e" if return_lse_base_on_e else "2",
            )
        finally:
            self._cache = planned


def single_decode_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_tensor_cores: bool = False,
    q_scale: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    sm_scale: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    return_lse: bool = False,
) -> Any:
    """q: [num_qo_heads, head_dim]; k, v: [kv_len, num_kv_heads, head_dim], heads first in HND."""
    _refuse(rope_scale=rope_scale, rope_theta=rope_theta)
    result = _single(
        q.unsqueeze(0), k, v, kv_layout, (q_scale, k_scale, v_scale), return_lse, None,
        mask=None, causal=False, pos_encoding_mode=pos_encoding_mode, sm_scale=sm_scale,
        window_left=window_left, logits_soft_cap=logits_soft_cap,
    )  # fmt: skip
    return (result[0][0], result[1][0]) if return_lse else result[0]


def single_prefill_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale_q: Any = None,
    scale_k: Any = None,
    scale_v: Any = None,
    o_dtype: Any = None,
    custom_mask: torch.Tensor | None = None,
    packed_custom_mask: torch.Tensor | None = None,
    causal: bool = False,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_fp16_qk_reduction: bool = False,
    sm_scale: float | None = None,
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    backend: str = "auto",
    return_lse: bool = False,
) -> Any:
    """q: [qo_len, num_qo_heads, head_dim_qk]; k, v: [kv_len, num_kv_heads, head_dim], heads first
    in HND; custom_mask: bool [qo_len, kv_len], or packed, instead of `causal`."""
    _refuse(rope_scale=rope_scale, rope_theta=rope_theta,
            use_fp16_qk_reduction=use_fp16_qk_reduction or None)  # fmt: skip
    kv_len = k.shape[LAYOUTS.get(kv_layout, 0)]
    mask = _custom_mask(
        custom_mask,
        packed_custom_mask,
        torch.tensor([0, q.shape[0]]),
        lambda: torch.tensor([kv_len]),
        q.device,
    )
    return _single(
        q, k, v, kv_layout, (scale_q, scale_k, scale_v), return_lse,
        None if o_dtype is None else _dtype(o_dtype), mask=mask, causal=causal,
        pos_encoding_mode=pos_encoding_mode, sm_scale=sm_scale, window_left=window_left,
        logits_soft_cap=logits_soft_cap,
    )  # fmt: skip


def single_prefill_with_kv_cache_return_lse(*args: Any, **named: Any) -> Any:
    """single_prefill_with_kv_cache() with return_lse."""
    return single_prefill_with_kv_cache(*args, **named, return_lse=True)


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(V, S) of the union of two sets of keys. v: [seq_len, num_heads, head_dim]; s: float32
    [seq_len, num_heads], base 2."""
    return ops.merge_states(torch.stack((v_a, v_b)), torch.stack((s_a, s_b)), lse_base="2")


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:
    """merge_state() into v and s. mask: bool [seq_len], rows with False stay as they are."""
    parts, logs = torch.stack((v, v_other)), torch.stack((s, s_other))
    ops.merge_states(parts, logs, out=v, lse=s, lse_base="2", row_mask=mask)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """v: [seq_len, num_states, num_heads, head_dim]; s: float32 [seq_len, num_states, num_heads],
    base 2."""
    return ops.merge_states(
        v.transpose(0, 1).contiguous(), s.transpose(0, 1).contiguous(), lse_base="2"
    )


def append_paged_kv_cache(
    append_key: torch.Tensor,
    append_value: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    paged_kv_cache: Any,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    kv_layout: str = "NHD",
) -> None:
    """Writes append_key and append_value [nnz, num_kv_heads, head_dim] at `positions` of sequences
    `batch_indices`, both int32 [nnz]. kv_last_page_len: [batch], after the tokens were added."""
    k, v = _unpack(paged_kv_cache)
    if kv_layout not in LAYOUTS:
        raise invalid("kv_layout", repr(kv_layout), f"must be one of {', '.join(LAYOUTS)}")
    batch, count = len(kv_indptr) - 1, len(append_key)
    check_integers("kv_last_page_len", kv_last_page_len, batch)
    check_integers("batch_indices", batch_indices, count, largest=batch - 1)
    check_integers("positions", positions, count)
    check_integers("kv_indices", kv_indices)
    check_offsets("kv_indptr", kv_indptr, batch, len(kv_indices))
    _check_pages(kv_indices, kv_indptr, k.shape[0])
    page_size = k.shape[1 + LAYOUTS[kv_layout]]
    sequence = batch_indices.long().clamp(0, batch - 1)
    column = positions.long() // page_size
    pages = kv_indptr.diff()[sequence]
    is_inside = (batch_indices == sequence) & (positions >= 0) & (column < pages)
    if is_on_host(is_inside) and not is_inside.all():
        i = int(is_inside.logical_not().nonzero()[0])
        limit = f"must be in [0, {int(pages[i]) * page_size}), in the pages of its sequence"
        raise invalid(f"positions[{i}]", int(positions[i]), limit)
    at = (kv_indptr[sequence] + column).clamp(0, len(kv_indices) - 1)
    slots = kv_indices[at].long() * page_size + positions % page_size
    slots = torch.where(is_inside, slots, -1)
    ops.append_kv(append_key, append_value, k, v, slots, layout=kv_layout)


def _check_pages(indices: torch.Tensor, indptr: torch.Tensor, num_pages: int) -> None:
    """Checks the page ids in host memory that indptr refers to."""
    if is_on_host(indices) and is_on_host(indptr):
        check_integers("kv_indices", indices[: int(indptr[-1])], largest=num_pages - 1)


def _end_of(name: str, offsets: torch.Tensor) -> int:
    if len(offsets) == 0:
        raise invalid(f"{name}.shape", (0,), "must be [batch + 1]")
    return int(offsets[-1])


def _check_pages_of(
    name: str,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    batch: int,
    page_size: int,
) -> None:
    """Checks what of a page table is in host memory, but for page ids, whose limit is the cache's.
    name: what the arguments' names begin with."""
    prefix = name + "_" if name else ""
    check_offsets(f"{prefix}indptr", indptr, batch, len(indices))
    check_integers(f"{prefix}last_page_len", last_page_len, batch, largest=page_size)


def get_seq_lens(
    kv_indptr: torch.Tensor, kv_last_page_len: torch.Tensor, page_size: int
) -> torch.Tensor:
    """The length of each sequence, int32 [batch], in tokens."""
    pages = kv_indptr.diff()
    lengths = (pages - 1) * page_size + kv_last_page_len
    return torch.where(pages > 0, lengths, 0).to(torch.int32)


def get_batch_indices_positions(
    append_indptr: torch.Tensor, seq_lens: torch.Tensor, nnz: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sequence and the position of each new token, the last ones of sequences of seq_lens."""
    token = torch.arange(nnz, device=append_indptr.device, dtype=append_indptr.dtype)
    batch = torch.searchsorted(append_indptr[1:].contiguous(), token, right=True)
    ends = append_indptr[1:][batch]
    return batch.to(torch.int32), (seq_lens[batch] - ends + token).to(torch.int32)


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise Unsupported(f"{name} is given; Pagoda does not have it", name)


def _dtype(dtype: Any) -> torch.dtype:
    return getattr(torch, dtype) if isinstance(dtype, str) else dtype


def _last_page_len(
    kv_indptr: torch.Tensor, kv_len_arr: torch.Tensor, page_size: int
) -> torch.Tensor:
    pages = (kv_len_arr + page_size - 1) // page_size
    if not torch.equal(kv_indptr.diff().cpu().long(), pages.cpu().long()):
        raise invalid("kv_indptr", "of other counts", "must count ceil(kv_len_arr / page_size)")
    return torch.where(kv_len_arr > 0, (kv_len_arr - 1) % page_size + 1, 0)


def _neighbours(ckv: torch.Tensor, kpe: torch.Tensor) -> torch.Tensor | None:
    """Both as one view, where each row of kpe follows that of ckv in memory."""
    if kpe.shape[-1] == 0:
        return ckv
    size = ckv.shape[-1] + kpe.shape[-1]
    is_one = (
        ckv.shape[:-1] == kpe.shape[:-1] and ckv.dtype == kpe.dtype
        and ckv.stride() == kpe.stride() and ckv.stride(-1) == 1 and ckv.stride(-2) >= size
        and ckv.untyped_storage().data_ptr() == kpe.untyped_storage().data_ptr()
        and kpe.storage_offset() == ckv.storage_offset() + ckv.shape[-1]
    )  # fmt: skip
    return ckv.as_strided((*ckv.shape[:-1], size), ckv.stride()) if is_one else None


def _unpack(paged_kv_cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(paged_kv_cache, torch.Tensor):
        if paged_kv_cache.ndim != 5:
            raise invalid("paged_kv_cache", f"of rank {paged_kv_cache.ndim}",
                          "must be (k, v), or one tensor [num_pages, 2, ...]")  # fmt: skip
        if paged_kv_cache.shape[1] != 2:
            raise invalid("paged_kv_cache.shape[1]", paged_kv_cache.shape[1], "must be 2: K and V")
        return paged_kv_cache[:, 0], paged_kv_cache[:, 1]
    if not isinstance(paged_kv_cache, (tuple, list)) or len(paged_kv_cache) != 2:
        raise invalid("paged_kv_cache", described(paged_kv_cache),
                      "must be (k, v), or one tensor [num_pages, 2, ...]")  # fmt: skip
    k, v = paged_kv_cache
    return k, v


def _scores(
    q: torch.Tensor,
    *,
    mask: Mask | None,
    causal: bool,
    pos_encoding_mode: str,
    sm_scale: float | None,
    window_left: int,
    logits_soft_cap: float | None,
    return_lse: bool,
) -> dict[str, Any]:
    """mask: the custom one, which takes the place of `causal`."""
    arguments: dict[str, Any] = {"softmax_scale": sm_scale, "softcap": logits_soft_cap or 0.0}
    if mask is None and causal:
        mask = Mask.causal()
    if window_left >= 0:
        window = Mask.window(window_left, -1)
        mask = window if mask is None else mask & window
    arguments["mask"] = mask
    if pos_encoding_mode == "ALIBI":
        if logits_soft_cap:  # FlashInfer caps the biased scores, Pagoda adds biases to capped ones
            raise Unsupported("logits_soft_cap is given; not with pos_encoding_mode ALIBI",
                              "logits_soft_cap")  # fmt: skip
        if return_lse:
            raise Unsupported("return_lse is given; not with pos_encoding_mode ALIBI", "return_lse")
        arguments["alibi_slopes"] = _alibi_slopes(q.shape[-2]).to(q.device)
    elif pos_encoding_mode != "NONE":
        raise Unsupported(
            f"pos_encoding_mode is {pos_encoding_mode}; must be NONE or ALIBI: rotate before",
            "pos_encoding_mode",
        )
    return arguments


def _alibi_slopes(num_heads: int) -> torch.Tensor:
    """The slopes of Press et al. 2022; past the largest power of two every other one of the next"""
    power = 1 << (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    slopes += [2.0 ** (-4 * (2 * h + 1) / power) for h in range(num_heads - power)]
    return torch.tensor(slopes)


def _scales(q_scale: Any, k_scale: Any, v_scale: Any, num_kv_heads: int) -> dict[str, Any]:
    """Scales of scores and of values; a tensor of one element becomes that of every head."""

    def by_head(scale: Any) -> Any:
        if not isinstance(scale, torch.Tensor):
            return scale
        return scale.float().reshape(-1).expand(num_kv_heads).contiguous()

    of_scores = 1.0 if q_scale is None else q_scale
    of_scores = of_scores if k_scale is None else of_scores * k_scale
    return {"k_scale": by_head(of_scores), "v_scale": by_head(1.0 if v_scale is None else v_scale)}


def _single(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_layout: str,
    scales: tuple[Any, Any, Any],
    return_lse: bool,
    out_dtype: Any,
    **scores: Any,
) -> Any:
    if kv_layout not in LAYOUTS:
        raise invalid("kv_layout", repr(kv_layout), f"must be one of {', '.join(LAYOUTS)}")
    if kv_layout == "HND":
        k, v = k.transpose(0, 1), v.transpose(0, 1)
    result = ops.attention(
        q.unsqueeze(0),
        KVCache(k.unsqueeze(0), v.unsqueeze(0)),
        **_scores(q, **scores, return_lse=return_lse),
        **_scales(*scales, k.shape[1]),
        out_dtype=out_dtype,
        lse_base="2",
        return_lse=return_lse,
    )
    return (result[0][0], result[1][0]) if return_lse else result[0]


def _custom_mask(
    custom_mask: torch.Tensor | None,
    packed: torch.Tensor | None,
    qo_indptr: torch.Tensor,
    kv_lengths: Any,
    device: torch.device,
) -> Mask | None:
    """Pagoda's bits, whose rows begin at a word, of FlashInfer's, which follow one another.

    custom_mask: bool [sum of qo_len * kv_len]; packed: uint8, lowest bit first, each sequence from
    a byte on.
    """
    if custom_mask is None and packed is None:
        return None
    if custom_mask is not None and packed is not None:
        raise invalid("packed_custom_mask", "given", "must be None: custom_mask is given")
    name = "custom_mask" if packed is None else "packed_custom_mask"
    given = (custom_mask if packed is None else packed).reshape(-1).cpu()
    rows_of = qo_indptr.diff().tolist()
    keys_of = kv_lengths().tolist()
    words, offsets, at = [], [0], 0
    for rows, keys in zip(rows_of, keys_of):
        count = rows * keys
        if packed is None:
            bits = given[at : at + count].bool()
            at += count
        else:
            last = at + (count + 7) // 8
            bits = (given[at:last, None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten()
            bits = bits[:count].bool()
            at = last
        if len(bits) != count:
            raise invalid(name, f"of {len(given)} elements", "must cover all queries and keys")
        width = -(-keys // 32)
        padded = torch.zeros(rows, width * 32, dtype=torch.int64)
        padded[:, :keys] = bits.view(rows, keys)
        values = (padded.view(rows, width, 32) << torch.arange(32)).sum(-1)
        words.append(values.flatten())
        offsets.append(offsets[-1] + rows * width)
    if at != len(given):
        raise invalid(name, f"of {len(given)} elements", f"must have {at}")
    all_words = torch.cat(words).to(torch.uint32)
    return Mask.bits(all_words.to(device), torch.tensor(offsets).to(device))
