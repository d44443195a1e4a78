// Kernels of every kind that the guard tells apart. `cargo xtask donors` compiles them for each architecture.
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;

// No block needs another.
extern "C" __global__ void plain(float a, const float* x, float* y, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

// A loop, and nothing in it that another block could have written.
extern "C" __global__ void plain_loop(const float* x, float* y, uint32_t n) {
  float sum = 0;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Three dimensions, shared memory and barriers of its own.
extern "C" __global__ void plain_shared(const float* x, float* y) {
  __shared__ float tile[8][32];
  tile[threadIdx.y][threadIdx.x] = x[(blockIdx.z * gridDim.y + blockIdx.y) * 256 + threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * 256 + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.y][31 - threadIdx.x];
}

// The last block to come adds up: a question asked once, no waiting.
extern "C" __global__ void last_block(const float* x, float* sums, uint32_t* count, float* total) {
  float value = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  if (threadIdx.x != 0) return;
  sums[blockIdx.x] = value;
  __threadfence();
  if (atomicInc(count, gridDim.x - 1) == gridDim.x - 1) {
    float all = 0;
    for (uint32_t i = 0; i < gridDim.x; i++) all += sums[i];
    *total = all;
  }
}

// Decoupled look-back: each block waits until its predecessors have said what came before it.
extern "C" __global__ void look_back(const uint32_t* x, uint32_t* y, uint64_t* states) {
  const uint32_t value = x[blockIdx.x * blockDim.x + threadIdx.x];
  const uint32_t total = __syncthreads_count(value & 1);
  __shared__ uint32_t before;
  if (threadIdx.x == 0) {
    uint32_t sum = 0;
    for (int previous = int(blockIdx.x) - 1; previous >= 0;) {
      uint64_t state;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(state) : "l"(states + previous) : "memory");
      if (state >> 32 == 0) continue;
      sum += uint32_t(state);
      if (state >> 32 == 2) break;
      previous--;
    }
    before = sum;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(states + blockIdx.x), "l"(2ull << 32 | (sum + total)));
  }
  __syncthreads();
  y[blockIdx.x * blockDim.x + threadIdx.x] = before + value;
}

// Split-K: blocks of one tile take turns, the lower number first.
extern "C" __global__ void semaphore(float* tile, uint32_t* turn) {
  if (threadIdx.x == 0) {
    uint32_t now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    while (now != blockIdx.z);
  }
  __syncthreads();
  tile[threadIdx.x] += 1;
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(turn), "r"(blockIdx.z + 1) : "memory");
}

// A wait as people write it by hand.
extern "C" __global__ void volatile_spin(volatile int* flag, int* y) {
  while (flag[blockIdx.x] == 0) {}
  y[blockIdx.x] = flag[blockIdx.x];
}

// A lock.
extern "C" __global__ void lock(int* locked, int* y) {
  while (atomicCAS(locked, 0, 1) != 0) __nanosleep(100);
  y[0] += 1;
  __threadfence();
  atomicExch(locked, 0);
}

// Asked from a function that is called, in a loop that is not around it.
__device__ __noinline__ int ask(volatile int* flag, int at) { return flag[at] * 3; }
extern "C" __global__ void called_spin(volatile int* flag, int* y) {
  int seen;
  while ((seen = ask(flag, blockIdx.x)) == 0) {}
  y[blockIdx.x] = seen;
}

// Waits for the whole grid.
extern "C" __global__ void grid_barrier(int* y) {
  y[blockIdx.x] = blockIdx.x;
  cg::this_grid().sync();
  y[blockIdx.x] += y[(blockIdx.x + 1) % gridDim.x];
}

// Memory of the module: a twin would have its own.
__device__ int counter;
__constant__ float weights[16];
extern "C" __global__ void counts(int* y) { y[blockIdx.x] = atomicAdd(&counter, 1); }
extern "C" __global__ void weighs(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * weights[threadIdx.x & 15]; }

// Nowhere to put the control words.
extern "C" __global__ void without_parameters() { __nanosleep(10); }

// A name that says enough.
extern "C" __global__ void ncclDevKernel_Test(int* y) { y[threadIdx.x] = 1; }

// Lets the next launch begin before it has ended, where there is such a thing.
extern "C" __global__ void lets_begin(const float* x, float* y) {
  const float value = x[threadIdx.x];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  if (value > 0) asm volatile("griddepcontrol.launch_dependents;");
#endif
  y[threadIdx.x] = value;
}
