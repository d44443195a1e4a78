"""Every model with its inputs: to be served, or to be trained.

Weights are random and data is made up; nothing is downloaded. Served models compute in fp16 (language models in bf16),
trained ones in bf16: convolutional nets by autocast, the others with all their weights in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

import pictures
import words
from jobs import Unsuitable


@dataclass
class Lesson:
    net: torch.nn.Module
    optimiser: torch.optim.Optimizer
    loss: Callable
    """Of a batch, whose tensors are its arguments."""
    batches: list


def for_inference(card, model, workload, count):
    """The net, and so many inputs, each a tuple of tensors."""
    batch, tokens = workload.get("batch", 1), workload.get("tokens")
    if model in words.INFERENCE:
        return words.INFERENCE[model](card, batch, tokens, count)
    if model in pictures.INFERENCE:
        return pictures.INFERENCE[model](card, model, batch, count)
    raise Unsuitable(f"{model} is only trained")


def for_training(card, model, workload, count):
    batch, tokens = workload.get("batch", 1), workload.get("tokens")
    if model in words.TRAINING:
        net, batches, loss = words.TRAINING[model](card, batch, tokens, count)
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=card.real)
        return Lesson(net, optimiser, loss, batches)
    if model not in pictures.TRAINING:
        raise Unsuitable(f"{model} is only served")
    net, batches = pictures.TRAINING[model](card, model, batch, count)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, foreach=True)

    def loss(images, classes):
        with torch.autocast(card.device.type, torch.bfloat16):
            return functional.cross_entropy(net(images), classes)

    return Lesson(net, optimiser, loss, batches)
