#!/usr/bin/env python3
"""Tokens per second of a whole model, Llama-3.1-8B with random weights, by attention: decode of a
batch over a filled cache and prefill of one prompt, with `pagoda`, `sdpa` and FlashAttention where
it is installed. In Transformers where that is installed, else in bench/python/decoder.py.

Rows appear on stderr as they are measured, and in --json FILE; the last line of stdout is the JSON.
`--config tiny` runs in seconds on a CPU.
"""

import argparse
import contextlib
import importlib
import importlib.util
import json
import signal
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import decoder

CONFIGS = {
    "llama-3.1-8b": {
        "layers": 32, "hidden": 4096, "intermediate": 14336, "heads": 32, "kv_heads": 8,
        "head_dim": 128, "vocabulary": 128256, "decode": (64, 4096), "prefill": 8192,
    },
    "tiny": {
        "layers": 2, "hidden": 64, "intermediate": 96, "heads": 4, "kv_heads": 2, "head_dim": 16,
        "vocabulary": 97, "decode": (3, 40), "prefill": 50,
    },
}  # fmt: skip
IMPLEMENTATIONS = ("pagoda", "sdpa", "flash_attention_2", "flash_attention_3")
MODULES = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}


class TorchModel:
    """bench/python/decoder.py."""

    name = "torch.nn"

    def __init__(self, config, device, dtype):
        self.config, self.device, self.dtype = config, device, dtype
        self.model = decoder.Decoder(config, device, dtype)
        self.kind = None

    def use(self, implementation):
        self.kind = {"pagoda": decoder.Pagoda, "sdpa": decoder.Sdpa}.get(implementation)
        if self.kind is None:
            module = importlib.import_module(MODULES[implementation])
            function = staticmethod(module.flash_attn_with_kvcache)
            self.kind = type("Flash", (decoder.Flash,), {"function": function})

    def cache(self, batch, capacity, length):
        cache = self.kind(self.config, batch, capacity, self.device, self.dtype)
        if length:
            cache.fill(length)
        return cache

    def __call__(self, tokens, cache):
        return self.model(tokens, cache)


class TransformersModel:
    """LlamaForCausalLM with a static cache."""

    name = "transformers"

    def __init__(self, config, device, dtype):
        import transformers

        import pagoda.transformers

        pagoda.transformers.register()
        self.name = f"transformers {transformers.__version__}"
        self.library, self.device, self.dtype = transformers, device, dtype
        self.config = transformers.LlamaConfig(
            vocab_size=config["vocabulary"], hidden_size=config["hidden"],
            intermediate_size=config["intermediate"], num_hidden_layers=config["layers"],
            num_attention_heads=config["heads"], num_key_value_heads=config["kv_heads"],
            head_dim=config["head_dim"], max_position_embeddings=131072, rms_norm_eps=1e-5,
        )  # fmt: skip
        self.row = (config["kv_heads"], config["head_dim"])
        with torch.device(device):
            self.model = transformers.AutoModelForCausalLM.from_config(self.config, dtype=dtype)
        self.model.eval()

    def use(self, implementation):
        self.model.set_attn_implementation(implementation)

    def cache(self, batch, capacity, length):
        cache = self.library.StaticCache(config=self.config, max_cache_len=capacity)
        generator = torch.Generator(self.device).manual_seed(1)
        for layer in range(self.config.num_hidden_layers if length else 0):
            shape = (batch, self.row[0], length, self.row[1])
            k, v = (torch.empty(shape, device=self.device, dtype=self.dtype)
                    .normal_(generator=generator) for _ in "kv")  # fmt: skip
            cache.update(k, v, layer, {"cache_position": torch.arange(length, device=self.device)})
        return cache

    def __call__(self, tokens, cache):
        out = self.model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1]


@contextlib.contextmanager
def limit(seconds, what):
    """TimeoutError after `seconds`."""

    def end(*_):
        raise TimeoutError(f"{what} ended after its limit of {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))  # 0 would stop the timer
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def timed(call, device):
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    synchronize()
    begin = time.perf_counter()
    result = call()
    synchronize()
    return result, time.perf_counter() - begin


def decode(model, config, device):
    """(tokens per second, logits of the first step)."""
    batch, length = config["decode"]
    steps = 12
    cache = model.cache(batch, length + steps + 4, length)
    tokens = torch.arange(batch, device=device)[:, None] % config["vocabulary"]
    first = model(tokens, cache)
    model(tokens, cache)
    _, seconds = timed(lambda: [model(tokens, cache) for _ in range(steps)], device)
    return batch * steps / seconds, first


def prefill(model, config, device):
    length, best, logits = config["prefill"], float("inf"), None
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(config["vocabulary"], (1, length), generator=generator).to(device)
    for _ in range(4):  # the first one warms up
        cache = model.cache(1, length, 0)
        logits, seconds = timed(lambda cache=cache: model(tokens, cache), device)
        best = min(best, seconds)
    return length / best, logits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="llama-3.1-8b", choices=CONFIGS)
    parser.add_argument("--model", default="auto", choices=("auto", "transformers", "torch"))
    parser.add_argument("--only", default=",".join(IMPLEMENTATIONS), help="attention, by commas")
    parser.add_argument("--seconds", type=float, default=55, help="for everything (default: 55)")
    parser.add_argument("--part-seconds", type=float, default=12, help="for a row (default: 12)")
    parser.add_argument("--json", type=Path, help="also writes the JSON here, row by row")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    config = CONFIGS[arguments.config]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    has_transformers = importlib.util.find_spec("transformers") is not None
    kind = TransformersModel if has_transformers else TorchModel
    if arguments.model != "auto":
        kind = TransformersModel if arguments.model == "transformers" else TorchModel
    report = {
        "tool": "bench/python/llama.py", "config": arguments.config, "dtype": "bfloat16",
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__, "decode": "batch {} at {} tokens".format(*config["decode"]),
        "prefill": f"1 prompt of {config['prefill']} tokens", "rows": [],
    }  # fmt: skip
    with torch.no_grad():
        torch.manual_seed(0)
        model, seconds = timed(lambda: kind(config, device, torch.bfloat16), device)
        report.update(model=model.name, seconds_of_weights=round(seconds, 2))
        print(f"{model.name}: weights after {seconds:.1f} s", file=sys.stderr)
        expected = {}
        for implementation in arguments.only.split(","):
            for phase, measure in (("decode", decode), ("prefill", prefill)):
                left = arguments.seconds - (time.perf_counter() - begin)
                row = {"attention": implementation, "phase": phase}
                try:
                    if left <= 0:
                        raise TimeoutError("no time is left")
                    with limit(min(left, arguments.part_seconds), f"{implementation} {phase}"):
                        model.use(implementation)
                        rate, logits = measure(model, config, device)
                    row["tokens_per_second"] = round(rate, 1)
                    # Of the first one's, as a sanity check: the same weights, tokens and caches.
                    logits = logits.float()
                    difference = (logits - expected.setdefault(phase, logits)).abs().max()
                    row["logit_difference"] = round(
                        float(difference / expected[phase].abs().max()), 5
                    )
                except Exception as error:  # the next row may be measured
                    row["why"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
                report["rows"].append(row)
                report["seconds"] = round(time.perf_counter() - begin, 1)
                print(json.dumps(row), file=sys.stderr, flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(report, indent=1) + "\n")
                if device == "cuda":
                    torch.cuda.empty_cache()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
