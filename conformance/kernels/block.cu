// Threads of a block working through shared memory and barriers.

extern "C" __global__ void block_sum(const float *in, float *out, int n)
{
    __shared__ float partial[256];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = partial[0];
}

extern "C" __global__ void block_scan(const int *in, int *out)
{
    extern __shared__ int buffer[];
    int *from = buffer, *to = buffer + blockDim.x;
    unsigned i = threadIdx.x;
    from[i] = in[blockIdx.x * blockDim.x + i];
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        to[i] = from[i] + (i >= step ? from[i - step] : 0);
        __syncthreads();
        int *other = from;
        from = to;
        to = other;
    }
    out[blockIdx.x * blockDim.x + i] = from[i];
}

extern "C" __global__ void shared_histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned bins[256];
    for (unsigned b = threadIdx.x; b < 256; b += blockDim.x)
        bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    for (unsigned b = threadIdx.x; b < 256; b += blockDim.x)
        if (bins[b])
            atomicAdd(&out[b], bins[b]);
}

// A column of padding keeps the banks apart; here it only has to keep the indices right.
extern "C" __global__ void transpose(const double *in, double *out, int width, int height)
{
    __shared__ double tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width)
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void counting_barriers(const int *in, int *out)
{
    int x = in[blockIdx.x * blockDim.x + threadIdx.x];
    int positive = __syncthreads_count(x > 0);
    int all = __syncthreads_and(x > -1000);
    int any = __syncthreads_or(x == 77);
    out[blockIdx.x * blockDim.x + threadIdx.x] = positive * 4 + (all != 0) * 2 + (any != 0);
}

// Half of the warps make, the other half use; two named barriers pass the buffer to and fro.
extern "C" __global__ void producer_consumer(const int *in, int *out, int rounds)
{
    __shared__ int buffer[64];
    bool producer = threadIdx.x < 64;
    int i = threadIdx.x % 64, sum = 0;
    for (int round = 0; round < rounds; round++) {
        if (producer) {
            if (round > 0)
                asm volatile("barrier.sync 2, 128;" ::: "memory");
            buffer[i] = in[round * 64 + i] * 3;
            __threadfence_block();
            asm volatile("barrier.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("barrier.sync 1, 128;" ::: "memory");
            sum = sum * 5 + buffer[63 - i];
            if (round + 1 < rounds)
                asm volatile("barrier.arrive 2, 128;" ::: "memory");
        }
    }
    if (!producer)
        out[i] = sum;
}

// Threads outside leave before the barriers that the others go on to use.
extern "C" __global__ void leave_early(const int *in, int *out, int n)
{
    __shared__ int values[128];
    if (threadIdx.x >= static_cast<unsigned>(n))
        return;
    values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int step = 0; step < 4; step++) {
        int next = values[(threadIdx.x + 1) % n];
        __syncthreads();
        values[threadIdx.x] += next;
        __syncthreads();
    }
    out[threadIdx.x] = values[threadIdx.x];
}
