"""Torch with everything switched off that could make two runs differ, and two small models.

Importing torch takes seconds, which every run pays; what would import its compiler as well, as torch.optim does, is
avoided where the compiler is not the point.
"""

import torch
from torch import nn

from common import DEVICE, Results, time_launches


def prepare(seed=20):
    torch.manual_seed(seed)
    torch.set_deterministic_debug_mode("error")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def synchronise():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def host(tensor):
    return tensor.detach().float().cpu().numpy()


def add_all(results, tensors):
    results.add(*(host(tensor) for tensor in tensors))


def time_torch(results):
    """The cost of an operation on one element: Python, dispatcher, launch."""
    x = torch.zeros(1, device=DEVICE)
    time_launches(results, lambda: x.add_(1.0), synchronise)


class Descent:
    """Gradient descent with momentum, in the kernels over many tensors that torch.optim uses."""

    def __init__(self, model, rate):
        self.parameters = list(model.parameters())
        self.speeds = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.rate = rate

    def step(self, loss):
        for parameter in self.parameters:
            parameter.grad = None
        loss.backward()
        with torch.no_grad():
            torch._foreach_mul_(self.speeds, 0.9)
            torch._foreach_add_(self.speeds, [parameter.grad for parameter in self.parameters])
            torch._foreach_add_(self.parameters, self.speeds, alpha=-self.rate)


class Pictures(nn.Module):
    """A small convolutional network."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.GELU(),
            nn.AvgPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(32 * 8 * 8, 10)

    def forward(self, x):
        return self.head(self.body(x))


class Words(nn.Module):
    """A block of a transformer, written out so that it has no fused attention without a deterministic backward."""

    def __init__(self, width=64, heads=4, vocabulary=101):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        x = x + self.mlp(self.norms[1](x))
        return self.head(x)


def train_pictures(results, steps=8, device=DEVICE):
    model = Pictures().to(device)
    descent = Descent(model, 0.05)
    for _ in range(steps):
        pictures = torch.randn(16, 3, 32, 32, device=device)
        classes = torch.randint(0, 10, (16,), device=device)
        loss = nn.functional.cross_entropy(model(pictures), classes)
        descent.step(loss)
        results.add(loss.item())
    add_all(results, model.parameters())


def train_words(results, steps=8, device=DEVICE):
    model = Words().to(device)
    descent = Descent(model, 0.05)
    for _ in range(steps):
        tokens = torch.randint(0, 101, (8, 33), device=device)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        descent.step(loss)
        results.add(loss.item())
    add_all(results, model.parameters())


__all__ = [
    "DEVICE", "Descent", "Pictures", "Results", "Words", "add_all", "host", "nn", "prepare", "synchronise",
    "time_launches", "time_torch", "torch", "train_pictures", "train_words",
]  # fmt: skip
