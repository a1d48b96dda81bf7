"""Rotary position embedding of queries and keys before a call (Su et al. 2021)."""

from __future__ import annotations

import torch


def apply_rotary(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    *,
    interleaved: bool,
) -> torch.Tensor:
    """A new tensor with the first rotary_dim elements of each head rotated.

    x: [..., num_heads, head_dim]; positions: [...], rows of cos and sin [max_position,
    rotary_dim / 2]. interleaved: pairs are (0, 1), (2, 3), ...; otherwise (i, i + rotary_dim / 2).
    """
    half = cos.shape[-1]
    c = cos[positions].float().unsqueeze(-2)
    s = sin[positions].float().unsqueeze(-2)
    rotated = x.clone()
    part = x[..., : 2 * half].float()
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2)
    else:
        a, b = part[..., :half], part[..., half:]
        turned = torch.cat((a * c - b * s, b * c + a * s), dim=-1)
    rotated[..., : 2 * half] = turned.to(x.dtype)
    return rotated
