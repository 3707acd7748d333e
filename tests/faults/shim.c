/* System calls that fail, or kill their process, at a chosen moment: loaded before the C library (LD_PRELOAD). Counted are calls on
 * files and directories below one folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum Fault { NONE, FAIL, SHORT_WRITE, KILL_BEFORE, KILL_AFTER, FULL_DISK, INTERRUPT };

static char folder[4096];
static atomic_long calls;
static atomic_int fault;
static long moment;
static int number; /* errno, or the signal */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Count the calls on the folder, and let the fault happen at the call of this number, from 1. */
void fault_arm(const char *path, int kind, long at, int errno_or_signal) {
    snprintf(folder, sizeof folder, "%s", path);
    moment = at;
    number = errno_or_signal;
    atomic_store(&calls, 0);
    atomic_store(&fault, kind);
}

/* Number of calls counted; no fault happens from here on. */
long fault_calls(void) {
    atomic_store(&fault, NONE);
    folder[0] = 0;
    return atomic_load(&calls);
}

static int is_below(const char *path) { return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0; }

static int is_descriptor_below(int descriptor) {
    char name[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static void die(void) {
    kill(getpid(), number);
    for (;;) pause();
}

/* What happens at this call: NONE, or the armed fault. may_fail: 0 for calls that fail never, 1 for calls that take space, 2 for
 * others. */
static int fate(int is_counted, int may_fail) {
    int kind = atomic_load(&fault);
    if (!is_counted) return NONE;
    long count = atomic_fetch_add(&calls, 1) + 1;
    if (kind == FULL_DISK) return count >= moment && may_fail == 1 ? FAIL : NONE;
    if (count != moment) return NONE;
    if (kind == KILL_BEFORE) die();
    if (kind == INTERRUPT) { /* the process notices it after the call, as it notices Ctrl-C */
        kill(getpid(), number);
        return NONE;
    }
    if ((kind == FAIL || kind == SHORT_WRITE) && !may_fail) return NONE;
    return kind;
}

#define CALL(is_counted, may_fail, real)             \
    int happens = fate(is_counted, may_fail);        \
    if (happens == FAIL || happens == SHORT_WRITE) { \
        errno = number;                              \
        return -1;                                   \
    }                                                \
    __typeof__(real) result = real;                  \
    if (happens == KILL_AFTER) {                     \
        die();                                       \
    }                                                \
    return result;

ssize_t write(int descriptor, const void *data, size_t size) {
    int happens = fate(is_descriptor_below(descriptor), 1);
    if (happens == FAIL) {
        errno = number;
        return -1;
    }
    if (happens != NONE && size > 1) size /= 2; /* a kill in the middle of a write leaves a part */
    ssize_t result = REAL(write)(descriptor, data, size);
    if (happens == KILL_AFTER) die();
    return result;
}

ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *place, size_t size, unsigned int flags) {
    CALL(is_descriptor_below(to), 1, REAL(copy_file_range)(from, start, to, place, size, flags))
}

int ftruncate(int descriptor, off_t size) { CALL(is_descriptor_below(descriptor), 0, REAL(ftruncate)(descriptor, size)) }

int ftruncate64(int descriptor, off64_t size) { CALL(is_descriptor_below(descriptor), 0, REAL(ftruncate64)(descriptor, size)) }

int fsync(int descriptor) { CALL(is_descriptor_below(descriptor), 2, REAL(fsync)(descriptor)) }

int close(int descriptor) {
    int happens = fate(is_descriptor_below(descriptor), 2);
    int result = REAL(close)(descriptor); /* a close that fails closes all the same */
    if (happens == FAIL || happens == SHORT_WRITE) {
        errno = number;
        return -1;
    }
    if (happens == KILL_AFTER) die();
    return result;
}

int rename(const char *from, const char *to) { CALL(is_below(to), 2, REAL(rename)(from, to)) }

int link(const char *from, const char *to) { CALL(is_below(to), 1, REAL(link)(from, to)) }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    CALL(is_below(to), 1, REAL(linkat)(from_folder, from, to_folder, to, flags))
}

int unlink(const char *path) { CALL(is_below(path), 0, REAL(unlink)(path)) }

int mkdir(const char *path, mode_t mode) { CALL(is_below(path), 1, REAL(mkdir)(path, mode)) }

int fchmod(int descriptor, mode_t mode) { CALL(is_descriptor_below(descriptor), 2, REAL(fchmod)(descriptor, mode)) }

static int open_mode(int flags, va_list rest) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (int)va_arg(rest, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = open_mode(flags, rest);
    va_end(rest);
    CALL(is_below(path), flags & O_CREAT ? 1 : 2, REAL(open)(path, flags, mode))
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = open_mode(flags, rest);
    va_end(rest);
    CALL(is_below(path), flags & O_CREAT ? 1 : 2, REAL(open64)(path, flags, mode))
}
