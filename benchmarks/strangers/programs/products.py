"""A best-effort tenant that multiplies matrices: 4,096 square, bf16, eight ahead.

    go        multiplies until told to stop
    stop      answers with the moment at which each eight ended, and whether the products were right
"""

import threading
import time

import torch
from common import DEVICE, TINY, obey, say

AHEAD = 8


class Products:
    def __init__(self):
        torch.manual_seed(3)
        side = 64 if TINY else 4096
        kind = torch.float32 if TINY else torch.bfloat16
        self.a, self.b = (torch.randn(side, side, device=DEVICE, dtype=kind) for _ in range(2))
        self.right = self.a @ self.b
        self.stopping, self.thread = threading.Event(), None
        self.stamps, self.wrong = [], 0

    def work(self):
        self.stamps, self.wrong = [time.monotonic()], 0
        while not self.stopping.is_set():
            for _ in range(AHEAD):
                product = self.a @ self.b
            self.wrong += not torch.equal(product, self.right)
            self.stamps.append(time.monotonic())

    def go(self, *_):
        self.stopping.clear()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        say(going=True)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        say(stamps=self.stamps, wrong=self.wrong)


def main():
    products = Products()
    say(ready=True)
    obey({"go": products.go, "stop": products.stop})


if __name__ == "__main__":
    main()
