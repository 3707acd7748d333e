/* Validity bitmaps, LSB first: counts, copies and merges bits, and moves values to where bits are set, and back. */
#ifndef FASTPQ_BITMAP_H
#define FASTPQ_BITMAP_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

static inline uint64_t load64(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

/* Returns 64 bits from a bitmap, from bit `position` on. The bitmap ends at bit `limit`: all later bits are zero, and their bytes
 * are not read. */
static inline uint64_t bits64(const uint8_t *bitmap, int64_t position, int64_t limit) {
    const int64_t byte = position >> 3, bytes = ((limit + 7) >> 3) - byte, left = limit - position;
    const int shift = (int)(position & 7);
    uint64_t word = 0;
    if (bytes >= 9) {
        word = load64(bitmap + byte) >> shift;
        if (shift) word |= (uint64_t)bitmap[byte + 8] << (64 - shift);
    } else {
        memcpy(&word, bitmap + byte, (size_t)(bytes < 8 ? bytes : 8));
        word >>= shift;
    }
    return left < 64 ? word & ((UINT64_C(1) << left) - 1) : word;
}

FASTPQ_CLONES static int64_t bitmap_count(const uint8_t *bitmap, int64_t offset, int64_t count) {
    int64_t ones = 0;
    for (int64_t i = 0; i < count; i += 64) ones += __builtin_popcountll(bits64(bitmap, offset + i, offset + count));
    return ones;
}

/* ORs the low `count` (at most 64) bits in word into target, from bit `offset` on. Every byte is written atomically, because
 * other threads may write the neighbouring bits in the first and the last byte. */
static inline void or_bits(uint8_t *target, int64_t offset, uint64_t word, int64_t count) {
    const int shift = (int)(offset & 7);
    uint8_t *byte = target + (offset >> 3);
    int64_t left = count + shift;
    uint8_t first = (uint8_t)(word << shift);
    if (first) __atomic_fetch_or(byte, first, __ATOMIC_RELAXED);
    word >>= 8 - shift;
    for (left -= 8, byte++; left > 0; left -= 8, byte++, word >>= 8)
        if ((uint8_t)word) __atomic_fetch_or(byte, (uint8_t)word, __ATOMIC_RELAXED);
}

static inline void bitmap_merge(uint8_t *target, int64_t offset, const uint8_t *source, int64_t count) {
    if ((offset & 7) == 0 && count >= 8) { /* no other thread writes whole bytes */
        const int64_t bytes = count >> 3;
        memcpy(target + (offset >> 3), source, (size_t)bytes);
        source += bytes;
        offset += bytes * 8;
        count -= bytes * 8;
    }
    for (int64_t i = 0; i < count; i += 56) {
        const int64_t step = count - i < 56 ? count - i : 56;
        or_bits(target, offset + i, bits64(source, i, i + step), step);
    }
}

static inline void bitmap_set_range(uint8_t *target, int64_t offset, int64_t count) {
    while (count && (offset & 7 || count < 8)) {
        int64_t step = 8 - (offset & 7);
        if (step > count) step = count;
        or_bits(target, offset, (UINT64_C(1) << step) - 1, step);
        offset += step;
        count -= step;
    }
    memset(target + (offset >> 3), 0xFF, (size_t)(count >> 3));
    if (count & 7) or_bits(target, offset + (count & ~INT64_C(7)), (UINT64_C(1) << (count & 7)) - 1, count & 7);
}

/* Copies count bits in source, from bit `offset` on, to out, from its first bit on. Padding bits in the last byte are zero. */
static inline void bitmap_copy(const uint8_t *source, int64_t offset, int64_t count, uint8_t *out) {
    for (int64_t i = 0; i < count; i += 64) {
        const uint64_t word = bits64(source, offset + i, offset + count);
        const int64_t bytes = (count - i + 7) / 8;
        memcpy(out + i / 8, &word, (size_t)(bytes < 8 ? bytes : 8));
    }
}

#define FASTPQ_RUN_BITS 56  /* most bits that a word holds behind the bits of an unfinished byte */
#define FASTPQ_RUN_BYTES 72 /* readable bytes that a short run needs: its header, 63 groups of eight bits, and a word */
#define FASTPQ_RUN_ROOM 576 /* bits that a short run needs in the bitmap: 63 groups of eight bits, and a word */

/* Decodes short runs with one-bit values (the RLE and bit-packing hybrid) to bitmap, behind its first `done` bits, and moves *in
 * behind them. Stops before a run that is damaged or long. A long run has two header bytes, or more than FASTPQ_RUN_BITS equal
 * values. Also stops near the end of the bytes or the bitmap, which ends at count bits. Returns how many bits the bitmap has. */
static int64_t join_short_runs(const uint8_t **in, const uint8_t *end, uint8_t *bitmap, int64_t done, int64_t count) {
    const uint8_t *next = *in;
    uint8_t *out = bitmap + (done >> 3);
    int used = (int)(done & 7); /* how many bits the unfinished byte at out has. They are held in `bits`. */
    uint64_t bits = used ? *out & ((UINT64_C(1) << used) - 1) : 0;
    while (end - next >= FASTPQ_RUN_BYTES && count - done >= FASTPQ_RUN_ROOM) {
        const int header = next[0], size = header >> 1;
        if (header >= 0x80 || size == 0) break;
        if (header & 1) {
            next++;
            done += 8 * size;
            for (int left = size; left > 0; left -= FASTPQ_RUN_BITS / 8) {
                const int bytes = left < FASTPQ_RUN_BITS / 8 ? left : FASTPQ_RUN_BITS / 8;
                bits |= (load64(next) & ((UINT64_C(1) << 8 * bytes) - 1)) << used;
                memcpy(out, &bits, 8);
                bits >>= 8 * bytes;
                out += bytes;
                next += bytes;
            }
        } else {
            if (size > FASTPQ_RUN_BITS || next[1] > 1) break;
            bits |= (((UINT64_C(1) << size) - 1) & (0 - (uint64_t)next[1])) << used;
            memcpy(out, &bits, 8);
            next += 2;
            done += size;
            used += size;
            bits >>= used & ~7;
            out += used >> 3;
            used &= 7;
        }
    }
    *in = next;
    return done;
}

FASTPQ_CLONES static void bitmap_to_bytes(const uint8_t *bitmap, int64_t offset, int64_t count, uint8_t *out) {
    for (int64_t i = 0; i < count; i += 64) {
        const uint64_t word = bits64(bitmap, offset + i, offset + count);
        const int64_t step = count - i < 64 ? count - i : 64;
        for (int64_t j = 0; j < step; j++) out[i + j] = (uint8_t)(word >> j & 1);
    }
}

FASTPQ_CLONES static void bytes_to_bitmap(const uint8_t *flags, int64_t count, uint8_t *bitmap) {
    const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F);
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const uint64_t word = load64(flags + i), ones = (((word & low) + low) | word) >> 7 & UINT64_C(0x0101010101010101);
        bitmap[i >> 3] = (uint8_t)(ones * UINT64_C(0x0102040810204080) >> 56); /* bit 8 j moves to bit j */
    }
    if (i < count) {
        uint8_t byte = 0;
        for (int64_t j = 0; j < count - i; j++) byte |= (uint8_t)((flags[i + j] != 0) << j);
        bitmap[i >> 3] = byte;
    }
}

