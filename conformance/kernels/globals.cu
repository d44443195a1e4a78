// Module-scope variables, reached by name from the host and by their initial values from the device.

extern "C" {
__device__ int counter = 41;
__device__ float table[4] = {1.5f, -2.0f, 0.25f, 1e10f};
__constant__ unsigned primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ unsigned long long untouched[100];
__device__ int *pointer_to_counter = &counter;
__device__ unsigned char bytes[3] = {1, 2, 255};
}

extern "C" __global__ void touch_globals(unsigned *out)
{
    unsigned i = threadIdx.x;
    if (i < 8)
        out[i] = primes[i];
    if (i < 4)
        out[8 + i] = __float_as_uint(table[i]);
    if (i == 0) {
        out[12] = static_cast<unsigned>(*pointer_to_counter);
        counter += 1;
        out[13] = bytes[0] + bytes[1] + bytes[2];
        untouched[99] += 7;
    }
}
