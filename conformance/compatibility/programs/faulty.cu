// Writes one element past the end of an allocation, so that compute-sanitizer has something to say. Without the
// sanitizer the write lands in the allocation's padding and the program ends well.

#include <cstdio>
#include <ctime>

__global__ void compat_fill(int *data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = i * i;
}

int main() {
    const int count = 1000;
    static int host[count];
    int *data;
    if (cudaMalloc(&data, sizeof host) != cudaSuccess) return 1;
    for (int i = 0; i < 2; i++) compat_fill<<<4, 256>>>(data, count);
    // Waiting here makes the sanitizer's report the same every time: only the last launch is bad.
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    compat_fill<<<4, 256>>>(data, count + 1);
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (int i = 0; i < count; i++) sum = sum * 31 + host[i];
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    printf("{\"digest\": \"%s %llx\", \"first_result_ns\": %lld, \"kernels\": 3}\n", cudaGetErrorName(error), sum,
           (long long)time.tv_sec * 1000000000 + time.tv_nsec);
    return 0;
}
