// What a gate costs a stream that passes it, and how many streams may stand at one before nobody gets past them.
//
//   nvcc -arch=sm_90 -O2 -o gates gates.cu -lcuda
//   ./gates cost                 microseconds per launch, with no gate, one behind every launch, one behind every eighth
//   ./gates held COUNT           so many streams wait; do others still get on? (A process of its own for each: it may not end.)
//   ./gates beside COUNT         so many streams of another process wait; how long does a graph of 170 kernels take beside it?
//   ./gates depth                how much of each kind may stand behind a gate before the driver keeps who hands over the next
//
// Under MPS the second depends on CUDA_DEVICE_MAX_CONNECTIONS.

#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "card.cuh"

static const int LAUNCHES = 400, ROUNDS = 5;
static const double PATIENCE_US = 100000;

__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

template <int BYTES>
struct Parameters {
  long long cycles;
  char rest[BYTES - 8];
};

template <int BYTES>
__global__ void spin_with(Parameters<BYTES> parameters) {
  long long begin = clock64();
  while (clock64() - begin < parameters.cycles) {
  }
}

static CUdeviceptr device_words, pinned_words;

static void begin() {
  CUcontext context;
  CUdevice device;
  void *pinned;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CHECK_DRIVER(cuMemAlloc(&device_words, 4096));
  CHECK_DRIVER(cuMemsetD8(device_words, 0, 4096));
  CHECK_DRIVER(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK_DRIVER(cuMemHostGetDevicePointer(&pinned_words, pinned, 0));
}

// As in the shim: it has arrived, it waits until nothing is cut, it has passed.
static void put_gate(CUstream stream, unsigned number) {
  CUstreamBatchMemOpParams operations[3];
  memset(operations, 0, sizeof operations);
  operations[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, pinned_words, {number}};
  operations[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, device_words, {0}, CU_STREAM_WAIT_VALUE_EQ};
  operations[2].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, pinned_words + 64, {number}};
  CHECK_DRIVER(cuStreamBatchMemOp(stream, 3, operations, 0));
}

static double per_launch(CUstream stream, long long cycles, int apart) {
  double best = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    CHECK_DRIVER(cuStreamSynchronize(stream));
    double from = now_us();
    for (int launch = 1; launch <= LAUNCHES; launch++) {
      spin<<<132, 128, 0, stream>>>(cycles);
      if (apart && launch % apart == 0) put_gate(stream, launch);
    }
    CHECK_DRIVER(cuStreamSynchronize(stream));
    double took = (now_us() - from) / LAUNCHES;
    if (took < best) best = took;
  }
  return best;
}

static void cost() {
  CUstream stream;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (long long cycles : {2000ll, 10000ll, 40000ll})
    for (int apart : {0, 1, 8, 16})
      printf("kernels of %lld cycles, a gate behind every %2d: %.2f us per launch\n", cycles, apart,
             per_launch(stream, cycles, apart));
}

static double until_done(CUstream stream) {
  double from = now_us();
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
    if (now_us() - from > PATIENCE_US) return -1;
  return now_us() - from;
}

static void held(int count) {
  CUstream helper, control, *streams = (CUstream *)calloc(count, sizeof *streams);
  CHECK_DRIVER(cuStreamCreateWithPriority(&helper, CU_STREAM_NON_BLOCKING, -1));
  CHECK_DRIVER(cuStreamCreateWithPriority(&control, CU_STREAM_NON_BLOCKING, -5));
  CHECK_DRIVER(cuMemsetD32(device_words, 1, 1));
  for (int index = 0; index < count; index++) {
    // The first is the default stream, which most programs use.
    if (index) CHECK_DRIVER(cuStreamCreate(&streams[index], CU_STREAM_NON_BLOCKING));
    spin<<<1, 32, 0, streams[index]>>>(1000);
    put_gate(streams[index], 1);
    spin<<<1, 32, 0, streams[index]>>>(1000);
  }
  usleep(1000);
  spin<<<1, 32, 0, helper>>>(1000);
  double helped = until_done(helper);
  CHECK_DRIVER(cuStreamWriteValue32(control, device_words, 0, 0));
  double opened = until_done(control);
  printf("%2d streams wait: a launch beside them took %.0f us, to open the gates %.0f us (-1: never)\n", count, helped,
         opened);
  fflush(stdout);
  _exit(0);
}

// How often something can be done behind a gate that is shut, until the driver keeps who does it the next time.
static void depth(const char *what, std::function<void(CUstream, int)> put) {
  const int MOST = 4096;
  CUstream stream, control;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamCreateWithPriority(&control, CU_STREAM_NON_BLOCKING, -5));
  // What is done for the first time may take long.
  for (int number = 0; number < 4; number++) put(stream, number);
  CHECK_DRIVER(cuStreamSynchronize(stream));
  CHECK_DRIVER(cuMemsetD32(device_words, 1, 1));
  put_gate(stream, 1);
  int count = 0;
  std::thread opener([&] {
    usleep(300000);
    cuStreamWriteValue32(control, device_words, 0, 0);
  });
  for (; count < MOST; count++) {
    double from = now_us();
    put(stream, count);
    if (now_us() - from > 10000) break;
  }
  opener.join();
  CHECK_DRIVER(cuStreamSynchronize(stream));
  if (count < MOST)
    printf("%-44s the %d. had to wait\n", what, count + 1);
  else
    printf("%-44s none of %d had to wait\n", what, MOST);
  fflush(stdout);
}

