// Functions traded for speed, and the flushing of subnormals that comes with the flag.
// nvcc: --use_fast_math

extern "C" __global__ void fast_functions(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[9 * i] = __sinf(x[i]), out[9 * i + 1] = __cosf(x[i]), out[9 * i + 2] = __expf(x[i]);
    out[9 * i + 3] = __logf(y[i]), out[9 * i + 4] = __powf(y[i], x[i]), out[9 * i + 5] = __fdividef(x[i], y[i]);
    out[9 * i + 6] = rsqrtf(y[i]), out[9 * i + 7] = __log2f(y[i]), out[9 * i + 8] = exp10f(x[i]);
}

// The same sources as everywhere else, which the flag turns into approximations.
extern "C" __global__ void fast_ordinary(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = x[i] / y[i], out[4 * i + 1] = sqrtf(y[i]);
    out[4 * i + 2] = sinf(x[i]) * cosf(x[i]), out[4 * i + 3] = 1.0f / y[i];
}

extern "C" __global__ void flush_subnormals(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = x[i] + y[i], out[4 * i + 1] = x[i] * y[i];
    out[4 * i + 2] = fmaxf(x[i], y[i]), out[4 * i + 3] = fabsf(fminf(x[i], y[i]));
}
