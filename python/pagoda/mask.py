"""Mask: which keys a query sees, and which bias is added to their scores."""

from __future__ import annotations

from typing import Any

# The kinds of pagoda.h (PAGODA_MASK_...).
_CAUSAL, _WINDOW, _CHUNKED, _PADDING, _ADDITIVE, _RELATIVE_BIAS, _BITS = 1, 2, 3, 4, 5, 6, 7
_AND, _OR = 9, 10
_ARRAY_NAMES = {
    _PADDING: ("mask.valid_lengths",),
    _ADDITIVE: ("mask.bias",),
    _RELATIVE_BIAS: ("mask.table",),
    _BITS: ("mask.words", "mask.row_offsets"),
}


class Mask:
    """An expression over masks: ``Mask.causal() & Mask.window(127, 0) | Mask.padding(lengths)``.

    Query row i of a sequence has position cache_length + i (by default seqlen_kv - seqlen_q + i:
    bottom-right alignment), its keys have positions 0 .. seqlen_kv - 1. ``&`` keeps the keys that
    both operands keep and adds their biases; ``|`` keeps those of either, which must not have
    biases. At most 16 masks and operators.
    """

    __slots__ = ("arrays", "program")

    # program: three integers for each node, its kind and two parameters, in postfix order.
    def __init__(self, program: tuple[int, ...] = (), arrays: tuple[Any, ...] = ()) -> None:
        self.program = program
        self.arrays = arrays

    @property
    def array_names(self) -> list[str]:
        """What errors call each of `arrays`."""
        return [name for kind in self.program[::3] for name in _ARRAY_NAMES.get(kind, ())]

    @staticmethod
    def none() -> Mask:
        """Every key."""
        return Mask()

    @staticmethod
    def causal() -> Mask:
        """Keys up to the query's position."""
        return Mask((_CAUSAL, 0, 0))

    @staticmethod
    def window(left: int, right: int) -> Mask:
        """Keys from `left` tokens before the query to `right` after it, both included; -1 = open.

        A causal window of W keys is window(W - 1, 0).
        """
        return Mask((_WINDOW, left, right))

    @staticmethod
    def chunked(chunk: int) -> Mask:
        """Keys of the query's own chunk of `chunk` tokens (Llama 4, with ``& causal()``)."""
        return Mask((_CHUNKED, chunk, 0))

    @staticmethod
    def padding(valid_lengths: Any) -> Mask:
        """The first valid_lengths[sequence] keys; int32 [batch]."""
        return Mask((_PADDING, 0, 0), (valid_lengths,))

    @staticmethod
    def additive(bias: Any) -> Mask:
        """Every key; adds `bias` to the scaled scores.

        float32 [batch, seqlen_q, seqlen_kv] or [batch, num_q_heads, seqlen_q, seqlen_kv]; batch and
        heads broadcast from 1. -infinity excludes a key.
        """
        return Mask((_ADDITIVE, 0, 0), (bias,))

    @staticmethod
    def relative_bias(table: Any) -> Mask:
        """Every key; adds table[head, k - q + extent] where |k - q| <= extent.

        float32 [num_q_heads, 2 * extent + 1].
        """
        return Mask((_RELATIVE_BIAS, 0, 0), (table,))

    @staticmethod
    def bits(words: Any, row_offsets: Any) -> Mask:
        """Key k of query row i of sequence b if bit k % 32 of its word is set (token trees).

        words: uint32; the word is words[row_offsets[b] + i * ceil(seqlen_kv / 32) + k // 32].
        row_offsets: int64 [batch + 1], in words.
        """
        return Mask((_BITS, 0, 0), (words, row_offsets))

    def __and__(self, other: Mask) -> Mask:
        return self._combine(_AND, other)

    def __or__(self, other: Mask) -> Mask:
        return self._combine(_OR, other)

    def _combine(self, operator: int, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        program = self._operand() + other._operand() + (operator, 0, 0)
        return Mask(program, self.arrays + other.arrays)

    def _operand(self) -> tuple[int, ...]:
        return self.program or (0, 0, 0)  # no mask, as an operand
