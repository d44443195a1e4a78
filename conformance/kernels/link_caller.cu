// nvcc: -rdc=true
// One half of a program in two translation units: calls a function and reads a variable of the other.

extern __device__ unsigned scale(unsigned value);
extern __device__ unsigned offset;

extern "C" __global__ void linked(unsigned *out)
{
    out[threadIdx.x] = scale(threadIdx.x) + offset;
}
