// Dynamic shared memory: its size comes with the launch and can be read back in the kernel.

extern __shared__ unsigned dynamic[];

extern "C" __global__ void reverse(const unsigned *in, unsigned *out, int words)
{
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        dynamic[i] = in[blockIdx.x * words + i];
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        out[blockIdx.x * words + i] = dynamic[words - 1 - i];
}

// Static and dynamic parts must not overlap.
extern "C" __global__ void both_kinds(unsigned *out, int words)
{
    __shared__ unsigned fixed[64];
    if (threadIdx.x < 64)
        fixed[threadIdx.x] = 1000 + threadIdx.x;
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        dynamic[i] = i;
    __syncthreads();
    unsigned size, total;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    if (threadIdx.x < 64)
        out[threadIdx.x] = fixed[threadIdx.x] + dynamic[words - 1];
    if (threadIdx.x == 0) {
        out[64] = size;
        out[65] = total >= size + sizeof fixed;
    }
}
