/* Reads and writes Snappy's raw format (format_description.txt in google/snappy): a length, then elements. An element is a
 * literal or a copy. It begins with a tag.
 *
 * A fast loop handles a page's middle, where whole words may be loaded and stored past an element's end. A loop that checks all
 * bounds handles its last bytes.
 */
#ifndef FASTPQ_SNAPPY_H
#define FASTPQ_SNAPPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SNAPPY_BROKEN = -1, SNAPPY_TOO_LONG = -2 };

enum {
    IN_SLACK = 72,   /* bytes: most that are loaded from where an element begins */
    OUT_SLACK = 80,  /* bytes: most that are stored from where an element begins */
    SHORT = 16,      /* bytes: most for an element that needs one load and one store. Nearly all elements do. */
    INLINE = 60,     /* bytes: the longest literal that has its length in the tag */
    BEHIND = 256,    /* bytes that the bounded loop writes first. The fast loop's table has this as the offset of literals. */
    RARE = 0x80,     /* a flag above every length. It marks copies that have offsets with four bytes. */
    BLOCK = 1 << 16, /* bytes that are compressed together. Offsets within a block fit into 16 bits. */
    TABLE_BITS = 14,
    NEAR = 16,   /* bytes behind an element in which nearly all matches begin */
    MARGIN = 15, /* bytes at a block's end that are never searched for matches */
};

/* For each tag: how many bytes the stored element has. A literal over INLINE counts without its bytes. */
#define FASTPQ_ROW(f, i) f(i), f((i) + 1), f((i) + 2), f((i) + 3), f((i) + 4), f((i) + 5), f((i) + 6), f((i) + 7)
#define FASTPQ_BLOCK(f, i) FASTPQ_ROW(f, i), FASTPQ_ROW(f, (i) + 8), FASTPQ_ROW(f, (i) + 16), FASTPQ_ROW(f, (i) + 24)
#define FASTPQ_TAGS(f)                                                                      \
    {FASTPQ_BLOCK(f, 0),   FASTPQ_BLOCK(f, 32),  FASTPQ_BLOCK(f, 64),  FASTPQ_BLOCK(f, 96), \
     FASTPQ_BLOCK(f, 128), FASTPQ_BLOCK(f, 160), FASTPQ_BLOCK(f, 192), FASTPQ_BLOCK(f, 224)}
#define FASTPQ_STEP(tag) (((tag) & 3) == 0 ? ((tag) >> 2) + 2 : ((tag) & 3) == 1 ? 2 : ((tag) & 3) == 2 ? 3 : 5)
/* For each tag: the uncompressed length with the flag RARE in the low eight bits. Above them are the high bits of an 11-bit
 * offset, or BEHIND for a literal. */
#define FASTPQ_LENGTH(tag)                                                \
    (((tag) & 3) == 1 ? (4 + ((tag) >> 2 & 7)) | ((tag) >> 5) << 8        \
                      : (((tag) >> 2) + 1) | (((tag) & 3) == 0   ? BEHIND \
                                              : ((tag) & 3) == 3 ? RARE   \
                                                                 : 0))

static const uint8_t snappy_steps[256] = FASTPQ_TAGS(FASTPQ_STEP);
static const uint32_t snappy_lengths[256] = FASTPQ_TAGS(FASTPQ_LENGTH);
static const uint32_t snappy_masks[5] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff};
static const uint32_t snappy_offset_masks[4] = {0, 0xff, 0xffff, 0xffffffff}; /* by the kind in a tag */

#undef FASTPQ_ROW
#undef FASTPQ_BLOCK
#undef FASTPQ_TAGS
#undef FASTPQ_STEP
#undef FASTPQ_LENGTH

static inline uint32_t load_4(const uint8_t *data) {
    uint32_t value;
    memcpy(&value, data, 4);
    return value;
}

static inline uint64_t load_8(const uint8_t *data) {
    uint64_t value;
    memcpy(&value, data, 8);
    return value;
}

static inline void store_4(uint8_t *out, uint32_t value) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(out, &value, 4);
}

static inline void copy_8(uint8_t *out, const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, 8);
    memcpy(out, &value, 8);
}

/* Copies 16 bytes. The ranges may overlap, because all bytes are loaded before one is stored. */
static inline void copy_16(uint8_t *out, const uint8_t *from) {
    struct {
        uint8_t bytes[16];
    } whole;
    memcpy(&whole, from, 16);
    memcpy(out, &whole, 16);
}

