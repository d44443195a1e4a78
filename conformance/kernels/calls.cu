// Calls that cannot be inlined: recursion, function pointers in tables, virtual functions.

__device__ __noinline__ unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(unsigned *out)
{
    out[threadIdx.x] = threadIdx.x < 16 ? fibonacci(threadIdx.x) : ackermann(2, threadIdx.x - 16);
}

typedef int (*operation)(int, int);

__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int larger(int a, int b) { return a > b ? a : b; }

__device__ operation operations[4] = {plus, minus, times, larger};

extern "C" __global__ void function_pointers(const int *a, const int *b, const unsigned char *which, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = operations[which[i] % 4](a[i], b[i]);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 0; }
};

struct Disc : Shape {
    float radius;
    __device__ explicit Disc(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

struct Box : Shape {
    float width, height;
    __device__ Box(float w, float h) : width(w), height(h) {}
    __device__ float area() const override { return width * height; }
    __device__ int corners() const override { return 4; }
};

extern "C" __global__ void virtual_functions(float *out)
{
    Disc disc(threadIdx.x + 1.0f);
    Box box(threadIdx.x + 2.0f, 3.0f);
    const Shape *shapes[2] = {&disc, &box};
    const Shape *mine = shapes[(threadIdx.x * 7 + 3) % 5 % 2];
    out[threadIdx.x] = mine->area() + 100.0f * mine->corners();
}

// A switch dense enough for a jump table.
extern "C" __global__ void jump_table(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = in[i], y;
    switch (x % 12) {
    case 0: y = x * 3; break;
    case 1: y = x + 17; break;
    case 2: y = x ^ 0x55; break;
    case 3: y = x / 3; break;
    case 4: y = -x; break;
    case 5: y = x << 4; break;
    case 6: y = x >> 2; break;
    case 7: y = __popc(x); break;
    case 8: y = __clz(x); break;
    case 9: y = x * x; break;
    case 10: y = __brev(x); break;
    default: y = 1 - x; break;
    }
    out[i] = y;
}
