"""Answering token by token: one pass over the prompt, then one step for each further token, always the likeliest.

Tokens are streamed to the user, so the host waits for each one. `tokens` counts those of one sequence, however many
sequences a batch has. As a graph, or compiled, only the step is: the prompt comes once.
"""

import time

import torch

from card import same_bits
from inference import INPUTS, digest
from jobs import Job, Part
from llama import Llama, Shape


def build(card, workload):
    return Generation(
        card,
        batch=workload.get("batch", 1),
        prompt=workload.get("prompt", 512),
        output=workload.get("output", 32),
        form=workload.get("form", "eager"),
    )


class Generation(Job):
    generates = True

    def __init__(self, card, batch, prompt, output, form):
        self._card, self._prompt, self.tokens = card, prompt, output
        shape = Shape(card.tiny)
        with card.building(torch.bfloat16):
            self._net = Llama(shape, batch, prompt + output).eval()
            texts = [torch.randint(0, shape.vocabulary, (batch, prompt)) for _ in range(INPUTS)]
            self._given = torch.zeros_like(texts[0])
            self._word = torch.zeros(batch, 1, dtype=torch.long)
            self._at = torch.zeros(1, dtype=torch.long)
        self._texts = [card.pinned(text) for text in texts]
        # One row to a token: rows are copied whole, as they come.
        self._answer = card.pinned(torch.zeros(output, batch, dtype=torch.long))
        self._places = card.pinned(torch.arange(prompt, prompt + output)[:, None])
        self._graph = None
        self._step = self._plain if form == "eager" or not card.real else self._fixed
        self._fixed_step = torch.compile(self._net.fixed) if form == "compile" and card.real else self._net.fixed
        self._warm_up(form)
        self._right = []
        for index in range(INPUTS):
            self.request(index)
            self._right.append(self._answer.clone())
        card.tidy_up()

    @torch.inference_mode()
    def _warm_up(self, form):
        self._begin(0)
        for _ in range(3):
            self._step(1)
        if form != "graph" or not self._card.real:
            return
        self._card.wait()
        graph = torch.cuda.CUDAGraph()
        capture = torch.cuda.graph(graph, stream=self._card.stream, capture_error_mode="thread_local")
        # Every place of the cache is written once, so that no order matters.
        with self._card.any_order(), capture:
            self._word.copy_(self._net.fixed(self._word, self._at))
        torch.cuda.set_stream(self._card.stream)
        self._graph = graph

    def _begin(self, number):
        self._given.copy_(self._texts[number % INPUTS], non_blocking=True)
        self._word.copy_(self._net(self._given, 0))
        self._answer[0].copy_(self._word[:, 0], non_blocking=True)

    def _plain(self, token):
        self._word.copy_(self._net(self._word, self._prompt + token - 1))
        self._answer[token].copy_(self._word[:, 0], non_blocking=True)

    def _fixed(self, token):
        self._at.copy_(self._places[token - 1], non_blocking=True)
        if self._graph:
            self._graph.replay()
        else:
            self._word.copy_(self._fixed_step(self._word, self._at))
        self._answer[token].copy_(self._word[:, 0], non_blocking=True)

    @torch.inference_mode()
    def request(self, number):
        self._begin(number)
        self._card.wait()
        self.first_ns = time.monotonic_ns()
        for token in range(1, self.tokens):
            self._step(token)
            self._card.wait()

    def is_right(self, number):
        return same_bits(self._answer, self._right[number % INPUTS])

    def digest(self, number):
        return digest(self._answer)

    def measure_gpu_us(self):
        return self._card.gpu_us(self.parts())

    def parts(self):
        parts = [Part("prefill", 1, self._in_inference(lambda: self._begin(0)))]
        if self.tokens > 1:
            middle = max(1, self.tokens // 2)
            parts.append(Part("decode", self.tokens - 1, self._in_inference(lambda: self._step(middle))))
        return parts

    @staticmethod
    def _in_inference(piece):
        return torch.inference_mode()(piece)
