/* A tenant that does exactly what it is told, line by line, and says when it is done.
 *
 *   launch COUNT MILLIS      so many launches of a kernel that takes so long, then waits for them
 *   graph COUNT KERNELS MILLIS   captures so many kernels once, launches the graph so often, then waits
 *   copy COUNT               so many copies, which are no launches
 *   die                      ends in the middle
 *
 * With each "done" it says how many microseconds it took, from before the first launch until it had waited for the last.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char kernel[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry nap(.param .u32 millis)\n{\n"
    "    .reg .pred %p;\n    .reg .u32 %r<3>;\n"
    "    ld.param.u32 %r1, [millis];\n"
    "    mov.u32 %r2, 1000000;\n"
    "again:\n"
    "    nanosleep.u32 %r2;\n"
    "    sub.u32 %r1, %r1, 1;\n"
    "    setp.ne.u32 %p, %r1, 0;\n"
    "    @%p bra again;\n"
    "    ret;\n}\n";

static long long micros(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void must(const char *what, int result)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}

#define DRIVER(name, parameters) \
    int (*name) parameters = (int (*) parameters)dlsym(driver, #name); \
    if (!name) { fprintf(stderr, "no %s\n", #name); return 1; }

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    DRIVER(cuInit, (unsigned))
    DRIVER(cuCtxCreate_v2, (void **, unsigned, int))
    DRIVER(cuModuleLoadData, (void **, const void *))
    DRIVER(cuModuleGetFunction, (void **, void *, const char *))
    DRIVER(cuStreamCreate, (void **, unsigned))
    DRIVER(cuStreamSynchronize, (void *))
    DRIVER(cuStreamBeginCapture_v2, (void *, int))
    DRIVER(cuStreamEndCapture, (void *, void **))
    DRIVER(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))
    DRIVER(cuGraphLaunch, (void *, void *))
    DRIVER(cuMemAlloc_v2, (unsigned long long *, size_t))
    DRIVER(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t))
    DRIVER(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                            void **, void **))
    void *context, *module, *function, *stream;
    must("cuInit", cuInit(0));
    must("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0));
    must("cuModuleLoadData", cuModuleLoadData(&module, kernel));
    must("cuModuleGetFunction", cuModuleGetFunction(&function, module, "nap"));
    must("cuStreamCreate", cuStreamCreate(&stream, 0));
    unsigned long long memory;
    must("cuMemAlloc", cuMemAlloc_v2(&memory, 64));
    puts("ready");
    fflush(stdout);

    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        unsigned count, kernels, millis;
        void *parameters[] = { &millis };
        long long began = micros();
        if (sscanf(line, "launch %u %u", &count, &millis) == 2) {
            for (unsigned i = 0; i < count; i++)
                must("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        } else if (sscanf(line, "graph %u %u %u", &count, &kernels, &millis) == 3) {
            void *graph, *executable;
            must("cuStreamBeginCapture", cuStreamBeginCapture_v2(stream, 2));
            for (unsigned i = 0; i < kernels; i++)
                must("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
            must("cuStreamEndCapture", cuStreamEndCapture(stream, &graph));
            must("cuGraphInstantiate", cuGraphInstantiateWithFlags(&executable, graph, 0));
            began = micros();
            for (unsigned i = 0; i < count; i++)
                must("cuGraphLaunch", cuGraphLaunch(executable, stream));
        } else if (sscanf(line, "copy %u", &count) == 1) {
            for (unsigned i = 0; i < count; i++)
                must("cuMemcpyHtoD", cuMemcpyHtoD_v2(memory, line, 64));
        } else {
            kill(getpid(), SIGKILL);
        }
        must("cuStreamSynchronize", cuStreamSynchronize(stream));
        printf("done %lld\n", micros() - began);
        fflush(stdout);
    }
    return 0;
}
