"""The latency tenant: BERT-base (fp16, one sequence of 128 tokens), random weights, Poisson arrivals.

    phase graph|eager RATE SECONDS SEED     serves requests; answers with service and arrival latencies

*graph* launches a captured CUDA graph, *eager* is the model as torch runs it. A request copies tokens to the GPU, runs
the model and copies the answer back; every answer is compared with the one that was computed before anybody else was
there.
"""

import gc
import random
import sys
import time

import torch
from common import DEVICE, TINY, obey, say
from transformers import BertConfig, BertModel

TOKENS = 128
SEQUENCES = 16


def median(values):
    return sorted(values)[len(values) // 2]


class Server:
    def __init__(self, high):
        torch.manual_seed(7)
        small = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
        config = BertConfig(attn_implementation="sdpa", **(small if TINY else {}))
        with torch.device(DEVICE):
            self.model = BertModel(config).eval()
        sequences = torch.randint(0, config.vocab_size, (SEQUENCES, 1, TOKENS))
        self.tokens = torch.zeros(1, TOKENS, dtype=torch.long, device=DEVICE)
        self.graph = None
        if TINY:
            self.stream = None
            self.sequences = list(sequences)
            self.answer = torch.empty(1, config.hidden_size)
        else:
            self.model.half()
            least, greatest = torch.cuda.Stream.priority_range()
            self.stream = torch.cuda.Stream(priority=greatest if high else least)
            torch.cuda.set_stream(self.stream)
            self.sequences = [sequence.pin_memory() for sequence in sequences]
            self.answer = torch.empty(1, config.hidden_size, dtype=torch.half).pin_memory()
        with torch.inference_mode():
            self.prepare()

    def prepare(self):
        for _ in range(5):
            self.eager(0)
        if self.stream is not None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.output = self.model(input_ids=self.tokens).pooler_output
            torch.cuda.set_stream(self.stream)
        self.kinds = {"graph": self.replay if self.graph else self.eager, "eager": self.eager}
        self.right = {}
        for kind, serve in self.kinds.items():
            for index in range(SEQUENCES):
                serve(index)
                self.right[kind, index] = self.answer.clone()

    def synchronise(self):
        if self.stream is not None:
            self.stream.synchronize()

    def eager(self, index):
        self.tokens.copy_(self.sequences[index], non_blocking=True)
        self.answer.copy_(self.model(input_ids=self.tokens).pooler_output, non_blocking=True)
        self.synchronise()

    def replay(self, index):
        self.tokens.copy_(self.sequences[index], non_blocking=True)
        self.graph.replay()
        self.answer.copy_(self.output, non_blocking=True)
        self.synchronise()

    def gpu_us(self):
        """How long the GPU works for a request, with no host between its kernels."""
        if self.graph is None:
            return 100.0
        times = []
        for _ in range(50):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1000)
        return median(times)

    def phase(self, kind, rate, seconds, seed):
        with torch.inference_mode():
            gc.collect()
            gc.disable()
            self.serve(self.kinds[kind], kind, float(rate), float(seconds), int(seed))
            gc.enable()

    def serve(self, request, kind, rate, seconds, seed):
        chance = random.Random(seed)
        begin = time.monotonic() + 0.005
        service, arrival = [], []
        wrong, number, due = 0, 0, begin + chance.expovariate(rate)
        end = begin + seconds
        while due < end:
            wait_until(due)
            started = time.monotonic()
            if started >= end:
                break
            index = number % SEQUENCES
            request(index)
            ended = time.monotonic()
            service.append(round((ended - started) * 1e6, 1))
            arrival.append(round((ended - due) * 1e6, 1))
            wrong += not torch.equal(self.answer, self.right[kind, index])
            number += 1
            due += chance.expovariate(rate)
        stopped = time.monotonic()
        # Those that were due and that nobody came to: an overloaded server never catches up.
        unserved = 0
        while due < end:
            unserved += 1
            due += chance.expovariate(rate)
        say(**{"from": begin, "to": stopped}, service_us=service, arrival_us=arrival, unserved=unserved, wrong=wrong)


def wait_until(due):
    # Without sleep: a virtual processor that was away comes back slow, and the eager phase measures processors.
    while time.monotonic() < due:
        pass


def main():
    began = time.monotonic()
    server = Server(high="--high" in sys.argv)
    say(ready=True, gpu_us=server.gpu_us(), load_s=round(time.monotonic() - began, 1))
    obey({"phase": server.phase})


if __name__ == "__main__":
    main()
