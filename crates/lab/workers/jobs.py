"""What a tenant does over and over, as the loops see it; nothing here knows of a GPU."""

from collections.abc import Callable
from dataclasses import dataclass


class Unsuitable(Exception):
    """The specification asks for something that cannot be had; the message says what can."""


@dataclass
class Part:
    """A piece of a request that ends with a synchronisation; most requests have one."""

    name: str
    times: int
    hand_over: Callable[[], None]
    """Gives the piece to the GPU and does not wait for it."""


class Job:
    """A request, or an iteration, by its number: what comes of it depends on the number alone.

    Jobs that queue ahead also say `hand_over(number)`, which does not wait and returns what `wait` waits for, and
    `digests(count)` of the iterations since `prepare`.
    """

    queues_ahead = False
    generates = False
    """Whether a request leaves `first_ns`, when its first token was there, and `tokens`, how many there were."""

    def prepare(self):
        """Back to the first weights and the first input."""

    def rest(self):
        """Gives back what is not needed until the next run: dozens of workers wait while two are measured."""

    def request(self, number):
        """Serves a request to its end."""
        raise NotImplementedError

    def is_right(self, number):
        """Whether the last answer is, bit for bit, the one that was given before anybody else was there."""
        raise NotImplementedError

    def digest(self, number):
        """Of the last answer's bits."""
        raise NotImplementedError

    def measure_gpu_us(self):
        """GPU time of a request with no host in between. Nobody else may use the GPU, and what it leaves is not the
        first state."""
        raise NotImplementedError

    def parts(self):
        """What a request consists of, each piece in the middle of its life."""
        raise NotImplementedError