/* Returns a word with a bit set where a bit differs from the bit before it. `before` is the bit before the first one. */
static inline uint64_t changed_bits(uint64_t word, uint64_t before) { return word ^ (word << 1 | before); }

/* Returns how many runs of set bits there are among `count` bits from `offset` on. */
FASTPQ_CLONES static int64_t bitmap_count_runs(const uint8_t *bitmap, int64_t offset, int64_t count) {
    int64_t runs = 0;
    uint64_t before = 0;
    for (int64_t i = 0; i < count; i += 64) {
        const uint64_t word = bits64(bitmap, offset + i, offset + count);
        runs += __builtin_popcountll(word & changed_bits(word, before));
        before = word >> 63;
    }
    return runs;
}

/* Writes for each run of set bits its first place, and the place behind it. The bit at `offset` has the place `first`. Returns
 * how many places it wrote. */
FASTPQ_CLONES static int64_t bitmap_runs(const uint8_t *bitmap, int64_t offset, int64_t count, int64_t first, int64_t *places) {
    int64_t size = 0;
    uint64_t before = 0;
    for (int64_t i = 0; i < count; i += 64) {
        const uint64_t word = bits64(bitmap, offset + i, offset + count);
        for (uint64_t left = changed_bits(word, before); left; left &= left - 1)
            places[size++] = first + i + __builtin_ctzll(left);
        before = word >> 63;
    }
    if (size & 1) places[size++] = first + count;
    return size;
}

