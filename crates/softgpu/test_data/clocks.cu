// nvcc 13.0 makes the .ptx files beside this: `nvcc -ptx -arch=compute_90` the one named sm_90, and
// `nvcc -ptx -Xcicc -O0 -arch=compute_80` the one named sm_80.O0.

// Ways to wait.

extern "C" __global__ void spin64(long long n)
{
    long long start = clock64();
    while (clock64() - start < n)
        ;
}

extern "C" __global__ void spin32(unsigned n)
{
    unsigned start = clock();
    while ((unsigned)clock() - start < n)
        ;
}

__device__ unsigned long long timer()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

extern "C" __global__ void spin_timer(unsigned long long n, unsigned long long *out)
{
    unsigned long long start = timer();
    while (timer() - start < n)
        __nanosleep(100);
    *out = timer() - start;
}

extern "C" __global__ void nap(unsigned n)
{
    __nanosleep(n);
}

extern "C" __global__ void count_until(long long n, int *out)
{
    long long start = clock64();
    int rounds = 0;
    while (clock64() - start < n)
        rounds++;
    *out = rounds;
}
