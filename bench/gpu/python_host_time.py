#!/usr/bin/env python3
"""Host time of one decode call from Python: the calls are issued back to back and nothing waits for
the GPU. Prints JSON: microseconds per call, the least of several rounds. On a machine without a GPU
it measures the same on the CPU, kernel included."""

import json
import statistics
import time

import torch

import pagoda
import pagoda.torch as ops

HEADS, KV_HEADS, DIM, LENGTH, PAGE = 32, 8, 128, 1024, 64


def microseconds(call, count, device):
    rounds = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        rounds.append((time.perf_counter() - begin) / count * 1e6)
        if device == "cuda":
            torch.cuda.synchronize()
    return {"least": round(min(rounds), 2), "median": round(statistics.median(rounds), 2)}


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    length = LENGTH if device == "cuda" else 1
    named = {"dtype": torch.bfloat16, "device": device}
    pages = -(-length // PAGE)
    q = torch.randn(1, 1, HEADS, DIM, **named)
    k, v = (torch.randn(pages, PAGE, KV_HEADS, DIM, **named) for _ in "kv")
    table = torch.arange(pages, dtype=torch.int32, device=device)[None]
    lengths = torch.tensor([length], dtype=torch.int32, device=device)
    out = torch.empty_like(q)
    cache = pagoda.KVCache(k, v, block_table=table, seqlens_kv=lengths)
    mask = pagoda.Mask.causal()
    plan = pagoda.plan(q, cache, out=out, mask=mask)
    operator = torch.ops.pagoda.attention.default
    dense = [x.flatten(0, 1)[None, :length].transpose(1, 2) for x in (k, v)]
    q_dense = q.transpose(1, 2)
    calls = {
        "plan.run()": plan.run,
        "plan.run(q, out)": lambda: plan.run(q, out),
        "torch.ops.pagoda.attention": lambda: operator(q, k, v, out, lengths, table, True),
        "pagoda.torch.attention": lambda: ops.attention(q, cache, mask=mask, out=out),
        "pagoda.attention": lambda: pagoda.attention(q, cache, mask=mask, out=out),
        "scaled_dot_product_attention": lambda: torch.nn.functional.scaled_dot_product_attention(
            q_dense, *dense, enable_gqa=True
        ),
    }
    with torch.no_grad():
        for call in calls.values():  # launches, workspaces, caches
            call()
        times = {name: microseconds(call, 300, device) for name, call in calls.items()}
    where = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    print(json.dumps({"device": where, "length": length, "microseconds": times}))


if __name__ == "__main__":
    main()
