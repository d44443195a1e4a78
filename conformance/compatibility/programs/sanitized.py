"""A little CuPy for compute-sanitizer, which slows every kernel down: five kernels, no library behind them.

`kernels` says how many, because under the sanitizer no profiler can count them.
"""

import cupy
import numpy

from common import Results

results = Results()
square = cupy.RawKernel(
    'extern "C" __global__ void compat_square(float *x) { int i = threadIdx.x; x[i] = x[i] * x[i] + 1.0f; }',
    "compat_square",
)
# Memory that is filled by a copy, so that the kernels below are all there are.
x = cupy.asarray(numpy.linspace(0.0, 1.0, 256, dtype=numpy.float32))
for _ in range(5):
    square((1,), (256,), (x,))
results.add(cupy.asnumpy(x))
results.say(kernels=5)
results.print()
