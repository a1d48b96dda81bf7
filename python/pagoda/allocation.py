"""New arrays in the framework and on the device of a given one."""

from __future__ import annotations

import importlib
from typing import Any

from pagoda.errors import invalid


def _framework(array: Any) -> str:
    for kind in type(array).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("torch", "numpy", "cupy"):
            return root
    return ""


def empty(like: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    """An array of undefined contents. dtype: out_dtype, or a name of it; None = `like`'s."""
    framework = _framework(like)
    try:
        if framework == "torch":
            torch = importlib.import_module("torch")
            return torch.empty(shape, dtype=_dtype(torch, dtype, like), device=like.device)
        if framework in ("numpy", "cupy"):
            module = importlib.import_module(framework)
            return module.empty(shape, dtype=_numpy_dtype(dtype, like))
    except (AttributeError, TypeError) as error:
        if dtype is None:
            raise
        raise invalid("out_dtype", dtype, f"must be a dtype of {framework}, or its name") from error
    raise invalid("out", "None", "must be given: only NumPy, PyTorch and CuPy arrays are allocated")


def dtype_name(like: Any, dtype: Any) -> str:
    """The full name of a dtype of `like`'s framework, which may have several; else that given."""
    framework = _framework(like)
    try:
        if framework == "torch":
            dtype = _dtype(importlib.import_module("torch"), dtype, like)
        elif framework in ("numpy", "cupy"):
            dtype = importlib.import_module("numpy").dtype(_numpy_dtype(dtype, like))
    except (AttributeError, TypeError):
        pass  # no dtype has that name
    # numpy.float32, say, is a class.
    return str(dtype.__name__ if isinstance(dtype, type) else dtype).rpartition(".")[2]


def zeroed_bytes(like: Any, count: int) -> Any:
    """`count` bytes, which are zero for kernels in any stream."""
    memory = empty(like, (count,), "uint8")
    memory[...] = 0
    framework = _framework(like)
    if framework == "torch" and like.is_cuda:
        cuda = importlib.import_module("torch").cuda
        if not cuda.is_current_stream_capturing():
            cuda.current_stream(like.device).synchronize()
    elif framework == "cupy":
        importlib.import_module("cupy").cuda.get_current_stream().synchronize()
    return memory


def _dtype(torch: Any, dtype: Any, like: Any) -> Any:
    if dtype is None:
        return like.dtype
    return getattr(torch, dtype) if isinstance(dtype, str) else dtype


def _numpy_dtype(dtype: Any, like: Any) -> Any:
    if dtype in ("bfloat16", "float8_e4m3fn"):
        return getattr(importlib.import_module("ml_dtypes"), dtype)
    return like.dtype if dtype is None else dtype
