"""CuPy: its own kernels compiled at run time, raw kernels, cuBLAS, cuFFT, cuRAND, a stream and a graph."""

import cupy

from common import Results, time_launches

results = Results()
random = cupy.random.RandomState(5)
x = random.standard_normal((257, 300), dtype=cupy.float32)
results.add(cupy.asnumpy(x.sum(axis=0)))

scale = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * y + sinf(x)", "compat_scale")
norm = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrtf(a)", "0", "compat_norm")
saxpy = cupy.RawKernel(
    r"""
extern "C" __global__ void compat_saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
""",
    "compat_saxpy",
)
y = scale(x, x[::-1].copy())
results.add(cupy.asnumpy(y), cupy.asnumpy(norm(y, axis=1)))

stream = cupy.cuda.Stream(non_blocking=True)
stream.wait_event(cupy.cuda.get_current_stream().record())
with stream:
    z = cupy.ones(x.size, dtype=cupy.float32)
    for _ in range(10):
        saxpy((-(-x.size // 256),), (256,), (cupy.float32(0.5), x, z, cupy.int32(x.size)))
    product = x @ x.T
    spectrum = cupy.fft.rfft(x, axis=1)
    order = cupy.argsort(x[0])
stream.synchronize()
results.add(*(cupy.asnumpy(array) for array in (z, product, spectrum, order)))

with stream:
    stream.begin_capture()
    saxpy((1,), (256,), (cupy.float32(0.25), x, z, cupy.int32(256)))
    graph = stream.end_capture()
for _ in range(5):
    graph.launch(stream)
stream.synchronize()
results.add(cupy.asnumpy(z))

small = cupy.zeros(1, dtype=cupy.float32)
arguments = (cupy.float32(1), small, small, cupy.int32(1))
time_launches(results, lambda: saxpy((1,), (1,), arguments), cupy.cuda.Device().synchronize)
results.print()
