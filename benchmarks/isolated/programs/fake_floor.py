"""Stands in for floor.cu where there is no GPU: the same lines in and out, made-up figures. A burst of this card takes
250 microseconds, a switch 150 there and 160 back, and the interleave level needs a privilege."""

import time

from common import obey, say

BURST_NS, THERE_NS, BACK_NS, APART_NS = 200_000, 150_000, 160_000, 5_000_000


class Fake:
    def __init__(self):
        self.begun = time.monotonic()

    def lever(self, name, value):
        say(status=0x1B if name == "interleave" else 0, value=int(value), us=300.0)

    def calls(self, name, count):
        times = [300.0] * int(count)
        say(status=0, us=times, enable_us=times if name in ("disable", "bar") else [])

    def load(self, *_):
        self.begun = time.monotonic()
        self.done()

    def count(self):
        now = time.monotonic()
        ended = int((now - self.begun) * 1000)
        say(ended=ended, last=self.begun * 1e6 + ended * 1000, at=now * 1e6)

    def stop(self):
        say(blocks=1000, expected=1000)

    def bursts(self, count, launches, *_):
        firsts = [(1 + number) * APART_NS for number in range(int(count) if int(launches) else 0)]
        ran = [moment for first in firsts for moment in (first, first + BURST_NS)]
        latencies = [250.0 + number % 50 for number in range(int(count))]
        say(**{"from": 0.0, "to": int(count) * APART_NS / 1000}, latency_us=latencies, ran_ns=ran)

    def gaps(self):
        firsts = [(1 + number) * APART_NS for number in range(1000)]
        say(gaps=[moment for first in firsts for moment in (first - THERE_NS, first + BURST_NS + BACK_NS)])

    def token(self, _who, _quantum, seconds):
        time.sleep(float(seconds))
        say(status=0)

    def done(self, *_):
        say()


def main():
    fake = Fake()
    say(sms=132, groups=1, channels=8, slice=2048)
    silent = {word: fake.done for word in ("gate", "ungate", "turn", "share")}
    words = ("lever", "calls", "load", "count", "stop", "bursts", "gaps", "token")
    obey({word: getattr(fake, word) for word in words} | silent)


if __name__ == "__main__":
    main()
