"""Checks of tensors of integers: type and shape, and the values of those in host memory."""

from __future__ import annotations

from typing import Any

import torch

from pagoda.calls import described
from pagoda.errors import invalid


def has_memory(x: torch.Tensor) -> bool:
    """False for what torch.compile traces, for fake tensors and for those of the meta device."""
    if torch.compiler.is_compiling():
        return False
    return type(x) in (torch.Tensor, torch.nn.Parameter) and x.device.type != "meta"


def is_on_host(x: torch.Tensor) -> bool:
    """Whether its values are in host memory: those of others are not read."""
    return x.device.type == "cpu" and has_memory(x)


def check_integers(
    name: str, x: Any, count: int | None = None, *, least: int = 0, largest: int | None = None
) -> None:
    """Checks a tensor [count] of int32 or int64. Its values must be in [least, largest]; largest =
    None: they are not checked."""
    if not isinstance(x, torch.Tensor):
        raise invalid(name, described(x), "must be a torch.Tensor")
    if x.dtype not in (torch.int32, torch.int64):
        raise invalid(f"{name}.dtype", x.dtype, "must be torch.int32")
    if x.ndim != 1 or x.shape[0] != (x.shape[0] if count is None else count):
        shape = "one dimension" if count is None else f"[{count}]"
        raise invalid(f"{name}.shape", tuple(x.shape), f"must be {shape}")
    if largest is None or not is_on_host(x) or x.numel() == 0:
        return
    smallest, greatest = map(int, x.aminmax())
    if smallest < least or greatest > largest:
        i = int(((x < least) | (x > largest)).nonzero()[0])
        raise invalid(f"{name}[{i}]", int(x[i]), f"must be in [{least}, {largest}]")


def check_offsets(name: str, x: Any, batch: int, total: int) -> None:
    """Checks offsets [batch + 1]: they start at 0, do not decrease and end at `total` at most."""
    check_integers(name, x, batch + 1, largest=total)
    if is_on_host(x) and (x[0] != 0 or (x.diff() < 0).any()):
        raise invalid(name, x.tolist(), "must start at 0 and not decrease")


def check_fits_int32(**tensors: Any) -> None:
    """Checks tensors of integers that will be converted to int32."""
    for name, x in tensors.items():
        check_integers(name, x, least=-(1 << 31), largest=(1 << 31) - 1)
