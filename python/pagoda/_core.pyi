"""The extension module: pagoda.h over Python arrays. Its public forms are in pagoda.calls."""

from collections.abc import Callable
from typing import Any

ARRAYS: tuple[str, ...]  # the order of the tuple `arrays`
VERSION: int

def run_attention(
    arrays: tuple[Any, ...],
    mask: tuple[int, ...],
    mask_arrays: tuple[Any, ...],
    numbers: tuple[Any, ...],
    options: tuple[Any, ...],
    stream: Any,
) -> None: ...
def explain(
    arrays: tuple[Any, ...],
    mask: tuple[int, ...],
    mask_arrays: tuple[Any, ...],
    numbers: tuple[Any, ...],
    options: tuple[Any, ...],
) -> list[tuple[str, str, bool, bool, str]]: ...
def backends() -> list[tuple[str, bool, str, str]]: ...
def append_kv(
    k_new: Any,
    v_new: Any,
    slot_mapping: Any,
    k_cache: Any,
    v_cache: Any,
    layout: int,
    k_scale: float,
    v_scale: float,
    k_per_head: Any,
    v_per_head: Any,
    backend: str,
    checks_indices: bool,
    stream: Any,
) -> None: ...
def merge_states(
    partial_out: Any,
    partial_lse: Any,
    out: Any,
    lse: Any,
    lse_base: int,
    row_mask: Any,
    backend: str,
    stream: Any,
) -> None: ...
def release_workspaces() -> None: ...
def register_torch_operators() -> None: ...
def operator_failure() -> tuple[int, str, str] | None: ...

class Plan:
    """A prepared call: kernel, tiles, KV splits, workspace. Made by pagoda.plan()."""

    def __init__(
        self,
        arrays: tuple[Any, ...],
        mask: tuple[int, ...],
        mask_arrays: tuple[Any, ...],
        numbers: tuple[Any, ...],
        options: tuple[Any, ...],
        stream: Any,
        allocate: Callable[[int], Any],
    ) -> None: ...
    def run(
        self, q: Any = None, out: Any = None, lse: Any = None, stream: Any = None, **others: Any
    ) -> None: ...
    @property
    def kernel(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...
    @property
    def num_work_items(self) -> int: ...
    @property
    def num_split_rows(self) -> int: ...
    @property
    def flops(self) -> float: ...
    @property
    def kv_bytes(self) -> float: ...
