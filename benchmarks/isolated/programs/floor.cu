// Both sides of a switch, told what to do by lines on standard input and answering with lines of JSON. With levers.c
// preloaded it pulls the driver's levers on itself. Microseconds throughout.
//
//   floor FILE                                       FILE holds the words that the two sides share
//   lever NAME VALUE                                 pulls one; what it said, and how long it took
//   calls NAME N                                     the same N times; for disable and bar, each is followed by enable
//   load KIND BLOCK GRID                             endless grids of blocks of KIND, four in flight; count; gaps; stop
//   bursts N LAUNCHES LOW HIGH PREPARE WAKE SECONDS  N bursts of so many launches of one 20 us block on every SM, LOW
//                                                    to HIGH apart, fewer when the time is up
//   gate NAME, ungate                                pulls a lever whenever the other side's burst begins
//   turn WHO, share WHO QUANTUM, token WHO QUANTUM SECONDS
//                                                    whose turn it is; takes turns by draining; by disable and enable

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.cuh"
#include "floor.cuh"

constexpr int IN_FLIGHT = 4;
constexpr double BURST_BLOCK = 20.0;
constexpr int MOST_BURSTS = 4096;
constexpr size_t COPIED = 4 << 20;

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void spin_until(double moment) {
    while (now() < moment) __builtin_ia32_pause();
}

// ---- The card.

static int sms;
static cudaStream_t load_stream, main_stream, side_stream, told_stream;
static Word *blocks, *gaps, *moments;
static float *sink;
static float4 *streamed_in, *streamed_out;
static unsigned *told;
static char *on_card, *pinned, *pageable;

struct Kind {
    int per_sm, threads;
    unsigned trial;  // rounds of a launch that measures how long a round takes
};

static const std::map<std::string, Kind> KINDS = {
    {"warp", {1, 32, 20000}},        {"small", {16, 128, 20000}},      {"large", {1, LARGE_THREADS, 300}},
    {"stream", {8, 256, 200}},       {"watched-warp", {1, 32, 400}},   {"watched-large", {1, LARGE_THREADS, 300}},
    {"burst", {1, 128, 20000}},
};
static std::map<std::string, double> round_us;

static void launch(const std::string &kind, unsigned grid, unsigned rounds, cudaStream_t to) {
    int threads = KINDS.at(kind).threads;
    if (kind == "large") large_block<false><<<grid, threads, LARGE_SHARED, to>>>(rounds, blocks, sink, nullptr);
    else if (kind == "watched-large")
        large_block<true><<<grid, threads, LARGE_SHARED, to>>>(rounds, blocks, sink, gaps);
    else if (kind == "watched-warp") small_watched<<<grid, threads, 0, to>>>(rounds, blocks, sink, gaps);
    else if (kind == "stream") stream_block<<<grid, threads, 0, to>>>(rounds, blocks, streamed_in, streamed_out);
    else if (kind == "burst") burst_block<<<grid, threads, 0, to>>>(rounds, nullptr, nullptr, sink);
    else small_block<<<grid, threads, 0, to>>>(rounds, blocks, sink);
    CHECK(cudaGetLastError());
}

