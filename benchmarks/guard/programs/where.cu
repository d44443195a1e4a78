// Where a latency tenant's time goes: a graph of 170 short kernels, each of which writes down when its first block began and
// ended. Run alone and beside somebody, the difference says whether its kernels themselves take longer, or the gaps between them, and
// whether that is so all the time or only when a request begins.
//
//   nvcc -arch=sm_90 -O2 -o where where.cu -lcuda
//   ./where REQUESTS EVERY_US [plain]     a request every so often, as a graph or launch by launch; prints one line of JSON

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "card.cuh"

static const int KERNELS = 170, BLOCKS = 64, SPIN = 6000;

#define CHECK(call)                                                                    \
  do {                                                                                 \
    cudaError_t result = (call);                                                       \
    if (result != cudaSuccess) {                                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(result));          \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

__device__ unsigned long long globaltimer() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__global__ void tick(unsigned long long *stamps, long long cycles, volatile int *began) {
  bool first = blockIdx.x == 0 && threadIdx.x == 0;
  if (first) {
    *began = 1;
    stamps[0] = globaltimer();
  }
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  if (first) stamps[1] = globaltimer();
}

static double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[size_t(at * (values.size() - 1))];
}

static void print(const char *name, const std::vector<double> &values) {
  printf("\"%s\": [%.1f, %.1f, %.1f], ", name, quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.99));
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "usage: where REQUESTS EVERY_US [plain]\n");
    return 2;
  }
  int requests = atoi(words[1]);
  double every = atof(words[2]);
  bool plain = count > 3;
  unsigned long long *stamps;
  CHECK(cudaMalloc(&stamps, KERNELS * 2 * sizeof *stamps));
  volatile int *began;
  int *mapped;
  CHECK(cudaHostAlloc((void **)&began, 4096, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer((void **)&mapped, (void *)began, 0));
  *began = 0;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t request;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int kernel = 0; kernel < KERNELS; kernel++) tick<<<BLOCKS, 128, 0, stream>>>(stamps + 2 * kernel, SPIN, mapped);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&request, graph, 0));
  std::vector<double> totals, spans, waits, calls, before;
  std::vector<std::vector<double>> lengths(KERNELS), gaps(KERNELS);
  std::vector<unsigned long long> seen(2 * KERNELS);
  double due = now_us() + 1000;
  for (int index = 0; index < requests; index++, due += every) {
    while (now_us() < due) {
    }
    double begin = now_us();
    if (plain)
      for (int kernel = 0; kernel < KERNELS; kernel++) tick<<<BLOCKS, 128, 0, stream>>>(stamps + 2 * kernel, SPIN, mapped);
    else
      CHECK(cudaGraphLaunch(request, stream));
    double called = now_us() - begin;
    while (!*began) {
    }
    double first = now_us() - begin;
    CHECK(cudaStreamSynchronize(stream));
    double total = now_us() - begin;
    *began = 0;
    CHECK(cudaMemcpy(seen.data(), stamps, seen.size() * sizeof seen[0], cudaMemcpyDeviceToHost));
    if (index < requests / 10) continue;
    double span = (seen[2 * KERNELS - 1] - seen[0]) * 1e-3;
    totals.push_back(total);
    calls.push_back(called);
    before.push_back(first);
    spans.push_back(span);
    waits.push_back(total - span);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
      lengths[kernel].push_back((seen[2 * kernel + 1] - seen[2 * kernel]) * 1e-3);
      if (kernel > 0) gaps[kernel].push_back((double(seen[2 * kernel]) - double(seen[2 * kernel - 1])) * 1e-3);
    }
  }
  printf("{");
  print("total_us", totals);
  print("first_to_last_us", spans);
  print("before_and_behind_us", waits);
  print("call_us", calls);
  print("until_first_us", before);
  const int edges[] = {0, 1, 5, 20, 60, 120, KERNELS};
  for (int part = 0; part + 1 < int(sizeof edges / sizeof edges[0]); part++) {
    std::vector<double> length, gap;
    for (int kernel = edges[part]; kernel < edges[part + 1]; kernel++) {
      length.insert(length.end(), lengths[kernel].begin(), lengths[kernel].end());
      gap.insert(gap.end(), gaps[kernel].begin(), gaps[kernel].end());
    }
    char name[64];
    snprintf(name, sizeof name, "kernels_%d_to_%d_us", edges[part], edges[part + 1] - 1);
    print(name, length);
    snprintf(name, sizeof name, "gaps_%d_to_%d_us", edges[part], edges[part + 1] - 1);
    print(name, gap);
  }
  printf("\"requests\": %zu}\n", totals.size());
}
