// Kernels that go wrong, each in one way.

#include <cassert>

extern "C" __global__ void trap_if(const int *value, int limit)
{
    if (value[threadIdx.x] > limit)
        __trap();
}

extern "C" __global__ void store_at(unsigned *address, unsigned value)
{
    *address = value;
}

extern "C" __global__ void load_from(const unsigned *address, unsigned *out)
{
    *out = *reinterpret_cast<const volatile unsigned *>(address);
}

extern "C" __global__ void atomic_at(unsigned *address)
{
    atomicAdd(address, 1u);
}

extern "C" __global__ void assert_less(const int *value, int limit)
{
    assert(value[threadIdx.x] < limit);
}

extern "C" __global__ void shared_beyond(unsigned *out, unsigned index)
{
    __shared__ volatile unsigned values[32];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[index + threadIdx.x];
}