// While nobody else works.
static void measure_rounds() {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (const auto &[name, kind] : KINDS) {
        float best = 1e9f;
        for (int i = 0; i < 6; i++) {
            CHECK(cudaEventRecord(begin, load_stream));
            for (int j = 0; j < 5; j++) launch(name, sms * kind.per_sm, kind.trial, load_stream);
            CHECK(cudaEventRecord(end, load_stream));
            CHECK(cudaStreamSynchronize(load_stream));
            float milliseconds = 0.0f;
            CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
            best = std::min(best, milliseconds / 5);
        }
        // Two to three microseconds of it lie between launches.
        round_us[name] = (best * 1000.0 - 2.5) / kind.trial;
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
}

static unsigned rounds_of(const std::string &kind, double block_us) {
    return std::max(1.0, block_us / round_us[kind]);
}

static void open_card() {
    CHECK(cudaFree(nullptr));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (auto *stream : {&load_stream, &main_stream, &told_stream})
        CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&side_stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaMalloc(&blocks, sizeof *blocks));
    CHECK(cudaMalloc(&gaps, (1 + 2 * GAPS) * sizeof *gaps));
    CHECK(cudaMalloc(&moments, 2 * MOST_BURSTS * sizeof *moments));
    CHECK(cudaMalloc(&sink, sizeof *sink));
    CHECK(cudaMalloc(&told, sizeof *told));
    CHECK(cudaMalloc(&streamed_in, STREAMED * sizeof *streamed_in));
    CHECK(cudaMalloc(&streamed_out, STREAMED * sizeof *streamed_out));
    CHECK(cudaMalloc(&on_card, COPIED));
    CHECK(cudaMallocHost(&pinned, COPIED));
    pageable = (char *)calloc(1, COPIED);
    memset(pageable, 1, COPIED);
    CHECK(cudaMemset(told, 0, sizeof *told));
    CHECK(cudaMemset(gaps, 0, sizeof *gaps));
    auto shared = cudaFuncAttributeMaxDynamicSharedMemorySize;
    CHECK(cudaFuncSetAttribute(large_block<false>, shared, LARGE_SHARED));
    CHECK(cudaFuncSetAttribute(large_block<true>, shared, LARGE_SHARED));
    // What is launched for the first time is loaded, which takes longer than a burst.
    empty<<<1, 32, 0, side_stream>>>();
    hold<<<1, 32, 0, side_stream>>>(told, 0, 1000);
    CHECK(cudaDeviceSynchronize());
    measure_rounds();
}

// ---- Answers.

static void answer(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
    fflush(stdout);
}

template <class Value> static std::string list(const std::vector<Value> &values, size_t most = SIZE_MAX) {
    std::ostringstream text;
    text.precision(1);
    text << std::fixed << "[";
    for (size_t i = 0; i < values.size() && i < most; i++) text << (i ? ", " : "") << values[i];
    text << "]";
    return text.str();
}

// ---- The levers.

static long (*levers_pull)(const char *, uint64_t *);

static long pull(const char *lever, uint64_t value = 0, double *took = nullptr, uint64_t *said = nullptr) {
    double begin = now();
    long status = levers_pull ? levers_pull(lever, &value) : -2;
    if (took) *took = now() - begin;
    if (said) *said = value;
    return status;
}

static bool disables(const std::string &lever) { return lever == "disable" || lever == "bar"; }

static void calls(std::istringstream &words) {
    std::string name;
    int count = 0;
    words >> name >> count;
    std::vector<double> first, second;
    long status = 0;
    for (int i = 0; i < count; i++) {
        double took = 0.0;
        // Another value every time, so that none is skipped as what is already set.
        status |= pull(name.c_str(), i % 2 ? 1 : 2048, &took);
        first.push_back(took);
        if (disables(name)) {
            status |= pull("enable", 0, &took);
            second.push_back(took);
        }
        usleep(3000);
    }
    answer("{\"status\": %ld, \"us\": %s, \"enable_us\": %s}", status, list(first).c_str(), list(second).c_str());
}

// ---- What the two processes share.

struct Shared {
    std::atomic<uint32_t> turn, gate;
};
static Shared *shared;

static void share_file(const char *path) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    void *map = MAP_FAILED;
    if (file >= 0 && ftruncate(file, 4096) == 0) map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        answer("{\"error\": \"the shared file cannot be mapped\"}");
        _exit(1);
    }
    shared = (Shared *)map;
}

static std::thread gatekeeper;
static std::atomic<bool> gated{false};

// Asked as soon as the other side's burst begins; what was disabled is enabled when it ends.
static void keep_gate(std::string lever) {
    uint32_t seen = 0;
    while (gated) {
        uint32_t word = shared->gate;
        if (word != seen) {
            seen = word;
            if (word) pull(lever.c_str());
            else if (disables(lever)) pull("enable");
        }
        __builtin_ia32_pause();
    }
    if (disables(lever)) pull("enable");
}

static void ungate() {
    gated = false;
    if (gatekeeper.joinable()) gatekeeper.join();
}

// ---- The best-effort side.

struct Load {
    std::thread worker;
    std::atomic<bool> stop{false};
    std::mutex counting;
    long ended = 0;
    double last = 0.0;  // when the last grid that ended did
    std::atomic<int> who{-1};  // takes turns, as this one
    std::atomic<double> quantum{0.0};
    long launched = 0;
    unsigned grid = 0;
    cudaEvent_t done[IN_FLIGHT];

    void end_one() {
        CHECK(cudaEventSynchronize(done[ended % IN_FLIGHT]));
        std::lock_guard<std::mutex> guard(counting);
        ended++;
        last = now();
    }

