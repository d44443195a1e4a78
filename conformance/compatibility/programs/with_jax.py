"""JAX: a small network learns, compiled by XLA, which makes CUDA graphs of its own; a scan; a convolution; a solve."""

import jax
import jax.numpy as jnp
import numpy

from common import Results, time_launches

results = Results()


def predict(parameters, x):
    for weights, bias in parameters[:-1]:
        x = jax.nn.gelu(x @ weights + bias)
    weights, bias = parameters[-1]
    return x @ weights + bias


def loss(parameters, x, y):
    return jnp.mean((predict(parameters, x) - y) ** 2)


@jax.jit
def step(parameters, x, y):
    value, slopes = jax.value_and_grad(loss)(parameters, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.05 * g, parameters, slopes)


keys = jax.random.split(jax.random.key(3), 6)
sizes = [32, 64, 64, 8]
parameters = [(jax.random.normal(key, (a, b)) / a**0.5, jnp.zeros(b)) for key, a, b in zip(keys, sizes[:-1], sizes[1:])]
x = jax.random.normal(keys[4], (128, 32))
y = jax.random.normal(keys[5], (128, 8))
for _ in range(10):
    value, parameters = step(parameters, x, y)
    results.add(float(value))
results.add(*(numpy.asarray(leaf) for leaf in jax.tree.leaves(parameters)))


@jax.jit
def walk(start):
    return jax.lax.scan(lambda s, _: (jnp.sin(s) * 1.01 + 0.1, s.sum()), start, None, length=20)


@jax.jit
def convolve(picture, filters):
    return jax.lax.conv(picture, filters, (1, 1), "SAME").sum(axis=(2, 3))


end, sums = walk(x)
convolved = convolve(x.reshape(4, 1, 32, 32), parameters[0][0].reshape(-1, 1, 8, 8)[:16])
solved = jnp.linalg.solve(x[:32] @ x[:32].T + 32 * jnp.eye(32), x[:32])
results.add(*(numpy.asarray(array) for array in (end, sums, convolved, solved)))

bump = jax.jit(lambda s: s + 1)
one = jnp.zeros(1)


def launch():
    global one
    one = bump(one)


time_launches(results, launch, lambda: one.block_until_ready(), batches=100)
results.print()
