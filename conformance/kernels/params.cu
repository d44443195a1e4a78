// Parameters of every size and alignment, a struct by value, and more bytes than fit a small buffer.

struct Mixed {
    char a;
    double b;
    short c;
    float d[3];
    long long e;
};

struct Large {
    unsigned words[900];
};

extern "C" __global__ void mixed(char a, short b, int c, long long d, float e, double f, Mixed g, const double *h,
                                 double *out)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = static_cast<double>(d);
    out[4] = e;
    out[5] = f;
    out[6] = g.a + g.b + g.c + g.d[0] + g.d[1] + g.d[2] + static_cast<double>(g.e);
    out[7] = *h;
}

extern "C" __global__ void large(Large values, unsigned *out)
{
    out[threadIdx.x] = values.words[threadIdx.x * 7 % 900];
}

extern "C" __global__ void __launch_bounds__(128) bounded(unsigned *out)
{
    out[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void no_parameters() {}
