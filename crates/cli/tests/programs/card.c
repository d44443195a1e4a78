/* NVIDIA's management library as far as a program asks it about memory: one GPU, with these numbers. */
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

struct memory {
    unsigned long long total, free, used;
};

struct versioned {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)1;
    return index == 0 ? 0 : 2;
}

int nvmlDeviceGetIndex(void *device, unsigned *index)
{
    *index = 0;
    return device == (void *)1 ? 0 : 2;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
    (void)device;
    strncpy(uuid, getenv("FAKE_NVML_UUID"), length);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    if (device != (void *)1)
        return 2;
    memory->total = 16384 * MIB;
    memory->free = 15000 * MIB;
    memory->used = 1384 * MIB;
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct versioned *memory)
{
    if (device != (void *)1)
        return 2;
    if (memory->version != (sizeof *memory | 2u << 24))
        return 25;
    memory->total = 16384 * MIB;
    memory->reserved = 384 * MIB;
    memory->free = 15000 * MIB;
    memory->used = 1000 * MIB;
    return 0;
}

const char *nvmlErrorString(int status)
{
    return status == 0 ? "as well as can be" : "not so well";
}

/* Not what NVIDIA's function of this name takes: more than fits into registers, of every kind. */
int nvmlDeviceGetPowerState(int a, double b, long c, float d, char *e, unsigned f, double g, short h, long i, double j,
                            double k, double l, double m, double n, double o, unsigned char p)
{
    int right = a == -1 && b == 0.5 && c == -3000000000 && d == 1.25f && !strcmp(e, "five") && f == 4000000000u &&
                g == -7.75 && h == -8 && i == 9000000000 && j == 10 && k == 11 && l == 12 && m == 13 && n == 14 &&
                o == 15 && p == 200;
    return right ? 4711 : 1;
}
