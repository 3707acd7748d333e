/* Large memory blocks from the operating system. They are page-aligned, so that whole pages can be given back. */
#ifndef FASTPQ_BLOCKS_H
#define FASTPQ_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FASTPQ_HUGE_PAGE ((size_t)2 << 20)
#define FASTPQ_PAGE ((size_t)4 << 10)

/* The debug build takes every block from malloc in its exact size, so that the address sanitizer sees accesses past its ends. */
#ifdef FASTPQ_DEBUG
#define FASTPQ_BLOCKS_ARE_KEPT 0
#else
#define FASTPQ_BLOCKS_ARE_KEPT 1
#endif

static inline void *block_allocate(size_t size) {
    void *block = NULL;
    if (posix_memalign(&block, size >= FASTPQ_HUGE_PAGE ? FASTPQ_HUGE_PAGE : FASTPQ_PAGE, size) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (size >= FASTPQ_HUGE_PAGE) madvise(block, size & ~(FASTPQ_HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return block;
}

/* Offer an idle block's pages to the kernel, which may take them when memory is short. Until then they need no clearing. */
static inline void block_offer(void *block, size_t size) {
#ifdef MADV_FREE
    madvise(block, size & ~(FASTPQ_PAGE - 1), MADV_FREE);
#else
    (void)block;
    (void)size;
#endif
}

/* Give the whole pages within a block's size bytes back to the operating system. The bytes may be written again. Return how many
 * bytes were given back. */
static inline size_t block_drop(void *data, size_t size) {
    const size_t before = (size_t)(-(uintptr_t)data) & (FASTPQ_PAGE - 1);
    const size_t whole = size < before ? 0 : (size - before) & ~(FASTPQ_PAGE - 1);
#ifdef MADV_DONTNEED
    if (whole && madvise((uint8_t *)data + before, whole, MADV_DONTNEED) == 0) return whole;
#endif
    return 0;
}

#endif
