/* As much of NVIDIA's management library as ebb asks: one GPU, the sixth, and one process on it. */
#include <stdlib.h>
#include <string.h>

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned instances[2];
};

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 6;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)1;
    return index == 5 ? 0 : 3;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
    (void)device;
    strncpy(uuid, getenv("FAKE_NVML_UUID"), length);
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    if (*count < 1)
        return 7;
    *count = 1;
    processes[0].pid = atoi(getenv("FAKE_NVML_PID"));
    return 0;
}
