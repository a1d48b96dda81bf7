#!/usr/bin/env python3
"""Writes chat.jsonl: synthetic chat traffic in the format that `pagoda replay` reads.

Multi-turn conversations on a few system prompts, arriving in bursts. A turn's prompt is the whole
conversation so far and a new question; equal leading 512-token blocks of any two prompts have equal
ids, so that prefixes are shared within a conversation and, by the system prompt, between them.
The same seed writes the same file.

    python3 make_chat_trace.py > chat.jsonl
"""

import argparse
import json
import random

BLOCK = 512
SYSTEM_PROMPTS = [1400, 700, 2300]  # tokens


class Blocks:
    """Numbers the blocks of prompts: one id for each distinct prefix."""

    def __init__(self):
        self.ids = {}

    def of(self, parts):
        """`parts`: (name, tokens) in order; the ids of the blocks that they fill together."""
        total = sum(tokens for _, tokens in parts)
        ids = []
        for start in range(0, total, BLOCK):
            end = min(start + BLOCK, total)
            # A prefix is identified by the parts that it covers and the length of the last one.
            prefix, covered = [], 0
            for name, tokens in parts:
                if covered >= end:
                    break
                prefix.append((name, min(tokens, end - covered)))
                covered += tokens
            ids.append(self.ids.setdefault(tuple(prefix), len(self.ids)))
        return ids


def conversation(rng, number, start_ms):
    """Yields (timestamp, parts of the prompt, output tokens) for every turn."""
    system = rng.randrange(len(SYSTEM_PROMPTS))
    parts = [(f"system {system}", SYSTEM_PROMPTS[system])]
    now = start_ms
    for turn in range(rng.choice([1, 1, 2, 3, 4])):
        # Most questions are short; some include a document.
        question = rng.randint(900, 2600) if rng.random() < 0.3 else rng.randint(20, 300)
        answer = min(320, max(8, int(rng.lognormvariate(4.3, 0.8))))
        parts.append((f"question {number}.{turn}", question))
        yield now, list(parts), answer
        parts.append((f"answer {number}.{turn}", answer))
        now += rng.randint(800, 3000)  # the user reads and types


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--conversations", type=int, default=32)
    parser.add_argument("--bursts", type=int, default=4)
    arguments = parser.parse_args()

    rng = random.Random(arguments.seed)
    requests = []
    for number in range(arguments.conversations):
        burst = rng.randrange(arguments.bursts)
        start_ms = 2000 * burst + int(rng.expovariate(1 / 250))
        requests += conversation(rng, number, start_ms)
    requests.sort(key=lambda request: request[0])

    blocks = Blocks()
    for timestamp, parts, answer in requests:
        length = sum(tokens for _, tokens in parts)
        line = {
            "timestamp": timestamp - requests[0][0],
            "input_length": length,
            "output_length": answer,
            "hash_ids": blocks.of(parts),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
