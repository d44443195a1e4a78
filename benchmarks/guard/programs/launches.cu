// What the processor pays for a launch, by the way in which it is made, and for the calls that stand around guarded ones.
//
//   nvcc -arch=sm_90 -O2 -o launches launches.cu -lcuda
//   ./launches                   microseconds of processor time per call, medians; without ebb
//
// The kernel does nothing, in one block of 32 threads, with eight parameters of its own and the four words of the guard behind
// them. The batches of all rows take turns. The GPU is waited for between two batches, out of the count, so that nobody ever
// waits for room in a queue. A guarded launch is one of `kernel` or `function` with a buffer, plain or as early as may be; and
// where it is the default stream's, cuCtxGetCurrent is asked before it.

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card.cuh"

static const int CALLS = 256, BATCHES = 200, WORDS = 12;

// Loaded as twins are: as a library, not with the program.
static const char *SOURCE =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f,\n"
    "  .param .u64 g, .param .u64 h, .param .u64 stop, .param .u64 marks, .param .u64 away, .param .u64 mode)\n"
    "{ ret; }\n";

static CUstream stream;
static CUkernel kernel;
static CUfunction function;
static CUevent event;
static CUdeviceptr device_words, pinned_words;
static unsigned long long values[WORDS];
static void *one_by_one[WORDS];
static size_t bytes = sizeof values;
static void *buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, values, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};

static double thread_us() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static void begin() {
  CUcontext context;
  CUdevice device;
  CUlibrary library;
  void *pinned;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuLibraryLoadData(&library, SOURCE, 0, 0, 0, 0, 0, 0));
  CHECK_DRIVER(cuLibraryGetKernel(&kernel, library, "nothing"));
  CHECK_DRIVER(cuKernelGetFunction(&function, kernel));
  CHECK_DRIVER(cuMemAlloc(&device_words, 4096));
  CHECK_DRIVER(cuMemsetD8(device_words, 0, 4096));
  CHECK_DRIVER(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK_DRIVER(cuMemHostGetDevicePointer(&pinned_words, pinned, 0));
  for (int index = 0; index < WORDS; index++) one_by_one[index] = &values[index];
}

static void launch(CUfunction what, void **parameters, void **extra) {
  CHECK_DRIVER(cuLaunchKernel(what, 1, 1, 1, 32, 1, 1, 0, stream, parameters, extra));
}

static void launch_extended(CUfunction what, bool early) {
  CUlaunchAttribute attribute;
  CUlaunchConfig config;
  memset(&attribute, 0, sizeof attribute);
  memset(&config, 0, sizeof config);
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = early;
  CHECK_DRIVER(cuLaunchKernelEx(&config, what, 0, buffer));
}

static void function_one_by_one() { launch(function, one_by_one, 0); }
static void function_buffer() { launch(function, 0, buffer); }
static void kernel_one_by_one() { launch((CUfunction)kernel, one_by_one, 0); }
static void kernel_buffer() { launch((CUfunction)kernel, 0, buffer); }
static void function_extended() { launch_extended(function, false); }
static void kernel_extended() { launch_extended((CUfunction)kernel, false); }
static void function_early() { launch_extended(function, true); }
static void kernel_early() { launch_extended((CUfunction)kernel, true); }

static void current() {
  CUcontext context;
  CHECK_DRIVER(cuCtxGetCurrent(&context));
}

static void capturing() {
  CUstreamCaptureStatus status;
  CHECK_DRIVER(cuStreamIsCapturing(stream, &status));
}

// As in the shim: it has arrived, it waits until nothing is cut, it has passed.
static void gate() {
  CUstreamBatchMemOpParams operations[3];
  memset(operations, 0, sizeof operations);
  operations[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, pinned_words, {1}};
  operations[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, device_words, {0}, CU_STREAM_WAIT_VALUE_EQ};
  operations[2].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, pinned_words + 64, {1}};
  CHECK_DRIVER(cuStreamBatchMemOp(stream, 3, operations, 0));
}

static void record() { CHECK_DRIVER(cuEventRecord(event, stream)); }

static const struct {
  const char *name;
  void (*call)();
} ROWS[] = {
    {"cuLaunchKernel, CUfunction, kernelParams", function_one_by_one},
    {"cuLaunchKernel, CUfunction, extra", function_buffer},
    {"cuLaunchKernel, CUkernel, kernelParams", kernel_one_by_one},
    {"cuLaunchKernel, CUkernel, extra", kernel_buffer},
    {"cuLaunchKernelEx, CUfunction, extra", function_extended},
    {"cuLaunchKernelEx, CUkernel, extra", kernel_extended},
    {"cuLaunchKernelEx, CUfunction, extra, programmatic", function_early},
    {"cuLaunchKernelEx, CUkernel, extra, programmatic", kernel_early},
    {"cuCtxGetCurrent", current},
    {"cuStreamIsCapturing", capturing},
    {"cuStreamBatchMemOp, a gate", gate},
    {"cuEventRecord", record},
};
static const int ROW_COUNT = sizeof ROWS / sizeof *ROWS;

static int by_value(const void *left, const void *right) {
  double difference = *(const double *)left - *(const double *)right;
  return (difference > 0) - (difference < 0);
}

int main() {
  static double took[ROW_COUNT][BATCHES];
  begin();
  // The first batch of each loads what it needs.
  for (int batch = -1; batch < BATCHES; batch++)
    for (int row = 0; row < ROW_COUNT; row++) {
      double from = thread_us();
      for (int call = 0; call < CALLS; call++) ROWS[row].call();
      double each = (thread_us() - from) / CALLS;
      CHECK_DRIVER(cuStreamSynchronize(stream));
      if (batch >= 0) took[row][batch] = each;
    }
  for (int row = 0; row < ROW_COUNT; row++) {
    qsort(took[row], BATCHES, sizeof(double), by_value);
    printf("%-50s %6.3f us, p90 %6.3f\n", ROWS[row].name, took[row][BATCHES / 2], took[row][BATCHES * 9 / 10]);
  }
}
