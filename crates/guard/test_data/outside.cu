// Kernels that reach outside of themselves, and kernels with unusual parameters. README.md says how they are compiled.
#include <cassert>
#include <cstdio>

struct Large {
  char bytes[5000];
};

__device__ int counter;

// Texts are variables that nobody writes, and functions of the driver are called through their addresses.
extern "C" __global__ void prints(int* x) { printf("%d\n", x[0]); }
extern "C" __global__ void asserts(int* x) { assert(x[threadIdx.x] == 0); }

// So are tables of the mathematical functions.
extern "C" __global__ void sine(float* x, double* y) {
  x[threadIdx.x] = sinf(x[threadIdx.x]);
  y[threadIdx.x] = sin(y[threadIdx.x]);
}

// A variable among texts.
extern "C" __global__ void prints_and_counts(int* x) {
  printf("%d\n", x[0]);
  assert(atomicAdd(&counter, 1) < 100);
}

extern "C" __global__ void large(const __grid_constant__ Large large, char* y) { y[0] = large.bytes[threadIdx.x]; }
extern "C" __global__ void odd(char a, short b, char c) { printf("%d\n", a + b + c); }
