/* Starts to write a part of a file to disk, without waiting for it. A later fsync then has little left to wait for. */
#ifndef FASTPQ_WRITE_BEHIND_H
#define FASTPQ_WRITE_BEHIND_H

#include <fcntl.h>
#include <stdint.h>

/* A hint: errors of the disk are reported by fsync, so the result is not used. Systems without the call write in fsync. */
static inline void write_behind(int file, int64_t offset, int64_t size) {
#if defined(__linux__) && defined(SYNC_FILE_RANGE_WRITE)
    (void)sync_file_range(file, offset, size, SYNC_FILE_RANGE_WRITE);
#else
    (void)file, (void)offset, (void)size;
#endif
}

#endif
