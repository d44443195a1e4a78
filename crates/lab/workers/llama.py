"""A decoder of Llama 3.2 1B's published shape: 16 layers, 2048 wide, 32 heads that share 8 keys, 1.24 billion weights.

A step for one token exists in two ways. The plain one knows its place as a number and looks at just as much of the
cache. The fixed one reads its place from the GPU and looks at all of the cache behind a mask, so that one graph does
for all tokens.
"""

import torch
from torch import nn
from torch.nn import functional


class Shape:
    def __init__(self, tiny):
        self.layers, self.width, self.heads, self.keys = (2, 64, 4, 2) if tiny else (16, 2048, 32, 8)
        self.inner, self.vocabulary = (128, 101) if tiny else (8192, 128256)
        self.head = self.width // self.heads


def rotated(x, turn):
    cos, sin = turn
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        narrow = shape.keys * shape.head
        self.norms = nn.ParameterList(torch.ones(shape.width) for _ in range(2))
        self.query, self.key, self.value, self.out = (
            nn.Linear(*sizes, bias=False)
            for sizes in (
                (shape.width, shape.width), (shape.width, narrow), (shape.width, narrow), (shape.width, shape.width)
            )
        )  # fmt: skip
        self.gate, self.up = (nn.Linear(shape.width, shape.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x, turn, cache, at, mask):
        y = functional.rms_norm(x, x.shape[-1:], self.norms[0])
        made = self.query(y), self.key(y), self.value(y)
        q, k, v = (each.unflatten(2, (-1, self.shape.head)).transpose(1, 2) for each in made)
        q, k = rotated(q, turn), rotated(k, turn)
        x = x + self.out(self.attend(q, k, v, cache, at, mask).transpose(1, 2).flatten(2))
        y = functional.rms_norm(x, x.shape[-1:], self.norms[1])
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def attend(self, q, k, v, cache, at, mask):
        if mask is not None:
            return self.attend_fixed(q, k, v, cache, at, mask)
        end = at + q.shape[2]
        cache[0][:, :, at:end], cache[1][:, :, at:end] = k, v
        if end == q.shape[2]:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        # The heads that share a key stand where the tokens of a longer text would.
        mixed = functional.scaled_dot_product_attention(self.grouped(q), cache[0][:, :, :end], cache[1][:, :, :end])
        return mixed.reshape(q.shape)

    def attend_fixed(self, q, k, v, cache, at, mask):
        cache[0].index_copy_(2, at, k)
        cache[1].index_copy_(2, at, v)
        scores = self.grouped(q) @ cache[0].transpose(2, 3) * self.shape.head**-0.5 + mask
        return (scores.softmax(-1, dtype=torch.float32).to(v.dtype) @ cache[1]).reshape(q.shape)

    def grouped(self, q):
        return q.reshape(q.shape[0], self.shape.keys, -1, self.shape.head)


class Llama(nn.Module):
    def __init__(self, shape, batch, longest):
        super().__init__()
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        nn.init.normal_(self.words.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.width))
        dtype = torch.get_default_dtype()
        waves = 500_000.0 ** -(torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head)
        angles = torch.arange(longest, dtype=torch.float32)[:, None] * torch.cat([waves, waves])
        self.register_buffer("cos", angles.cos().to(dtype))
        self.register_buffer("sin", angles.sin().to(dtype))
        places = torch.arange(longest)
        self.register_buffer("masks", torch.where(places[None] <= places[:, None], 0.0, float("-inf")).to(dtype))
        sizes = (shape.layers, 2, batch, shape.keys, longest, shape.head)
        self.register_buffer("cache", torch.zeros(sizes, dtype=dtype))

    def forward(self, words, at):
        """The best next word after these, which begin at a place known as a number."""
        end = at + words.shape[1]
        return self.best(words, (self.cos[at:end], self.sin[at:end]), at, None)

    def fixed(self, words, at):
        """The same for one word at a place known only to the GPU."""
        turn = self.cos.index_select(0, at), self.sin.index_select(0, at)
        return self.best(words, turn, at, self.masks.index_select(0, at))

    def best(self, words, turn, at, mask):
        x = self.words(words)
        for layer, cache in zip(self.layers, self.cache):
            x = layer(x, turn, cache, at, mask)
        x = functional.rms_norm(x[:, -1:], x.shape[-1:], self.norm)
        return functional.linear(x, self.words.weight).argmax(-1)
