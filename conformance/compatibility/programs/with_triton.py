"""Kernels written by hand in Triton: a softmax, a matrix product, and a reduction with atomics on integers."""

import triton
import triton.language as tl
from torch_common import Results, add_all, prepare, synchronise, time_launches, torch


@triton.jit
def softmax_rows(out, source, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * columns + at, x / tl.sum(x, axis=0), mask=at < columns)


@triton.jit
def product(c, a, b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :])
        y = tl.load(b + k[:, None] * N + n[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums)


@triton.jit
def histogram(bins, source, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + at, mask=at < count, other=0)
    tl.atomic_add(bins + x, 1, mask=at < count)


@triton.jit
def bump(x):
    tl.store(x, tl.load(x) + 1.0)


prepare()
results = Results()
x = torch.randn(200, 1000, device="cuda")
soft = torch.empty_like(x)
softmax_rows[(200,)](soft, x, 1000, BLOCK=1024)
a = torch.randn(256, 192, device="cuda").half()
b = torch.randn(192, 128, device="cuda").half()
c = torch.empty(256, 128, device="cuda")
product[(4, 2)](c, a, b, 256, 128, 192, BM=64, BN=64, BK=32, num_stages=3)
numbers = torch.randint(0, 64, (100_000,), device="cuda", dtype=torch.int32)
bins = torch.zeros(64, device="cuda", dtype=torch.int32)
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(5):
        histogram[(triton.cdiv(100_000, 1024),)](bins, numbers, 100_000, BLOCK=1024)
stream.synchronize()
add_all(results, [soft, c, bins])

one = torch.zeros(1, device="cuda")
time_launches(results, lambda: bump[(1,)](one), synchronise)
results.print()