    void drain() {
        while (ended < launched) end_one();
    }

    // Returns when it may launch. A turn ends with nothing in flight: two groups of 1 us on the GPU stop each other.
    void await_turn(double &since) {
        if (who < 0) return;
        if (since > 0.0 && now() - since < quantum) return;
        if (since > 0.0) {
            drain();
            shared->turn = 1 - who;
        }
        while (!stop && shared->turn != (uint32_t)who) __builtin_ia32_pause();
        since = now();
    }

    void work(std::string kind, unsigned rounds) {
        for (auto &event : done) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        double since = 0.0;
        while (!stop) {
            await_turn(since);
            if (stop) break;
            if (launched - ended == IN_FLIGHT) end_one();
            launch(kind, grid, rounds, load_stream);
            CHECK(cudaEventRecord(done[launched++ % IN_FLIGHT], load_stream));
        }
        drain();
        for (auto &event : done) CHECK(cudaEventDestroy(event));
    }

    void begin(std::istringstream &words) {
        std::string kind;
        double block_us = 0.0, grid_us = 0.0;
        words >> kind >> block_us >> grid_us;
        grid = sms * KINDS.at(kind).per_sm * std::max(1u, (unsigned)(grid_us / block_us));
        CHECK(cudaMemset(blocks, 0, sizeof *blocks));
        CHECK(cudaMemset(gaps, 0, sizeof *gaps));
        CHECK(cudaDeviceSynchronize());
        stop = false;
        launched = ended = 0;
        last = now();
        worker = std::thread([=] { work(kind, rounds_of(kind, block_us)); });
        answer("{}");
    }

    void end() {
        stop = true;
        if (worker.joinable()) worker.join();
        Word counted = 0;
        CHECK(cudaMemcpy(&counted, blocks, sizeof counted, cudaMemcpyDeviceToHost));
        answer("{\"blocks\": %llu, \"expected\": %llu}", counted, (Word)launched * grid);
    }

    void count() {
        std::lock_guard<std::mutex> guard(counting);
        answer("{\"ended\": %ld, \"last\": %.0f, \"at\": %.0f}", ended, last, now());
    }

    void say_gaps() {
        std::vector<Word> found(1 + 2 * GAPS);
        CHECK(cudaMemcpy(found.data(), gaps, found.size() * sizeof(Word), cudaMemcpyDeviceToHost));
        Word count = found[0];
        found.erase(found.begin());
        answer("{\"gaps\": %s}", list(found, 2 * count).c_str());
    }
};
static Load load;

// Turns by disable and enable: the load goes on launching all the time.
static void token(std::istringstream &words) {
    uint32_t who = 0;
    double quantum = 0.0, seconds = 0.0;
    words >> who >> quantum >> seconds;
    double end = now() + seconds * 1e6, since = now();
    bool mine = who == 0;
    long status = mine ? 0 : pull("disable");
    while (now() < end) {
        if (!mine && shared->turn == who) {
            status |= pull("enable");
            mine = true;
            since = now();
        } else if (mine && now() - since > quantum) {
            status |= pull("disable");
            mine = false;
            shared->turn = 1 - who;
        }
        __builtin_ia32_pause();
    }
    status |= pull("enable");
    answer("{\"status\": %ld}", status);
}

// ---- The latency side.

static unsigned hold_number;

static void wake_early(const std::string &wake) {
    if (wake == "kernel") empty<<<1, 32, 0, side_stream>>>();
    else if (wake == "hold") hold<<<1, 32, 0, side_stream>>>(told, ++hold_number, 20000000ull);
}

static void end_wake(const std::string &wake) {
    if (wake == "hold") {
        CHECK(cudaMemcpyAsync(told, &hold_number, sizeof hold_number, cudaMemcpyHostToDevice, told_stream));
        CHECK(cudaStreamSynchronize(told_stream));
    }
    if (wake != "none") CHECK(cudaStreamSynchronize(side_stream));
}

