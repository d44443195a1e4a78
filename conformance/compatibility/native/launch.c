// What a launch costs the host, measured where Python's own noise cannot reach: an empty kernel, launched in a
// tight loop in the process, context and driver library that the framework uses.
//
// The driver's functions are found as NVIDIA's runtime finds them: libcuda.so.1 by name, then cuGetProcAddress.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

typedef int (*ProcAddress)(const char *, void **, int, uint64_t, int *);
typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char EMPTY[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry compat_empty() { ret; }\n";

static void *function(ProcAddress proc_address, const char *name) {
    void *address = 0;
    int found = 0;
    return proc_address(name, &address, 12000, 0, &found) == 0 ? address : 0;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int enter_context(ProcAddress proc_address) {
    int (*current)(void **) = function(proc_address, "cuCtxGetCurrent");
    int (*retain)(void **, int) = function(proc_address, "cuDevicePrimaryCtxRetain");
    int (*enter)(void *) = function(proc_address, "cuCtxSetCurrent");
    void *context = 0;
    if (!current || !retain || !enter || current(&context) != 0) return 0;
    return context || (retain(&context, 0) == 0 && enter(context) == 0);
}

// Nanoseconds per launch in the fastest of `batches` batches; negative if a call failed.
double launch_cost(int batches, int per_batch) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    ProcAddress proc_address = driver ? (ProcAddress)dlsym(driver, "cuGetProcAddress_v2") : 0;
    if (!proc_address || !enter_context(proc_address)) return -1;
    int (*load)(void **, const void *) = function(proc_address, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = function(proc_address, "cuModuleGetFunction");
    int (*synchronise)(void) = function(proc_address, "cuCtxSynchronize");
    Launch launch = (Launch)function(proc_address, "cuLaunchKernel");
    void *module = 0, *kernel = 0;
    if (!load || !find || !synchronise || !launch) return -2;
    if (load(&module, EMPTY) != 0 || find(&kernel, module, "compat_empty") != 0) return -3;
    double best = 1e18;
    for (int batch = 0; batch < batches; batch++) {
        if (synchronise() != 0) return -4;
        int64_t begin = now();
        for (int i = 0; i < per_batch; i++)
            if (launch(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) != 0) return -5;
        double cost = (double)(now() - begin) / per_batch;
        if (cost < best) best = cost;
    }
    return synchronise() == 0 ? best : -6;
}
