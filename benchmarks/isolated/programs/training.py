"""The best-effort tenants: training of a GPT-2-like model or of ResNet-50, bf16, random data, the same bits every time.

    reset     begins again with the first weights
    go        trains until told to stop
    stop      answers with the moment at which each iteration ended, and with a digest of each

The digest of an iteration is its loss, bit for bit, and of every tenth also the sum of all weights taken as integers,
which does not depend on the order of the sum.
"""

import os
import sys
import threading
import time

# cuBLAS is deterministic only with workspaces of its own, and asks for this before it starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from common import DEVICE, TINY, obey, say
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

BATCHES = 4
MOST_ITERATIONS = 20_000
WEIGHTS_EVERY = 10


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Words(nn.Module):
    """GPT-2's shape: 1,600 wide, 12 layers, 25 heads."""

    def __init__(self, width, layers, heads, vocabulary, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.01)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Gpt2:
    def __init__(self):
        shape = (64, 2, 4, 101, 16) if TINY else (1600, 12, 25, 50257, 1024)
        with torch.device(DEVICE):
            self.model = Words(*shape).to(torch.bfloat16)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=not TINY)
        size = (2, shape[-1] + 1) if TINY else (8, shape[-1] + 1)
        self.batches = [torch.randint(0, shape[3], size, device=DEVICE) for _ in range(BATCHES)]

    def loss(self, batch):
        # Of the fused attentions this one has a backward that can be asked to be deterministic.
        with sdpa_kernel([SDPBackend.MATH if TINY else SDPBackend.FLASH_ATTENTION]):
            logits = self.model(batch[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


class ResNet50:
    def __init__(self):
        from torchvision.models import resnet18, resnet50

        with torch.device(DEVICE):
            self.model = (resnet18() if TINY else resnet50()).to(memory_format=torch.channels_last)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, foreach=True)
        size = (2, 3, 32, 32) if TINY else (128, 3, 224, 224)
        self.batches = [
            (torch.randn(size, device=DEVICE).contiguous(memory_format=torch.channels_last),
             torch.randint(0, 1000, size[:1], device=DEVICE))
            for _ in range(BATCHES)
        ]  # fmt: skip

    def loss(self, batch):
        pictures, classes = batch
        with torch.autocast(DEVICE, torch.bfloat16):
            return functional.cross_entropy(self.model(pictures), classes)


class Trainer:
    def __init__(self, kind):
        self.kind = {"gpt2": Gpt2, "resnet50": ResNet50}[kind]
        self.thread = None
        self.stopping = threading.Event()
        self.reset(answer=False)
        self.stamps = []
        for number in (0, 1, WEIGHTS_EVERY - 1):
            self.iterate(number)
        synchronise()
        self.reset(answer=False)

    def reset(self, answer=True):
        self.job = None
        torch.manual_seed(11)
        self.job = self.kind()
        self.losses = torch.zeros(MOST_ITERATIONS, device=DEVICE)
        self.weights = torch.zeros(MOST_ITERATIONS // WEIGHTS_EVERY, dtype=torch.long, device=DEVICE)
        synchronise()
        if answer:
            say(reset=True)

    def iterate(self, number):
        job = self.job
        loss = job.loss(job.batches[number % BATCHES])
        job.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        job.optimiser.step()
        self.losses[number] = loss.detach().float()
        if number % WEIGHTS_EVERY == WEIGHTS_EVERY - 1:
            self.weights[number // WEIGHTS_EVERY] = sum(bits(p).sum(dtype=torch.long) for p in job.model.parameters())

    def train(self):
        number, before = 0, None
        self.stamps = [time.monotonic()]
        while not self.stopping.is_set() and number < MOST_ITERATIONS:
            self.iterate(number)
            number += 1
            # One iteration is queued while another runs, as a training does that looks at its loss now and then.
            event = ended()
            self.stamp(before)
            before = event
        self.stamp(before)

    def stamp(self, event):
        if event is not None:
            event.synchronize()
            self.stamps.append(time.monotonic())

    def go(self):
        self.stopping.clear()
        self.thread = threading.Thread(target=self.train)
        self.thread.start()
        say(going=True)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        synchronise()
        count = len(self.stamps) - 1
        digests = [f"{value & 0xFFFFFFFF:08x}" for value in self.losses[:count].view(torch.int32).tolist()]
        for index, value in enumerate(self.weights[: count // WEIGHTS_EVERY].tolist()):
            digests[(index + 1) * WEIGHTS_EVERY - 1] += f"-{value & 0xFFFFFFFFFFFFFFFF:016x}"
        say(stamps=[round(stamp, 6) for stamp in self.stamps], digests=digests)


def bits(parameter):
    return parameter.detach().view(torch.int16 if parameter.dtype == torch.bfloat16 else torch.int32)


class Nothing:
    def synchronize(self):
        pass


def ended():
    if TINY:
        return Nothing()
    event = torch.cuda.Event(blocking=True)
    event.record()
    return event


def synchronise():
    if not TINY:
        torch.cuda.synchronize()


def main():
    began = time.monotonic()
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # Not as a warning only: then the attention's backward would stay as it is.
    torch.use_deterministic_algorithms(True)
    deterministic = True
    try:
        trainer = Trainer(sys.argv[1])
    except RuntimeError as refusal:
        # Another torch may have no such algorithm for something; throughput can still be measured.
        print(refusal, file=sys.stderr)
        torch.use_deterministic_algorithms(True, warn_only=True)
        deterministic, trainer = False, Trainer(sys.argv[1])
    say(ready=True, deterministic=deterministic, load_s=round(time.monotonic() - began, 1))
    obey({"reset": trainer.reset, "go": trainer.go, "stop": trainer.stop})


if __name__ == "__main__":
    main()
