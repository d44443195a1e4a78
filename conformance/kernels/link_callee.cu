// nvcc: -rdc=true
// The other half.

__device__ unsigned offset = 100;

__device__ unsigned scale(unsigned value)
{
    return value * 3 + offset;
}
