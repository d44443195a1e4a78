"""Work that is no neural net, in CuPy: a weather-like stencil, and walks over a random graph.

*stencil* moves four fields of 4096 x 2048 places by sixteen steps of time, each in three stages and two directions, a
flux and an update at a time: 192 launches that live off the memory's bandwidth. *traversal* walks from four places of a
graph of four million places and sixty-four million edges, level by level, to all others: few long launches of scattered
reads between short ones. What comes out is a sum of bits that does not depend on the order, and only on the number.
"""

import os
import time

from jobs import Job, Part, Unsuitable

# Compiled kernels are kept nowhere: nothing is left behind.
os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")

INPUTS = 8
MOST = 1 << 17
TRIES = 5

COMMON = r"""
typedef unsigned long long u64;
__device__ u64 scrambled(u64 x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}
extern "C" __global__ void nap(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) {}
}
extern "C" __global__ void digest(const unsigned* words, u64 count, u64* slot) {
    u64 sum = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        sum += scrambled(((u64)words[i] << 32) ^ i);
    atomicAdd(slot, sum);
}
"""

STENCIL = COMMON + r"""
#define W 4096
#define H 2048
extern "C" __global__ void begin(float* field, u64 seed) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, f = blockIdx.z;
    u64 i = ((u64)f * H + y) * W + x;
    field[i] = (scrambled(i + seed * 4 * W * H) >> 40) * (1.0f / (1 << 24)) - 0.5f;
}
extern "C" __global__ void flux(const float* from, float* to, int along_y) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, f = blockIdx.z;
    const float* field = from + (u64)f * W * H;
    float near[5];
    for (int d = -2; d <= 2; ++d) {
        int a = along_y ? x : (x + d) & (W - 1), b = along_y ? (y + d) & (H - 1) : y;
        near[d + 2] = field[(u64)b * W + a];
    }
    float speed = 0.4f + 0.1f * f;
    float moved = speed * (8.0f * (near[3] - near[1]) - (near[4] - near[0])) / 12.0f;
    float spread = near[0] - 4.0f * near[1] + 6.0f * near[2] - 4.0f * near[3] + near[4];
    to[((u64)f * H + y) * W + x] = -moved - 0.03f * spread;
}
extern "C" __global__ void update(const float* first, const float* change, float* to, float step) {
    u64 i = ((u64)blockIdx.z * H + blockIdx.y) * W + blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = first[i] + step * change[i];
}
"""

TRAVERSAL = COMMON + r"""
#define DEGREE 16
extern "C" __global__ void edges(unsigned* ends, u64 count, unsigned places) {
    u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < count) ends[i] = scrambled(i) % places;
}
extern "C" __global__ void begin(int* levels, unsigned places, unsigned root) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < places) levels[i] = i == root ? 0 : -1;
}
extern "C" __global__ void level(int* levels, const unsigned* ends, unsigned places, int now) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= places || levels[i] != now) return;
    // Whoever else writes here writes the same.
    for (int edge = 0; edge < DEGREE; ++edge) {
        unsigned end = ends[(u64)i * DEGREE + edge];
        if (levels[end] < 0) levels[end] = now + 1;
    }
}
"""


def build(model, spec):
    import cupy

    if not cupy.cuda.is_available():
        raise Unsuitable("CuPy finds no GPU here")
    kind = {"stencil": Stencil, "traversal": Traversal}[model]
    return kind(cupy, spec["stream"] == "high", spec["class"] == "best-effort")


