"""Stands in for every program where there is no GPU: the same lines in and out, made-up figures.

Latencies depend on nothing but the number of the request; iterations take two milliseconds of sleep, and their digests
are their numbers.
"""

import sys
import threading
import time

from common import obey, say

ROLE = sys.argv[1]


class Latency:
    def bursts(self, count, _low, _high, _seed, _seconds, launches=10):
        begin = time.monotonic()
        time.sleep(0.02)
        each = 20.0 * int(launches)
        latencies = [each + 50.0 + number % 50 for number in range(int(count))]
        say(**{"from": begin, "to": time.monotonic()}, latency_us=latencies, span_us=[each] * int(count))

    def phase(self, kind, rate, seconds, _seed):
        begin = time.monotonic()
        time.sleep(float(seconds))
        each = {"graph": 1000.0, "eager": 5000.0}[kind]
        service = [each + number % 100 for number in range(int(float(rate) * float(seconds)))]
        arrival = [2 * latency for latency in service]
        say(**{"from": begin, "to": time.monotonic()}, service_us=service, arrival_us=arrival, unserved=0, wrong=0)


class BestEffort:
    def __init__(self):
        self.thread = None
        self.stopping = threading.Event()
        self.stamps = []

    def reset(self):
        say(reset=True)

    def work(self):
        self.stamps = [time.monotonic()]
        while not self.stopping.wait(0.002):
            self.stamps.append(time.monotonic())

    def go(self, *_):
        self.stopping.clear()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        say(going=True)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        count = len(self.stamps) - 1
        say(stamps=self.stamps, digests=[str(number) for number in range(count)], blocks=count, expected=count)


def main():
    latency, best_effort = Latency(), BestEffort()
    say(ready=True, gpu_us=200.0)
    if ROLE == "latency":
        obey({"bursts": latency.bursts, "phase": latency.phase})
    else:
        obey({"reset": best_effort.reset, "go": best_effort.go, "stop": best_effort.stop})


if __name__ == "__main__":
    main()
