"""Pagoda: paged flash attention for LLM inference.

    out = pagoda.attention(q, pagoda.KVCache(k, v, block_table=table, seqlens_kv=lengths),
                           mask=pagoda.Mask.causal())

Arrays are those of NumPy, PyTorch, CuPy, JAX or anything else with ``__dlpack__()``, in host memory
or in a GPU's. None is copied. Submodules that need PyTorch: ``pagoda.torch`` (operators for
``torch.compile`` and CUDA graphs), ``pagoda.flash_attn`` and ``pagoda.flashinfer`` (their calls),
``pagoda.transformers`` (whole models).
"""

from pagoda._core import Plan
from pagoda.calls import append_kv, attention, explain, merge_states, plan, release_workspaces
from pagoda.errors import (
    Error,
    InternalError,
    InvalidArgument,
    NotFound,
    OutOfMemory,
    StreamCapturing,
    Unsupported,
)
from pagoda.info import Backend, Info, Kernel, __version__, info
from pagoda.kv_cache import KVCache
from pagoda.mask import Mask

__all__ = [
    "Backend",
    "Error",
    "Info",
    "InternalError",
    "InvalidArgument",
    "KVCache",
    "Kernel",
    "Mask",
    "NotFound",
    "OutOfMemory",
    "Plan",
    "StreamCapturing",
    "Unsupported",
    "__version__",
    "append_kv",
    "attention",
    "explain",
    "info",
    "merge_states",
    "plan",
    "release_workspaces",
]