enum stretch { CLEAR_STRETCH = 0, SET_STRETCH = 1, MIXED_STRETCH = 2 };

/* Finds the first stretch among `count` bits, from `offset` on. Returns how many bits it has, and sets its kind. At the start,
 * `least_clear` clear bits (at most 64) or `least_set` set bits are a stretch. If all `count` bits are alike, they are one
 * stretch. Otherwise the stretch is mixed. It ends before 64 clear bits or before `least_set` set bits, both counted in words of
 * 64 bits from `offset` on. */
FASTPQ_CLONES static int64_t bitmap_stretch(const uint8_t *bitmap, int64_t offset, int64_t count, int64_t least_clear,
                                            int64_t least_set, int *kind) {
    const int64_t end = offset + count;
    uint64_t word = bits64(bitmap, offset, end);
    int64_t size = 0, full = 0;
    if (word == 0 || __builtin_ctzll(word) >= least_clear) {
        *kind = CLEAR_STRETCH;
        for (; size + 64 < count && word == 0; word = bits64(bitmap, offset + size, end)) size += 64;
        return word ? size + __builtin_ctzll(word) : count;
    }
    for (; size + 64 < count && word == UINT64_MAX; word = bits64(bitmap, offset + size, end)) size += 64;
    size += word == UINT64_MAX ? 64 : __builtin_ctzll(~word); /* bits behind the last one are clear */
    if (size >= least_set || size == count) {
        *kind = SET_STRETCH;
        return size;
    }
    *kind = MIXED_STRETCH;
    for (size &= ~INT64_C(63); size < count; size += 64) {
        word = bits64(bitmap, offset + size, end);
        if (word == 0) return size;
        full = word == UINT64_MAX ? full + 64 : 0;
        if (full >= least_set) return size + 64 - full;
    }
    return count;
}

/* Returns the bits in word at which mask has set bits, without gaps. */
static inline uint64_t picked_bits(uint64_t word, uint64_t mask) {
    uint64_t picked = 0;
    for (int place = 0; mask; mask &= mask - 1, place++) picked |= (word >> __builtin_ctzll(mask) & 1) << place;
    return picked;
}

/* Chooses bits in source, from `offset` on: those at the set bits among `count` bits in mask, from `mask_offset` on. Writes them
 * to out without gaps, and returns how many it wrote. Padding bits in the last byte become zero. */