static inline void copy_64(uint8_t *out, const uint8_t *from) {
    for (int i = 0; i < 64; i += 16) copy_16(out + i, from + i);
}

/* Reads a stream's first varint to *length. Returns the varint's size in bytes, or 0 if it is broken or has more than 32 bits. */
static inline size_t snappy_preamble(const uint8_t *in, size_t size, uint64_t *length) {
    uint64_t value = 0;
    for (size_t i = 0; i < 5 && i < size; i++) {
        value |= (uint64_t)(in[i] & 0x7f) << 7 * i;
        if (in[i] < 0x80) {
            *length = value;
            return value >> 32 ? 0 : i + 1;
        }
    }
    return 0;
}

typedef struct {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_end;
    const uint8_t *target;
} snappy_place;

/* Decompresses an element that snappy_short_elements cannot: it is longer than SHORT, or a copy that overlaps its own output.
 * IN_SLACK and OUT_SLACK bytes must be there. Returns 0 for a broken element. */
static inline int snappy_long_element(snappy_place *at) {
    uint32_t tag = *at->in++, entry = snappy_lengths[tag];
    size_t length = entry & (RARE - 1), offset;
    const uint8_t *from;
    uint8_t *out = at->out, *end;
    if ((tag & 3) == 0) {
        if (length <= INLINE) {
            copy_64(out, at->in);
        } else {
            uint32_t extra = (uint32_t)length - INLINE;
            length = (size_t)(load_4(at->in) & snappy_masks[extra]) + 1;
            at->in += extra;
            if (length > (size_t)(at->in_end - at->in) || length > (size_t)(at->out_end - out)) return 0;
            memcpy(out, at->in, length);
        }
        at->in += length;
        at->out += length;
        return 1;
    }
    offset = (entry >> 8 << 8) + (load_4(at->in) & snappy_offset_masks[tag & 3]);
    if (offset == 0 || offset > (size_t)(out - at->target)) return 0;
    from = out - offset;
    end = out + length;
    if (offset >= SHORT) {
        copy_64(out, from);
    } else {
        /* A repeating pattern: each copy doubles the distance, until it is at least eight bytes. */
        for (; offset < 8; offset *= 2) {
            copy_8(out, from);
            out += offset;
        }
        for (; out < end; out += 8, from += 8) copy_8(out, from);
    }
    at->in += snappy_steps[tag] - 1;
    at->out = end;
    return 1;
}

/* Decompresses the next element, and checks every bound. Returns 0 for a broken element. */
static inline int snappy_last_element(snappy_place *at) {
    uint32_t tag = *at->in++, entry = snappy_lengths[tag], trailer = 0, i;
    size_t length = entry & (RARE - 1), offset, left = (size_t)(at->in_end - at->in), j;
    uint32_t extra = (tag & 3) == 0 ? (length > INLINE ? (uint32_t)length - INLINE : 0) : (uint32_t)snappy_steps[tag] - 1;
    if (extra > left) return 0;
    for (i = 0; i < extra; i++) trailer |= (uint32_t)at->in[i] << 8 * i;
    at->in += extra;
    if ((tag & 3) == 0) {
        if (extra) length = (size_t)trailer + 1;
        if (length > left - extra || length > (size_t)(at->out_end - at->out)) return 0;
        memcpy(at->out, at->in, length);
        at->in += length;
    } else {
        offset = (entry >> 8 << 8) + trailer;
        if (offset == 0 || offset > (size_t)(at->out - at->target) || length > (size_t)(at->out_end - at->out)) return 0;
        for (j = 0; j < length; j++) at->out[j] = at->out[(ptrdiff_t)j - (ptrdiff_t)offset];
    }
    at->out += length;
    return 1;
}

/* Decompresses elements up to SHORT bytes. Stops before a longer element, a broken element or a repeating pattern. Also stops as
 * soon as there is no room for whole words. */
