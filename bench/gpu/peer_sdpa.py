"""PyTorch's scaled_dot_product_attention on the GPU in a separate process: cuDNN and FA2, and the
ceilings (copy, matrix product). Answers the requests of pagoda's bench worker, a JSON line each.

A run is timed by events around one call, behind a memset that is larger than L2 and longer than
Python needs to launch the call: neither the cache nor the interpreter is in the numbers.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}
FLUSH_BYTES = 256 << 20  # as src/backends/cuda/memory_space.cu
MATMUL_SIZE = 8192
COPY_BYTES = 4 << 30


class Timer:
    def __init__(self):
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def seconds(self, call, iterations):
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                 for _ in range(iterations)]
        for start, end in pairs:
            self.flush.zero_()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e-3 for start, end in pairs]


def expected_row(q, k, v):
    """softmax(q k^T / sqrt(d)) v in float64; q [d], k [n, d], v [n, d]."""
    q, k, v = q.double(), k.double(), v.double()
    return torch.softmax(k @ q / q.numel() ** 0.5, 0) @ v


class Peer:
    """K and V have the layout [batch, heads, length, dim], contiguous: no pages, nothing to gather."""

    def __init__(self):
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        self.timer = Timer()
        self.call = None

    def prepare(self, problem, backend):
        self.call = None
        torch.cuda.empty_cache()
        if problem["dtype"] != "bf16" or problem.get("kv-dtype", "bf16") != "bf16":
            raise RuntimeError("bf16 only")
        is_causal = problem.get("mask", "none") == "causal"
        if is_causal and problem["seqlen-q"] != problem["seqlen-kv"]:
            raise RuntimeError("is_causal is top-left aligned")
        heads, kv_heads, depth = problem["q-heads"], problem["kv-heads"], problem["head-dim"]

        def tensor(num_heads, length, last):
            return torch.randn(
                problem["batch"], num_heads, length, last, device="cuda", dtype=torch.bfloat16
            )

        q = tensor(heads, problem["seqlen-q"], depth)
        k = tensor(kv_heads, problem["seqlen-kv"], depth)
        v = tensor(kv_heads, problem["seqlen-kv"], problem.get("v-head-dim", depth))
        self.backend = BACKENDS[backend]
        self.call = lambda: functional.scaled_dot_product_attention(
            q, k, v, is_causal=is_causal, enable_gqa=heads != kv_heads)
        with sdpa_kernel(self.backend):  # raises here if it does not support the call
            got = self.call()[-1, -1, -1].double()
        want = expected_row(q[-1, -1, -1], k[-1, -1], v[-1, -1])
        return {"call": f"scaled_dot_product_attention, {self.backend.name}",
                "max_relative_error": float((got - want).abs().max() / want.abs().max())}

    def run(self, iterations):
        with sdpa_kernel(self.backend):
            return self.timer.seconds(self.call, iterations)

    def back_to_back(self, iterations):
        with sdpa_kernel(self.backend):
            self.call()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(iterations):
                self.call()
            torch.cuda.synchronize()
        return [(time.perf_counter() - start) / iterations]

    def ceilings(self, iterations):
        source = torch.randn(COPY_BYTES // 2, device="cuda", dtype=torch.bfloat16)
        target = torch.empty_like(source)
        copy = self.timer.seconds(lambda: target.copy_(source), iterations)
        del source, target
        a, b = (
            torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda", dtype=torch.bfloat16)
            for _ in range(2)
        )
        self.timer.seconds(lambda: a @ b, 3)
        matmul = self.timer.seconds(lambda: a @ b, iterations)
        return {
            "copy_seconds": copy,
            "copy_bytes": 2 * COPY_BYTES / statistics.median(copy[1:]),
            "matmul_seconds": matmul,
            "matmul_flops": 2 * MATMUL_SIZE**3 / statistics.median(matmul),
        }


def answer(peer, request):
    op = request["op"]
    if op == "version":
        return {
            "torch": torch.__version__,
            "cudnn": str(torch.backends.cudnn.version()),
            "cuda": torch.version.cuda,
            "device": torch.cuda.get_device_name(),
        }
    if op == "prepare":
        return peer.prepare(request["problem"], request["backend"])
    if op == "release":
        peer.call = None
        torch.cuda.empty_cache()
        return {"ok": True}
    if op == "ceilings":
        return peer.ceilings(request["iterations"])
    if op in ("run", "back_to_back"):
        return {"seconds": getattr(peer, op)(request["iterations"])}
    return {"error": f"no such operation: {op}"}


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the replies
    peer = Peer()
    for line in sys.stdin:
        try:
            reply = answer(peer, json.loads(line))
        except Exception as error:  # the driver reports it in the peer's row
            reply = {
                "error": f"{type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}"
            }
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