#define FASTPQ_PICK_BITS(NAME, ATTRIBUTES, PICKED)                                                                  \
    ATTRIBUTES static int64_t NAME(const uint8_t *source, int64_t offset, const uint8_t *mask, int64_t mask_offset, \
                                   int64_t count, uint8_t *out) {                                                   \
        uint64_t held = 0; /* the `size % 64` bits that wait to be written */                                       \
        int64_t size = 0;                                                                                           \
        for (int64_t i = 0; i < count; i += 64) {                                                                   \
            const uint64_t chosen = bits64(mask, mask_offset + i, mask_offset + count);                             \
            const uint64_t picked = PICKED(bits64(source, offset + i, offset + count), chosen);                     \
            const int number = __builtin_popcountll(chosen), used = (int)(size & 63);                               \
            held |= picked << used;                                                                                 \
            if (used + number >= 64) {                                                                              \
                memcpy(out + size / 64 * 8, &held, 8);                                                              \
                held = used ? picked >> (64 - used) : 0;                                                            \
            }                                                                                                       \
            size += number;                                                                                         \
        }                                                                                                           \
        memcpy(out + size / 64 * 8, &held, (size_t)((size & 63) + 7) / 8);                                          \
        return size;                                                                                                \
    }

FASTPQ_PICK_BITS(pick_bits_portably, , picked_bits)
#ifdef FASTPQ_X86_CLONES
FASTPQ_PICK_BITS(pick_bits_by_bmi2, __attribute__((target("bmi2,popcnt"))), __builtin_ia32_pext_di)
#endif
#undef FASTPQ_PICK_BITS

static inline int64_t bitmap_pick(const uint8_t *source, int64_t offset, const uint8_t *mask, int64_t mask_offset, int64_t count,
                                  uint8_t *out) {
#ifdef FASTPQ_X86_CLONES
    if (__builtin_cpu_supports("bmi2")) return pick_bits_by_bmi2(source, offset, mask, mask_offset, count, out);
#endif
    return pick_bits_portably(source, offset, mask, mask_offset, count, out);
}

FASTPQ_CLONES static uint8_t largest_byte(const uint8_t *bytes, int64_t count) {
    uint8_t largest = 0;
    for (int64_t i = 0; i < count; i++) largest = bytes[i] > largest ? bytes[i] : largest;
    return largest;
}

/* Returns the byte with its bits in reverse order: MSB first <-> LSB first. */
static inline uint8_t reverse_bits(uint8_t byte) {
    byte = (uint8_t)(byte >> 4 | byte << 4);
    byte = (uint8_t)((byte & 0xCC) >> 2 | (byte & 0x33) << 2);
    return (uint8_t)((byte & 0xAA) >> 1 | (byte & 0x55) << 1);
}

static inline __attribute__((always_inline)) void expand_of_width(const uint8_t *bitmap, int64_t count, const uint8_t *dense,
                                                                  uint8_t *out, const size_t width) {
    for (int64_t i = 0; i < count; i += 64) {
        const int64_t step = count - i < 64 ? count - i : 64;
        uint64_t word = bits64(bitmap, i, count);
        uint8_t *block = out + (size_t)i * width;
        if (word == (step == 64 ? UINT64_MAX : (UINT64_C(1) << step) - 1)) {
            memcpy(block, dense, (size_t)step * width);
            dense += (size_t)step * width;
            continue;
        }
        memset(block, 0, (size_t)step * width);
        for (; word; word &= word - 1, dense += width) memcpy(block + (size_t)__builtin_ctzll(word) * width, dense, width);
    }
}

#ifdef FASTPQ_X86_CLONES
#include <immintrin.h>

/* Expands values with 4 or 8 bytes in blocks of 64. Returns how many values it wrote, and moves *dense behind those it used. */
__attribute__((target("avx512f,popcnt"), always_inline)) static inline int64_t expand_lanes(const uint8_t *bitmap, int64_t count,
                                                                                            const uint8_t **dense, uint8_t *out,
                                                                                            const int width) {
    const int lanes = 64 / width;
    const uint8_t *from = *dense;
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        const uint64_t word = load64(bitmap + (i >> 3));
#pragma GCC unroll 8
        for (int lane = 0; lane < 64; lane += lanes, out += 64) {
            const uint32_t places = (uint32_t)(word >> lane) & ((UINT32_C(1) << lanes) - 1);
            const int ones = __builtin_popcount(places);
            const uint32_t first = (UINT32_C(1) << ones) - 1;
            __m512i values;
            if (width == 4)
                values = _mm512_maskz_expand_epi32((__mmask16)places, _mm512_maskz_loadu_epi32((__mmask16)first, from));
            else values = _mm512_maskz_expand_epi64((__mmask8)places, _mm512_maskz_loadu_epi64((__mmask8)first, from));
            _mm512_storeu_si512(out, values);
            from += ones * width;
        }
    }
    *dense = from;
    return i;
}

