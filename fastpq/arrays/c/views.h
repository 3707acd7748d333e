/* Reads Arrow's string views. Short and long values alternate in real text, so the loops choose between them without branches,
 * which the processor could not predict. */
#ifndef FASTPQ_VIEWS_H
#define FASTPQ_VIEWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VIEW_BYTES = 16, MOST_INLINE = 12 /* bytes of the longest value inside a view */ };

typedef struct { /* the same memory as Slice in views.pxd */
    const uint8_t *data;
    size_t size;
} view_slice;

typedef struct { /* the same memory as View in views.pxd */
    int32_t length;
    uint8_t prefix[4];
    int32_t buffer;
    int32_t offset;
} string_view;

/* Returns the place of a view's buffer in the list, or the place behind the list if there is no such buffer. */
static inline size_t view_buffer(const string_view *view, int64_t buffer_count) {
    const uint32_t buffer = (uint32_t)view->buffer;
    return (int64_t)buffer < buffer_count ? buffer : (size_t)buffer_count;
}

/* Returns whether a value with more than MOST_INLINE bytes is within its buffer, which has `size` bytes. */
static inline int view_fits(const string_view *view, int64_t size) {
    return (view->length >= 0) & (view->offset >= 0) & ((int64_t)view->offset + view->length <= size);
}

/* Makes slices of views. `buffers` and `sizes` have one more item than there are buffers, and the last size is -1. Returns 0 if a
 * view is outside its buffer. */
static int slices_of_views(const void *views, int64_t count, const uint8_t *const *buffers, const int64_t *sizes,
                           int64_t buffer_count, void *slices) {
    const uint8_t *source = views;
    view_slice *out = slices;
    int good = 1;
    for (int64_t i = 0; i < count; i++, source += VIEW_BYTES) {
        string_view view;
        memcpy(&view, source, VIEW_BYTES);
        const int is_inline = (uint32_t)view.length <= MOST_INLINE;
        const size_t buffer = view_buffer(&view, is_inline ? 0 : buffer_count);
        const uint8_t *far = (const uint8_t *)((uintptr_t)buffers[buffer] + (uint32_t)view.offset);
        out[i].data = is_inline ? source + 4 : far;
        out[i].size = (uint32_t)view.length;
        good &= is_inline | view_fits(&view, sizes[buffer]);
    }
    return good;
}

/* Returns whether all views are within their buffers, and all values inside views are padded with zeros. The arguments are as in
 * slices_of_views. */
static int views_are_good(const void *views, int64_t count, const int64_t *sizes, int64_t buffer_count) {
    const uint8_t *source = views;
    uint64_t padding = 0;
    int good = 1;
    for (int64_t i = 0; i < count; i++, source += VIEW_BYTES) {
        string_view view;
        uint64_t words[2];
        memcpy(&view, source, VIEW_BYTES);
        memcpy(words, source, VIEW_BYTES);
        const uint32_t length = (uint32_t)view.length;
        const int is_inline = length <= MOST_INLINE;
        const size_t buffer = view_buffer(&view, is_inline ? 0 : buffer_count);
        good &= is_inline | view_fits(&view, sizes[buffer]);
        /* The value ends in the first word or in the second one: the bits behind it have to be zero. */
        const uint64_t first = length < 4 ? words[0] >> 8 * (4 + length) : 0;
        const uint64_t second = length < 4 ? words[1] : length < MOST_INLINE ? words[1] >> 8 * (length - 4) : 0;
        padding |= first | second;
    }
    return good & (padding == 0);
}

#endif
