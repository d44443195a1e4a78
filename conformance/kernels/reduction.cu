// Sums by warp shuffles, then across warps through shared memory, then across blocks by an atomic.

__device__ static unsigned long long warp_sum(unsigned long long value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void reduce(const unsigned *in, unsigned long long *total, int n)
{
    __shared__ unsigned long long partial[32];
    unsigned long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = warp_sum(sum);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < (blockDim.x + 31) / 32 ? partial[lane] : 0;
        sum = warp_sum(sum);
        if (lane == 0)
            atomicAdd(total, sum);
    }
}

// Minimum and maximum by butterfly shuffles and by the hardware's warp reductions where the target has them.
extern "C" __global__ void extremes(const int *in, int *lowest, int *highest, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int low = i < n ? in[i] : 0x7fffffff, high = i < n ? in[i] : -0x7fffffff - 1;
    for (int mask = 16; mask > 0; mask /= 2)
        low = min(low, __shfl_xor_sync(0xffffffffu, low, mask));
    high = __reduce_max_sync(0xffffffffu, high);
    if (threadIdx.x % 32 == 0) {
        atomicMin(lowest, low);
        atomicMax(highest, high);
    }
}