static inline void snappy_short_elements(snappy_place *at) {
    const uint8_t *in = at->in, *last_in = at->in_end - IN_SLACK, *target = at->target;
    uint8_t *out = at->out, *last_out = at->out_end - OUT_SLACK;
    do {
        size_t tag = *in, kind = tag & 3;
        uint32_t entry = snappy_lengths[tag];
        size_t length = entry & 0xff, offset = (entry >> 8 << 8) + (load_4(in + 1) & snappy_offset_masks[kind]);
        const uint8_t *literal = in + 1, *after_literal = in + 2 + (tag >> 2), *from = out - offset, *next = in + 1 + kind;
        if (__builtin_expect(length > SHORT, 0)) break;
        if (__builtin_expect(offset < length, 0)) break; /* a repeating pattern. A literal's offset is BEHIND. */
        if (__builtin_expect(offset > (size_t)(out - target), 0)) break;
        /* Literals and copies take the same path. The processor would mispredict a branch between them at every other element. A
         * table look-up for the next element's place would take longer than the rest of the loop. The assembly is needed because
         * GCC turns the conditional expressions into a branch. */
#if defined(__x86_64__)
        __asm__("test $3, %b4\n\tcmove %2, %0\n\tcmove %3, %1"
                : "+&r"(next), "+r"(from)
                : "r"(after_literal), "r"(literal), "q"(tag)
                : "cc");
#else
        next = kind == 0 ? after_literal : next;
        from = kind == 0 ? literal : from;
#endif
        copy_16(out, from);
        in = next;
        out += length;
    } while (in <= last_in && out <= last_out);
    at->in = in;
    at->out = out;
}

static inline int snappy_has_slack(const snappy_place *at) {
    return at->in_end - at->in >= IN_SLACK && at->out_end - at->out >= OUT_SLACK;
}

/* Decompresses a stream with size bytes to target, which has room bytes. Returns the length that the stream states. Writes bytes
 * only if this length is room: for a smaller one, it only returns the length. Returns SNAPPY_TOO_LONG for a larger one, and
 * SNAPPY_BROKEN for a broken stream. */
static int64_t snappy_decode(const uint8_t *stream, size_t size, uint8_t *target, size_t room) {
    uint64_t stated = 0;
    size_t head = snappy_preamble(stream, size, &stated);
    snappy_place at = {stream + head, stream + size, target, target + room, target};
    if (head == 0) return SNAPPY_BROKEN;
    if (stated != room) return stated > room ? SNAPPY_TOO_LONG : (int64_t)stated;
    while (at.in < at.in_end && at.out - target < BEHIND)
        if (!snappy_last_element(&at)) return SNAPPY_BROKEN;
    while (snappy_has_slack(&at)) {
        snappy_short_elements(&at);
        if (snappy_has_slack(&at) && !snappy_long_element(&at)) return SNAPPY_BROKEN;
    }
    while (at.in < at.in_end)
        if (!snappy_last_element(&at)) return SNAPPY_BROKEN;
    return at.out == at.out_end ? (int64_t)room : SNAPPY_BROKEN;
}

/* Writes a literal, and returns where it ends. whole_words: SHORT bytes may be loaded and stored, even if it is shorter. */
static inline uint8_t *snappy_literal(uint8_t *out, const uint8_t *from, size_t length, int whole_words) {
    size_t less = length - 1;
    if (whole_words && length <= SHORT) {
        *out = (uint8_t)(less << 2);
        copy_16(out + 1, from);
        return out + 1 + length;
    }
    if (less < INLINE) {
        *out++ = (uint8_t)(less << 2);
    } else {
        int extra = less < 1 << 8 ? 1 : 2; /* a block has 2^16 bytes */
        *out++ = (uint8_t)((INLINE - 1 + extra) << 2);
        for (int i = 0; i < extra; i++) *out++ = (uint8_t)(less >> 8 * i);
    }
    memcpy(out, from, length);
    return out + length;
}

/* Writes a match as copies, and returns where they end. Four bytes are stored at a time, even if a copy is shorter. */
static inline uint8_t *snappy_copy(uint8_t *out, size_t offset, size_t length) {
    while (__builtin_expect(length > 64, 0)) {
        size_t part = length < 68 ? 60 : 64; /* leaves at least the four bytes of the shortest copy */
        store_4(out, (uint32_t)((part - 1) << 2 | 2 | offset << 8));
        out += 3;
        length -= part;
    }
    size_t is_near = (length < 12) & (offset < 2048);
    uint32_t near = (uint32_t)((offset >> 8 << 5 | (length - 4) << 2 | 1) | (offset & 0xff) << 8);
    uint32_t far = (uint32_t)((length - 1) << 2 | 2 | offset << 8);
    store_4(out, is_near ? near : far);
    return out + 3 - is_near;
}

static inline uint32_t snappy_hash(uint32_t word, int shift) { return (word * 0x9E3779B1u) >> shift; }

/* Returns how many first bytes two words have in common. `different` is their bitwise difference, which is not 0. */
static inline size_t snappy_equal_bytes(uint64_t different) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (size_t)__builtin_clzll(different) >> 3;
#else
    return (size_t)__builtin_ctzll(different) >> 3;
