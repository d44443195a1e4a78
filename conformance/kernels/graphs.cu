// Irregular work: graphs, sparse matrices, sets that grow together.

// All shortest paths of a small graph, in one block.
extern "C" __global__ void floyd_warshall(int *distance, int n)
{
    int row = threadIdx.y, column = threadIdx.x;
    for (int k = 0; k < n; k++) {
        int through = distance[row * n + k] + distance[k * n + column];
        __syncthreads();
        if (through < distance[row * n + column])
            distance[row * n + column] = through;
        __syncthreads();
    }
}

// Breadth-first levels with a queue in shared memory; edges as CSR.
extern "C" __global__ void breadth_first(const int *starts, const int *edges, int *level, int n)
{
    __shared__ int queue[2][1024], length[2];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        level[i] = i == 0 ? 0 : -1;
    if (threadIdx.x == 0) {
        queue[0][0] = 0;
        length[0] = 1;
        length[1] = 0;
    }
    __syncthreads();
    for (int depth = 1, now = 0; length[now] > 0; depth++, now ^= 1) {
        for (int q = threadIdx.x; q < length[now]; q += blockDim.x) {
            int node = queue[now][q];
            for (int e = starts[node]; e < starts[node + 1]; e++)
                if (atomicCAS(&level[edges[e]], -1, depth) == -1)
                    queue[now ^ 1][atomicAdd(&length[now ^ 1], 1)] = edges[e];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            length[now] = 0;
        __syncthreads();
    }
}

__device__ unsigned find_root(unsigned *parent, unsigned x)
{
    while (true) {
        unsigned up = atomicAdd(&parent[x], 0u);
        if (up == x)
            return x;
        x = up;
    }
}

// Joins the ends of each edge; the smaller root stays.
extern "C" __global__ void unite(unsigned *parent, const uint2 *edges, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m)
        return;
    unsigned a = edges[i].x, b = edges[i].y;
    while (true) {
        a = find_root(parent, a);
        b = find_root(parent, b);
        if (a == b)
            return;
        unsigned low = min(a, b), high = max(a, b);
        if (atomicCAS(&parent[high], high, low) == high)
            return;
    }
}

extern "C" __global__ void label_components(unsigned *parent, unsigned *label, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        label[i] = find_root(parent, i);
}

extern "C" __global__ void sparse_product(const int *starts, const int *columns, const double *values,
                                          const double *x, double *y, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32)
        sum += values[k] * x[columns[k]];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        y[row] = sum;
}
