// What the programs of this folder share: a clock, and calls of the driver that end the program when they fail.

#pragma once

#include <cuda.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CHECK_DRIVER(call)                                               \
  do {                                                                   \
    CUresult result = (call);                                            \
    if (result != CUDA_SUCCESS) {                                        \
      printf("line %d: the driver answered %d\n", __LINE__, (int)result); \
      fflush(stdout);                                                    \
      _exit(1);                                                          \
    }                                                                    \
  } while (0)

static double now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}
