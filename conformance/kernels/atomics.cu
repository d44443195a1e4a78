// Many threads at one address: every atomic operation, locks, tables, messages.

extern "C" __global__ void atomic_kinds(const int *in, int *out, unsigned *uout, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = in[i];
    atomicAdd(&out[0], x), atomicSub(&out[1], x), atomicMin(&out[2], x), atomicMax(&out[3], x);
    atomicAnd(&out[4], x | 1 << (i % 7)), atomicOr(&out[5], x & 0x0f0f0f0f), atomicXor(&out[6], x);
    atomicInc(&uout[0], 99u), atomicDec(&uout[1], 1000u);
    atomicMin(&uout[2], static_cast<unsigned>(x)), atomicMax(&uout[3], static_cast<unsigned>(x));
}

extern "C" __global__ void atomic_wide(const long long *in, unsigned long long *out, long long *sout, double *sum,
                                       float *fsum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = in[i];
    atomicAdd(&out[0], x), atomicXor(&out[1], x), atomicOr(&out[2], x & 0x1111111111111111ull);
    atomicAnd(&out[3], x | 0xff), atomicMax(&out[4], x), atomicMin(&out[5], x);
    atomicMin(&sout[0], in[i]), atomicMax(&sout[1], in[i]);
    // Small integers, so that the order of the sums does not matter.
    atomicAdd(sum, static_cast<double>(in[i] % 1000));
    atomicAdd(fsum, static_cast<float>(in[i] % 8));
}

// Every thread sees a different old value.
extern "C" __global__ void unique_numbers(unsigned *counter, unsigned *taken, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        taken[atomicAdd(counter, 1u)] = 1;
}

// Scopes narrower and wider than the device.
extern "C" __global__ void atomic_scopes(unsigned *out)
{
    __shared__ unsigned local;
    if (threadIdx.x == 0)
        local = 0;
    __syncthreads();
    atomicAdd_block(&local, threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd_system(&out[0], local);
        atomicExch(&out[1 + blockIdx.x], local);
    }
}

// A product by compare and swap, which no instruction does.
extern "C" __global__ void atomic_product(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned old = *out, assumed;
    do {
        assumed = old;
        old = atomicCAS(out, assumed, assumed * in[i]);
    } while (assumed != old);
}

// A lock held by one thread of a block at a time, the plain variable behind it.
extern "C" __global__ void spin_lock(int *lock, volatile unsigned long long *shared, int rounds)
{
    if (threadIdx.x == 0)
        for (int k = 0; k < rounds; k++) {
            while (atomicCAS(lock, 0, 1) != 0)
                __nanosleep(50);
            __threadfence();
            shared[0] = shared[0] + blockIdx.x;
            shared[1] = shared[1] + 1;
            __threadfence();
            atomicExch(lock, 0);
        }
}

// Every thread of a warp wants the same lock: only a diverging loop gets them all through.
extern "C" __global__ void contended_lock(int *lock, volatile int *value)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *value = *value + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

constexpr unsigned EMPTY = 0xffffffffu;

// Open addressing: a key is put once and counted as often as it comes.
extern "C" __global__ void hash_insert(const unsigned *keys, unsigned *table, unsigned *counts, int slots, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i], slot = key * 2654435761u % slots;
    while (true) {
        unsigned old = atomicCAS(&table[slot], EMPTY, key);
        if (old == EMPTY || old == key) {
            atomicAdd(&counts[slot], 1u);
            return;
        }
        slot = (slot + 1) % slots;
    }
}

extern "C" __global__ void hash_lookup(const unsigned *keys, const unsigned *table, const unsigned *counts,
                                       unsigned *out, int slots, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i], slot = key * 2654435761u % slots;
    while (table[slot] != key && table[slot] != EMPTY)
        slot = (slot + 1) % slots;
    out[i] = table[slot] == key ? counts[slot] : 0;
}

__device__ unsigned blocks_done;

// The block that finishes last adds up what the others left.
extern "C" __global__ void last_block_sums(const unsigned *in, volatile unsigned *partial, unsigned *out, int n)
{
    __shared__ bool last;
    unsigned sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = __reduce_add_sync(0xffffffffu, sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        unsigned total = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            total += partial[b];
        *out = total;
    }
}

// Block 0 writes, then raises a flag; block 1 waits for the flag, then reads.
extern "C" __global__ void message(volatile int *flag, volatile int *data, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x * threadIdx.x + 1;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            *flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*flag == 0)
                ;
        __syncthreads();
        __threadfence();
        out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
    }
}
