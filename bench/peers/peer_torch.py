"""PyTorch's scaled_dot_product_attention on the CPU, FLASH_ATTENTION back end."""

import numpy as np
import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from problem_data import UnsupportedProblem, one_row, random_array, relative_error, uniform_lengths
from stopwatch import seconds_of

NAME = "torch"
VERSION = torch.__version__


def as_tensor(array):
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_array(tensor):
    return (
        tensor.view(torch.int16).numpy().view(np.uint16)
        if tensor.dtype == torch.bfloat16
        else tensor.numpy()
    )


class Peer:
    """K and V have the layout [batch, heads, length, dim], contiguous: no pages, nothing to gather."""

    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def prepare(self, problem):
        batch, seqlen_q, seqlen_kv = uniform_lengths(problem)
        dim, dtype = problem["head-dim"], problem["dtype"]
        is_causal = problem["mask"] == "causal"
        if is_causal and seqlen_q != seqlen_kv:
            raise UnsupportedProblem("is_causal is top-left aligned")
        q_heads, kv_heads = problem["q-heads"], problem["kv-heads"]
        q = random_array((batch, q_heads, seqlen_q, dim), dtype, 1)
        k = random_array((batch, kv_heads, seqlen_kv, dim), dtype, 2)
        v = random_array((batch, kv_heads, seqlen_kv, dim), dtype, 3)
        tensors = [as_tensor(array) for array in (q, k, v)]
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises if it does not support the call
            self.call = lambda: functional.scaled_dot_product_attention(
                *tensors, is_causal=is_causal, enable_gqa=q_heads != kv_heads
            )
            out = as_array(self.call())
        expected = one_row(q[-1, -1, -1], k[-1, -1], v[-1, -1])
        return {
            "call": "scaled_dot_product_attention, FLASH_ATTENTION",
            "dtype": dtype,
            "max_relative_error": relative_error(out[-1, -1, -1], expected),
        }

    def run(self, iterations):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return [seconds_of(self.call) for _ in range(iterations)]
