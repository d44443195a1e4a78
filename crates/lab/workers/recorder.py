"""Which kernels a request consists of, as the driver's own tracing tells: when the host handed each one over, how large
it is, how many of its blocks an SM holds and how long a block takes.

A part is repeated a few times and the one in the middle is taken. Tracing makes every launch slower; times of handing
over are shortened by as much as the part takes longer with it than without. A kernel's blocks are taken to be equally
long and to run in whole waves.
"""

import datetime
import itertools
import json
import os
import statistics
import tempfile
import time

import residency
from jobs import Unsuitable

REPEATS = 5
BOUNDARY = "cudaDeviceSynchronize"
LAUNCHING = ("cuda_runtime", "cuda_driver")


def record(job, workload):
    import torch

    if not torch.cuda.is_available():
        raise Unsuitable("only on a GPU can be recorded what a GPU does")
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    parts = [recorded(torch, part, sms) for part in job.parts()]
    told = {
        "at": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "gpu": torch.cuda.get_device_name(0),
        "driver": driver(),
        "torch": torch.__version__,
    }
    return {"schema": 1, "workload": identity(workload), "recorded": told, "sms": sms, "parts": parts}


def recorded(torch, part, sms):
    host_us = statistics.median(handed_over_us(torch, part) for _ in range(REPEATS))
    traced_us = []
    # `torch.profiler` does the same after importing a compiler for some seconds.
    with torch.autograd.profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True) as profiler:
        for _ in range(REPEATS):
            traced_us.append(handed_over_us(torch, part))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    shorter = min(1.0, host_us / statistics.median(traced_us))
    kernels = [[round(kernel[0] * shorter, 1), *kernel[1:]] for kernel in kernels_of(events, sms)]
    if not kernels:
        raise RuntimeError(f"the driver's tracing showed no kernels in {part.name}; is another profiler at work?")
    return {"name": part.name, "times": part.times, "host_us": round(host_us, 1), "kernels": kernels}


def handed_over_us(torch, part):
    torch.cuda.synchronize()
    began = time.monotonic()
    part.hand_over()
    took = (time.monotonic() - began) * 1e6
    torch.cuda.synchronize()
    return took


def kernels_of(events, sms):
    """The kernels of the repetition in the middle: [handed over at, blocks, threads, per SM, length of a block]."""
    launches = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in LAUNCHING and "correlation" in event.get("args", {})
    }
    pairs = []
    for kernel in events:
        if kernel.get("cat") == "kernel" and (launch := launches.get(kernel["args"]["correlation"])):
            pairs.append((launch, kernel))
    pairs.sort(key=lambda pair: (pair[0]["ts"], pair[1]["ts"]))
    repetitions = []
    ends = sorted(event["ts"] + event["dur"] for event in events if event.get("name") == BOUNDARY)
    for begin, end in zip(ends, [*ends[1:], float("inf")], strict=True):
        if inside := [pair for pair in pairs if begin <= pair[0]["ts"] < end]:
            rows = [described(launch, kernel, begin, sms) for launch, kernel in inside]
            # What follows a graph, or is one, is handed over no sooner than what stands before it.
            latest = itertools.accumulate((row[0] for row in rows), max)
            repetitions.append([[at, *row[1:]] for at, row in zip(latest, rows, strict=True)])
    return repetitions[len(repetitions) // 2] if repetitions else []


def described(launch, kernel, begin, sms):
    told = kernel["args"]
    blocks, threads = volume(told["grid"]), volume(told["block"])
    resident = residency.per_sm(threads, told.get("registers per thread", 0), told.get("shared memory", 0))
    length = kernel["dur"] / residency.waves(blocks, resident, sms)
    # A graph's kernels are handed over all at once.
    at = 0.0 if "GraphLaunch" in launch["name"] else launch["ts"] - begin
    return [at, blocks, threads, resident, round(length, 2 if length < 1 else 1)]


def volume(sizes):
    x, y, z = sizes
    return x * y * z


def driver():
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
    except OSError:
        return "unknown"
    return next((word for word in words if word[0].isdigit() and word.count(".") >= 1), "unknown")


def identity(workload):
    """The workload's name, as the scenarios have it."""
    if "task" not in workload:
        return workload["model"]
    name = f"{workload['model']}-{workload['task']}-{workload['form']}-b{workload['batch']}"
    lengths = (("t", "tokens"), ("p", "prompt"), ("o", "output"))
    return name + "".join(f"-{letter}{workload[key]}" for letter, key in lengths if workload.get(key) is not None)
