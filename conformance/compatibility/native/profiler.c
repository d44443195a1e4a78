// A profiler that does nothing but count, for programs that have none of their own.
//
// The driver loads this library into any CUDA program that has its path in CUDA_INJECTION64_PATH, at the first
// call, before a kernel can have run. CUPTI, NVIDIA's library under every profiler, then reports each kernel that
// the GPU has executed; copies and fills are other kinds of activity and are not asked for. At exit the counts go
// to the folder COMPAT_KERNELS, one file per process: a line `dropped N`, a line `in-graphs N`, then
// `count<TAB>name` for every kernel.
//
// KERNEL_RECORD is the newest kernel record of the CUPTI at hand (its header names them by number).

#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20, PLACES = 1 << 14 };

typedef struct {
    char *name;
    uint64_t count;
} Kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kernel kernels[PLACES];
static uint64_t in_graphs, dropped;

static void count(const char *name) {
    uint64_t hash = 14695981039346656037u;
    for (const char *at = name; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (uint64_t step = 0; step < PLACES; step++) {
        Kernel *kernel = &kernels[(hash + step) % PLACES];
        if (!kernel->name) kernel->name = strdup(name);
        if (kernel->name && strcmp(kernel->name, name) == 0) {
            kernel->count++;
            return;
        }
    }
    dropped++;
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *records) {
    void *memory = NULL;
    *buffer = posix_memalign(&memory, 8, BUFFER_BYTES) == 0 ? memory : NULL;
    *size = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)size;
    pthread_mutex_lock(&lock);
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
        const KERNEL_RECORD *kernel = (const KERNEL_RECORD *)record;
        count(kernel->name ? kernel->name : "?");
        if (kernel->graphId != 0) in_graphs++;
    }
    size_t lost = 0;
    if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) dropped += lost;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static pid_t owner;

static void report(void) {
    // A forked child inherits the counts of its parent and must not write them a second time.
    if (getpid() != owner) return;
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const char *folder = getenv("COMPAT_KERNELS");
    char path[4096];
    if (!folder || snprintf(path, sizeof path, "%s/%d.kernels", folder, (int)owner) >= (int)sizeof path) return;
    FILE *file = fopen(path, "w");
    if (!file) return;
    pthread_mutex_lock(&lock);
    fprintf(file, "dropped %llu\nin-graphs %llu\n", (unsigned long long)dropped, (unsigned long long)in_graphs);
    for (int place = 0; place < PLACES; place++)
        if (kernels[place].name) fprintf(file, "%llu\t%s\n", (unsigned long long)kernels[place].count, kernels[place].name);
    pthread_mutex_unlock(&lock);
    fclose(file);
}

// The driver calls this by its name. Anything but 1 would mean that nothing is counted, and the missing file says so.
__attribute__((visibility("default"))) int InitializeInjection(void) {
    owner = getpid();
    if (cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full) != CUPTI_SUCCESS) return 0;
    if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) return 0;
    atexit(report);
    return 1;
}