// What a program does before its first kernel: host:US of its own, or a copy or memset of so many bytes.
static void prepare(const std::string &what, double begin) {
    size_t colon = what.find(':');
    if (colon == std::string::npos) return;
    std::string kind = what.substr(0, colon);
    size_t amount = strtoull(what.c_str() + colon + 1, nullptr, 10), bytes = std::min(amount, COPIED);
    if (kind == "host") spin_until(begin + amount);
    else if (kind == "pinned") CHECK(cudaMemcpyAsync(on_card, pinned, bytes, cudaMemcpyHostToDevice, main_stream));
    else if (kind == "pageable") CHECK(cudaMemcpyAsync(on_card, pageable, bytes, cudaMemcpyHostToDevice, main_stream));
    else if (kind == "back") CHECK(cudaMemcpyAsync(pinned, on_card, bytes, cudaMemcpyDeviceToHost, main_stream));
    else if (kind == "memset") CHECK(cudaMemsetAsync(on_card, 0, bytes, main_stream));
}

static void bursts(std::istringstream &words) {
    int count = 0, launches = 0;
    double low = 0.0, high = 0.0, seconds = 0.0;
    std::string what, wake;
    words >> count >> launches >> low >> high >> what >> wake >> seconds;
    count = std::min(count, MOST_BURSTS);
    unsigned rounds = rounds_of("burst", BURST_BLOCK), seed = 17;
    std::vector<double> latencies;
    double from = now();
    for (int i = 0; i < count && now() < from + seconds * 1e6; i++) {
        double pause = low + (high - low) * (rand_r(&seed) / (double)RAND_MAX);
        if (pause > 200) usleep(pause);
        else spin_until(now() + pause);
        double begin = now();
        shared->gate = 1;
        wake_early(wake);
        prepare(what, begin);
        for (int j = 0; j < launches; j++) {
            Word *first = j ? nullptr : moments + 2 * i, *last = j + 1 < launches ? nullptr : moments + 2 * i + 1;
            burst_block<<<sms, 128, 0, main_stream>>>(rounds, first, last, sink);
        }
        CHECK(cudaStreamSynchronize(main_stream));
        latencies.push_back(now() - begin);
        shared->gate = 0;
        end_wake(wake);
    }
    double to = now();
    CHECK(cudaGetLastError());
    std::vector<Word> ran(launches ? 2 * latencies.size() : 0);
    if (!ran.empty()) CHECK(cudaMemcpy(ran.data(), moments, ran.size() * sizeof(Word), cudaMemcpyDeviceToHost));
    answer("{\"from\": %.0f, \"to\": %.0f, \"latency_us\": %s, \"ran_ns\": %s}", from, to, list(latencies).c_str(),
           list(ran).c_str());
}

// ---- What it is told.

static void obey(const std::string &command, std::istringstream &words) {
    std::string name;
    uint64_t value = 0, said = 0;
    double took = 0.0;
    if (command == "lever") {
        words >> name >> value;
        long status = pull(name.c_str(), value, &took, &said);
        answer("{\"status\": %ld, \"value\": %llu, \"us\": %.1f}", status, (Word)said, took);
    } else if (command == "calls") calls(words);
    else if (command == "load") load.begin(words);
    else if (command == "count") load.count();
    else if (command == "gaps") load.say_gaps();
    else if (command == "stop") load.end();
    else if (command == "bursts") bursts(words);
    else if (command == "token") token(words);
    else if (command == "gate") {
        words >> name;
        gated = true;
        gatekeeper = std::thread(keep_gate, name);
        answer("{}");
    } else if (command == "ungate") {
        ungate();
        answer("{}");
    } else if (command == "turn") {
        words >> value;
        shared->turn = (uint32_t)value;
        answer("{}");
    } else if (command == "share") {
        int who = -1;
        double quantum = 0.0;
        words >> who >> quantum;
        load.quantum = quantum;
        load.who = who;
        answer("{}");
    } else answer("{\"error\": \"what is %s?\"}", command.c_str());
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    share_file(arguments[1]);
    open_card();
    levers_pull = (decltype(levers_pull))dlsym(RTLD_DEFAULT, "levers_pull");
    uint64_t groups = 0, channels = 0, slice = 0;
    pull("groups", 0, nullptr, &groups);
    pull("channels", 0, nullptr, &channels);
    pull("get", 0, nullptr, &slice);
    answer("{\"sms\": %d, \"groups\": %llu, \"channels\": %llu, \"slice\": %llu}", sms, (Word)groups, (Word)channels,
           (Word)slice);
    char line[512];
    while (fgets(line, sizeof line, stdin)) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        obey(command, words);
    }
    // Channels go with the process, disabled or not.
    _exit(0);
}
