// Arithmetic in f16 and bf16, scalar and packed, whose rounding is defined bit for bit.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_ops(const __half *a, const __half *b, __half *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = __hadd(a[i], b[i]);
    out[n + i] = __hmul(a[i], b[i]);
    out[2 * n + i] = __hsub(a[i], b[i]);
    out[3 * n + i] = __hfma(a[i], b[i], a[i]);
    out[4 * n + i] = __float2half_rn(__half2float(a[i]) * 0.5f + __half2float(b[i]));
    out[5 * n + i] = __hlt(a[i], b[i]) ? __hneg(a[i]) : __habs(b[i]);
    out[6 * n + i] = __hmax(a[i], b[i]);
}

extern "C" __global__ void half2_ops(const __half2 *a, const __half2 *b, __half2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = __hfma2(a[i], b[i], __hadd2(a[i], b[i]));
}

extern "C" __global__ void bfloat_ops(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = __hadd(a[i], b[i]);
    out[n + i] = __hmul(a[i], b[i]);
    out[2 * n + i] = __hfma(a[i], b[i], b[i]);
    out[3 * n + i] = __float2bfloat16_rn(__bfloat162float(a[i]) - 2.0f * __bfloat162float(b[i]));
    out[4 * n + i] = __hmin(a[i], b[i]);
}
