// Neighbours on a grid, and loops whose length differs from thread to thread.
// nvcc: -fmad=false

extern "C" __global__ void blur_2d(const float *in, float *out, int width, int height)
{
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int dy = threadIdx.y; dy < 18; dy += 16)
        for (int dx = threadIdx.x; dx < 18; dx += 16) {
            int sx = min(max(static_cast<int>(blockIdx.x * 16) + dx - 1, 0), width - 1);
            int sy = min(max(static_cast<int>(blockIdx.y * 16) + dy - 1, 0), height - 1);
            tile[dy][dx] = in[sy * width + sx];
        }
    __syncthreads();
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            sum += tile[threadIdx.y + dy][threadIdx.x + dx];
    out[y * width + x] = sum / 9.0f;
}

extern "C" __global__ void heat_3d(const float *in, float *out, int size)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size || y >= size || z >= size)
        return;
    int i = (z * size + y) * size + x, plane = size * size;
    bool inside = x > 0 && y > 0 && z > 0 && x < size - 1 && y < size - 1 && z < size - 1;
    float around = inside ? in[i - 1] + in[i + 1] + in[i - size] + in[i + size] + in[i - plane] + in[i + plane] : 0.0f;
    out[i] = inside ? in[i] + 0.1f * (around - 6.0f * in[i]) : in[i];
}

extern "C" __global__ void game_of_life(const unsigned char *in, unsigned char *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int alive = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy)
                alive += in[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = alive == 3 || (alive == 2 && in[y * width + x]);
}

extern "C" __global__ void mandelbrot(int *out, int width, int height, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height)
        return;
    float cx = -2.0f + 3.0f * px / width, cy = -1.0f + 2.0f * py / height, x = 0.0f, y = 0.0f;
    int steps = 0;
    while (x * x + y * y <= 4.0f && steps < limit) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        steps++;
    }
    out[py * width + px] = steps;
}

extern "C" __global__ void collatz(const unsigned *in, unsigned *steps, unsigned long long *highest, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = in[i], top = x;
    unsigned count = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        top = x > top ? x : top;
        count++;
    }
    steps[i] = count;
    highest[i] = top;
}

extern "C" __global__ void n_body(const float4 *bodies, float4 *out, int n, float dt)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += 64) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 64; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * r * r * r;
            ax += dx * pull, ay += dy * pull, az += dz * pull;
        }
        __syncthreads();
    }
    out[i] = make_float4(me.x + ax * dt, me.y + ay * dt, me.z + az * dt, me.w);
}
