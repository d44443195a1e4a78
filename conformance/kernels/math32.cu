// The single-precision mathematical library, far arguments and slow paths included.

extern "C" __global__ void trigonometry_f32(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s, c;
    sincosf(x[i] * 0.5f, &s, &c);
    out[6 * i] = sinf(x[i]), out[6 * i + 1] = cosf(x[i]), out[6 * i + 2] = tanf(x[i]);
    out[6 * i + 3] = s, out[6 * i + 4] = c, out[6 * i + 5] = sinpif(x[i] * 0.001f);
}

extern "C" __global__ void inverse_f32(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[5 * i] = asinf(x[i]), out[5 * i + 1] = acosf(x[i]), out[5 * i + 2] = atanf(x[i] * 20.0f);
    out[5 * i + 3] = atan2f(x[i], y[i]), out[5 * i + 4] = asinhf(y[i]);
}

extern "C" __global__ void exponentials_f32(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[8 * i] = expf(x[i]), out[8 * i + 1] = exp2f(x[i]), out[8 * i + 2] = expm1f(x[i]);
    out[8 * i + 3] = logf(y[i]), out[8 * i + 4] = log1pf(y[i]), out[8 * i + 5] = log10f(y[i]);
    out[8 * i + 6] = powf(y[i], x[i]), out[8 * i + 7] = tanhf(x[i]);
}

extern "C" __global__ void special_f32(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[6 * i] = erff(x[i]), out[6 * i + 1] = erfcf(x[i]), out[6 * i + 2] = tgammaf(y[i]);
    out[6 * i + 3] = lgammaf(y[i]), out[6 * i + 4] = cbrtf(x[i]), out[6 * i + 5] = hypotf(x[i], y[i]);
}

// Remainders are exact whatever the quotient.
extern "C" __global__ void remainders_f32(const float *x, const float *y, float *out, int *quotient, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[3 * i] = fmodf(x[i], y[i]);
    out[3 * i + 1] = remainderf(x[i], y[i]);
    out[3 * i + 2] = remquof(x[i], y[i], &quotient[i]);
}
