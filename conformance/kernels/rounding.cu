// Rounding in every direction, conversions between integers and floats, and special values: exact to the bit.
// nvcc: -fmad=false

extern "C" __global__ void directed_f32(const float *a, const float *b, const float *c, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], y = b[i], z = c[i];
    float *o = out + 18 * i;
    o[0] = __fadd_rz(x, y), o[1] = __fadd_rd(x, y), o[2] = __fadd_ru(x, y);
    o[3] = __fsub_rz(x, y), o[4] = __fsub_rd(x, y), o[5] = __fsub_ru(x, y);
    o[6] = __fmul_rz(x, y), o[7] = __fmul_rd(x, y), o[8] = __fmul_ru(x, y);
    o[9] = __fmaf_rz(x, y, z), o[10] = __fmaf_rd(x, y, z), o[11] = __fmaf_ru(x, y, z);
    o[12] = __fdiv_rz(x, y), o[13] = __fdiv_rd(x, y), o[14] = __fdiv_ru(x, y);
    o[15] = __fsqrt_rz(z), o[16] = __fsqrt_rd(z), o[17] = __frcp_ru(y);
}

extern "C" __global__ void directed_f64(const double *a, const double *b, const double *c, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double x = a[i], y = b[i], z = c[i];
    double *o = out + 18 * i;
    o[0] = __dadd_rz(x, y), o[1] = __dadd_rd(x, y), o[2] = __dadd_ru(x, y);
    o[3] = __dsub_rz(x, y), o[4] = __dsub_rd(x, y), o[5] = __dsub_ru(x, y);
    o[6] = __dmul_rz(x, y), o[7] = __dmul_rd(x, y), o[8] = __dmul_ru(x, y);
    o[9] = __fma_rz(x, y, z), o[10] = __fma_rd(x, y, z), o[11] = __fma_ru(x, y, z);
    o[12] = __ddiv_rz(x, y), o[13] = __ddiv_rd(x, y), o[14] = __ddiv_ru(x, y);
    o[15] = __dsqrt_rz(z), o[16] = __dsqrt_rd(z), o[17] = __drcp_ru(y);
}

extern "C" __global__ void float_to_integer(const float *a, const double *b, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i];
    double y = b[i];
    long long *o = out + 12 * i;
    o[0] = __float2int_rn(x), o[1] = __float2int_rz(x), o[2] = __float2int_ru(x), o[3] = __float2int_rd(x);
    o[4] = __float2uint_rn(x), o[5] = __float2ll_rz(x), o[6] = __float2ull_rd(x);
    o[7] = __double2int_rn(y), o[8] = __double2uint_rz(y), o[9] = __double2ll_rd(y), o[10] = __double2ull_ru(y);
    o[11] = static_cast<signed char>(__float2int_rz(x)) + static_cast<unsigned short>(__double2uint_rz(y));
}

extern "C" __global__ void integer_to_float(const long long *a, float *out, double *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long x = a[i];
    out[6 * i] = __int2float_rz(static_cast<int>(x));
    out[6 * i + 1] = __uint2float_ru(static_cast<unsigned>(x));
    out[6 * i + 2] = __ll2float_rd(x);
    out[6 * i + 3] = __ull2float_rn(x);
    out[6 * i + 4] = static_cast<signed char>(x);
    out[6 * i + 5] = static_cast<unsigned short>(x);
    wide[4 * i] = __ll2double_rz(x);
    wide[4 * i + 1] = __ull2double_ru(x);
    wide[4 * i + 2] = __ll2double_rn(x);
    wide[4 * i + 3] = __uint2double_rn(static_cast<unsigned>(x));
}

extern "C" __global__ void float_to_float(const double *a, float *out, double *integral, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double x = a[i];
    out[4 * i] = __double2float_rn(x), out[4 * i + 1] = __double2float_rz(x);
    out[4 * i + 2] = __double2float_ru(x), out[4 * i + 3] = __double2float_rd(x);
    integral[5 * i] = floor(x), integral[5 * i + 1] = ceil(x), integral[5 * i + 2] = trunc(x);
    integral[5 * i + 3] = rint(x), integral[5 * i + 4] = floorf(static_cast<float>(x));
}

extern "C" __global__ void special_values(const float *a, const float *b, float *out, unsigned *classes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], y = b[i];
    out[7 * i] = fminf(x, y), out[7 * i + 1] = fmaxf(x, y), out[7 * i + 2] = copysignf(x, y);
    out[7 * i + 3] = __saturatef(x), out[7 * i + 4] = fabsf(y), out[7 * i + 5] = nextafterf(x, y);
    out[7 * i + 6] = fdimf(x, y);
    classes[i] = isnan(x) | isinf(x) << 1 | isfinite(x) << 2 | signbit(x) << 3 | (x < y) << 4 | (x >= y) << 5 |
                 (x != y) << 6 | !(x < y) << 7 | (isnan(x) || isnan(y)) << 8;
}

extern "C" __global__ void parts_of_floats(const float *a, const double *b, float *out, double *wide, int *exponents,
                                           int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = frexpf(a[i], &exponents[3 * i]);
    out[4 * i + 1] = ldexpf(a[i], i % 41 - 20);
    out[4 * i + 2] = modff(a[i], &out[4 * i + 3]);
    wide[2 * i] = frexp(b[i], &exponents[3 * i + 1]);
    wide[2 * i + 1] = scalbn(b[i], i % 61 - 30);
    exponents[3 * i + 2] = ilogbf(a[i]);
}