class Arrays(Job):
    """A job that leaves its result in a slot of its own for each number."""

    queues_ahead = True

    def __init__(self, cupy, high, best_effort):
        self._cupy, self._best_effort = cupy, best_effort
        # The driver takes what is out of its range for the nearest that is in it.
        self.stream = cupy.cuda.Stream(non_blocking=True, priority=-5 if high else 0)
        self.stream.use()
        self._kernels = cupy.RawModule(code=self.code)
        self._slots = cupy.zeros(MOST, dtype=cupy.uint64)
        self.set_up()
        self._right = []
        for number in range(INPUTS):
            self.request(number)
            self._right.append(int(self._slots[number]))
        self.prepare()

    def launch(self, name, grid, block, *arguments):
        self._kernels.get_function(name)(grid, (block,), arguments)

    def prepare(self):
        self._slots.fill(0)
        self.stream.synchronize()

    def _hand_over(self, number):
        slot = self._slots[number : number + 1]
        slot.fill(0)
        self.work(number % INPUTS, slot)

    def digest_into(self, words, slot):
        self.launch("digest", (1056,), 256, words, self._cupy.uint64(words.size), slot)

    def hand_over(self, number):
        if number >= MOST:
            raise RuntimeError(f"there is room for {MOST} iterations and no more")
        self._hand_over(number)
        event = self._cupy.cuda.Event(block=True, disable_timing=True)
        event.record(self.stream)
        return event

    def wait(self, event):
        event.synchronize()

    def request(self, number):
        self._hand_over(number % MOST)
        self.stream.synchronize()

    def is_right(self, number):
        return int(self._slots[number % MOST]) == self._right[number % INPUTS]

    def digest(self, number):
        return f"{int(self._slots[number % MOST]):016x}"

    def digests(self, count):
        return [f"{value:016x}" for value in self._slots[:count].get().tolist()]

    def parts(self):
        return [Part("request", 1, lambda: self._hand_over(0))]

    def measure_gpu_us(self):
        return min(self._once_us() for _ in range(TRIES))

    def _once_us(self):
        """As a card of torch does it: queued behind a sleep of the GPU."""
        began = time.monotonic()
        self._hand_over(0)
        host_us = (time.monotonic() - began) * 1e6
        self.stream.synchronize()
        begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        self.launch("nap", (1,), 1, self._cupy.int64((host_us * 1.5 + 200) * 2000))
        begin.record(self.stream)
        self._hand_over(0)
        end.record(self.stream)
        end.synchronize()
        return self._cupy.cuda.get_elapsed_time(begin, end) * 1000


class Stencil(Arrays):
    code = STENCIL
    grid, block, steps = (16, 2048, 4), 256, 16

    def set_up(self):
        self._now, self._next, self._change = (self._cupy.zeros((4, 2048, 4096), self._cupy.float32) for _ in range(3))

    def work(self, seed, slot):
        self.launch("begin", self.grid, self.block, self._now, self._cupy.uint64(seed))
        for step in range(self.steps):
            # As miniWeather does: the directions take turns in being the first.
            for along_y in (step % 2, 1 - step % 2):
                self._advance(along_y)
        self.digest_into(self._now, slot)

    def _advance(self, along_y):
        source, direction = self._now, self._cupy.int32(along_y)
        for stage, length in enumerate((1 / 3, 1 / 2, 1)):
            self.launch("flux", self.grid, self.block, source, self._change, direction)
            target = self._now if stage == 2 else self._next
            self.launch("update", self.grid, self.block, self._now, self._change, target, self._cupy.float32(length))
            source = self._next


class Traversal(Arrays):
    code = TRAVERSAL
    places, degree, levels, roots = 1 << 22, 16, 9, 4

    def set_up(self):
        cupy = self._cupy
        count = self.places * self.degree
        self._ends, self._levels = cupy.zeros(count, cupy.uint32), cupy.zeros(self.places, cupy.int32)
        self._places = cupy.uint32(self.places)
        self.launch("edges", (count // 256,), 256, self._ends, cupy.uint64(count), self._places)

    def work(self, seed, slot):
        grid = (self.places // 256,)
        for root in range(self.roots):
            start = self._cupy.uint32((seed * self.roots + root) * 104_729 % self.places)
            self.launch("begin", grid, 256, self._levels, self._places, start)
            for level in range(self.levels):
                self.launch("level", grid, 256, self._levels, self._ends, self._places, self._cupy.int32(level))
            self.digest_into(self._levels, slot)
