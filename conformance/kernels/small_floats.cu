// f16, bf16 and fp8: conversions in every direction, packed arithmetic, and what compiles to software on older targets.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void half_conversions(const float *x, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned short *o = out + 8 * i;
    o[0] = __half_as_ushort(__float2half_rn(x[i])), o[1] = __half_as_ushort(__float2half_rz(x[i]));
    o[2] = __half_as_ushort(__float2half_rd(x[i])), o[3] = __half_as_ushort(__float2half_ru(x[i]));
    o[4] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i])), o[5] = __bfloat16_as_ushort(__float2bfloat16_rz(x[i]));
    o[6] = __half_as_ushort(__double2half(static_cast<double>(x[i]) * 1.0009765625));
    o[7] = __half_as_ushort(__int2half_rn(static_cast<int>(x[i])));
}

extern "C" __global__ void half_to_integer(const unsigned short *x, int *out, float *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half h = __ushort_as_half(x[i]);
    out[4 * i] = __half2int_rn(h), out[4 * i + 1] = __half2int_rz(h);
    out[4 * i + 2] = __half2ushort_ru(h), out[4 * i + 3] = __half2short_rd(h);
    wide[i] = __half2float(h);
}

extern "C" __global__ void half2_polynomial(const __half2 *x, __half2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 v = x[i];
    __half2 p = __hfma2(v, __float2half2_rn(0.25f), __floats2half2_rn(1.0f, -1.0f));
    p = __hfma2(p, v, __hmul2(v, v));
    out[2 * i] = __hmax2(p, __hneg2(v));
    out[2 * i + 1] = __hsub2(__lowhigh2highlow(p), __hadd2_sat(v, p));
}

extern "C" __global__ void half_functions(const __half *x, __half *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[6 * i] = hsqrt(x[i]), out[6 * i + 1] = hrcp(x[i]), out[6 * i + 2] = hexp(x[i]);
    out[6 * i + 3] = hlog(x[i]), out[6 * i + 4] = hsin(x[i]), out[6 * i + 5] = __hdiv(x[i], __float2half(3.0f));
}

extern "C" __global__ void bfloat2_dot(const __nv_bfloat162 *a, const __nv_bfloat162 *b, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat162 product = __hmul2(a[i], b[i]);
    __nv_bfloat162 fused = __hfma2(a[i], b[i], product);
    out[3 * i] = __low2float(product) + __high2float(product);
    out[3 * i + 1] = __low2float(fused);
    out[3 * i + 2] = __bfloat162float(__hmax(__low2bfloat16(a[i]), __high2bfloat16(b[i])));
}

extern "C" __global__ void fp8_conversions(const float *x, unsigned char *e4m3, unsigned char *e5m2, float *back, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_fp8_e4m3 a(x[i]);
    __nv_fp8_e5m2 b(x[i]);
    e4m3[i] = a.__x, e5m2[i] = b.__x;
    back[2 * i] = static_cast<float>(a), back[2 * i + 1] = static_cast<float>(b);
}

// fp8 in, fp8 out, f16 in between: four values in a word.
extern "C" __global__ void fp8x4_scale(const unsigned *x, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_fp8x4_e4m3 packed;
    packed.__x = x[i];
    float4 v = static_cast<float4>(packed);
    __nv_fp8x4_e4m3 scaled(make_float4(v.x * 0.5f, v.y * 3.0f, v.z + v.w, v.w));
    out[i] = scaled.__x;
}
