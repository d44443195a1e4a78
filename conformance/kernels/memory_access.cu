// Ways of reaching memory: cache hints, generic pointers, copies that overlap, unusual widths.

#include <cuda_pipeline.h>

extern "C" __global__ void cache_hints(const int *__restrict__ a, const float2 *__restrict__ b, int *out, float2 *wide,
                                       int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __stcs(&out[i], __ldg(&a[i]) + __ldcs(&a[n - 1 - i]) + __ldcg(&a[i]) + __ldca(&a[i / 2]));
    __stwt(&wide[i], __ldg(&b[n - 1 - i]));
}

__device__ int global_cell = 5;

// One pointer, four kinds of memory behind it.
extern "C" __global__ void generic_pointers(const int *in, int *out)
{
    __shared__ int shared_cell[64];
    int local_cell[4] = {100, 200, 300, 400};
    shared_cell[threadIdx.x] = 1000 + threadIdx.x;
    __syncthreads();
    const int *from;
    switch (threadIdx.x % 4) {
    case 0: from = in + threadIdx.x; break;
    case 1: from = shared_cell + (63 - threadIdx.x); break;
    case 2: from = local_cell + threadIdx.x / 4 % 4; break;
    default: from = &global_cell; break;
    }
    int spaces = __isGlobal(from) | __isShared(from) << 1 | __isLocal(from) << 2;
    out[threadIdx.x] = *from * 8 + spaces;
}

// Copies to shared memory that go on while the thread computes.
extern "C" __global__ void async_copies(const float4 *in, float4 *out, int tiles)
{
    __shared__ float4 buffer[2][64];
    unsigned i = threadIdx.x;
    __pipeline_memcpy_async(&buffer[0][i], &in[i], sizeof(float4));
    __pipeline_commit();
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles)
            __pipeline_memcpy_async(&buffer[(t + 1) & 1][i], &in[(t + 1) * 64 + i], sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = buffer[t & 1][63 - i];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        __syncthreads();
    }
    out[i] = sum;
}

struct __attribute__((packed)) Record {
    unsigned char kind;
    unsigned int size;
    unsigned short check;
};

extern "C" __global__ void packed_records(const Record *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i].kind ^ in[i].size ^ static_cast<unsigned>(in[i].check) << 16;
}

// Structures copied whole, sixteen bytes at a time where the compiler may.
struct alignas(16) Particle {
    double position[3];
    float mass;
    short charge[2];
};

extern "C" __global__ void move_particles(const Particle *in, Particle *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Particle p = in[n - 1 - i];
    p.position[i % 3] += p.mass;
    p.charge[i & 1] = -p.charge[i & 1];
    out[i] = p;
}

// Copies by memcpy and memset in device code.
extern "C" __global__ void block_copies(const unsigned char *in, unsigned char *out, int row)
{
    unsigned char line[40];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    memset(line, i, sizeof line);
    memcpy(line + i % 8, in + i * row, row);
    memcpy(out + i * 40, line, sizeof line);
}
