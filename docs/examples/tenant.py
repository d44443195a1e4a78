#!/usr/bin/env python3
"""A program that uses a GPU by the CUDA driver API and nothing else, for the quick start.

Without --rate it is like a training: it keeps the GPU busy. With --rate it is like a server: so many requests a second,
and in the end it says how long they took. Every block of every launch adds one to a number, so it also knows whether each ran
exactly once. It needs neither CUDA nor a package: kernels are PTX, and the driver is whatever libcuda.so.1 is found.
"""

import argparse
import ctypes
import time

PTX = b"""
.version 7.8
.target sm_80
.address_size 64
// Each block sleeps for so many times 20 microseconds and adds one to a number.
.visible .entry work(.param .u64 number, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .u32 %n;
    .reg .u64 %a, %old;
    ld.param.u64 %a, [number];
    ld.param.u32 %n, [rounds];
again:
    nanosleep.u32 20000;
    sub.u32 %n, %n, 1;
    setp.ne.u32 %p, %n, 0;
    @%p bra again;
    cvta.to.global.u64 %a, %a;
    atom.global.add.u64 %old, [%a], 1;
    ret;
}
"""

BLOCKS = 64


class Gpu:
    """One context, one stream, one kernel."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.kernel, self.stream, self.number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"work")
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.call("cuMemAlloc_v2", ctypes.byref(self.number), ctypes.c_size_t(8))
        self.call("cuMemsetD32_v2", self.number, 0, ctypes.c_size_t(2))

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise SystemExit(f"{name} answers {status}")

    def launch(self, microseconds):
        rounds = ctypes.c_uint32(microseconds // 20)
        parameters = (ctypes.c_void_p * 2)()
        parameters[0] = ctypes.cast(ctypes.byref(self.number), ctypes.c_void_p)
        parameters[1] = ctypes.cast(ctypes.byref(rounds), ctypes.c_void_p)
        shape = (BLOCKS, 1, 1, 1, 1, 1)
        self.call("cuLaunchKernel", self.kernel, *shape, 0, self.stream, parameters, None)

    def finish(self):
        self.call("cuStreamSynchronize", self.stream)

    def blocks(self):
        number = ctypes.c_uint64()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(number), self.number, ctypes.c_size_t(8))
        return number.value


def train(gpu, seconds):
    """Launches of 2 ms, a few of them ahead, as a framework does."""
    launches, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(8):
            gpu.launch(2000)
        gpu.finish()
        launches += 8
    print(f"{launches} launches in {seconds:g} s")
    return launches


def serve(gpu, seconds, rate):
    """A request is a launch of 200 microseconds; its time counts from when it was due."""
    begin, spans = time.monotonic(), []
    for index in range(int(seconds * rate)):
        due = begin + index / rate
        time.sleep(max(0.0, due - time.monotonic()))
        gpu.launch(200)
        gpu.finish()
        spans.append(time.monotonic() - due)
    spans.sort()
    p50, p99 = (spans[int((len(spans) - 1) * part)] * 1000 for part in (0.5, 0.99))
    print(f"{len(spans)} requests: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return len(spans)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="how long to work")
    parser.add_argument("--rate", type=float, help="requests a second")
    options = parser.parse_args()
    gpu = Gpu()
    if options.rate:
        launches = serve(gpu, options.seconds, options.rate)
    else:
        launches = train(gpu, options.seconds)
    gpu.finish()
    right = gpu.blocks() == launches * BLOCKS
    print("every block ran once" if right else f"{gpu.blocks()} blocks ran, not {launches * BLOCKS}")
    raise SystemExit(0 if right else 1)


if __name__ == "__main__":
    main()
