// Whether a copy of one word writes it once. A stream that waits for the word goes on as soon as it is there, and what it goes on with may
// write it anew; if the copy came to it a second time, that would be lost. The shim opens gates so (crates/shim/src/guard/control.rs).
//
//   nvcc -arch=sm_90 -O2 -o once once.cu -lcuda
//   ./once [ROUNDS]              what was lost, for words written by a stream's memory operation and by a kernel
//
// One stream copies nought into the word, again and again; another waits for it and writes the number of the round. Behind each round the
// first takes down what is in the word.

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "card.cuh"

static const unsigned BATCH = 10000;

__global__ void write_word(volatile unsigned *word, unsigned value) { *word = value; }

struct Words {
  CUdeviceptr word, nought, written, log;
};

// Rounds `first` to `first + BATCH - 1`; how many of them found another number than their own.
static unsigned lost(const Words &at, unsigned first, bool by_kernel, CUstream copies, CUstream writes) {
  for (unsigned round = first; round < first + BATCH; ++round) {
    CHECK_DRIVER(cuStreamWaitValue32(writes, at.word, 0, CU_STREAM_WAIT_VALUE_EQ));
    if (by_kernel) {
      write_word<<<1, 1, 0, (cudaStream_t)writes>>>((unsigned *)at.word, round);
    } else {
      CHECK_DRIVER(cuStreamWriteValue32(writes, at.word, round, 0));
    }
    CHECK_DRIVER(cuStreamWriteValue32(writes, at.written, round, 0));
    CHECK_DRIVER(cuMemcpyDtoDAsync(at.word, at.nought, 4, copies));
    CHECK_DRIVER(cuStreamWaitValue32(copies, at.written, round, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_DRIVER(cuMemcpyDtoDAsync(at.log + 4 * (round - first), at.word, 4, copies));
  }
  CHECK_DRIVER(cuStreamSynchronize(copies));
  CHECK_DRIVER(cuStreamSynchronize(writes));
  std::vector<unsigned> log(BATCH);
  CHECK_DRIVER(cuMemcpyDtoH(log.data(), at.log, 4 * BATCH));
  unsigned count = 0;
  for (unsigned place = 0; place < BATCH; ++place) count += log[place] != first + place;
  return count;
}

int main(int count, char **words) {
  unsigned rounds = count > 1 ? atoi(words[1]) : 200000;
  CUcontext context;
  CUdevice device;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CUdeviceptr memory;
  CHECK_DRIVER(cuMemAlloc(&memory, 4096 + 4 * BATCH));
  CHECK_DRIVER(cuMemsetD8(memory, 0, 4096));
  Words at = {memory, memory + 128, memory + 256, memory + 4096};
  CUstream copies, writes;
  CHECK_DRIVER(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
  // Loaded now: to load a kernel the driver waits for streams, one of which would wait for what comes behind the launch.
  write_word<<<1, 1, 0, (cudaStream_t)writes>>>((unsigned *)at.word, 0);
  CHECK_DRIVER(cuStreamSynchronize(writes));
  // So that the first round has something to wait for.
  unsigned one = 1;
  for (bool by_kernel : {false, true}) {
    CHECK_DRIVER(cuMemsetD32(at.written, 0, 1));
    CHECK_DRIVER(cuMemcpyHtoD(at.word, &one, 4));
    double begin = now_us();
    unsigned wrong = 0, done = 0;
    for (; done < rounds; done += BATCH) wrong += lost(at, done + 1, by_kernel, copies, writes);
    const char *by = by_kernel ? "a kernel" : "a memory operation";
    printf("written by %s: %u of %u lost, %.1f us per round\n", by, wrong, done, (now_us() - begin) / done);
    fflush(stdout);
  }
  return 0;
}
