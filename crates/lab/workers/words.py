"""Nets of attention layers: BERT, DistilBERT, GPT-2 large, Whisper and Pegasus, by their published shapes.

| model | shape | served | trained |
|---|---|---|---|
| bert | base: 12 layers, 768 wide | the pooled answer to a text | to fill in words, all of them |
| distilbert | 6 layers, 768 wide | its first place | likewise |
| gpt2-large | 36 layers, 1280 wide | one pass over the text: the scores of the next word | to tell the next word |
| whisper | large-v3-turbo: 32 + 4 layers, 1280 wide | the encoder, scores of the first word | the next of 64 words |
| pegasus | X-base: 12 + 12 layers, 768 wide, whole attention | - | the next word of a summary of 128 |

`tokens` is the length of the text; for Whisper that of the sound, of which 50 are a second.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory=None, causal=False):
        memory = x if memory is None else memory
        q, k, v = (
            made.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for made in (self.query(x), self.key(memory), self.value(memory))
        )
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention to itself, to a memory where there is one, and a feed-forward net; normed before each, or after."""

    def __init__(self, width, heads, causal=False, memory=False, norm_first=True):
        super().__init__()
        self.causal, self.norm_first = causal, norm_first
        self.itself = Attention(width, heads)
        self.memory = Attention(width, heads) if memory else None
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if memory else 2))

    def forward(self, x, memory=None):
        steps = [lambda y: self.itself(y, causal=self.causal), self.feed]
        if self.memory is not None:
            steps.insert(1, lambda y: self.memory(y, memory))
        for step, norm in zip(steps, self.norms):
            x = x + step(norm(x)) if self.norm_first else norm(x + step(x))
        return x


class Words(nn.Module):
    """From words to vectors, and from vectors to scores of words."""

    def __init__(self, vocabulary, width, longest):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(longest, width) * 0.02)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, words):
        return self.words(words) + self.places[: words.shape[1]]

    def scores(self, x):
        return functional.linear(x, self.words.weight)


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, longest, pooled):
        super().__init__()
        self.words = Words(vocabulary, width, longest)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads, norm_first=False) for _ in range(layers)))
        self.pool = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if pooled else nn.Identity()

    def encode(self, words):
        return self.layers(self.norm(self.words(words)))

    def forward(self, words):
        return self.pool(self.encode(words)[:, 0])

    def guess(self, words):
        return self.words.scores(self.encode(words))


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, longest):
        super().__init__()
        self.words = Words(vocabulary, width, longest)
        self.layers = nn.Sequential(*(Layer(width, heads, causal=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def guess(self, words):
        return self.words.scores(self.norm(self.layers(self.words(words))))

    def forward(self, words):
        return self.words.scores(self.norm(self.layers(self.words(words))[:, -1]))


class Translator(nn.Module):
    """An encoder, a decoder that looks at what it made, and scores."""

    def __init__(self, enter, depths, width, heads, vocabulary, longest):
        super().__init__()
        self.enter = enter
        self.encoder = nn.Sequential(*(Layer(width, heads) for _ in range(depths[0])), nn.LayerNorm(width))
        self.words = Words(vocabulary, width, longest)
        self.decoder = nn.ModuleList(Layer(width, heads, causal=True, memory=True) for _ in range(depths[1]))
        self.norm = nn.LayerNorm(width)

    def guess(self, given, words):
        memory, x = self.encoder(self.enter(given)), self.words(words)
        for layer in self.decoder:
            x = layer(x, memory)
        return self.words.scores(self.norm(x))

    def forward(self, given, words):
        return self.guess(given, words)[:, -1]


class Sound(nn.Module):
    """From a spectrogram, two frames to a place."""

    def __init__(self, width, places):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(MELS, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)])
        waves = torch.exp(torch.arange(width // 2, dtype=torch.float32) * (-math.log(10_000) / (width // 2 - 1)))
        angles = torch.arange(places, dtype=torch.float32)[:, None] * waves
        self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], 1).to(torch.get_default_dtype()))

    def forward(self, sound):
        for conv in self.convs:
            sound = functional.gelu(conv(sound))
        return sound.transpose(1, 2) + self.places


MELS = 128
SPOKEN, SUMMARY, PROMPT = 64, 128, 4
TINY = (2, 64, 4, 101)
"""Layers, width, heads and vocabulary of a model that runs anywhere."""


def bert(card, longest, small=False):
    shape = TINY if card.tiny else (6 if small else 12, 768, 12, 30522)
    return Bert(*shape, longest, pooled=not small), shape[3]


def gpt2(card, longest):
    shape = TINY if card.tiny else (36, 1280, 20, 50257)
    return Gpt2(*shape, longest), shape[3]


def whisper(card, places):
    layers, width, heads, vocabulary = TINY if card.tiny else (32, 1280, 20, 51866)
    return Translator(Sound(width, places), (layers, 2 if card.tiny else 4), width, heads, vocabulary, 448), vocabulary


def pegasus(card, longest):
    layers, width, heads, vocabulary = TINY if card.tiny else (12, 768, 12, 96103)
    enter = Words(vocabulary, width, longest)
    return Translator(enter, (layers, layers), width, heads, vocabulary, SUMMARY), vocabulary


def served(make, dtype):
    """Of a model that is given a text."""

    def build(card, batch, tokens, count):
        with card.building(dtype):
            net, vocabulary = make(card, tokens or 128)
            return net.eval(), [(torch.randint(0, vocabulary, (batch, tokens or 128)),) for _ in range(count)]

    return build


def served_whisper(card, batch, tokens, count):
    places = tokens or 1500
    with card.building(torch.half):
        net, vocabulary = whisper(card, places)
        words = torch.randint(0, vocabulary, (batch, PROMPT))
        return net.eval(), [(torch.randn(batch, MELS, 2 * places), words) for _ in range(count)]


def trained(make, text, ahead, plain):
    """Of a model that guesses words: the next ones, or the given ones. `text` makes what else it is given."""

    def build(card, batch, tokens, count):
        tokens = tokens or plain
        with card.building(torch.bfloat16):
            net, vocabulary = make(card, tokens)
            length = SUMMARY if text == "text" else SPOKEN if text == "sound" else tokens
            batches = [
                (*given(text, batch, tokens, vocabulary), torch.randint(0, vocabulary, (batch, length + ahead)))
                for _ in range(count)
            ]

        def loss(*given):
            *given, words = given
            scores = net.guess(*given, words[:, : words.shape[1] - ahead])
            return functional.cross_entropy(scores.flatten(0, 1).float(), words[:, ahead:].flatten())

        return net, batches, loss

    return build


def given(text, batch, tokens, vocabulary):
    if text == "text":
        return (torch.randint(0, vocabulary, (batch, tokens)),)
    return (torch.randn(batch, MELS, 2 * tokens),) if text == "sound" else ()


def distilbert(card, longest):
    return bert(card, longest, small=True)


INFERENCE = {
    "bert": served(bert, torch.half),
    "distilbert": served(distilbert, torch.half),
    "gpt2-large": served(gpt2, torch.bfloat16),
    "whisper": served_whisper,
}
TRAINING = {
    "bert": trained(bert, None, 0, 128),
    "distilbert": trained(distilbert, None, 0, 128),
    "gpt2-large": trained(gpt2, None, 1, 1024),
    "whisper": trained(whisper, "sound", 1, 500),
    "pegasus": trained(pegasus, "text", 1, 512),
}
