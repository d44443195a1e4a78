// A call of CUDA that fails ends the program, with the line in the words that its script understands.

#pragma once

#include <cstdio>
#include <cuda_runtime.h>
#include <unistd.h>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        cudaError_t error = (call);                                                                        \
        if (error != cudaSuccess) {                                                                        \
            printf("{\"error\": \"line %d: %s\"}\n", __LINE__, cudaGetErrorString(error));                 \
            fflush(stdout);                                                                                \
            _exit(1);                                                                                      \
        }                                                                                                  \
    } while (0)
