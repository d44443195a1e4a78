// The one clock that all processes can read on the GPU.

#pragma once

using Word = unsigned long long;

__device__ Word global_ns() {
    Word time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
