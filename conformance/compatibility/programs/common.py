"""What every program of the matrix shares: its one line of results, and how launches are timed.

The harness sets COMPAT_MODE: `time` (results, and the cost of launches) or `count` (results only, because a profiler
counts the kernels). COMPAT_DEVICE=cpu lets the torch programs be tried on a machine without a GPU.
"""

import ctypes
import gc
import hashlib
import json
import os
import struct
import time

MODE = os.environ.get("COMPAT_MODE", "time")
DEVICE = os.environ.get("COMPAT_DEVICE", "cuda")


class Results:
    """Collects what a program computed, and prints it as one line of JSON."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self._line = {}

    def add(self, *arrays):
        """Takes arrays of the host (or numbers) into the digest, with their shape and type."""
        for array in arrays:
            if isinstance(array, (int, float)):
                self._hash.update(struct.pack("<d", array))
            else:
                self._hash.update(f"{array.dtype}{array.shape}".encode())
                self._hash.update(array.tobytes())
        if "first_result_ns" not in self._line:
            # The clock all processes share, so that the harness can subtract when it started this one.
            self._line["first_result_ns"] = time.monotonic_ns()

    def say(self, **more):
        self._line.update(more)

    def print(self):
        self._line["digest"] = self._hash.hexdigest()
        print(json.dumps(self._line), flush=True)


def time_launches(results, launch, synchronise, batches=200, per_batch=100):
    """Times `launch` as the framework's user sees it, the fastest batch of it; and the driver's own launch."""
    if MODE != "time" or DEVICE == "cpu":
        return
    for _ in range(per_batch):
        launch()
    gc.collect()
    gc.disable()
    best = float("inf")
    for _ in range(batches):
        synchronise()
        begin = time.perf_counter_ns()
        for _ in range(per_batch):
            launch()
        best = min(best, (time.perf_counter_ns() - begin) / per_batch)
    synchronise()
    gc.enable()
    results.say(framework_launch_ns=best, **driver_launch())


def driver_launch(launches=100_000):
    library = ctypes.CDLL(os.environ["COMPAT_LAUNCH"])
    cost, behind = ctypes.c_double(), ctypes.c_double()
    step = library.launch_cost(launches, ctypes.byref(cost), ctypes.byref(behind))
    if step != 0:
        raise RuntimeError(f"launching an empty kernel failed at step {step}")
    return {"launch_ns": cost.value} | ({"launch_behind_ns": behind.value} if behind.value else {})
