// Kernels whose functions are in another file, `far.cu`.
__device__ int far_adds(int x);
__device__ int far_counts(int x);
__device__ int far_calls(int x);
extern "C" __device__ int cudaLaunchDeviceForTests(int x);

extern "C" __global__ void adds(int* y) { y[threadIdx.x] = far_adds(y[threadIdx.x]); }
extern "C" __global__ void counts(int* y) { y[threadIdx.x] = far_counts(y[threadIdx.x]); }
extern "C" __global__ void calls(int* y) { y[threadIdx.x] = far_calls(y[threadIdx.x]); }
extern "C" __global__ void launches(int* y) { y[threadIdx.x] = cudaLaunchDeviceForTests(y[threadIdx.x]); }
extern "C" __global__ void nothing(int* y) { y[threadIdx.x] += 1; }
