/* CRC-32 by libdeflate, if setup.py found its header (FASTPQ_LIBDEFLATE). */
#ifndef FASTPQ_CRC32_H
#define FASTPQ_CRC32_H

#include <stddef.h>
#include <stdint.h>

#ifdef FASTPQ_LIBDEFLATE
#include <libdeflate.h>

enum { CRC32_BY_LIBRARY = 1 };

static uint32_t library_crc32(uint32_t before, const uint8_t *data, size_t size) { return libdeflate_crc32(before, data, size); }
#else
enum { CRC32_BY_LIBRARY = 0 };

static uint32_t library_crc32(uint32_t before, const uint8_t *data, size_t size) {
    (void)before, (void)data, (void)size;
    return 0; /* never called */
}
#endif

#endif
