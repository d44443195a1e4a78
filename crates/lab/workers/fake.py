"""A worker whose jobs are made up, to try the protocol where there is no GPU and no framework.

A workload is `{"model": "fake", "us": 200, "wrong": [3]}`: a request lasts that long, and those answers are wrong.
"ahead" makes it queue ahead, and "tokens" makes it answer token by token.
"""

import time

import worker
from jobs import Job, Unsuitable


class Fake(Job):
    def __init__(self, workload):
        self._seconds = workload.get("us", 200) * 1e-6
        self._wrong = workload.get("wrong", [])
        self.queues_ahead = workload.get("ahead", False)
        self.tokens = workload.get("tokens", 0)
        self.generates = self.tokens > 0

    def request(self, number):
        self.first_ns = time.monotonic_ns()
        time.sleep(self._seconds)

    def is_right(self, number):
        return number not in self._wrong

    def digest(self, number):
        return f"{number:08x}"

    def measure_gpu_us(self):
        return 100.0

    def hand_over(self, number):
        return time.monotonic() + self._seconds

    def wait(self, end):
        time.sleep(max(0.0, end - time.monotonic()))

    def digests(self, count):
        return [self.digest(number) for number in range(count)]


def build(spec):
    if spec["workload"]["model"] != "fake":
        raise Unsuitable(f"there is no model `{spec['workload']['model']}`; there is fake")
    return Fake(spec["workload"])


if __name__ == "__main__":
    worker.main(build, lambda: ({"fake": "1"}, {"name": "none", "sms": 0}))
