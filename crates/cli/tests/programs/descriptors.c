// A program that has its own ideas about descriptors, with CUDA in use. Argument: what it does with them.
//   close   closes everything from 3 upwards one by one, as daemons do, and opens files up to a high number
//   range   the same by one call
//   fork    has a child that never uses CUDA, and says its number
// Then it uses CUDA and writes to its files, until its input ends. The last line says whether every file is the one that
// it opened and has what was written to it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST 1000

typedef unsigned long long address;
static int (*set)(address, unsigned, size_t);
static address memory;

static int begin(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!driver) return 1;
    int (*init)(unsigned) = dlsym(driver, "cuInit");
    int (*create)(void **, unsigned, int) = dlsym(driver, "cuCtxCreate_v2");
    int (*allocate)(address *, size_t) = dlsym(driver, "cuMemAlloc_v2");
    set = dlsym(driver, "cuMemsetD32_v2");
    return init(0) || create(&context, 0, 0) || allocate(&memory, 4096) || set(memory, 1, 1024);
}

static ino_t inodes[HIGHEST + 1];
static long written;

static int take_all_numbers(void) {
    char name[] = "descriptors.XXXXXX";
    int number = 0;
    while (number < HIGHEST) {
        struct stat about;
        strcpy(name + sizeof name - 7, "XXXXXX");
        number = mkstemp(name);
        if (number < 0 || number > HIGHEST || unlink(name) || fstat(number, &about)) return 1;
        inodes[number] = about.st_ino;
    }
    return 0;
}

// Which number is not as it was left, or 0.
static int wrong(void) {
    for (int number = 3; number <= HIGHEST; number++) {
        struct stat about;
        if (!inodes[number]) continue;
        if (fstat(number, &about) || about.st_ino != inodes[number] || about.st_size != written) return number;
        if (lseek(number, 0, SEEK_CUR) != written) return number;
    }
    return 0;
}

static int write_all(void) {
    written++;
    for (int number = 3; number <= HIGHEST; number++)
        if (inodes[number] && write(number, "x", 1) != 1) return number;
    return 0;
}

int main(int count, char **words) {
    struct rlimit limit = {1024, 1024};
    if (count < 2 || setrlimit(RLIMIT_NOFILE, &limit) || begin()) return 2;
    puts("ready");
    fflush(stdout);
    if (getchar() != 'g' || getchar() != 'o' || getchar() != '\n') return 3;
    if (!strcmp(words[1], "fork")) {
        pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        printf("%d\n", (int)child);
    } else {
        if (!strcmp(words[1], "range")) syscall(SYS_close_range, 3u, ~0u, 0u);
        else for (int number = 3; number < 1024; number++) close(number);
        if (take_all_numbers()) return 4;
        puts("taken");
    }
    fflush(stdout);
    int failed = 0;
    for (unsigned turn = 0;; turn++) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (set(memory, turn, 1024)) return 5;
        if (!failed) failed = write_all();
        if (!failed) failed = wrong();
        if (poll(&input, 1, 10) > 0) break;
    }
    if (failed) printf("descriptor %d is not what it was\n", failed);
    else puts("right");
    fflush(stdout);
    // What libraries do about descriptors at the end is another subject.
    _exit(failed != 0);
}
