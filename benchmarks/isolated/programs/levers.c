// A preload library that pulls the driver's levers on the process it is in: timeslice, preemption, channels off and on.
//
// It sees the calls by which the process's own CUDA makes its channel groups and channels, keeps their handles, and
// makes control calls on these and on nothing else. A handle means nothing outside the open file on which it was made,
// so no other process can be reached. Nothing of the card is set: no clocks, power, modes or policies.
//
// Layouts and numbers are those of crates/switch/src/wire.rs, written down a second time on purpose: what is measured
// here is the driver, and must not depend on the program whose floor it is.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Requests of the driver are _IOWR('F', number, structure).
enum { TYPE = 'F', FREE = 0x29, CONTROL = 0x2a, ALLOCATE = 0x2b };

// Classes of objects. Channels have a class for each architecture, which all end alike.
enum { SUBDEVICE = 0x2080, GROUP = 0xa06c, CHANNEL_ENDS_WITH = 0x6f };

// A group's engine: the compute group runs kernels, the others (11 to 13) copy. Only a group of kernels holds the SMs.
enum { ENGINE_COMPUTE = 1 };

// Control commands, by the class of the object that they go to.
enum {
    GROUP_SET_TIMESLICE = 0xa06c0103u,
    GROUP_GET_TIMESLICE = 0xa06c0104u,
    GROUP_PREEMPT = 0xa06c0105u,
    // How often the runlist names a group: 0 low, 1 medium, 2 high. Needs a privilege.
    GROUP_SET_INTERLEAVE_LEVEL = 0xa06c0107u,
    DISABLE_CHANNELS = 0x2080110bu,
    // Where a channel's kernels may be cut: 0 when idle, 1 between blocks, 2 between instructions.
    SET_PREEMPTION_MODE = 0x20801210u,
};

// What `levers_pull` answers besides the driver's own statuses.
enum { DONE = 0, FAILED = -1, NOTHING_THERE = -2, NO_SUCH_LEVER = -3 };

struct allocate_short { uint32_t client, parent, object, class; uint64_t parameters; uint32_t size, status; };
struct allocate_long {
    uint32_t client, parent, object, class;
    uint64_t parameters, rights;
    uint32_t size, flags, status, unused;
};
struct free_object { uint32_t client, parent, object, status; };
struct control { uint32_t client, object, command, flags; uint64_t parameters; uint32_t size, status; };

_Static_assert(sizeof(struct allocate_short) == 32 && sizeof(struct allocate_long) == 48, "the driver's layout");
_Static_assert(sizeof(struct free_object) == 16 && sizeof(struct control) == 32, "the driver's layout");

// The objects of this process that matter: 4 groups and 20 channels for a context, and where to send calls.
struct object { int fd; uint32_t client, parent, handle, class, engine; };
enum { ROOM = 512 };
static struct object objects[ROOM];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_channel(uint32_t class) {
    return (class & 0xff) == CHANNEL_ENDS_WITH && class >= 0x506f && class <= 0xff6f;
}

static void made(int fd, uint32_t status, const struct allocate_short *call) {
    uint32_t class = call->class, engine = 0;
    if (status != 0 || (class != GROUP && class != SUBDEVICE && !is_channel(class))) return;
    // The parameters of a group have its engine at byte 12; the driver has just read them at this address.
    if (class == GROUP && call->parameters)
        memcpy(&engine, (const char *)(uintptr_t)call->parameters + 12, sizeof engine);
    pthread_mutex_lock(&lock);
    if (count < ROOM) objects[count++] = (struct object){fd, call->client, call->parent, call->object, class, engine};
    pthread_mutex_unlock(&lock);
}

// What is freed takes with it what it is the parent of; a client, which is its own handle, takes everything of its own.
static void freed(const struct free_object *call) {
    if (call->status != 0) return;
    pthread_mutex_lock(&lock);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct object *o = &objects[i];
        int gone = o->client == call->client &&
                   (o->handle == call->object || o->parent == call->object || call->client == call->object);
        if (!gone) objects[kept++] = *o;
    }
    count = kept;
    pthread_mutex_unlock(&lock);
}

// In front of the C library's: by the kernel at once, then a look at what it was.
int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int result = (int)syscall(SYS_ioctl, fd, request, argument);
    if (_IOC_TYPE(request) != TYPE || result != 0 || !argument) return result;
    if (_IOC_NR(request) == ALLOCATE && _IOC_SIZE(request) == sizeof(struct allocate_short))
        made(fd, ((struct allocate_short *)argument)->status, argument);
    else if (_IOC_NR(request) == ALLOCATE && _IOC_SIZE(request) == sizeof(struct allocate_long))
        made(fd, ((struct allocate_long *)argument)->status, argument);
    else if (_IOC_NR(request) == FREE && _IOC_SIZE(request) == sizeof(struct free_object)) freed(argument);
    return result;
}

static long issue(const struct object *file, uint32_t client, uint32_t object, uint32_t command, void *parameters,
                  uint32_t size) {
    // The status is a failure until the driver says otherwise, so that silence is not taken for success.
    struct control call = {client, object, command, 0, (uintptr_t)parameters, size, 0xffff};
    if (syscall(SYS_ioctl, file->fd, _IOWR(TYPE, CONTROL, struct control), &call) != 0) return FAILED;
    return call.status;
}

