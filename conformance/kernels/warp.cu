// Threads of a warp talking to each other without memory.

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr unsigned ALL = 0xffffffffu;

extern "C" __global__ void shuffles(const int *in, int *out)
{
    int lane = threadIdx.x % 32, x = in[threadIdx.x];
    int n = blockDim.x;
    out[threadIdx.x] = __shfl_sync(ALL, x, (lane * 7 + 3) % 32);
    out[n + threadIdx.x] = __shfl_up_sync(ALL, x, 3);
    out[2 * n + threadIdx.x] = __shfl_down_sync(ALL, x, 5, 16);
    out[3 * n + threadIdx.x] = __shfl_xor_sync(ALL, x, 11, 8);
}

extern "C" __global__ void shuffle_wide(const double *in, double *out)
{
    double x = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step; step /= 2)
        x += __shfl_xor_sync(ALL, x, step);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void warp_scan(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned x = i < n ? in[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        unsigned below = __shfl_up_sync(ALL, x, step);
        if (lane >= step)
            x += below;
    }
    if (i < n)
        out[i] = x;
}

extern "C" __global__ void warp_reductions(const unsigned *in, unsigned *out)
{
    unsigned x = in[threadIdx.x], warp = threadIdx.x / 32;
    unsigned sum = __reduce_add_sync(ALL, x), least = __reduce_min_sync(ALL, x);
    int most = __reduce_max_sync(ALL, static_cast<int>(x));
    unsigned both = __reduce_and_sync(ALL, x | 0xff), any = __reduce_or_sync(ALL, x & 0xf0f);
    unsigned odd = __reduce_xor_sync(ALL, x);
    if (threadIdx.x % 32 == 0) {
        unsigned *o = out + 6 * warp;
        o[0] = sum, o[1] = least, o[2] = most, o[3] = both, o[4] = any, o[5] = odd;
    }
}

extern "C" __global__ void votes(const int *in, int threshold, unsigned *out)
{
    int x = in[threadIdx.x];
    unsigned ballot = __ballot_sync(ALL, x > threshold);
    unsigned flags = __all_sync(ALL, x > -100) | __any_sync(ALL, x > 95) << 1;
    int same;
    __match_all_sync(ALL, x / 1000, &same);
    out[2 * threadIdx.x] = ballot;
    out[2 * threadIdx.x + 1] = flags | same << 2;
}

extern "C" __global__ void match_groups(const int *in, unsigned *out)
{
    out[threadIdx.x] = __match_any_sync(ALL, in[threadIdx.x]);
}

// Only some lanes take part; each half of a branch names its own.
extern "C" __global__ void divergent_shuffles(const int *in, int *out)
{
    int lane = threadIdx.x % 32, x = in[threadIdx.x], y;
    if (lane < 12) {
        y = __shfl_sync(0xfffu, x, (lane + 1) % 12);
    } else {
        unsigned rest = __ballot_sync(0xfffff000u, x & 1);
        y = __popc(rest & ((1u << lane) - 1)) + 1000 * __shfl_down_sync(0xfffff000u, x, 1);
    }
    __syncwarp();
    out[threadIdx.x] = y + __shfl_xor_sync(ALL, y, 1);
}

// Keeps what is positive, in order, a block at a time.
extern "C" __global__ void compact(const int *in, int *out, unsigned *counts)
{
    __shared__ unsigned starts[33];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int x = in[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned keep = __ballot_sync(ALL, x > 0);
    if (lane == 0)
        starts[warp + 1] = __popc(keep);
    __syncthreads();
    if (threadIdx.x == 0) {
        starts[0] = 0;
        for (unsigned w = 0; w < blockDim.x / 32; w++)
            starts[w + 1] += starts[w];
        counts[blockIdx.x] = starts[blockDim.x / 32];
    }
    __syncthreads();
    if (x > 0)
        out[blockIdx.x * blockDim.x + starts[warp] + __popc(keep & ((1u << lane) - 1))] = x;
}

// Tiles of eight threads, and the threads that happen to be together.
extern "C" __global__ void tiles(const int *in, int *out)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int x = in[block.thread_rank()];
    for (int step = tile.size() / 2; step; step /= 2)
        x += tile.shfl_down(x, step);
    x = tile.shfl(x, 0) * 10 + static_cast<int>(tile.thread_rank());
    if (tile.any(in[block.thread_rank()] > 90))
        x = -x;
    __syncwarp();
    if (threadIdx.x % 3 == 0) {
        auto together = cg::coalesced_threads();
        x += 1000 * static_cast<int>(together.size()) + 100000 * static_cast<int>(together.thread_rank());
    }
    out[block.thread_rank()] = x;
}

// One atomic per warp instead of one per thread.
extern "C" __global__ void aggregated_count(const int *in, unsigned *counter, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 3 == 0) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0)
            atomicAdd(counter, active.size());
    }
}
