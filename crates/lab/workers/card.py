"""The GPU of one tenant as torch sees it: a stream of its own, waiting, and how long the GPU works.

Where there is no GPU a tiny model runs on the processor, to try; then nothing is asynchronous and all waits are over.
"""

import contextlib
import os
import time

import torch

from jobs import Unsuitable

TRIES, FEWER_TRIES, LONG_US = 5, 3, 20_000
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
CYCLES_PER_US = 2000
"""Of the GPU's clock, at most: a sleep may last longer than asked, not shorter."""


class Card:
    def __init__(self, priority, best_effort, tiny, deterministic):
        self.tiny = tiny
        self.real = torch.cuda.is_available()
        if not self.real and not tiny:
            raise Unsuitable("torch finds no GPU here")
        self.device = torch.device("cuda" if self.real else "cpu")
        settle_torch(deterministic)
        self._best_effort = best_effort
        self.stream = None
        if self.real:
            least, greatest = torch.cuda.Stream.priority_range()
            self.stream = torch.cuda.Stream(priority=greatest if priority == "high" else least)
            torch.cuda.set_stream(self.stream)

    @contextlib.contextmanager
    def building(self, dtype=torch.float32):
        """What is made in here is made on the GPU, of this type and always with the same random numbers."""
        torch.manual_seed(7)
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.device(self.device):
                yield
        finally:
            torch.set_default_dtype(before)

    @contextlib.contextmanager
    def any_order(self):
        """What is done in here may be done by algorithms that are faster where the order of things does not matter."""
        before = torch.get_deterministic_debug_mode()
        torch.set_deterministic_debug_mode("default")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(before)

    def pinned(self, tensor):
        tensor = tensor.cpu()
        return tensor.pin_memory() if self.real else tensor

    def tidy_up(self):
        """Gives memory back that only the building needed: there may be dozens of workers."""
        if self.real:
            torch.cuda.empty_cache()

    def event(self):
        if not self.real:
            return None
        event = torch.cuda.Event(blocking=True)
        event.record(self.stream)
        return event

    def wait(self):
        """Until all is done. A processor spins only for a latency tenant: there may be more tenants than processors."""
        if not self.real:
            return
        if self._best_effort:
            self.event().synchronize()
        else:
            self.stream.synchronize()

    def gpu_us(self, parts):
        """How long the GPU works for all the parts with no host in between."""
        return sum(part.times * self._least_us(part.hand_over) for part in parts)

    def _least_us(self, hand_over):
        first = self._once_us(hand_over)
        more = (FEWER_TRIES if first > LONG_US else TRIES) - 1
        return min([first, *(self._once_us(hand_over) for _ in range(more))])

    def _once_us(self, hand_over):
        """The work is queued behind a sleep of the GPU that is longer than the queueing. Of work that is longer than
        the queue, the end may still wait for the host; the least of several tries is taken."""
        began = time.monotonic()
        if not self.real:
            hand_over()
            return (time.monotonic() - began) * 1e6
        hand_over()
        host_us = (time.monotonic() - began) * 1e6
        self.stream.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(min(host_us * 1.5 + 200, 60_000) * CYCLES_PER_US))
        begin.record(self.stream)
        hand_over()
        end.record(self.stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1000


def settle_torch(deterministic):
    """The same bits every time, and few threads: many workers share the processors."""
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # Of the fused attentions this one has a backward that can be asked to be deterministic.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.utils.deterministic.fill_uninitialized_memory = False
    if deterministic and torch.get_deterministic_debug_mode() == 0:
        demand_determinism()


def demand_determinism():
    """As an error and not as a warning: then the attention's backward would stay as it is. Not by
    `use_deterministic_algorithms`, which imports a compiler and takes seconds.

    cuBLAS is deterministic only with workspaces of its own, and torch wants to see that they were asked for. It looks
    once whether they were, but takes the wish apart again in every matrix product, with a regular expression (a fifth
    of a millisecond for a layer with a bias); so the wish is taken back when it was seen. On Hopper torch does anyway
    what it says.
    """
    os.environ[CUBLAS] = ":4096:8"
    torch.set_deterministic_debug_mode("error")
    if not torch.cuda.is_available():
        return
    one = torch.ones(16, 16, device="cuda")
    one @ one
    del os.environ[CUBLAS]
    try:
        one @ one
    except RuntimeError:
        os.environ[CUBLAS] = ":4096:8"


def same_bits(one, other):
    """Unlike torch.equal, which finds no NaN equal to itself."""
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))
