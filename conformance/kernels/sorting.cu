// Putting things in order.

extern "C" __global__ void bitonic_sort(int *keys, int *values)
{
    __shared__ int k[512], v[512];
    unsigned i = threadIdx.x;
    k[i] = keys[blockIdx.x * 512 + i];
    v[i] = values[blockIdx.x * 512 + i];
    __syncthreads();
    for (unsigned size = 2; size <= 512; size *= 2)
        for (unsigned stride = size / 2; stride; stride /= 2) {
            unsigned other = i ^ stride;
            if (other > i) {
                bool up = (i & size) == 0;
                if ((k[i] > k[other]) == up) {
                    int t = k[i];
                    k[i] = k[other];
                    k[other] = t;
                    t = v[i];
                    v[i] = v[other];
                    v[other] = t;
                }
            }
            __syncthreads();
        }
    keys[blockIdx.x * 512 + i] = k[i];
    values[blockIdx.x * 512 + i] = v[i];
}

// One block sorts by four bits at a time, keeping equal digits in order.
extern "C" __global__ void radix_sort(unsigned *keys, unsigned *scratch, int n)
{
    __shared__ unsigned counts[16][257];
    unsigned i = threadIdx.x, each = n / 256;
    unsigned *from = keys, *to = scratch;
    for (int shift = 0; shift < 32; shift += 4) {
        for (int d = 0; d < 16; d++)
            counts[d][i] = 0;
        for (unsigned j = 0; j < each; j++)
            counts[from[i * each + j] >> shift & 15][i]++;
        __syncthreads();
        if (i == 0) {
            unsigned sum = 0;
            for (int d = 0; d < 16; d++)
                for (int t = 0; t < 256; t++) {
                    unsigned c = counts[d][t];
                    counts[d][t] = sum;
                    sum += c;
                }
        }
        __syncthreads();
        for (unsigned j = 0; j < each; j++) {
            unsigned key = from[i * each + j];
            to[counts[key >> shift & 15][i]++] = key;
        }
        __syncthreads();
        unsigned *t = from;
        from = to;
        to = t;
    }
}

// Each thread sorts a row of its own in local memory, by recursion.
__device__ void quick_sort(short *a, int low, int high)
{
    if (low >= high)
        return;
    short pivot = a[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            short t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quick_sort(a, low, j);
    quick_sort(a, i, high);
}

extern "C" __global__ void sort_rows(const short *in, short *out)
{
    short row[24];
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * 24;
    for (int k = 0; k < 24; k++)
        row[k] = in[start + k];
    quick_sort(row, 0, 23);
    for (int k = 0; k < 24; k++)
        out[start + k] = row[k];
}

// Where each value of `needles` would go in the sorted `hay`.
extern "C" __global__ void lower_bound(const long long *hay, int n, const long long *needles, int *out, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m)
        return;
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (hay[middle] < needles[i])
            low = middle + 1;
        else
            high = middle;
    }
    out[i] = low;
}