#endif
}

/* Returns how many bytes are equal from before and from `from` on. The first eight are known to be equal. No byte behind end is
 * read from the second place. */
static inline size_t snappy_match(const uint8_t *before, const uint8_t *from, const uint8_t *end) {
    const uint8_t *begin = from;
    for (before += 8, from += 8; end - from >= 8; before += 8, from += 8) {
        uint64_t different = load_8(before) ^ load_8(from);
        if (different) return (size_t)(from - begin) + snappy_equal_bytes(different);
    }
    for (; from < end && *before == *from; from++) before++;
    return (size_t)(from - begin);
}

/* Looks for a match at each of the next NEAR bytes. Returns how many bytes are before it, and sets `before` to the earlier place of
 * its bytes. Returns NEAR if there is none. */
static inline size_t snappy_near_match(const uint8_t *block, const uint8_t *at, uint16_t *table, int shift,
                                       const uint8_t **before) {
    for (size_t group = 0; group < NEAR; group += 4) {
        uint64_t words = load_8(at + group); /* holds the four words that begin at the group's bytes */
        for (size_t i = group; i < group + 4; i++, words >>= 8) {
            const uint32_t hash = snappy_hash((uint32_t)words, shift);
            *before = block + table[hash];
            table[hash] = (uint16_t)(at + i - block);
            if (load_4(*before) == (uint32_t)words) return i;
        }
    }
    return NEAR;
}

/* Compresses a block with at most BLOCK bytes, and returns where the output ends. table has room for 2^TABLE_BITS positions, one
 * for each hash. */
static uint8_t *snappy_encode_block(const uint8_t *block, size_t size, uint8_t *out, uint16_t *table) {
    const uint8_t *at = block, *next = block, *end = block + size;
    int bits = 8;
    while (bits < TABLE_BITS && (size_t)1 << bits < size) bits++;
    memset(table, 0, sizeof(uint16_t) << bits);
    if (size > MARGIN) {
        const uint8_t *last = end - MARGIN;
        const int shift = 32 - bits;
        at++;
        for (;;) {
            const uint8_t *before;
            /* After 32 misses every second byte is searched. The steps soon become larger, to be fast if nothing matches. */
            uint32_t skipped = 32;
            if (last - at >= NEAR) {
                const size_t literal = snappy_near_match(block, at, table, shift, &before);
                at += literal;
                if (literal < NEAR) goto match;
                skipped += NEAR;
            }
            for (;; at += skipped >> 5, skipped += skipped >> 5) {
                uint32_t word, hash;
                if (at >= last) goto rest;
                word = load_4(at);
                hash = snappy_hash(word, shift);
                before = block + table[hash];
                table[hash] = (uint16_t)(at - block);
                if (load_4(before) == word) break;
            }
        match:
            out = snappy_literal(out, next, (size_t)(at - next), 1);
            for (;;) {
                uint64_t different = load_8(before) ^ load_8(at), words;
                size_t length = different ? snappy_equal_bytes(different) : snappy_match(before, at, end);
                uint32_t hash;
                out = snappy_copy(out, (size_t)(at - before), length);
                next = at += length;
                if (at >= last) goto rest;
                words = load_8(at - 1);
                table[snappy_hash((uint32_t)words, shift)] = (uint16_t)(at - 1 - block);
                hash = snappy_hash((uint32_t)(words >> 8), shift);
                before = block + table[hash];
                table[hash] = (uint16_t)(at - block);
                if (load_4(before) != (uint32_t)(words >> 8)) break;
            }
            at++;
        }
    }
rest:
    return next < end ? snappy_literal(out, next, (size_t)(end - next), 0) : out;
}

/* Compresses size bytes, fewer than 2^32, to out, which has size + size / 6 + 32 bytes. Returns how many bytes it wrote. */
static int64_t snappy_encode(const uint8_t *data, size_t size, uint8_t *out) {
    uint16_t table[1 << TABLE_BITS];
    uint8_t *begin = out;
    size_t left;
    for (left = size; left >= 0x80; left >>= 7) *out++ = (uint8_t)(left | 0x80);
    *out++ = (uint8_t)left;
    for (size_t start = 0; start < size; start += BLOCK)
        out = snappy_encode_block(data + start, size - start < BLOCK ? size - start : BLOCK, out, table);
    return out - begin;
}

#endif
