"""A Llama decoder of torch.nn alone, for machines without Transformers. Attention and its cache are
an object with attend(layer, q, k, v)."""

import torch
from torch import nn
from torch.nn import functional

PAGE = 64


class Block(nn.Module):
    """RMSNorm, grouped-query attention, RMSNorm, SwiGLU."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.dim = c["heads"], c["kv_heads"], c["head_dim"]
        rows = (self.heads + 2 * self.kv_heads) * self.dim
        self.qkv = nn.Linear(c["hidden"], rows, bias=False)
        self.out = nn.Linear(self.heads * self.dim, c["hidden"], bias=False)
        self.gate_and_up = nn.Linear(c["hidden"], 2 * c["intermediate"], bias=False)
        self.down = nn.Linear(c["intermediate"], c["hidden"], bias=False)
        self.norms = nn.ParameterList(nn.Parameter(torch.ones(c["hidden"])) for _ in range(2))

    def forward(self, x, index, cache, rotation):
        y = functional.rms_norm(x, x.shape[-1:], self.norms[0], 1e-5)
        qkv = self.qkv(y).unflatten(-1, (-1, self.dim))
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=2)
        y = cache.attend(index, rotated(q, *rotation), rotated(k, *rotation), v)
        x = x + self.out(y.flatten(2))
        y = functional.rms_norm(x, x.shape[-1:], self.norms[1], 1e-5)
        gate, up = self.gate_and_up(y).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Decoder(nn.Module):
    """The whole model. Weights are random, made on the device."""

    def __init__(self, c, device, dtype):
        super().__init__()
        with torch.device("meta"):
            self.embedding = nn.Embedding(c["vocabulary"], c["hidden"])
            self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
            self.head = nn.Linear(c["hidden"], c["vocabulary"], bias=False)
        self.to(dtype).to_empty(device=device).requires_grad_(False)
        for name, parameter in self.named_parameters():
            parameter.fill_(1) if "norms" in name else parameter.normal_(std=0.02)
        half = c["head_dim"] // 2
        self.frequencies = 5e5 ** (-torch.arange(half, device=device, dtype=torch.float32) / half)

    def forward(self, tokens, cache):
        """Logits [batch, vocabulary] of the last of tokens [batch, seqlen], which follow those of
        the cache."""
        first, count = cache.length, tokens.shape[1]
        cache.extend(count)
        positions = torch.arange(first, first + count, device=tokens.device)
        angles = (positions[:, None] * self.frequencies)[None, :, None]  # [1, seqlen, 1, dim / 2]
        x = self.embedding(tokens)
        rotation = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for index, block in enumerate(self.blocks):
            x = block(x, index, cache, rotation)
        return self.head(functional.rms_norm(x[:, -1], x.shape[-1:], None, 1e-5))


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Cache:
    """Memory for `capacity` tokens of each sequence, `length` of which are there."""

    def __init__(self, c, batch, capacity, device, dtype):
        self.layers, self.batch, self.capacity = c["layers"], batch, -(-capacity // PAGE) * PAGE
        self.row = (c["kv_heads"], c["head_dim"])
        self.length, self.device, self.dtype = 0, device, dtype
        self.k, self.v = (
            [torch.empty(self.shape(), device=device, dtype=dtype) for _ in range(self.layers)]
            for _ in "kv"
        )

    def shape(self):
        return (self.batch, self.capacity, *self.row)

    def extend(self, count):
        """`count` new tokens of each sequence will be attended."""
        self.before, self.length = self.length, self.length + count

    def fill(self, length):
        """`length` tokens of random keys and values, the same in every kind of cache."""
        generator = torch.Generator(self.device).manual_seed(1)
        for layer in range(self.layers):
            for tensors in (self.k, self.v):
                tensor = torch.empty(self.batch, self.capacity, *self.row, device=self.device,
                                     dtype=self.dtype)  # fmt: skip
                self.store(tensors[layer], tensor.normal_(generator=generator))
        self.length = length

    def store(self, to, values):
        to.copy_(values)


class Sdpa(Cache):
    """scaled_dot_product_attention over a dense cache."""

    def shape(self):
        return (self.batch, self.row[0], self.capacity, self.row[1])

    def store(self, to, values):
        to.copy_(values.transpose(1, 2))

    def attend(self, layer, q, k, v):
        new = slice(self.before, self.length)
        self.k[layer][:, :, new], self.v[layer][:, :, new] = k.transpose(1, 2), v.transpose(1, 2)
        if self.before and q.shape[1] > 1:
            raise ValueError("SDPA's causal mask begins at the first key")
        keys, values = (t[layer][:, :, : self.length] for t in (self.k, self.v))
        out = functional.scaled_dot_product_attention(
            q.transpose(1, 2), keys, values, is_causal=q.shape[1] > 1, enable_gqa=True
        )
        return out.transpose(1, 2)


class Flash(Cache):
    """flash_attn_with_kvcache of FlashAttention 2 or 3, which appends too."""

    function = None

    def attend(self, layer, q, k, v):
        if layer == 0:
            self.lengths = torch.full((self.batch,), self.before, dtype=torch.int32,
                                      device=self.device)  # fmt: skip
        return self.function(q, self.k[layer], self.v[layer], k=k, v=v, causal=True,
                             cache_seqlens=self.lengths)  # fmt: skip


class Pagoda(Cache):
    """Pages in shuffled order, as a serving engine has them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        pages = self.batch * self.capacity // PAGE
        order = torch.randperm(pages, generator=torch.Generator().manual_seed(2))
        self.table = order.view(self.batch, -1).to(device=self.device, dtype=torch.int32)

    def shape(self):
        return (self.batch * self.capacity // PAGE, PAGE, *self.row)

    def store(self, to, values):
        to[self.table.flatten().long()] = values.reshape(to.shape)

    def extend(self, count):
        super().extend(count)
        at = torch.arange(self.before, self.length, device=self.device)
        self.slots = (self.table[:, at // PAGE].long() * PAGE + at % PAGE).flatten()
        self.lengths = torch.full((self.batch,), self.length, dtype=torch.int32,
                                  device=self.device)  # fmt: skip

    def attend(self, layer, q, k, v):
        import pagoda
        import pagoda.torch as ops

        pages = self.k[layer], self.v[layer]
        ops.append_kv(k.flatten(0, 1), v.flatten(0, 1), *pages, self.slots)
        cache = pagoda.KVCache(*pages, block_table=self.table, seqlens_kv=self.lengths)
        return ops.attention(q, cache, mask=pagoda.Mask.causal(), max_seqlen_kv=self.length)
