/* Level entries of nested columns -> what one layer of them says, and back. One byte a level. */
#ifndef FASTPQ_ASSEMBLY_H
#define FASTPQ_ASSEMBLY_H

#include <stdint.h>

/* Entries that are looked at together: loops over so many have no branches, and are made of vector instructions. */
enum { LEVEL_BLOCK = 64 };

/* How many of the entries belong to the first `rows` rows that begin among them; *begun is set to how many do begin.
   Entries before the first row's go on with a row that began earlier. */
static inline int64_t entries_of_rows(const uint8_t *repetition, int64_t count, int64_t rows, int64_t *begun) {
    int64_t found = 0, i = 0;
    for (; i + LEVEL_BLOCK <= count; i += LEVEL_BLOCK) {
        uint8_t begin = 0;
        for (int j = 0; j < LEVEL_BLOCK; j++) begin += repetition[i + j] == 0;
        if (found + begin > rows) break;
        found += begin;
    }
    for (; i < count; i++) {
        if (repetition[i] == 0) {
            if (found == rows) break;
            found++;
        }
    }
    *begun = found;
    return i;
}

static inline int64_t count_equal(const uint8_t *levels, int64_t count, uint8_t level) {
    int64_t equal = 0;
    for (int64_t i = 0; i < count; i++) equal += levels[i] == level;
    return equal;
}

static inline int64_t count_at_least(const uint8_t *levels, int64_t count, uint8_t level) {
    int64_t reached = 0;
    for (int64_t i = 0; i < count; i++) reached += levels[i] >= level;
    return reached;
}

/* One flag for each slot of a leaf or a struct: whether it is valid. flags holds count + 1 bytes. Returns the slots. */
static inline int64_t slot_flags(const uint8_t *definition, const uint8_t *repetition, int64_t count, uint8_t slot_repetition,
                                 uint8_t slot_definition, uint8_t valid_definition, uint8_t *flags) {
    int64_t slots = 0, i = 0;
    while (i < count) {
        int64_t end = i + LEVEL_BLOCK < count ? i + LEVEL_BLOCK : count;
        uint8_t every = end - i == LEVEL_BLOCK;
        if (every)
            for (int j = 0; j < LEVEL_BLOCK; j++)
                every &= (repetition[i + j] <= slot_repetition) & (definition[i + j] >= slot_definition);
        if (every) {
            for (int j = 0; j < LEVEL_BLOCK; j++) flags[slots + j] = definition[i + j] >= valid_definition;
            slots += LEVEL_BLOCK;
            i = end;
        }
        for (; i < end; i++) {
            flags[slots] = definition[i] >= valid_definition;
            slots += (repetition[i] <= slot_repetition) & (definition[i] >= slot_definition);
        }
    }
    return slots;
}

/* For each slot of a list, where its elements begin and whether it is valid. offsets and flags hold count + 1 entries;
   *elements is the number of elements before, and is moved on. Returns the slots. */
static inline int64_t list_slots(const uint8_t *definition, const uint8_t *repetition, int64_t count, uint8_t slot_repetition,
                                 uint8_t slot_definition, uint8_t valid_definition, uint8_t element_definition, int32_t *offsets,
                                 uint8_t *flags, int64_t *elements) {
    int64_t slots = 0, next = *elements;
    for (int64_t i = 0; i < count; i++) {
        offsets[slots] = (int32_t)next;
        flags[slots] = definition[i] >= valid_definition;
        slots += (repetition[i] <= slot_repetition) & (definition[i] >= slot_definition);
        next += (repetition[i] <= slot_repetition + 1) & (definition[i] >= element_definition);
    }
    *elements = next;
    return slots;
}

#endif
