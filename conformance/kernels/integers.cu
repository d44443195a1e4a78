// Integer arithmetic that one machine instruction does not cover, and the bit intrinsics that one does.

extern "C" __global__ void divide_32(const int *a, const int *b, int *quotient, int *remainder, unsigned *uquotient,
                                     unsigned *uremainder, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    quotient[i] = a[i] / b[i];
    remainder[i] = a[i] % b[i];
    uquotient[i] = static_cast<unsigned>(a[i]) / static_cast<unsigned>(b[i]);
    uremainder[i] = static_cast<unsigned>(a[i]) % static_cast<unsigned>(b[i]);
}

extern "C" __global__ void divide_64(const long long *a, const long long *b, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long ua = a[i], ub = b[i];
    out[4 * i] = a[i] / b[i];
    out[4 * i + 1] = a[i] % b[i];
    out[4 * i + 2] = ua / ub;
    out[4 * i + 3] = ua % ub;
}

// Divisions by constants become multiplications by their reciprocals.
extern "C" __global__ void divide_constants(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = in[i];
    int s = static_cast<int>(x);
    out[i] = x / 3 + x % 10 * 1000 + x / 641 + static_cast<unsigned>(s / 7) + static_cast<unsigned>(s % 1000) +
             static_cast<unsigned>(s / -16);
}

extern "C" __global__ void count_bits(const unsigned *in, const unsigned long long *wide, unsigned *out,
                                      unsigned long long *wide_out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = in[i];
    unsigned long long w = wide[i];
    out[i] = __popc(x) | __clz(x) << 8 | __ffs(x) << 16 | __popcll(w) << 24;
    out[n + i] = __brev(x) ^ (__clzll(w) << 7) ^ __ffsll(w);
    wide_out[i] = __brevll(w);
}

extern "C" __global__ void shifts(const unsigned *low, const unsigned *high, const unsigned *by, unsigned *out,
                                  long long *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = __funnelshift_l(low[i], high[i], by[i]);
    out[4 * i + 1] = __funnelshift_r(low[i], high[i], by[i]);
    out[4 * i + 2] = __funnelshift_lc(low[i], high[i], by[i]);
    out[4 * i + 3] = __funnelshift_rc(low[i], high[i], by[i]);
    long long both = static_cast<long long>(static_cast<unsigned long long>(high[i]) << 32 | low[i]);
    wide[i] = (both >> (by[i] & 63)) ^ static_cast<long long>(static_cast<unsigned long long>(both) << (by[i] * 5 & 63));
}

extern "C" __global__ void permute_bytes(const unsigned *a, const unsigned *b, const unsigned *selector,
                                         unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[2 * i] = __byte_perm(a[i], b[i], selector[i]);
    // The instruction itself can also spread a byte's sign.
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out[2 * i + 1]) : "r"(a[i]), "r"(b[i]), "r"(selector[i]));
}

extern "C" __global__ void dot_products(const int *a, const int *b, const int *c, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned ua = a[i], ub = b[i], uc = c[i];
    out[4 * i] = __dp4a(a[i], b[i], c[i]);
    out[4 * i + 1] = static_cast<int>(__dp4a(ua, ub, uc));
    out[4 * i + 2] = __dp2a_lo(a[i], b[i], c[i]);
    out[4 * i + 3] = static_cast<int>(__dp2a_hi(ua, ub, uc));
}

// Bit fields through the instructions themselves: no intrinsic reaches bfe and bfi.
extern "C" __global__ void bit_fields(const unsigned *a, const unsigned *position, const unsigned *length,
                                      unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned extracted, extended, inserted, found;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(extracted) : "r"(a[i]), "r"(position[i]), "r"(length[i]));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(extended) : "r"(a[i]), "r"(position[i]), "r"(length[i]));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(inserted) : "r"(a[i]), "r"(~a[i]), "r"(position[i]), "r"(length[i]));
    asm("bfind.s32 %0, %1;" : "=r"(found) : "r"(a[i]));
    out[4 * i] = extracted;
    out[4 * i + 1] = extended;
    out[4 * i + 2] = inserted;
    out[4 * i + 3] = found;
}

// Four bytes in a word, added, compared and averaged.
extern "C" __global__ void packed_bytes(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = __vaddus4(a[i], b[i]);
    out[4 * i + 1] = __vabsdiffu4(a[i], b[i]);
    out[4 * i + 2] = __vcmpgtu4(a[i], b[i]);
    out[4 * i + 3] = __vavgu4(a[i], b[i]);
}
