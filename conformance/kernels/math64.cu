// The double-precision mathematical library, far arguments and slow paths included.

extern "C" __global__ void trigonometry_f64(const double *x, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double s, c;
    sincos(x[i] * 0.5, &s, &c);
    out[6 * i] = sin(x[i]), out[6 * i + 1] = cos(x[i]), out[6 * i + 2] = tan(x[i]);
    out[6 * i + 3] = s, out[6 * i + 4] = c, out[6 * i + 5] = sinpi(x[i] * 0.001);
}

extern "C" __global__ void inverse_f64(const double *x, const double *y, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[5 * i] = asin(x[i]), out[5 * i + 1] = acos(x[i]), out[5 * i + 2] = atan(x[i] * 20.0);
    out[5 * i + 3] = atan2(x[i], y[i]), out[5 * i + 4] = asinh(y[i]);
}

extern "C" __global__ void exponentials_f64(const double *x, const double *y, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[8 * i] = exp(x[i]), out[8 * i + 1] = exp2(x[i]), out[8 * i + 2] = expm1(x[i]);
    out[8 * i + 3] = log(y[i]), out[8 * i + 4] = log1p(y[i]), out[8 * i + 5] = log10(y[i]);
    out[8 * i + 6] = pow(y[i], x[i]), out[8 * i + 7] = tanh(x[i]);
}

extern "C" __global__ void special_f64(const double *x, const double *y, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[6 * i] = erf(x[i]), out[6 * i + 1] = erfc(x[i]), out[6 * i + 2] = tgamma(y[i]);
    out[6 * i + 3] = lgamma(y[i]), out[6 * i + 4] = cbrt(x[i]), out[6 * i + 5] = hypot(x[i], y[i]);
}

// Remainders are exact whatever the quotient.
extern "C" __global__ void remainders_f64(const double *x, const double *y, double *out, int *quotient, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[3 * i] = fmod(x[i], y[i]);
    out[3 * i + 1] = remainder(x[i], y[i]);
    out[3 * i + 2] = remquo(x[i], y[i], &quotient[i]);
}
