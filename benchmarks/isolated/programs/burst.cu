// The microbenchmark's two tenants, told what to do by lines on standard input and answering with lines of JSON.
//
//   burst latency [--high]       bursts N LOW HIGH SEED SECONDS [LAUNCHES]: N bursts of ten launches, or so many, each
//                                one block of 20 us on every SM, LOW to HIGH microseconds apart; fewer when the time is
//                                up. Of each burst: how long it took the host, and how long from the first instruction
//                                of its first launch to the last of its last, by the GPU's clock
//   burst best-effort            go MICROSECONDS small|large [BLOCKS]: endless grids that fill the GPU, of 20 ms or of
//                                so many blocks; stop
//
// Both do arithmetic instead of watching a clock: a clock goes on while a context is off the GPU, so a block that
// watches one loses nothing by being switched out, and a benchmark made of such blocks flatters everybody.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.cuh"
#include "clock.cuh"

constexpr int LAUNCHES = 10;
constexpr double LATENCY_BLOCK_US = 20.0;
constexpr double GRID_US = 20000.0;
constexpr int IN_FLIGHT = 4;
constexpr int SMALL_THREADS = 128;
constexpr int SMALL_PER_SM = 16;
constexpr int LARGE_THREADS = 1024;
// All the shared memory a block may have on sm_90; of the registers, what 1,024 threads of 56 take.
constexpr int LARGE_SHARED = 227 * 1024;
constexpr int LARGE_REGISTERS = 44;

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// A launch of a burst. Blocks of the first write down when they began, those of the last when they ended.
__global__ void burst_block(unsigned rounds, Word *began, Word *ended, float *sink) {
    if (threadIdx.x == 0 && began) began[blockIdx.x] = global_ns();
    float value = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++) value = fmaf(value, 1.0001f, 0.5f);
    if (value == -1.0f) *sink = value;
    if (threadIdx.x == 0 && ended) ended[blockIdx.x] = global_ns();
}

// Few registers and no shared memory: next to nothing to save when the context is switched out.
__global__ void small_block(unsigned rounds, Word *blocks, float *sink) {
    float value = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++) value = fmaf(value, 1.0001f, 0.5f);
    if (value == -1.0f) *sink = value;
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

// One block fills an SM's registers and shared memory with values that are used to the end.
__global__ void __launch_bounds__(LARGE_THREADS, 1)
    large_block(unsigned rounds, Word *blocks, float *sink) {
    extern __shared__ float shared[];
    for (int i = threadIdx.x; i < LARGE_SHARED / 4; i += blockDim.x) shared[i] = i;
    float values[LARGE_REGISTERS];
#pragma unroll
    for (int j = 0; j < LARGE_REGISTERS; j++) values[j] = threadIdx.x + j;
    for (unsigned i = 0; i < rounds; i++) {
#pragma unroll
        for (int j = 0; j < LARGE_REGISTERS; j++)
            values[j] = fmaf(values[j], 1.0001f, values[(j + 1) % LARGE_REGISTERS]);
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < LARGE_REGISTERS; j++) sum += values[j];
    __syncthreads();
    if (sum + shared[(threadIdx.x * 57) % (LARGE_SHARED / 4)] == -1.0f) *sink = sum;
    if (threadIdx.x == 0) atomicAdd(blocks, 1ull);
}

struct Card {
    int sms = 0;
    cudaStream_t stream = nullptr;
    Word *blocks = nullptr;
    float *sink = nullptr;
};

static Card open_card(bool high) {
    Card card;
    CHECK(cudaFree(nullptr));
    CHECK(cudaDeviceGetAttribute(&card.sms, cudaDevAttrMultiProcessorCount, 0));
    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&card.stream, cudaStreamNonBlocking, high ? greatest : least));
    CHECK(cudaMalloc(&card.blocks, sizeof *card.blocks));
    CHECK(cudaMalloc(&card.sink, sizeof *card.sink));
    CHECK(cudaFuncSetAttribute(large_block, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE_SHARED));
    return card;
}

// Microseconds that one round of a full GPU takes, measured on a few waves while nobody else works.
template <class Launch>
static double round_us(const Card &card, unsigned rounds, Launch launch) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    float best = 1e9f;
    for (int i = 0; i < 8; i++) {
        CHECK(cudaEventRecord(begin, card.stream));
        launch(rounds);
        CHECK(cudaEventRecord(end, card.stream));
        CHECK(cudaStreamSynchronize(card.stream));
        float milliseconds = 0.0f;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        best = std::min(best, milliseconds);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return best * 1000.0 / rounds;
}

struct Latency {
    Card card;
    unsigned rounds = 0;
    double gpu_us = 0.0;
    // Written by the GPU, read by the host: a copy would be one more thing that waits for its turn.
    Word *began = nullptr, *ended = nullptr;

    void launch(unsigned count, bool first, bool last) {
        auto begins = first ? began : nullptr, ends = last ? ended : nullptr;
        burst_block<<<card.sms, SMALL_THREADS, 0, card.stream>>>(count, begins, ends, card.sink);
    }

    void launch_all(int launches) {
        for (int i = 0; i < launches; i++) launch(rounds, i == 0, i == launches - 1);
    }

    double span_us() const {
        return (*std::max_element(ended, ended + card.sms) - *std::min_element(began, began + card.sms)) / 1000.0;
    }

