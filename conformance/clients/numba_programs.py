"""Programs written for numba-cuda, run on the driver that NUMBA_CUDA_DRIVER names and checked against numpy.

numba-cuda compiles Python to PTX with libnvvm and hands that to the driver's linker; nothing of it is changed for us.
Each program prints one line; the exit status says whether all were right.
"""

import math
import sys
import traceback

import numpy as np
from numba import cuda, float32, float64

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@cuda.jit
def add_kernel(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@program
def vector_add():
    rng = np.random.default_rng(1)
    a, b = rng.random(10_007, dtype=np.float32), rng.random(10_007, dtype=np.float32)
    out = np.zeros_like(a)
    add_kernel[(a.size + 127) // 128, 128](a, b, out)
    np.testing.assert_array_equal(out, a + b)


@cuda.jit
def strided_kernel(a, out):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[j, i] = a[i, j] * 2 + i


@program
def transpose_of_a_slice():
    a = np.arange(60 * 80, dtype=np.int64).reshape(60, 80)
    view = cuda.to_device(a)[10:50, 20:70]
    out = cuda.device_array((50, 40), dtype=np.int64)
    strided_kernel[(5, 7), (8, 8)](view, out)
    want = (a[10:50, 20:70] * 2 + np.arange(40)[:, None]).T
    np.testing.assert_array_equal(out.copy_to_host(), want)


@program
def reduction():
    sum_reduce = cuda.reduce(lambda a, b: a + b)
    a = np.random.default_rng(2).integers(0, 1000, 50_001).astype(np.int64)
    assert sum_reduce(a) == a.sum()


TILE = 16


@cuda.jit
def matmul_kernel(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for start in range(0, a.shape[1], TILE):
        sa[ty, tx] = a[y, start + tx] if y < a.shape[0] and start + tx < a.shape[1] else 0
        sb[ty, tx] = b[start + ty, x] if x < b.shape[1] and start + ty < b.shape[0] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@program
def matmul_in_shared_memory():
    rng = np.random.default_rng(3)
    a, b = rng.random((50, 70), dtype=np.float32), rng.random((70, 33), dtype=np.float32)
    c = cuda.device_array((50, 33), dtype=np.float32)
    matmul_kernel[(3, 4), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_allclose(c.copy_to_host(), a @ b, rtol=1e-5)


@cuda.jit
def histogram_kernel(values, bins, extremes):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i] % bins.size, 1)
        cuda.atomic.min(extremes, 0, values[i])
        cuda.atomic.max(extremes, 1, values[i])


@program
def atomics():
    values = np.random.default_rng(4).integers(0, 100_000, 20_000).astype(np.int32)
    bins = np.zeros(37, dtype=np.int32)
    extremes = np.array([2**31 - 1, -(2**31)], dtype=np.int32)
    histogram_kernel[80, 256](values, bins, extremes)
    np.testing.assert_array_equal(bins, np.bincount(values % 37, minlength=37))
    assert tuple(extremes) == (values.min(), values.max())


@cuda.jit
def float_atomics_kernel(values, out, claimed):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(out, 0, values[i])
        if cuda.atomic.compare_and_swap(claimed, 0, 7) == 0:
            cuda.atomic.add(claimed[1:], 0, 1)


@program
def float_atomics_and_compare_and_swap():
    # Halves are exact in any order.
    values = np.random.default_rng(7).integers(0, 100, 3000) / 2
    out, claimed = np.zeros(1), np.zeros(2, dtype=np.int32)
    float_atomics_kernel[24, 128](values, out, claimed)
    assert out[0] == values.sum()
    assert tuple(claimed) == (7, 1), claimed


@cuda.jit(device=True)
def escape_time(x, y, limit):
    real, imag = 0.0, 0.0
    for step in range(limit):
        real, imag = real * real - imag * imag + x, 2.0 * real * imag + y
        if real * real + imag * imag > 4.0:
            return step
    return limit


@cuda.jit
def mandelbrot_kernel(image, left, top, width, height, limit):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        x = left + column * width / image.shape[1]
        y = top + row * height / image.shape[0]
        image[row, column] = escape_time(x, y, limit)


@program
def mandelbrot():
    image = np.zeros((48, 64), dtype=np.int32)
    mandelbrot_kernel[(8, 6), (8, 8)](image, -2.0, -1.0, 3.0, 2.0, 60)
    want = np.empty_like(image)
    for row in range(48):
        for column in range(64):
            want[row, column] = escape_time.py_func(-2.0 + column * 3.0 / 64, -1.0 + row * 2.0 / 48, 60)
    # A point on the border may fall on the other side when a multiply-add is fused.
    assert (image != want).mean() < 0.01, f"{(image != want).sum()} points differ"


@cuda.jit
def math_kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[0, i] = math.sin(v)
        out[1, i] = math.cos(v)
        out[2, i] = math.exp(v)
        out[3, i] = math.log(v)
        out[4, i] = math.sqrt(v)
        out[5, i] = math.atan2(v, 2.0)
        out[6, i] = math.pow(v, 1.7)
        out[7, i] = math.tanh(v)
        out[8, i] = math.erf(v)
        out[9, i] = math.floor(v) + math.fmod(v, 0.7)
        out[10, i] = math.lgamma(v)


def check_math(kind, tolerance):
    x = np.linspace(0.05, 12.0, 500).astype(kind)
    out = np.zeros((11, x.size), dtype=kind)
    math_kernel[4, 128](x, out)
    wide = x.astype(np.float64)
    want = [
        np.sin(wide), np.cos(wide), np.exp(wide), np.log(wide), np.sqrt(wide), np.arctan2(wide, 2.0), wide**1.7,
        np.tanh(wide), [math.erf(v) for v in wide], None, [math.lgamma(v) for v in wide],
    ]
    for row, expected in enumerate(want):
        if expected is not None:
            np.testing.assert_allclose(out[row], expected, rtol=tolerance, atol=tolerance, err_msg=f"row {row}")


@program
def math_in_double_precision():
    check_math(np.float64, 1e-12)


@program
def math_in_single_precision():
    check_math(np.float32, 3e-6)


@cuda.jit
def warp_kernel(values, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = values[i]
    total = value
    for offset in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
    votes = cuda.ballot_sync(0xFFFFFFFF, value % 2 == 1)
    if lane == 0:
        out[i // 32, 0] = total
        out[i // 32, 1] = cuda.popc(votes)


@program
def warp_shuffles_and_votes():
    values = np.random.default_rng(5).integers(0, 1000, 256).astype(np.int32)
    out = np.zeros((8, 2), dtype=np.int32)
    warp_kernel[2, 128](values, out)
    rows = values.reshape(8, 32)
    np.testing.assert_array_equal(out[:, 0], rows.sum(axis=1))
    np.testing.assert_array_equal(out[:, 1], (rows % 2).sum(axis=1))


@cuda.jit
def local_kernel(values, out):
    scratch = cuda.local.array(16, float64)
    i = cuda.grid(1)
    for k in range(16):
        scratch[k] = values[(i + k) % values.size]
    for a in range(16):
        for b in range(a + 1, 16):
            if scratch[b] < scratch[a]:
                scratch[a], scratch[b] = scratch[b], scratch[a]
    out[i] = scratch[8]


@program
def sorting_in_local_memory():
    values = np.random.default_rng(6).random(128)
    out = np.zeros(128)
    local_kernel[4, 32](values, out)
    want = [np.sort(values[(i + np.arange(16)) % 128])[8] for i in range(128)]
    np.testing.assert_array_equal(out, want)


@program
def streams_and_events():
    a = np.arange(4096, dtype=np.float32)
    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    begin.record(stream)
    device = cuda.to_device(a, stream=stream)
    out = cuda.device_array_like(device, stream=stream)
    for _ in range(10):
        add_kernel[32, 128, stream](device, device, out)
    result = out.copy_to_host(stream=stream)
    end.record(stream)
    end.synchronize()
    assert cuda.event_elapsed_time(begin, end) >= 0
    np.testing.assert_array_equal(result, a * 2)


@program
def pinned_and_mapped_arrays():
    pinned = cuda.pinned_array(1000, dtype=np.float32)
    pinned[:] = 3
    mapped = cuda.mapped_array(1000, dtype=np.float32)
    mapped[:] = 0
    device = cuda.to_device(pinned)
    add_kernel[8, 128](device, device, mapped)
    cuda.synchronize()
    np.testing.assert_array_equal(mapped, np.full(1000, 6, dtype=np.float32))


def main():
    failed = 0
    for run in PROGRAMS:
        try:
            run()
            print(f"numba {run.__name__}: ok", flush=True)
        except Exception:
            failed += 1
            print(f"numba {run.__name__}: FAILED\n{traceback.format_exc()}", flush=True)
    print(f"{len(PROGRAMS) - failed} of {len(PROGRAMS)} programs right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