template <int BYTES>
static void depth_with() {
  char what[64];
  snprintf(what, sizeof what, "launches with parameters of %d bytes", BYTES);
  Parameters<BYTES> parameters = {1000};
  depth(what, [&](CUstream stream, int) { spin_with<BYTES><<<1, 32, 0, stream>>>(parameters); });
}

static void depths() {
  CUdeviceptr from, to;
  void *pinned;
  CHECK_DRIVER(cuMemAlloc(&from, 64 << 20));
  CHECK_DRIVER(cuMemAlloc(&to, 64 << 20));
  CHECK_DRIVER(cuMemHostAlloc(&pinned, 1 << 20, 0));
  CUevent timed, plain;
  CHECK_DRIVER(cuEventCreate(&timed, CU_EVENT_DEFAULT));
  CHECK_DRIVER(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  depth("launches", [](CUstream stream, int) { spin<<<1, 32, 0, stream>>>(1000); });
  depth_with<512>(), depth_with<1024>(), depth_with<1536>(), depth_with<2048>(), depth_with<4000>();
  depth("launches that may begin early", [](CUstream stream, int) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1, config.blockDim = 32, config.stream = stream, config.attrs = &early, config.numAttrs = 1;
    cudaLaunchKernelEx(&config, spin, 1000LL);
  });
  depth("gates", [](CUstream stream, int number) { put_gate(stream, 2 + number); });
  depth("launches and gates in turn", [](CUstream stream, int number) {
    if (number % 2)
      put_gate(stream, 2 + number);
    else
      spin<<<1, 32, 0, stream>>>(1000);
  });
  depth("fills of 4 KB", [=](CUstream stream, int) { cuMemsetD8Async(to, 1, 4096, stream); });
  depth("fills of 3 bytes", [=](CUstream stream, int) { cuMemsetD8Async(to, 1, 3, stream); });
  depth("fills of 16 MB", [=](CUstream stream, int) { cuMemsetD32Async(to, 1, 4 << 20, stream); });
  depth("copies on the device, 4 KB", [=](CUstream stream, int) { cuMemcpyDtoDAsync(to, from, 4096, stream); });
  depth("copies on the device, 16 MB", [=](CUstream stream, int) { cuMemcpyDtoDAsync(to, from, 16 << 20, stream); });
  depth("copies to the device, 8 bytes", [=](CUstream stream, int) { cuMemcpyHtoDAsync(to, pinned, 8, stream); });
  depth("copies to the device, 1 MB", [=](CUstream stream, int) { cuMemcpyHtoDAsync(to, pinned, 1 << 20, stream); });
  depth("copies to the host, 4 KB", [=](CUstream stream, int) { cuMemcpyDtoHAsync(pinned, from, 4096, stream); });
  depth("events that are timed", [=](CUstream stream, int) { cuEventRecord(timed, stream); });
  depth("events that are not", [=](CUstream stream, int) { cuEventRecord(plain, stream); });
  depth("launches and fills in turn", [=](CUstream stream, int number) {
    if (number % 2)
      cuMemsetD8Async(to, 1, 4096, stream);
    else
      spin<<<1, 32, 0, stream>>>(1000);
  });
  depth("launches and copies on the device in turn", [=](CUstream stream, int number) {
    if (number % 2)
      cuMemcpyDtoDAsync(to, from, 4096, stream);
    else
      spin<<<1, 32, 0, stream>>>(1000);
  });
}

// The other process of `beside`: its streams wait until it is ended.
static void stand_still(int count, int ready) {
  begin();
  CHECK_DRIVER(cuMemsetD32(device_words, 1, 1));
  for (int index = 0; index < count; index++) {
    CUstream stream;
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    spin<<<1, 32, 0, stream>>>(1000);
    put_gate(stream, 1);
  }
  usleep(10000);
  if (write(ready, "", 1) != 1) _exit(1);
  for (;;) pause();
}

static int by_value(const void *left, const void *right) {
  double difference = *(const double *)left - *(const double *)right;
  return (difference > 0) - (difference < 0);
}

// A graph of kernels as short as those of BERT at batch 1, launched again and again.
static void time_graphs(int count) {
  const int KERNELS = 170, TIMES = 300;
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  double took[TIMES];
  begin();
  CHECK_DRIVER(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -5));
  CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int kernel = 0; kernel < KERNELS; kernel++) spin<<<132, 128, 0, stream>>>(6000);
  CHECK_DRIVER(cuStreamEndCapture(stream, &graph));
  CHECK_DRIVER(cuGraphInstantiate(&exec, graph, 0));
  for (int time = 0; time < TIMES; time++) {
    usleep(500);
    double from = now_us();
    CHECK_DRIVER(cuGraphLaunch(exec, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    took[time] = now_us() - from;
  }
  qsort(took, TIMES, sizeof *took, by_value);
  printf("%2d streams of another process wait: a graph of %d kernels takes %.0f us, p99 %.0f\n", count, KERNELS,
         took[TIMES / 2], took[TIMES * 99 / 100]);
}

static void beside(int count) {
  int ends[2];
  char byte;
  if (pipe(ends)) exit(1);
  pid_t other = fork();
  if (!other) stand_still(count, ends[1]);
  if (read(ends[0], &byte, 1) == 1) time_graphs(count);
  kill(other, SIGKILL);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "cost";
  int streams = count > 2 ? atoi(words[2]) : 1;
  if (!strcmp(what, "beside")) return beside(streams), 0;
  begin();
  if (!strcmp(what, "held"))
    held(streams);
  else if (!strcmp(what, "depth"))
    depths();
  else
    cost();
}
