// What a launch costs the host, measured where Python's own noise cannot reach: an empty kernel, launched in a
// tight loop in the process, context and driver library that the framework uses.
//
// Two processes of the same program differ by several hundred nanoseconds per launch, and two batches in one process
// by a hundred, for reasons of the machine. So what ebb adds is measured launch by launch: each goes at random
// through the libcuda that the program has or straight into the driver behind it, if there is another, and the
// medians of some ten thousand are compared. A launch's time holds one reading of the clock, on both sides.
//
// The driver's functions are found as NVIDIA's runtime finds them: libcuda.so.1 by name, then cuGetProcAddress.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

// The loaded libcuda that does not hold `known`.
typedef struct {
    uintptr_t known;
    char path[4096];
} Search;

static int look(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size;
    Search *search = data;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : 0;
    if (!slash || strncmp(slash, "/libcuda.so", 11) != 0 || strlen(object->dlpi_name) >= sizeof search->path) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && search->known - begin < object->dlpi_phdr[i].p_memsz) return 0;
    }
    strcpy(search->path, object->dlpi_name);
    return 1;
}

// The driver's launch behind the one the program has, or null. dlmopen, because ebb answers a dlopen of the driver's
// path with itself.
static Launch launch_behind(void *known) {
    Search search = {(uintptr_t)known, ""};
    if (!dl_iterate_phdr(look, &search)) return 0;
    void *driver = dlmopen(LM_ID_BASE, search.path, RTLD_NOW | RTLD_NOLOAD);
    ProcAddress proc_address = driver ? (ProcAddress)dlsym(driver, "cuGetProcAddress_v2") : 0;
    return proc_address ? (Launch)function(proc_address, "cuLaunchKernel") : 0;
}

// Few enough between two waits that the driver's queue never fills.
enum { PER_BATCH = 64, MOST = 1 << 17 };

typedef struct {
    Launch launch;
    int count;
    int32_t times[MOST];
} Side;

static int ascending(const void *a, const void *b) { return (*(int32_t *)a > *(int32_t *)b) - (*(int32_t *)a < *(int32_t *)b); }

static double median(Side *side) {
    if (side->count == 0) return 0;
    qsort(side->times, side->count, sizeof side->times[0], ascending);
    return side->times[side->count / 2];
}

static int batch(Side *sides, void *kernel, uint64_t *random) {
    int64_t begin = now();
    for (int i = 0; i < PER_BATCH; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        Side *side = &sides[sides[1].launch ? *random >> 63 : 0];
        if (side->launch(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) != 0) return 0;
        int64_t end = now();
        if (side->count < MOST) side->times[side->count++] = (int32_t)(end - begin);
        begin = end;
    }
    return 1;
}

// Nanoseconds of the median launch: by the program's libcuda, and by the driver behind it (0 if there is none).
// Answers 0, or the step that failed.
int launch_cost(int launches, double *cost, double *cost_behind) {
    static Side sides[2];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ProcAddress proc_address = library ? (ProcAddress)dlsym(library, "cuGetProcAddress_v2") : 0;
    if (!proc_address || !enter_context(proc_address)) return 1;
    int (*load)(void **, const void *) = function(proc_address, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = function(proc_address, "cuModuleGetFunction");
    int (*synchronise)(void) = function(proc_address, "cuCtxSynchronize");
    Launch launch = (Launch)function(proc_address, "cuLaunchKernel");
    void *module = 0, *kernel = 0;
    if (!load || !find || !synchronise || !launch) return 2;
    if (load(&module, EMPTY) != 0 || find(&kernel, module, "compat_empty") != 0) return 3;
    sides[0].launch = launch;
    sides[1].launch = launch_behind((void *)launch);
    uint64_t random = 1;
    for (int done = 0; done < launches; done += PER_BATCH) {
        if (synchronise() != 0 || !batch(sides, kernel, &random)) return 4;
        // What was learned about the kernel at its first launches is not what a launch costs.
        if (done == 0) sides[0].count = sides[1].count = 0;
    }
    *cost = median(&sides[0]);
    *cost_behind = median(&sides[1]);
    return synchronise() == 0 ? 0 : 5;
}
