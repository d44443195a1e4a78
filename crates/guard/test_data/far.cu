// What the kernels of `near.cu` call.
__device__ int counter;
__device__ int far_adds(int x) { return x + 1; }
__device__ int far_counts(int x) { return atomicAdd(&counter, x); }
__device__ __noinline__ int far_calls(int x) { return far_counts(x) + 1; }
extern "C" __device__ int cudaLaunchDeviceForTests(int x) { return x + 2; }
