// One thread per element: the types, widths and strides that ordinary array code uses.
// nvcc: -fmad=false

extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void polynomial_int(const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int v = x[i];
        y[i] = ((3 * v - 7) * v + 11) * v - (v >> 3) + (v < 0 ? -v : v);
    }
}

extern "C" __global__ void double_norm(const double *x, const double *y, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double r = sqrt(x[i] * x[i] + y[i] * y[i]);
        out[i] = (x[i] - y[i]) / (r + 1.0);
    }
}

extern "C" __global__ void blend_bytes(const unsigned char *a, const unsigned char *b, unsigned char *out, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = (a[i] * 77 + b[i] * 179 + 128) >> 8;
}

extern "C" __global__ void vector_types(const float4 *a, const int2 *b, float4 *out, short4 *narrow, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = a[i];
    int2 w = b[i];
    out[i] = make_float4(v.w + v.x, v.z * 2.0f, v.y - static_cast<float>(w.x), static_cast<float>(w.y));
    narrow[i] = make_short4(w.x, w.y, w.x >> 16, w.y >> 16);
}

// Saturating 16-bit samples, as audio code mixes them.
extern "C" __global__ void mix_samples(const short *a, const short *b, short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = static_cast<short>(max(-32768, min(32767, a[i] + b[i])));
}
