// Two kernels and a device function to fill containers with. README.md says how.
__device__ __noinline__ int twice(int value) { return value * 2; }

extern "C" __global__ void scale(float *data, float factor, int count) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        data[index] *= factor;
}

extern "C" __global__ void offset(int *data, int amount) {
    __shared__ int tile[32];
    tile[threadIdx.x] = data[threadIdx.x] + twice(amount);
    __syncthreads();
    data[threadIdx.x] = tile[31 - threadIdx.x];
}
