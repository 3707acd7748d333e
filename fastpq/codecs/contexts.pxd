"""Contexts of a compression library kept between calls."""

cdef extern from "c/contexts.h" nogil:
    enum:
        KEPT_CONTEXTS

    # Begins as zeroes, as the fields of a cdef class do.
    ctypedef struct context_pool:
        void* kept[8]

    # A context for one thread, or NULL where none is kept.
    void* context_take(context_pool* pool) noexcept
    # Whether the pool keeps the context; the caller frees a context that it does not.
    bint context_give(context_pool* pool, void* context) noexcept
