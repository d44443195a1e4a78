// Vectors, matrices and transforms.

extern "C" __global__ void matrix_product(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float ta[16][16], tb[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        int x = start + threadIdx.x, y = start + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = row < m && x < k ? a[row * k + x] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = y < k && column < n ? b[y * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}

extern "C" __global__ void matrix_vector(const double *a, const double *x, double *y, int rows, int columns)
{
    extern __shared__ double staged[];
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        staged[j] = x[j];
    __syncthreads();
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int j = 0; j < columns; j++)
        sum = fma(a[row * columns + j], staged[j], sum);
    y[row] = sum;
}

// 256 complex numbers by 128 threads: bit reversal, then eight passes through shared memory.
extern "C" __global__ void fourier(const float2 *in, float2 *out)
{
    __shared__ float2 v[256];
    for (unsigned i = threadIdx.x; i < 256; i += 128)
        v[__brev(i) >> 24] = in[blockIdx.x * 256 + i];
    __syncthreads();
    for (unsigned size = 2; size <= 256; size *= 2) {
        unsigned half = size / 2, k = threadIdx.x % half, base = threadIdx.x / half * size + k;
        float s, c;
        sincospif(-2.0f * k / size, &s, &c);
        float2 a = v[base], b = v[base + half];
        float2 t = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
        v[base] = make_float2(a.x + t.x, a.y + t.y);
        v[base + half] = make_float2(a.x - t.x, a.y - t.y);
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < 256; i += 128)
        out[blockIdx.x * 256 + i] = v[i];
}

extern "C" __constant__ float filter[9] = {0.05f, 0.1f, 0.15f, 0.2f, 0.0f, -0.2f, -0.15f, -0.1f, -0.05f};

extern "C" __global__ void convolve(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < 9; k++)
        if (i + k - 4 >= 0 && i + k - 4 < n)
            sum = fmaf(filter[k], in[i + k - 4], sum);
    out[i] = sum;
}

// Solves a small system per thread, in a local array indexed at run time.
extern "C" __global__ void solve_systems(const double *matrices, double *solutions, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double a[4][5];
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 5; c++)
            a[r][c] = matrices[20 * i + 5 * r + c];
    for (int k = 0; k < 4; k++) {
        int pivot = k;
        for (int r = k + 1; r < 4; r++)
            if (fabs(a[r][k]) > fabs(a[pivot][k]))
                pivot = r;
        for (int c = 0; c < 5; c++) {
            double t = a[k][c];
            a[k][c] = a[pivot][c];
            a[pivot][c] = t;
        }
        for (int r = 0; r < 4; r++)
            if (r != k) {
                double factor = a[r][k] / a[k][k];
                for (int c = k; c < 5; c++)
                    a[r][c] -= factor * a[k][c];
            }
    }
    for (int k = 0; k < 4; k++)
        solutions[4 * i + k] = a[k][4] / a[k][k];
}

// Wagner and Fischer, a row at a time in local memory.
extern "C" __global__ void edit_distance(const char *a, const char *b, int length, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    a += i * length, b += i * length;
    unsigned char row[33];
    for (int k = 0; k <= length; k++)
        row[k] = k;
    for (int r = 1; r <= length; r++) {
        unsigned char diagonal = row[0];
        row[0] = r;
        for (int c = 1; c <= length; c++) {
            unsigned char best = min(min(row[c], row[c - 1]) + 1, diagonal + (a[r - 1] != b[c - 1]));
            diagonal = row[c];
            row[c] = best;
        }
    }
    out[i] = row[length];
}
