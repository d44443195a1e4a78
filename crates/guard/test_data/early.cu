// A function that lets the next launch begin, and kernels that call it or not. It is compiled to be linked, so that it has a
// section of its own.
__device__ __noinline__ int lets_begin(int x) {
  asm volatile("griddepcontrol.launch_dependents;");
  return x + 1;
}
extern "C" __global__ void calls(int* y) { y[threadIdx.x] = lets_begin(y[threadIdx.x]); }
extern "C" __global__ void nothing(int* y) { y[threadIdx.x] += 1; }
