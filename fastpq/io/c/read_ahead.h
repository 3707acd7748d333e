/* Reads a local file with a hint. If bytes are not in the page cache yet, the hint makes the system read a whole column chunk at
 * once, while its first bytes are decoded. Without the hint, it would read one small piece after the other. A cached file costs
 * no further call. */
#ifndef FASTPQ_READ_AHEAD_H
#define FASTPQ_READ_AHEAD_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_AHEAD = 32 << 20 }; /* most bytes in the hint: a chunk of several gigabytes would push other files out of the cache */

/* Reads up to size bytes at an offset, and returns how many, like pread. behind is how many more bytes will be read next. */
static ssize_t read_ahead(int file, uint8_t *out, size_t size, int64_t offset, int64_t behind) {
#if defined(__linux__) && defined(RWF_NOWAIT)
    struct iovec part = {out, size};
    ssize_t count = preadv2(file, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (count > 0) return count;
    if (count < 0 && errno == EAGAIN) /* on other errors, the file system lacks this flag, or pread reports the error too */
        posix_fadvise(file, (off_t)offset, (off_t)(behind < MOST_AHEAD ? (int64_t)size + behind : MOST_AHEAD),
                      POSIX_FADV_WILLNEED);
#else
    (void)behind;
#endif
    return pread(file, out, size, (off_t)offset);
}

#endif
