// What floor.cu runs on the GPU: what there is to switch away from, and the launches of a burst. Every block of a load
// counts itself once.
//
// Blocks do a fixed amount of work instead of watching a clock: a clock goes on while a context is off the GPU.

#pragma once

#include "clock.cuh"

constexpr int LARGE_THREADS = 1024, LARGE_SHARED = 227 * 1024, LARGE_REGISTERS = 44;
constexpr unsigned STREAMED = 1u << 25;  // 512 MiB in, 512 MiB out: far more than the L2 cache
constexpr unsigned GAPS = 20000;
constexpr unsigned GAP_NS = 8000;  // a warp that stood still for so long was off the GPU

// One thread of the GPU watches for the time in which it did not run, and writes down both ends of it.
struct Watch {
    Word *gaps;
    Word last;

    __device__ void look() {
        if (blockIdx.x || threadIdx.x) return;
        Word time = global_ns();
        if (time - last > GAP_NS && gaps[0] < GAPS) {
            gaps[1 + 2 * gaps[0]] = last;
            gaps[2 + 2 * gaps[0]] = time;
            gaps[0]++;
        }
        last = time;
    }
};

__global__ void small_block(unsigned rounds, Word *blocks, float *sink) {
    float value = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++) value = fmaf(value, 1.0001f, 0.5f);
    if (value == -1.0f) *sink = value;
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

__global__ void small_watched(unsigned rounds, Word *blocks, float *sink, Word *gaps) {
    float value = threadIdx.x;
    Watch watch{gaps, global_ns()};
    for (unsigned i = 0; i < rounds; i++) {
        for (int j = 0; j < 64; j++) value = fmaf(value, 1.0001f, 0.5f);
        watch.look();
    }
    if (value == -1.0f) *sink = value;
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

// One block fills an SM's registers and shared memory with values that are used to the end.
template <bool WATCHED>
__global__ void __launch_bounds__(LARGE_THREADS, 1)
    large_block(unsigned rounds, Word *blocks, float *sink, Word *gaps) {
    extern __shared__ float scratch[];
    for (int i = threadIdx.x; i < LARGE_SHARED / 4; i += blockDim.x) scratch[i] = i;
    float values[LARGE_REGISTERS];
#pragma unroll
    for (int j = 0; j < LARGE_REGISTERS; j++) values[j] = threadIdx.x + j;
    Watch watch{gaps, WATCHED ? global_ns() : 0};
    for (unsigned i = 0; i < rounds; i++) {
#pragma unroll
        for (int j = 0; j < LARGE_REGISTERS; j++)
            values[j] = fmaf(values[j], 1.0001f, values[(j + 1) % LARGE_REGISTERS]);
        if (WATCHED) watch.look();
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < LARGE_REGISTERS; j++) sum += values[j];
    __syncthreads();
    if (sum + scratch[(threadIdx.x * 57) % (LARGE_SHARED / 4)] == -1.0f) *sink = sum;
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

__global__ void stream_block(unsigned rounds, Word *blocks, const float4 *in, float4 *out) {
    unsigned at = (blockIdx.x * rounds * blockDim.x + threadIdx.x) % STREAMED;
    for (unsigned i = 0; i < rounds; i++) {
        out[at] = in[at];
        at = (at + blockDim.x) % STREAMED;
    }
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

// A launch of a burst; the first and the last write down when they ran.
__global__ void burst_block(unsigned rounds, Word *first, Word *last, float *sink) {
    bool writes = blockIdx.x == 0 && threadIdx.x == 0;
    if (writes && first) *first = global_ns();
    float value = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++) value = fmaf(value, 1.0001f, 0.5f);
    if (value == -1.0f) *sink = value;
    if (writes && last) *last = global_ns();
}

__global__ void empty() {}

// Runs until it is told, and at most so long.
__global__ void hold(volatile unsigned *told, unsigned number, Word most_ns) {
    Word begin = global_ns();
    while ((int)(*told - number) < 0 && global_ns() - begin < most_ns) __nanosleep(200);
}
