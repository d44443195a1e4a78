// Where am I? Every thread of a 3-D grid of 3-D blocks writes its coordinates at its own linear place.

extern "C" __global__ void coordinates(unsigned *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned *mine = out + (static_cast<unsigned long long>(block) * threads + thread) * 8;
    mine[0] = threadIdx.x;
    mine[1] = threadIdx.y;
    mine[2] = threadIdx.z;
    mine[3] = blockIdx.x;
    mine[4] = blockIdx.y;
    mine[5] = blockIdx.z;
    mine[6] = lane;
    mine[7] = gridDim.x * 10000 + gridDim.y * 100 + gridDim.z;
}

// One block per linear number; counts that every block of a large grid runs exactly once.
extern "C" __global__ void visit(unsigned *visits)
{
    unsigned long long block =
        (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0)
        atomicAdd(&visits[block], 1u);
}
