// Small kernels that make nvcc show most of its syntax. README.md says how they become PTX.
struct Pair {
    int count;
    double scale;
};

__constant__ float weights[2] = {1.0f, -2.5f};
__device__ int counter = 7;
__device__ int *counter_address = &counter;
__device__ __managed__ unsigned shared_with_host;

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ int (*const operations[2])(int, int) = {add, subtract};
__device__ void stop() { asm volatile("trap;"); }

extern "C" __global__ void __launch_bounds__(256, 2) vectors(float4 *out, const float *__restrict__ in, Pair pair) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = in[threadIdx.x] * weights[pair.count & 1];
    __syncthreads();
    unsigned vote = __ballot_sync(~0u, tile[0] > 0.0f);
    float down = __shfl_down_sync(~0u, tile[threadIdx.x], 1);
    out[blockIdx.x] = make_float4(down, vote, (float)pair.scale, tile[threadIdx.x ^ 1]);
}

extern "C" __global__ void calls(int *data, int which) {
    int result = operations[which & 1](data[0], data[1]);
    if (result == 42)
        stop();
    atomicAdd(counter_address, result);
    data[2] = result;
}

extern "C" __global__ void jumps(int *data, int which) {
    int value = data[0];
    switch (which) {
    case 0: value = value * 3 + data[7]; break;
    case 1: value = value / 7; break;
    case 2: value = value ^ data[5]; break;
    case 3: value = __clz(value); break;
    case 4: value = __popc(value) + 11; break;
    case 5: value = value << data[3]; break;
    case 6: value = max(value, data[4]); break;
    case 7: value = value % 1000; break;
    case 8: value = ~value; break;
    case 9: value = __brev(value); break;
    }
    int inlined;
    asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; @p mov.b32 %0, 1; @!p mov.b32 %0, 0x10U; }" : "=r"(inlined) : "r"(value));
    data[1] = inlined;
}
