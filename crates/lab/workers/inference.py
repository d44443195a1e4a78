"""Serving a model: copy the input from pinned memory, run the model, copy the answer back, synchronise.

The inputs rotate, and what the answers must be is computed at the start, in the same form as they are served.
"""

import hashlib

import torch

import models
from card import same_bits
from jobs import Job, Part, Unsuitable

INPUTS = 8
WARM_UPS = 3


def build(card, model, workload):
    net, inputs = models.for_inference(card, model, workload, INPUTS)
    return Inference(card, net, inputs, workload.get("form", "eager"))


class Inference(Job):
    def __init__(self, card, net, inputs, form):
        self._card, self._net = card, net
        self._inputs = [tuple(card.pinned(one) for one in each) for each in inputs]
        self._given = tuple(one.to(card.device).clone() for one in self._inputs[0])
        self._graph = self._kept = None
        if form == "compile" and card.real:
            self._net = torch.compile(net)
        self._warm_up(form)
        self._right = self._all_answers()
        self._digests = [digest(answer) for answer in self._right]
        card.tidy_up()

    @torch.inference_mode()
    def _warm_up(self, form):
        for _ in range(WARM_UPS):
            answer = self._net(*self._given)
        self._answer = self._card.pinned(torch.zeros(answer.shape, dtype=answer.dtype))
        if form == "graph" and self._card.real:
            self._card.wait()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=self._card.stream, capture_error_mode="thread_local"):
                self._kept = self._net(*self._given)
            torch.cuda.set_stream(self._card.stream)

    def _all_answers(self):
        answers = []
        for index in range(INPUTS):
            self.request(index)
            if self._answer.is_floating_point() and not self._answer.isfinite().all():
                raise Unsuitable("the model's answers are not numbers, so that no two could be compared")
            answers.append(self._answer.clone())
        return answers

    @torch.inference_mode()
    def _hand_over(self, number):
        for given, one in zip(self._given, self._inputs[number % INPUTS], strict=True):
            given.copy_(one, non_blocking=True)
        if self._graph:
            self._graph.replay()
            answer = self._kept
        else:
            answer = self._net(*self._given)
        self._answer.copy_(answer, non_blocking=True)

    def request(self, number):
        self._hand_over(number)
        self._card.wait()

    def is_right(self, number):
        return same_bits(self._answer, self._right[number % INPUTS])

    def digest(self, number):
        return self._digests[number % INPUTS] if self.is_right(number) else digest(self._answer)

    def measure_gpu_us(self):
        return self._card.gpu_us(self.parts())

    def parts(self):
        return [Part("request", 1, lambda: self._hand_over(0))]


def digest(answer):
    return hashlib.blake2b(answer.contiguous().view(torch.uint8).numpy().tobytes(), digest_size=8).hexdigest()
