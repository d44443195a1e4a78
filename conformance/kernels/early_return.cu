// Threads that return before a barrier count as arrived: the rest must neither hang nor pass too early.

extern "C" __global__ void early_return(int *out, int alive)
{
    extern __shared__ int values[];
    int t = threadIdx.x;
    if (t >= alive)
        return;
    values[t] = t * 3 + blockIdx.x;
    __syncthreads();
    out[blockIdx.x * alive + t] = values[alive - 1 - t];
}

// Every other warp leaves; the others meet at two barriers in a loop.
extern "C" __global__ void warps_leave(unsigned *out, int rounds)
{
    __shared__ unsigned turn;
    if (threadIdx.x == 0)
        turn = 0;
    __syncthreads();
    if ((threadIdx.x / 32) % 2 == 1)
        return;
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x == 0)
            turn += blockIdx.x + 1;
        __syncthreads();
        unsigned seen = turn;
        __syncthreads();
        if (seen != (i + 1) * (blockIdx.x + 1))
            return;
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&out[blockIdx.x], turn);
}
