// Small kernels from which programs about ordering are built: they log, wait, and signal.

// Appends `token` to a log; the order of the log is the order in which the blocks ran.
extern "C" __global__ void append(unsigned *log, unsigned *length, unsigned token)
{
    if (threadIdx.x == 0)
        log[atomicAdd(length, 1u)] = token;
}

// Takes `nanoseconds`, then appends.
extern "C" __global__ void slow_append(unsigned *log, unsigned *length, unsigned token, unsigned long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    if (threadIdx.x == 0)
        log[atomicAdd(length, 1u)] = token;
}

// Waits until the host, another stream or another process stores a non-zero value.
extern "C" __global__ void await_flag(volatile unsigned *flag)
{
    while (*flag == 0) {
    }
}

extern "C" __global__ void set_flag(volatile unsigned *flag, unsigned value)
{
    *flag = value;
    __threadfence_system();
}

// x[i] = x[i] * factor + i: repeated launches commute only in the right order.
extern "C" __global__ void affine(unsigned *x, unsigned factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * factor + i;
}

extern "C" __global__ void copy(const unsigned *from, unsigned *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

// Every block takes `nanoseconds` and counts itself; the first then waits for the last, which has the highest number.
extern "C" __global__ void first_awaits_last(volatile unsigned *flag, unsigned *count, unsigned long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        __nanosleep(20000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    if (threadIdx.x != 0)
        return;
    atomicAdd(count, 1u);
    if (blockIdx.x == gridDim.x - 1)
        *flag = 1;
    if (blockIdx.x == 0)
        while (*flag == 0) {
        }
}
