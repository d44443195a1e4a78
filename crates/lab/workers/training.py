"""Training a model on random data, with the same bits every time.

The digest of an iteration is its loss, bit for bit, and of every tenth also the sum of all weights taken as integers,
which does not depend on the order of the sum. To begin again, the first weights are copied back in place and what the
optimiser has gathered is dropped: milliseconds, where a new model would take seconds.
"""

import hashlib

import torch

import models
from jobs import Job, Part, Unsuitable

BATCHES = 4
MOST_ITERATIONS = 1 << 17
WEIGHTS_EVERY = 10


def build(card, model, workload):
    if workload.get("form") == "graph":
        raise Unsuitable("a training is eager or compile; graph is for inference")
    lesson = models.for_training(card, model, workload, BATCHES)
    return Training(card, lesson, workload.get("form", "eager"))


class Training(Job):
    queues_ahead = True

    def __init__(self, card, lesson, form):
        self._card, self._lesson = card, lesson
        self._loss = torch.compile(lesson.loss) if form == "compile" and card.real else lesson.loss
        self._weights = [each.data for each in lesson.net.parameters()]
        self._state = self._weights + list(lesson.net.buffers())
        self._first = [each.clone() for each in self._state]
        self._losses = torch.zeros(MOST_ITERATIONS, device=card.device)
        self._sums = torch.zeros(MOST_ITERATIONS // WEIGHTS_EVERY + 1, dtype=torch.long, device=card.device)
        for number in (0, 1, WEIGHTS_EVERY - 1):
            self._iterate(number)
        self.prepare()
        self.rest()

    def prepare(self):
        self._lesson.optimiser.state.clear()
        with torch.no_grad():
            torch._foreach_copy_(self._state, self._first)
        self._losses.zero_()
        self._sums.zero_()
        self._card.wait()

    def rest(self):
        """Keeps the weights, now and as they were first; the rest, which is several times as much, is made anew by the
        first iterations of the next run."""
        self._lesson.optimiser.zero_grad(set_to_none=True)
        self._lesson.optimiser.state.clear()
        self._card.wait()
        self._card.tidy_up()

    def _iterate(self, number):
        loss = self._loss(*self._lesson.batches[number % BATCHES])
        self._lesson.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self._lesson.optimiser.step()
        self._losses[number] = loss.detach().float()
        if number % WEIGHTS_EVERY == WEIGHTS_EVERY - 1:
            each = [bits(weight).sum(dtype=torch.long) for weight in self._weights]
            self._sums[number // WEIGHTS_EVERY] = torch.stack(each).sum()

    def hand_over(self, number):
        if number >= MOST_ITERATIONS:
            raise RuntimeError(f"there is room for {MOST_ITERATIONS} iterations and no more")
        self._iterate(number)
        return self._card.event()

    def wait(self, event):
        if event is not None:
            event.synchronize()

    def digests(self, count):
        losses = self._losses[:count].view(torch.int32).tolist()
        sums = self._sums[: count // WEIGHTS_EVERY].tolist()
        digests = [f"{value & 0xFFFFFFFF:08x}" for value in losses]
        for index, value in enumerate(sums):
            digests[(index + 1) * WEIGHTS_EVERY - 1] += f"-{value & 0xFFFFFFFFFFFFFFFF:016x}"
        return digests

    def fingerprint(self):
        """Of every bit of every weight, in its place: seconds, for a large net."""
        hashed = hashlib.blake2b(digest_size=16)
        for weight in self._weights:
            hashed.update(bits(weight).contiguous().cpu().numpy().data)
        return hashed.hexdigest()

    def measure_gpu_us(self):
        return self._card.gpu_us(self.parts())

    def parts(self):
        return [Part("iteration", 1, lambda: self._iterate(0))]


def bits(weight):
    return weight.view(torch.int16 if weight.element_size() == 2 else torch.int32)
