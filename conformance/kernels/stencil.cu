// Five-point stencil; each block loads its tile with a halo one cell wide.

constexpr int W = 32, H = 8;

extern "C" __global__ void stencil(const float *in, float *out, int width, int height)
{
    __shared__ float tile[H + 2][W + 2];
    int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
    for (int dy = threadIdx.y; dy < H + 2; dy += H)
        for (int dx = threadIdx.x; dx < W + 2; dx += W) {
            int gx = blockIdx.x * W + dx - 1, gy = blockIdx.y * H + dy - 1;
            tile[dy][dx] = gx >= 0 && gx < width && gy >= 0 && gy < height ? in[gy * width + gx] : 0;
        }
    __syncthreads();
    if (x < width && y < height) {
        int i = threadIdx.x + 1, j = threadIdx.y + 1;
        out[y * width + x] =
            0.5f * tile[j][i] + 0.125f * (tile[j - 1][i] + tile[j + 1][i] + tile[j][i - 1] + tile[j][i + 1]);
    }
}
