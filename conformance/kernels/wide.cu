// Numbers wider than a register: high halves, carries, 128 bits, modular arithmetic.

extern "C" __global__ void high_halves(const int *a, const int *b, const long long *c, const long long *d,
                                       unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[5 * i] = static_cast<unsigned>(__mulhi(a[i], b[i]));
    out[5 * i + 1] = __umulhi(a[i], b[i]);
    out[5 * i + 2] = __mul64hi(c[i], d[i]);
    out[5 * i + 3] = __umul64hi(c[i], d[i]);
    out[5 * i + 4] = static_cast<unsigned long long>(a[i]) * b[i] + __umul24(a[i], b[i]) + __usad(a[i], b[i], 7);
}

extern "C" __global__ void arithmetic_128(const ulonglong2 *a, const ulonglong2 *b, ulonglong2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned __int128 x = static_cast<unsigned __int128>(a[i].y) << 64 | a[i].x;
    unsigned __int128 y = static_cast<unsigned __int128>(b[i].y) << 64 | b[i].x;
    unsigned __int128 results[5] = {x * y, x - y, x / y, x % y, (x >> (y & 127)) ^ (x << (y >> 64 & 127))};
    __int128 sx = x, sy = y;
    for (int k = 0; k < 5; k++)
        out[7 * i + k] = make_ulonglong2(results[k], results[k] >> 64);
    __int128 q = sx / sy;
    out[7 * i + 5] = make_ulonglong2(q, q >> 64);
    out[7 * i + 6] = make_ulonglong2(sx < sy, x < y);
}

// 128-bit sums and differences by the carry flag.
extern "C" __global__ void carry_chain(const unsigned *a, const unsigned *b, unsigned *sum, unsigned *difference,
                                       int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    a += 4 * i, b += 4 * i, sum += 4 * i, difference += 4 * i;
    asm("add.cc.u32 %0, %4, %8;\n\t"
        "addc.cc.u32 %1, %5, %9;\n\t"
        "addc.cc.u32 %2, %6, %10;\n\t"
        "addc.u32 %3, %7, %11;"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
    asm("sub.cc.u32 %0, %4, %8;\n\t"
        "subc.cc.u32 %1, %5, %9;\n\t"
        "subc.cc.u32 %2, %6, %10;\n\t"
        "subc.u32 %3, %7, %11;"
        : "=r"(difference[0]), "=r"(difference[1]), "=r"(difference[2]), "=r"(difference[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
}

// base^exponent mod modulus, with a 128-bit product in every step.
extern "C" __global__ void modular_power(const unsigned long long *base, const unsigned *exponent,
                                         unsigned long long modulus, unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long result = 1, power = base[i] % modulus;
    for (unsigned e = exponent[i]; e; e >>= 1) {
        if (e & 1)
            result = static_cast<unsigned __int128>(result) * power % modulus;
        power = static_cast<unsigned __int128>(power) * power % modulus;
    }
    out[i] = result;
}

extern "C" __global__ void greatest_common_divisor(const unsigned long long *a, const unsigned long long *b,
                                                   unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = a[i], y = b[i];
    while (y) {
        unsigned long long rest = x % y;
        x = y;
        y = rest;
    }
    out[i] = x;
}
