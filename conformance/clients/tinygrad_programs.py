"""Tensor programs of tinygrad, run on the driver that CUDA_PATH names and checked against numpy.

tinygrad renders PTX itself (DEV=CUDA:PTX), loads it with cuModuleLoadData and replays kernels through CUDA graphs;
nothing of it is changed for us. Each program prints one line; the exit status says whether all were right.
"""

import sys
import traceback

import numpy as np
from tinygrad import Tensor, TinyJit, dtypes

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@program
def elementwise():
    a, b = random(1, 1000), random(2, 1000)
    got = ((Tensor(a) + Tensor(b)) * 2 - Tensor(a).relu()).numpy()
    np.testing.assert_allclose(got, (a + b) * 2 - np.maximum(a, 0), rtol=1e-6, atol=1e-6)


@program
def reductions():
    a = random(3, 60, 70)
    np.testing.assert_allclose(Tensor(a).sum().numpy(), a.sum(), rtol=1e-4)
    np.testing.assert_allclose(Tensor(a).sum(axis=0).numpy(), a.sum(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(Tensor(a).max(axis=1).numpy(), a.max(axis=1))
    np.testing.assert_array_equal(Tensor(a).argmax(axis=1).numpy(), a.argmax(axis=1))


@program
def matrix_product():
    a, b = random(4, 64, 48), random(5, 48, 80)
    np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)


@program
def softmax_and_layernorm():
    a = random(6, 8, 50)
    shifted = np.exp(a - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(Tensor(a).softmax(axis=1).numpy(), shifted / shifted.sum(axis=1, keepdims=True), rtol=1e-4)
    want = (a - a.mean(axis=1, keepdims=True)) / np.sqrt(a.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(Tensor(a).layernorm().numpy(), want, rtol=1e-3, atol=1e-4)


@program
def math_functions():
    a = np.abs(random(7, 300)) + 0.1
    tensor = Tensor(a)
    for name, want in (("exp", np.exp), ("log", np.log), ("sin", np.sin), ("sqrt", np.sqrt), ("tanh", np.tanh)):
        np.testing.assert_allclose(getattr(tensor, name)().numpy(), want(a), rtol=2e-5, atol=2e-6, err_msg=name)


@program
def integers_and_casts():
    a = np.random.default_rng(8).integers(-1000, 1000, 400).astype(np.int32)
    tensor = Tensor(a)
    np.testing.assert_array_equal((tensor * 7 + 3).numpy(), a * 7 + 3)
    np.testing.assert_array_equal((tensor > 10).where(tensor, -tensor).numpy(), np.where(a > 10, a, -a))
    np.testing.assert_array_equal(tensor.cast(dtypes.float32).numpy(), a.astype(np.float32))
    np.testing.assert_array_equal((tensor ^ 0x55).numpy(), a ^ 0x55)


@program
def half_precision():
    a, b = random(9, 500).astype(np.float16), random(10, 500).astype(np.float16)
    np.testing.assert_array_equal((Tensor(a) + Tensor(b)).numpy(), a + b)


@program
def convolution():
    image, kernel = random(11, 1, 3, 12, 12), random(12, 4, 3, 3, 3)
    want = np.zeros((1, 4, 10, 10), dtype=np.float32)
    for row in range(10):
        for column in range(10):
            patch = image[0, :, row : row + 3, column : column + 3]
            want[0, :, row, column] = (kernel * patch).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(Tensor(image).conv2d(Tensor(kernel)).numpy(), want, rtol=1e-4, atol=1e-4)


@program
def gradient_descent():
    rng = np.random.default_rng(13)
    inputs, truth = rng.standard_normal((40, 3)).astype(np.float32), np.array([[1.5], [-2.0], [0.5]], dtype=np.float32)
    weights = Tensor(np.zeros((3, 1), dtype=np.float32))
    x, y = Tensor(inputs), Tensor(inputs @ truth)
    for _ in range(40):
        (slope,) = ((x @ weights - y) ** 2).mean().gradient(weights)
        weights = (weights - slope * 0.2).realize()
    np.testing.assert_allclose(weights.numpy(), truth, atol=0.02)


@program
def replay_through_a_graph():
    @TinyJit
    def step(x, y):
        return ((x + y) * 2 - x.sum()).realize(), (x * y).contiguous().realize()

    for seed in range(14, 20):
        a, b = random(seed, 64), random(seed + 100, 64)
        first, second = step(Tensor(a).realize(), Tensor(b).realize())
        np.testing.assert_allclose(first.numpy(), (a + b) * 2 - a.sum(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(second.numpy(), a * b, rtol=1e-6)


def main():
    failed = 0
    for run in PROGRAMS:
        try:
            run()
            print(f"tinygrad {run.__name__}: ok", flush=True)
        except Exception:
            failed += 1
            print(f"tinygrad {run.__name__}: FAILED\n{traceback.format_exc()}", flush=True)
    print(f"{len(PROGRAMS) - failed} of {len(PROGRAMS)} programs right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
