// What the language allows beyond arithmetic: objects, pointers to functions, recursion, odd control flow.

#include <cassert>

struct Animal {
    __device__ virtual int legs() const = 0;
    __device__ virtual int noise(int x) const { return x; }
    __device__ virtual ~Animal() {}
};
struct Bird : Animal {
    __device__ int legs() const override { return 2; }
    __device__ int noise(int x) const override { return x * 3 + 1; }
};
struct Dog : Animal {
    int age;
    __device__ Dog(int age) : age(age) {}
    __device__ int legs() const override { return 4; }
    __device__ int noise(int x) const override { return x - age; }
};
struct Fish : Animal {
    __device__ int legs() const override { return 0; }
};

extern "C" __global__ void virtual_calls(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Bird bird;
    Dog dog(i);
    Fish fish;
    const Animal *animals[3] = {&bird, &dog, &fish};
    const Animal *mine = animals[in[i] % 3];
    out[i] = mine->legs() * 1000000 + mine->noise(in[i]);
}

__device__ __noinline__ float twice(float x) { return x + x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float half_of(float x) { return x * 0.5f; }
typedef float (*Step)(float);
__device__ Step steps[3] = {twice, square, half_of};

__device__ __noinline__ float apply(Step first, Step second, float x) { return second(first(x)); }

extern "C" __global__ void composed_pointers(const unsigned *program, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = i * 0.25f;
    for (unsigned p = program[i]; p; p /= 9)
        x = apply(steps[p % 9 / 3], steps[p % 3], x);
    out[i] = x;
}

__device__ int hanoi(int discs, int from, int to, unsigned *trace)
{
    if (discs == 0)
        return 0;
    int over = 3 - from - to;
    int moves = hanoi(discs - 1, from, over, trace);
    *trace = *trace * 31 + from * 3 + to;
    return moves + 1 + hanoi(discs - 1, over, to, trace);
}

extern "C" __global__ void recursion_depths(int *moves, unsigned *traces)
{
    unsigned trace = 0;
    moves[threadIdx.x] = hanoi(threadIdx.x % 9, 0, 2, &trace);
    traces[threadIdx.x] = trace;
}

__device__ bool is_odd(unsigned n);
__device__ __noinline__ bool is_even(unsigned n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

extern "C" __global__ void mutual_recursion(unsigned *out)
{
    out[threadIdx.x] = is_even(threadIdx.x) * 2 + is_odd(threadIdx.x);
}

// A machine with sixteen instructions: a jump table in a loop, different for every lane.
extern "C" __global__ void interpreter(const unsigned char *code, int length, const int *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = in[i], b = i;
    int pc = i % length;
    for (int step = 0; step < 40; step++) {
        switch (code[pc] & 15) {
        case 0: a += b; break;
        case 1: b = a - b; break;
        case 2: a = a * 5 + 1; break;
        case 3: b ^= static_cast<unsigned>(static_cast<int>(a) >> 3); break;
        case 4: a = max(static_cast<int>(a), static_cast<int>(b)); break;
        case 5: b = min(a, b); break;
        case 6: a = __popc(a); break;
        case 7: b <<= 1; break;
        case 8: { unsigned t = a; a = b; b = t; break; }
        case 9: if (a & 1) pc += 2; break;
        case 10: a = -a; break;
        case 11: b = ~b; break;
        case 12: a = static_cast<int>(b) / 3; break;
        case 13: pc += a & 3; break;
        case 14: b += pc; break;
        default: a ^= 0x5a5a; break;
        }
        pc = (pc + 1) % length;
    }
    out[2 * i] = a, out[2 * i + 1] = b;
}

// Two loops that jump into each other's middle: no structured program has this flow.
extern "C" __global__ void irreducible(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = in[i], count = 0;
    if (x & 1)
        goto second;
first:
    count += 1;
    x = x * 5 + 3;
    if (count > 60)
        goto end;
    if (x & 8)
        goto first;
second:
    count += 2;
    x = (x >> 1) ^ (x & 4 ? 0x80000057u : 0u);
    if (count > 60)
        goto end;
    if (x & 2)
        goto second;
    goto first;
end:
    out[i] = x ^ count;
}

struct Matrix {
    int rows, columns;
    float values[6];
    __device__ float at(int r, int c) const { return values[r * columns + c]; }
};
struct Pair {
    Matrix left, right;
    char tag;
    double scale;
};

extern "C" __global__ void struct_by_value(const Pair pair, double *out)
{
    int r = threadIdx.x / pair.right.columns, c = threadIdx.x % pair.right.columns;
    if (r >= pair.left.rows)
        return;
    float sum = 0.0f;
    for (int k = 0; k < pair.left.columns; k++)
        sum += pair.left.at(r, k) * pair.right.at(k, c);
    out[threadIdx.x] = sum * pair.scale + pair.tag;
}

template <typename T, int N> struct Ring {
    T items[N];
    int head = 0;
    __device__ void push(T x) { items[head++ % N] = x; }
    __device__ T sum() const
    {
        T total = 0;
        for (int k = 0; k < N; k++)
            total += items[(head + k) % N] * (k + 1);
        return total;
    }
};

extern "C" __global__ void templates(const int *in, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Ring<long long, 5> ring;
    Ring<short, 3> narrow;
    for (int k = 0; k < 9; k++) {
        ring.push(in[(i + k) % n]);
        narrow.push(static_cast<short>(in[(i * k) % n]));
    }
    auto mix = [=](long long a) { return a * 7 + in[i]; };
    out[i] = mix(ring.sum()) - narrow.sum();
}

// Local memory at run-time indices, written and read in different widths.
extern "C" __global__ void local_arrays(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned words[32];
    for (int k = 0; k < 32; k++)
        words[k] = in[i] * (k + 1);
    for (int k = 0; k < 64; k++) {
        unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
        unsigned at = words[k % 32] % 128;
        bytes[at] = static_cast<unsigned char>(bytes[127 - at] + k);
    }
    unsigned sum = 0;
    for (int k = 0; k < 32; k++)
        sum = sum * 31 + words[(k * 7) % 32];
    out[i] = sum;
}

struct Node {
    int value;
    const Node *next;
};
extern __device__ const Node third;
__device__ const Node first_node = {10, &third};
__device__ const Node third = {30, nullptr};
__device__ const Node *const list_heads[2] = {&first_node, &third};
__device__ float weights[2][3] = {{1.5f, 2.5f, -3.0f}, {0.125f, 1e-20f, 7.0f}};
__device__ const char greeting[] = "the tide turns";
__device__ unsigned long long running = 0x123456789abcdefull;

extern "C" __global__ void initialised_globals(double *out)
{
    int i = threadIdx.x;
    int sum = 0;
    for (const Node *node = list_heads[i % 2]; node; node = node->next)
        sum = sum * 100 + node->value;
    out[i] = sum + weights[i % 2][i % 3] + greeting[i % sizeof greeting];
    if (i == 0)
        running += 1;
    __syncthreads();
    if (i == 31)
        out[31] = static_cast<double>(running & 0xffff);
}

extern "C" __global__ void asserted(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < 4096);
    if (i < n) {
        assert(in[i] >= 0 && "inputs are not negative");
        out[i] = in[i] + 1;
    }
}

// Clocks only go forward, and a nap takes time.
extern "C" __global__ void clocks(int *out)
{
    long long start = clock64();
    unsigned long long wall;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(wall));
    __nanosleep(20000);
    while (clock64() - start < 1000)
        ;
    unsigned long long later;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    out[threadIdx.x] = (clock64() > start) + 2 * (later >= wall) + 4 * (wall > 1000000000ull);
}

extern "C" __global__ void coordinates(unsigned *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z, lane, warp;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    out[block * threads + thread] = block << 20 | thread << 8 | lane << 3 | (warp < 64) << 2 | (threadIdx.z & 3);
}
