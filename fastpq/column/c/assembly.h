/* Level entries of nested columns -> slots of one layer. One byte a level. */
#ifndef FASTPQ_ASSEMBLY_H
#define FASTPQ_ASSEMBLY_H

#include <stdint.h>

/* Entries of one block: loops over a block have no branches, so that the compiler vectorises the loops. */
enum { LEVEL_BLOCK = 64 };

/* The number of leading entries up to the end of the first `rows` rows; *begun is set to the number of rows begun among the
   entries. Entries before the first begin of a row belong to an earlier row. */
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

/* Whether the levels contradict each other: an entry with an element of the list of the entry before, where one of the two entries
   has no element. `before` is the definition level of the entry before the first. */
static inline int contradicts(const uint8_t *definition, const uint8_t *repetition, int64_t count, uint8_t slot_repetition,
                              uint8_t element_definition, uint8_t before) {
    uint8_t bad =
        count > 0 && repetition[0] > slot_repetition && (definition[0] < element_definition || before < element_definition);
    for (int64_t i = 1; i < count; i++)
        bad |=
            (repetition[i] > slot_repetition) & ((definition[i] < element_definition) | (definition[i - 1] < element_definition));
    return bad;
}

/* Writes a flag for each slot of a leaf or a struct, 1 where valid; flags holds count + 1 bytes. Returns the number of slots. */
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

/* Writes the index of the first element and a flag, 1 where valid, for each slot of a list. offsets and flags hold count + 1
   entries; *elements, the number of elements so far, is increased. Returns the number of slots. */
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