    void prepare() {
        CHECK(cudaMallocHost(&began, card.sms * sizeof *began));
        CHECK(cudaMallocHost(&ended, card.sms * sizeof *ended));
        double each = round_us(card, 200000, [&](unsigned count) { launch(count, false, false); });
        rounds = LATENCY_BLOCK_US / each;
        gpu_us = round_us(card, 1, [&](unsigned) { launch_all(LAUNCHES); });
    }

    void bursts(int count, int low, int high, unsigned seed, double seconds, int launches) {
        std::vector<double> latencies, spans;
        double from = now();
        // Where every launch waits behind whole grids, a burst takes half a second.
        for (int i = 0; i < count && now() < from + seconds; i++) {
            usleep(low + rand_r(&seed) % std::max(1, high - low));
            double begin = now();
            launch_all(launches);
            CHECK(cudaStreamSynchronize(card.stream));
            latencies.push_back((now() - begin) * 1e6);
            spans.push_back(span_us());
        }
        CHECK(cudaGetLastError());
        printf("{\"from\": %.6f, \"to\": %.6f, \"latency_us\": [", from, now());
        for (size_t i = 0; i < latencies.size(); i++) printf("%s%.1f", i ? ", " : "", latencies[i]);
        printf("], \"span_us\": [");
        for (size_t i = 0; i < spans.size(); i++) printf("%s%.1f", i ? ", " : "", spans[i]);
        printf("]}\n");
        fflush(stdout);
    }
};

struct BestEffort {
    Card card;
    double small_us = 0.0, large_us = 0.0;
    std::thread worker;
    std::atomic<bool> stop{false};
    std::vector<double> stamps;
    Word expected = 0;

    void launch(bool large, unsigned grid, unsigned rounds) {
        if (large) large_block<<<grid, LARGE_THREADS, LARGE_SHARED, card.stream>>>(rounds, card.blocks, card.sink);
        else small_block<<<grid, SMALL_THREADS, 0, card.stream>>>(rounds, card.blocks, card.sink);
        CHECK(cudaGetLastError());
    }

    void prepare() {
        small_us = round_us(card, 20000, [&](unsigned count) { launch(false, card.sms * SMALL_PER_SM, count); });
        large_us = round_us(card, 2000, [&](unsigned count) { launch(true, card.sms, count); });
    }

    void work(double block_us, bool large, unsigned grid) {
        unsigned rounds = std::max(1.0, block_us / (large ? large_us : small_us));
        if (!grid) grid = card.sms * (large ? 1 : SMALL_PER_SM) * std::max(1u, (unsigned)(GRID_US / block_us));
        cudaEvent_t done[IN_FLIGHT];
        unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
        for (auto &event : done) CHECK(cudaEventCreateWithFlags(&event, flags));
        long launched = 0, ended = 0;
        auto end_one = [&] {
            CHECK(cudaEventSynchronize(done[ended++ % IN_FLIGHT]));
            stamps.push_back(now());
        };
        stamps.assign(1, now());
        while (!stop) {
            if (launched - ended == IN_FLIGHT) end_one();
            launch(large, grid, rounds);
            CHECK(cudaEventRecord(done[launched++ % IN_FLIGHT], card.stream));
        }
        while (ended < launched) end_one();
        for (auto &event : done) CHECK(cudaEventDestroy(event));
        expected = (Word)launched * grid;
    }

    void go(double block_us, bool large, unsigned grid) {
        CHECK(cudaMemset(card.blocks, 0, sizeof *card.blocks));
        CHECK(cudaDeviceSynchronize());
        stop = false;
        worker = std::thread([=] { work(block_us, large, grid); });
        printf("{\"going\": true}\n");
        fflush(stdout);
    }

    void finish() {
        stop = true;
        if (worker.joinable()) worker.join();
        Word blocks = 0;
        CHECK(cudaMemcpy(&blocks, card.blocks, sizeof blocks, cudaMemcpyDeviceToHost));
        printf("{\"blocks\": %llu, \"expected\": %llu, \"stamps\": [", blocks, expected);
        for (size_t i = 0; i < stamps.size(); i++) printf("%s%.6f", i ? ", " : "", stamps[i]);
        printf("]}\n");
        fflush(stdout);
    }
};

int main(int count, char **arguments) {
    std::string role = count > 1 ? arguments[1] : "";
    bool high = count > 2 && !strcmp(arguments[2], "--high");
    static Latency latency;
    static BestEffort best_effort;
    Card card = open_card(high);
    if (role == "latency") {
        latency.card = card;
        latency.prepare();
    } else {
        best_effort.card = card;
        best_effort.prepare();
    }
    printf("{\"ready\": true, \"sms\": %d, \"gpu_us\": %.1f}\n", card.sms, latency.gpu_us);
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        int bursts = 0, low = 0, apart = 0, launches = LAUNCHES;
        unsigned seed = 0, blocks = 0;
        double block_us = 0.0, seconds = 0.0;
        char state[16] = "";
        if (sscanf(line, "bursts %d %d %d %u %lf %d", &bursts, &low, &apart, &seed, &seconds, &launches) >= 5)
            latency.bursts(bursts, low, apart, seed, seconds, launches);
        else if (sscanf(line, "go %lf %15s %u", &block_us, state, &blocks) >= 2)
            best_effort.go(block_us, !strcmp(state, "large"), blocks);
        else if (!strncmp(line, "stop", 4)) best_effort.finish();
        else break;
    }
    // A client that leaves an MPS server with work in flight may leave it broken for the next.
    best_effort.stop = true;
    if (best_effort.worker.joinable()) best_effort.worker.join();
    _exit(0);
}
