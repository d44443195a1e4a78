/* A program that sizes itself by what NVML says, and holds that against CUDA. Prints a line for each thing it finds. The first
 * argument is the name under which it opens NVML; the second, if there is one, asks for the UUID of the GPU only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1ull << 20)

struct memory {
    unsigned long long total, free, used;
};

struct versioned {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static void *opened(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);
    if (!library) {
        printf("absent %s\n", name);
        exit(0);
    }
    return library;
}

static void *found(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("missing %s\n", name);
        exit(1);
    }
    return function;
}

static void right(const char *what, int status)
{
    if (status) {
        printf("%s: %d\n", what, status);
        exit(1);
    }
}

static void *nvml, *cuda, *device;

static void show(const char *when)
{
    struct memory one;
    struct versioned two = {.version = sizeof two | 2u << 24};
    int (*first)(void *, struct memory *) = found(nvml, "nvmlDeviceGetMemoryInfo");
    int (*second)(void *, struct versioned *) = found(nvml, "nvmlDeviceGetMemoryInfo_v2");
    right("memory", first(device, &one));
    right("memory, versioned", second(device, &two));
    printf("%s %llu %llu %llu\n", when, one.total / MIB, one.free / MIB, one.used / MIB);
    printf("%s, versioned %llu %llu %llu %llu\n", when, two.total / MIB, two.reserved / MIB, two.free / MIB,
           two.used / MIB);
}

static void begin_cuda(void)
{
    void *context;
    cuda = opened("libcuda.so.1");
    right("init", ((int (*)(unsigned))found(cuda, "cuInit"))(0));
    right("retain", ((int (*)(void **, int))found(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0));
    right("current", ((int (*)(void *))found(cuda, "cuCtxSetCurrent"))(context));
}

static void show_uuid(void)
{
    unsigned char uuid[16];
    begin_cuda();
    right("uuid", ((int (*)(unsigned char *, int))found(cuda, "cuDeviceGetUuid_v2"))(uuid, 0));
    printf("GPU-");
    for (int i = 0; i < 16; i++)
        printf(i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    printf("\n");
}

static int (*many)(int, double, long, float, const char *, unsigned, double, short, long, double, double, double, double,
                   double, double, unsigned char);
static pthread_barrier_t together;

static int call_many(void)
{
    return many(-1, 0.5, -3000000000, 1.25f, "five", 4000000000u, -7.75, -8, 9000000000, 10, 11, 12, 13, 14, 15, 200);
}

static void *call_at_once(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&together);
    return (void *)(long)call_many();
}

int main(int count, char **words)
{
    pthread_t threads[8];
    Dl_info where;
    unsigned long long address;
    size_t free, total;
    if (count > 2) {
        show_uuid();
        return 0;
    }
    nvml = opened(words[1]);
    /* First, so that it is these calls by which the library behind is found. */
    many = found(nvml, "nvmlDeviceGetPowerState");
    pthread_barrier_init(&together, NULL, 8);
    for (int i = 0; i < 8; i++)
        right("thread", pthread_create(&threads[i], NULL, call_at_once, NULL));
    for (int i = 0; i < 8; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        printf("many %ld\n", (long)answer);
    }
    printf("many %d\n", call_many());
    int (*init)(void) = found(nvml, "nvmlInit_v2");
    dladdr((void *)init, &where);
    printf("path %s\n", where.dli_fname);
    printf("init %d\n", init());
    void *lacking = dlsym(nvml, "nvmlDeviceGetSerial");
    printf("lacking %d\n", lacking ? ((int (*)(void))lacking)() : -1);
    printf("text %s\n", ((const char *(*)(int))found(nvml, "nvmlErrorString"))(0));
    if (((int (*)(unsigned, void **))found(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &device))
        return 0;
    show("before");
    begin_cuda();
    show("begun");
    right("allocate", ((int (*)(unsigned long long *, size_t))found(cuda, "cuMemAlloc_v2"))(&address, 300 * MIB));
    show("after");
    right("info", ((int (*)(size_t *, size_t *))found(cuda, "cuMemGetInfo_v2"))(&free, &total));
    printf("cuda %llu %llu\n", total / MIB, free / MIB);
    right("free", ((int (*)(unsigned long long))found(cuda, "cuMemFree_v2"))(address));
    show("freed");
    return 0;
}
