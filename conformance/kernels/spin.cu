// Kernels that take time, by each of the clocks, and report what they measured.

__device__ static unsigned long long global_timer()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Spins for `ticks` of the SM's clock; `out[block]` gets the ticks that really passed.
extern "C" __global__ void spin_clock(long long ticks, long long *out)
{
    long long start = clock64(), now;
    do {
        now = clock64();
    } while (now - start < ticks);
    if (out && threadIdx.x == 0)
        out[blockIdx.x] = now - start;
}

// Spins for `nanoseconds` of wall time.
extern "C" __global__ void spin_timer(unsigned long long nanoseconds, unsigned long long *out)
{
    unsigned long long start = global_timer(), now;
    do {
        now = global_timer();
    } while (now - start < nanoseconds);
    if (out && threadIdx.x == 0)
        out[blockIdx.x] = now - start;
}

// Sleeps in pieces until `nanoseconds` of wall time have passed.
extern "C" __global__ void sleep_timer(unsigned long long nanoseconds, unsigned long long *out)
{
    unsigned long long start = global_timer(), now;
    do {
        __nanosleep(20000);
        now = global_timer();
    } while (now - start < nanoseconds);
    if (out && threadIdx.x == 0)
        out[blockIdx.x] = now - start;
}

extern "C" __global__ void forever(volatile int *never)
{
    while (*never == 0) {
    }
}

extern "C" __global__ void empty() {}
