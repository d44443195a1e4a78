// Inclusive prefix sum in one pass with decoupled look-back: a block publishes its own sum, then walks back over its
// predecessors' published sums until it meets one that is already inclusive. A block waits only for lower tiles, so
// it ends on any device that starts blocks in order (`scan_by_block`) or that takes tiles by ticket (`scan_by_ticket`).

constexpr int THREADS = 128;
constexpr unsigned EMPTY = 0, OWN = 1, INCLUSIVE = 2;

__device__ static unsigned block_scan(unsigned value, unsigned *sums)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        unsigned other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset)
            value += other;
    }
    if (lane == 31)
        sums[warp] = value;
    __syncthreads();
    for (int i = 0; i < warp; i++)
        value += sums[i];
    return value;
}

// State and value share one 64-bit word, so that one store publishes both.
__device__ static void publish(volatile unsigned long long *state, unsigned tile, unsigned kind, unsigned value)
{
    state[tile] = (static_cast<unsigned long long>(kind) << 32) | value;
}

__device__ static unsigned look_back(volatile unsigned long long *state, unsigned tile)
{
    unsigned sum = 0;
    for (unsigned before = tile; before-- > 0;) {
        unsigned long long word;
        do {
            word = state[before];
        } while ((word >> 32) == EMPTY);
        sum += static_cast<unsigned>(word);
        if ((word >> 32) == INCLUSIVE)
            break;
    }
    return sum;
}

__device__ static void scan_tile(const unsigned *in, unsigned *out, unsigned long long *state, unsigned tile, int n)
{
    __shared__ unsigned sums[THREADS / 32];
    __shared__ unsigned prefix;
    int i = tile * THREADS + threadIdx.x;
    unsigned value = block_scan(i < n ? in[i] : 0, sums);
    if (threadIdx.x == THREADS - 1) {
        publish(state, tile, tile == 0 ? INCLUSIVE : OWN, value);
        unsigned before = look_back(state, tile);
        if (tile != 0)
            publish(state, tile, INCLUSIVE, before + value);
        prefix = before;
    }
    __syncthreads();
    if (i < n)
        out[i] = prefix + value;
}

extern "C" __global__ void scan_by_block(const unsigned *in, unsigned *out, unsigned long long *state, int n)
{
    scan_tile(in, out, state, blockIdx.x, n);
}

extern "C" __global__ void scan_by_ticket(const unsigned *in, unsigned *out, unsigned long long *state, int n,
                                          unsigned *ticket)
{
    __shared__ unsigned tile;
    if (threadIdx.x == 0)
        tile = atomicAdd(ticket, 1u);
    __syncthreads();
    scan_tile(in, out, state, tile, n);
}
