/* Turns the levels of nested columns into the slots of one layer. A level is one byte. */
#ifndef FASTPQ_ASSEMBLY_H
#define FASTPQ_ASSEMBLY_H

#include <stdint.h>

/* Entries in a block. Loops over a block have no branches, so that the compiler vectorises them. */
enum { LEVEL_BLOCK = 64 };

/* Returns how many entries come before the end of the first `rows` rows that begin here, and sets *begun to how many rows begin
   among them. The first entries may continue an earlier row: these entries are counted, but their row is not. */
static inline int64_t entries_of_rows(const uint8_t *repetition, int64_t count, int64_t rows, int64_t *begun) {
    int64_t rows_begun = 0, i = 0;
    for (; i + LEVEL_BLOCK <= count; i += LEVEL_BLOCK) {
        uint8_t begin = 0;
        for (int j = 0; j < LEVEL_BLOCK; j++) begin += repetition[i + j] == 0;
        if (rows_begun + begin > rows) break;
        rows_begun += begin;
    }
    for (; i < count; i++) {
        if (repetition[i] == 0) {
            if (rows_begun == rows) break;
            rows_begun++;
        }
    }
    *begun = rows_begun;
    return i;
}

static inline int64_t count_equal(const uint8_t *levels, int64_t count, uint8_t level) {
    int64_t equal = 0;
    for (int64_t i = 0; i < count; i++) equal += levels[i] == level;
    return equal;
}

static inline int64_t count_at_least(const uint8_t *levels, int64_t count, uint8_t level) {
    int64_t matches = 0;
    for (int64_t i = 0; i < count; i++) matches += levels[i] >= level;
    return matches;
}

/* Returns whether levels contradict each other: an entry continues the list that the entry before it is in, but one of the two
   has no element. `before` is the definition level that the last entry before these has. */
static inline int contradicts(const uint8_t *definition, const uint8_t *repetition, int64_t count, uint8_t slot_repetition,
                              uint8_t element_definition, uint8_t before) {
    uint8_t bad =
        count > 0 && repetition[0] > slot_repetition && (definition[0] < element_definition || before < element_definition);
    for (int64_t i = 1; i < count; i++)
        bad |=
            (repetition[i] > slot_repetition) & ((definition[i] < element_definition) | (definition[i - 1] < element_definition));
    return bad;
}

/* Writes a flag for each slot in a leaf or a struct: 1 if it is valid. flags has count + 1 bytes. Returns the slot count. */
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

/* Writes where each list slot's elements start, and a flag: 1 if the slot is valid. offsets and flags have room for count + 1
   slots. Increases *elements, the element count so far. Returns the slot count. */
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
