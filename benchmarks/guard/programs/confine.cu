// Whether a process can confine its work to some of the SMs, by a green context of the driver, also as a client of MPS; and what that
// leaves to another process.
//
//   nvcc -arch=sm_90 -O2 -o confine confine.cu -lcuda
//   ./confine sms             for some numbers of SMs: how many a large grid is found on
//   ./confine beside SMS      another process keeps so many SMs busy (0: as many as there are, without a green context) with blocks of
//                             1 ms; how long does a graph of 170 short kernels take beside it?
//
// Run each plain and under MPS. Prints one line for each figure, and the driver's error where there is one.

#include <cuda.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "card.cuh"

#define TRY(call)                                                       \
  do {                                                                  \
    CUresult result = (call);                                           \
    if (result != CUDA_SUCCESS) {                                       \
      const char *name = "?";                                           \
      cuGetErrorName(result, &name);                                    \
      printf("line %d: %s\n", __LINE__, name);                          \
      fflush(stdout);                                                   \
      return false;                                                     \
    }                                                                   \
  } while (0)

__global__ void where_am_i(unsigned *sms, long long cycles) {
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  if (threadIdx.x == 0) sms[blockIdx.x] = sm;
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

static bool begin(CUdevice *device) {
  CUcontext context;
  TRY(cuInit(0));
  TRY(cuDeviceGet(device, 0));
  TRY(cuDevicePrimaryCtxRetain(&context, *device));
  TRY(cuCtxSetCurrent(context));
  return true;
}

// A stream whose work stays on so many SMs; nought: an ordinary one.
static bool confined(CUdevice device, unsigned count, CUstream *stream, unsigned *got) {
  *got = 0;
  if (count == 0) {
    TRY(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    return true;
  }
  CUdevResource all, some, rest;
  CUdevResourceDesc description;
  CUgreenCtx green;
  unsigned groups = 1;
  TRY(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  TRY(cuDevSmResourceSplitByCount(&some, &groups, &all, &rest, 0, count));
  *got = some.sm.smCount;
  TRY(cuDevResourceGenerateDesc(&description, &some, 1));
  TRY(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  TRY(cuGreenCtxStreamCreate(stream, green, CU_STREAM_NON_BLOCKING, 0));
  return true;
}

static bool sms() {
  const int BLOCKS = 132 * 32;
  CUdevice device;
  CUdeviceptr memory;
  if (!begin(&device)) return false;
  TRY(cuMemAlloc(&memory, BLOCKS * sizeof(unsigned)));
  for (unsigned count : {0u, 124u, 116u, 100u, 66u, 16u}) {
    CUstream stream;
    unsigned got;
    double from = now_us();
    if (!confined(device, count, &stream, &got)) continue;
    double made = now_us() - from;
    where_am_i<<<BLOCKS, 256, 0, stream>>>((unsigned *)memory, 20000);
    TRY(cuStreamSynchronize(stream));
    std::vector<unsigned> seen(BLOCKS);
    TRY(cuMemcpyDtoH(seen.data(), memory, BLOCKS * sizeof(unsigned)));
    printf("asked for %u SMs, given %u, found on %zu; made in %.0f us\n", count, got,
           std::set<unsigned>(seen.begin(), seen.end()).size(), made);
  }
  return true;
}

// The other process: grids of 1 ms blocks, one behind the other, until it is ended.
static bool occupy(unsigned count, int ready) {
  CUdevice device;
  CUstream stream;
  unsigned got;
  if (!begin(&device) || !confined(device, count, &stream, &got)) return false;
  for (int grid = 0; grid < 2; grid++) spin<<<132 * 2, 1024, 0, stream>>>(1800000);
  if (write(ready, "", 1) != 1) return false;
  for (;;) {
    spin<<<132 * 2, 1024, 0, stream>>>(1800000);
    TRY(cuStreamSynchronize(stream));
  }
}

static bool time_graphs(unsigned count) {
  const int KERNELS = 170, TIMES = 300;
  CUdevice device;
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  std::vector<double> took;
  if (!begin(&device)) return false;
  TRY(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -5));
  TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int kernel = 0; kernel < KERNELS; kernel++) spin<<<64, 128, 0, stream>>>(6000);
  TRY(cuStreamEndCapture(stream, &graph));
  TRY(cuGraphInstantiate(&exec, graph, 0));
  for (int time = 0; time < TIMES; time++) {
    usleep(1000);
    double from = now_us();
    TRY(cuGraphLaunch(exec, stream));
    TRY(cuStreamSynchronize(stream));
    took.push_back(now_us() - from);
  }
  std::sort(took.begin(), took.end());
  printf("beside 1 ms blocks on %u SMs (0: all): a graph of %d kernels takes %.0f us, p99 %.0f\n", count, KERNELS,
         took[TIMES / 2], took[TIMES * 99 / 100]);
  return true;
}

static bool beside(unsigned count) {
  int ends[2];
  char byte;
  if (pipe(ends)) return false;
  pid_t other = fork();
  if (!other) _exit(!occupy(count, ends[1]));
  close(ends[1]);
  bool done = read(ends[0], &byte, 1) == 1 && time_graphs(count);
  kill(other, SIGKILL);
  return done;
}

int main(int count, char **words) {
  if (count == 3 && !strcmp(words[1], "beside")) return !beside(atoi(words[2]));
  if (count == 2 && !strcmp(words[1], "sms")) return !sms();
  fprintf(stderr, "usage: confine sms | beside SMS\n");
  return 2;
}
