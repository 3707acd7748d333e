/* Reads of a local file with a hint: where bytes are not in the page cache yet, the system reads all bytes of a column chunk
 * at once while the first are decoded, instead of one small piece after the other. A cached file costs no further call. */
#ifndef FASTPQ_READ_AHEAD_H
#define FASTPQ_READ_AHEAD_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_AHEAD = 32 << 20 }; /* bytes of the hint: a chunk of several gigabytes would push other files out of the cache */

/* Reads size bytes at an offset, as pread; behind: bytes that are read next. */
static ssize_t read_ahead(int file, uint8_t *out, size_t size, int64_t offset, int64_t behind) {
#if defined(__linux__) && defined(RWF_NOWAIT)
    struct iovec part = {out, size};
    ssize_t count = preadv2(file, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (count > 0) return count;
    if (count < 0 && errno == EAGAIN) /* other errors: a file system without this flag, or errors that pread reports too */
        posix_fadvise(file, (off_t)offset, (off_t)(behind < MOST_AHEAD ? (int64_t)size + behind : MOST_AHEAD),
                      POSIX_FADV_WILLNEED);
#else
    (void)behind;
#endif
    return pread(file, out, size, (off_t)offset);
}

#endif