// The levers below are pulled under the lock: nothing is freed meanwhile, and the calls of one lever stay together.

// The same command for each compute group; the first status that is not success.
static long each_group(uint32_t command, void *parameters, uint32_t size) {
    long first = NOTHING_THERE;
    for (int i = 0; i < count; i++) {
        struct object *o = &objects[i];
        if (o->class != GROUP || o->engine != ENGINE_COMPUTE) continue;
        long status = issue(o, o->client, o->handle, command, parameters, size);
        if (first == NOTHING_THERE || first == DONE) first = status;
    }
    return first;
}

static const struct object *subdevice_of(uint32_t client) {
    for (int i = 0; i < count; i++)
        if (objects[i].class == SUBDEVICE && objects[i].client == client) return &objects[i];
    return NULL;
}

static int is_compute_channel(const struct object *channel) {
    if (!is_channel(channel->class)) return 0;
    for (int i = 0; i < count; i++) {
        struct object *o = &objects[i];
        if (o->class == GROUP && o->engine == ENGINE_COMPUTE && o->handle == channel->parent &&
            o->client == channel->client)
            return 1;
    }
    return 0;
}

// Disabled channels leave the GPU in the middle of a kernel, still take work, and run none. Barred ones stay until somebody else has work.
struct channel_list {
    uint8_t disable, pad[3];
    uint32_t count;
    uint8_t let_run, drop_work, pad_too[6];
    uint64_t event;
    uint32_t clients[64], channels[64];
};
_Static_assert(sizeof(struct channel_list) == 536, "the driver's layout");

static long disable_channels(int disable, int let_run) {
    struct channel_list list = {.disable = (uint8_t)disable, .let_run = (uint8_t)let_run};
    const struct object *file = NULL;
    for (int i = 0; i < count && list.count < 64; i++) {
        // A program of this folder has one context, hence one client with channels.
        if (!is_compute_channel(&objects[i]) || (file && file->client != objects[i].client)) continue;
        file = &objects[i];
        list.clients[list.count] = file->client;
        list.channels[list.count++] = file->handle;
    }
    const struct object *subdevice = file ? subdevice_of(file->client) : NULL;
    if (!subdevice) return NOTHING_THERE;
    return issue(file, file->client, subdevice->handle, DISABLE_CHANNELS, &list, sizeof list);
}

struct preemption_mode { uint32_t flags, channel, graphics, compute, route_flags, pad; uint64_t route; };
_Static_assert(sizeof(struct preemption_mode) == 32, "the driver's layout");

static long set_preemption_mode(uint32_t mode) {
    enum { ONLY_COMPUTE = 1 };
    long first = NOTHING_THERE;
    for (int i = 0; i < count; i++) {
        const struct object *o = &objects[i], *subdevice = subdevice_of(o->client);
        if (!is_compute_channel(o) || !subdevice) continue;
        struct preemption_mode wanted = {.flags = ONLY_COMPUTE, .channel = o->handle, .compute = mode};
        long status = issue(o, o->client, subdevice->handle, SET_PREEMPTION_MODE, &wanted, sizeof wanted);
        if (first == NOTHING_THERE || first == DONE) first = status;
    }
    return first;
}

static long counted(int channels) {
    long found = 0;
    for (int i = 0; i < count; i++)
        found += channels ? is_compute_channel(&objects[i])
                          : objects[i].class == GROUP && objects[i].engine == ENGINE_COMPUTE;
    return found;
}

static long pull(const char *lever, uint64_t *value) {
    if (!strcmp(lever, "groups") || !strcmp(lever, "channels")) {
        *value = (uint64_t)counted(lever[0] == 'c');
        return DONE;
    }
    if (!strcmp(lever, "set")) return each_group(GROUP_SET_TIMESLICE, value, 8);
    if (!strcmp(lever, "get")) return each_group(GROUP_GET_TIMESLICE, value, 8);
    if (!strcmp(lever, "preempt")) {
        // Whether to wait until the group has left at 0, whether a time-out is given at 1, the time-out at 4.
        uint8_t wait[8] = {1};
        return each_group(GROUP_PREEMPT, wait, sizeof wait);
    }
    uint32_t word = (uint32_t)*value;
    if (!strcmp(lever, "interleave")) return each_group(GROUP_SET_INTERLEAVE_LEVEL, &word, sizeof word);
    if (!strcmp(lever, "bar")) return disable_channels(1, 1);
    if (!strcmp(lever, "disable") || !strcmp(lever, "enable")) return disable_channels(lever[0] == 'd', 0);
    if (!strcmp(lever, "mode")) return set_preemption_mode(word);
    return NO_SUCH_LEVER;
}

// Zero, the driver's status, or one of the negative answers above. `value` goes in, and out for get and the counts.
__attribute__((visibility("default"))) long levers_pull(const char *lever, uint64_t *value) {
    pthread_mutex_lock(&lock);
    long status = pull(lever, value);
    pthread_mutex_unlock(&lock);
    return status;
}
