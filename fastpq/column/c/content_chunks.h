/* Content-defined chunking: a rolling hash of the values chooses where pages end, so that equal runs of values become equal pages
 * wherever they are in a column. The gear hash and the use of several tables in a row follow FastCDC and Lin et al. (CIDR 2023,
 * 6.2.1): a page ends at the eighth match, each with its own table, which makes page sizes nearly normally distributed. */
#ifndef FASTPQ_CONTENT_CHUNKS_H
#define FASTPQ_CONTENT_CHUNKS_H

#include <stdint.h>

enum { GEAR_TABLES = 8 };

typedef struct {
    uint64_t hash;
    uint64_t mask;
    int64_t size; /* bytes since the last cut */
    int64_t min_size;
    int64_t max_size;
    int run;         /* the table in use */
    int has_matched; /* whether the mask matched since the last question */
} ContentChunker;

static uint64_t gear_tables[GEAR_TABLES][256];

/* Fill the tables with the numbers of splitmix64, which every build has in the same way. */
static void fill_gear_tables(void) {
    uint64_t state = 0x66617374707121ULL;
    for (int table = 0; table < GEAR_TABLES; table++) {
        for (int byte = 0; byte < 256; byte++) {
            uint64_t number = (state += 0x9E3779B97F4A7C15ULL);
            number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ULL;
            number = (number ^ (number >> 27)) * 0x94D049BB133111EBULL;
            gear_tables[table][byte] = number ^ (number >> 31);
        }
    }
}

static inline void chunker_roll(ContentChunker *chunker, const uint8_t *bytes, int64_t count) {
    chunker->size += count;
    if (chunker->size < chunker->min_size) return; /* no page ends here, so nothing has to be hashed */
    const uint64_t *gear = gear_tables[chunker->run];
    uint64_t hash = chunker->hash;
    int has_matched = 0;
    for (int64_t i = 0; i < count; i++) {
        hash = (hash << 1) + gear[bytes[i]];
        has_matched |= (hash & chunker->mask) == 0;
    }
    chunker->hash = hash;
    chunker->has_matched |= has_matched;
}

/* Return whether the page ends before the value that was rolled last. */
static inline int chunker_cuts(ContentChunker *chunker) {
    if (chunker->has_matched) {
        chunker->has_matched = 0;
        if (++chunker->run >= GEAR_TABLES) {
            chunker->run = 0;
            chunker->size = 0;
            return 1;
        }
    }
    if (chunker->size >= chunker->max_size) {
        chunker->size = 0;
        return 1;
    }
    return 0;
}

#endif