__attribute__((target("avx512f,popcnt"))) static int64_t expand_lanes4(const uint8_t *bitmap, int64_t count,
                                                                       const uint8_t **dense, uint8_t *out) {
    return expand_lanes(bitmap, count, dense, out, 4);
}

__attribute__((target("avx512f,popcnt"))) static int64_t expand_lanes8(const uint8_t *bitmap, int64_t count,
                                                                       const uint8_t **dense, uint8_t *out) {
    return expand_lanes(bitmap, count, dense, out, 8);
}
#endif

static inline __attribute__((always_inline)) int64_t compact_of_width(const uint8_t *bitmap, int64_t offset, int64_t count,
                                                                      const uint8_t *values, uint8_t *out, const size_t width) {
    uint8_t *start = out;
    for (int64_t i = 0; i < count; i += 64) {
        const int64_t step = count - i < 64 ? count - i : 64;
        uint64_t word = bits64(bitmap, offset + i, offset + count);
        const uint8_t *block = values + (size_t)i * width;
        if (word == (step == 64 ? UINT64_MAX : (UINT64_C(1) << step) - 1)) {
            memcpy(out, block, (size_t)step * width);
            out += (size_t)step * width;
            continue;
        }
        for (; word; word &= word - 1, out += width) memcpy(out, block + (size_t)__builtin_ctzll(word) * width, width);
    }
    return width ? (out - start) / (int64_t)width : bitmap_count(bitmap, offset, count);
}

FASTPQ_CLONES static void expand_portably(const uint8_t *bitmap, int64_t count, const uint8_t *dense, uint8_t *out,
                                          size_t width) {
    switch (width) {
        case 1: expand_of_width(bitmap, count, dense, out, 1); break;
        case 2: expand_of_width(bitmap, count, dense, out, 2); break;
        case 4: expand_of_width(bitmap, count, dense, out, 4); break;
        case 8: expand_of_width(bitmap, count, dense, out, 8); break;
        case 16: expand_of_width(bitmap, count, dense, out, 16); break;
        default: expand_of_width(bitmap, count, dense, out, width);
    }
}

static inline void expand_values(const uint8_t *bitmap, int64_t count, const uint8_t *dense, uint8_t *out, size_t width) {
    int64_t done = 0;
#ifdef FASTPQ_X86_CLONES
    if ((width == 4 || width == 8) && __builtin_cpu_supports("avx512f"))
        done = width == 4 ? expand_lanes4(bitmap, count, &dense, out) : expand_lanes8(bitmap, count, &dense, out);
#endif
    expand_portably(bitmap + (done >> 3), count - done, dense, out + (size_t)done * width, width);
}

FASTPQ_CLONES static int64_t compact_values(const uint8_t *bitmap, int64_t offset, int64_t count, const uint8_t *values,
                                            uint8_t *out, size_t width) {
    switch (width) {
        case 1: return compact_of_width(bitmap, offset, count, values, out, 1);
        case 2: return compact_of_width(bitmap, offset, count, values, out, 2);
        case 4: return compact_of_width(bitmap, offset, count, values, out, 4);
        case 8: return compact_of_width(bitmap, offset, count, values, out, 8);
        case 16: return compact_of_width(bitmap, offset, count, values, out, 16);
        default: return compact_of_width(bitmap, offset, count, values, out, width);
    }
}

#endif
