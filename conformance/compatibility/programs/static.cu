// CUDA C++ with the runtime linked statically: plain, cooperative and extended launches, streams and events, stream
// ordered memory, a captured graph. The runtime in it finds the driver by dlopen, as every static program's does.
//
// It prints what it computed as a digest, how many kernels it launched, and what a launch costs.

#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <vector>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t error = (call);                                                                  \
        if (error != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

constexpr int COUNT = 1 << 16;

__global__ void compat_empty() {}

__global__ void compat_mix(uint32_t *data, uint32_t salt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = (data[i] ^ salt) * 2654435761u + i;
}

__global__ void compat_smooth(float *out, const uint32_t *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = sinf(data[i] * 1e-9f) + sqrtf(data[(i + 1) % COUNT] * 1e-9f);
}

__global__ void compat_rotate(uint32_t *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t next = data[(i + 12345) % COUNT];
    cooperative_groups::this_grid().sync();
    data[i] = next;
}

static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

struct Digest {
    uint64_t value = 14695981039346656037u;

    template <class T> void add(const std::vector<T> &items) {
        const unsigned char *bytes = reinterpret_cast<const unsigned char *>(items.data());
        for (size_t i = 0; i < items.size() * sizeof(T); i++) value = (value ^ bytes[i]) * 1099511628211u;
    }
};

template <class T> static std::vector<T> read(const T *device) {
    std::vector<T> host(COUNT);
    CHECK(cudaMemcpy(host.data(), device, COUNT * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

static void launch_extended(uint32_t *data, cudaStream_t stream) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = COUNT / 256;
    config.blockDim = 256;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, compat_mix, data, 77u));
}

static cudaGraphExec_t capture(uint32_t *data, float *out, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    compat_mix<<<COUNT / 256, 256, 0, stream>>>(data, 5);
    compat_smooth<<<COUNT / 256, 256, 0, stream>>>(out, data);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

// By the runtime, and by the driver with the code that the other programs use too.
static void print_launch_costs() {
    double best = 1e18, cost, behind;
    for (int batch = 0; batch < 1000; batch++) {
        CHECK(cudaDeviceSynchronize());
        int64_t begin = now();
        for (int i = 0; i < 100; i++) compat_empty<<<1, 1>>>();
        cost = double(now() - begin) / 100;
        if (cost < best) best = cost;
    }
    CHECK(cudaDeviceSynchronize());
    const char *path = getenv("COMPAT_LAUNCH");
    void *library = path ? dlopen(path, RTLD_NOW) : nullptr;
    using Cost = int (*)(int, double *, double *);
    Cost driver_cost = library ? reinterpret_cast<Cost>(dlsym(library, "launch_cost")) : nullptr;
    if (!driver_cost || driver_cost(100000, &cost, &behind) != 0) {
        fprintf(stderr, "the launches of the driver could not be timed\n");
        exit(1);
    }
    printf(", \"framework_launch_ns\": %.2f, \"launch_ns\": %.2f", best, cost);
    if (behind > 0) printf(", \"launch_behind_ns\": %.2f", behind);
}

int main() {
    Digest digest;
    int launched = 0;
    uint32_t *data;
    float *out;
    cudaStream_t stream;
    CHECK(cudaMalloc(&data, COUNT * sizeof *data));
    CHECK(cudaMemset(data, 0x5a, COUNT * sizeof *data));
    compat_mix<<<COUNT / 256, 256>>>(data, 1);
    launched++;
    digest.add(read(data));
    int64_t first_result = now();

    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocAsync(&out, COUNT * sizeof *out, stream));
    for (uint32_t salt = 0; salt < 20; salt++, launched++) compat_mix<<<COUNT / 256, 256, 0, stream>>>(data, salt);
    launch_extended(data, stream);
    launched++;
    void *arguments[] = {&data};
    CHECK(cudaLaunchCooperativeKernel(compat_rotate, dim3(COUNT / 256), dim3(256), arguments, 0, stream));
    launched++;
    cudaGraphExec_t graph = capture(data, out, stream);
    for (int i = 0; i < 10; i++, launched += 2) CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
    digest.add(read(data));
    digest.add(read(out));
    CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaFreeAsync(out, stream));
    CHECK(cudaStreamDestroy(stream));

    const char *mode = getenv("COMPAT_MODE");
    printf("{\"digest\": \"%016llx\", \"first_result_ns\": %lld, \"kernels\": %d", (unsigned long long)digest.value,
           (long long)first_result, launched);
    if (!mode || strcmp(mode, "time") == 0) print_launch_costs();
    printf("}\n");
    CHECK(cudaFree(data));
    return 0;
}
