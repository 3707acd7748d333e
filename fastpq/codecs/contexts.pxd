"""Contexts of a compression library kept between calls."""

cdef extern from "c/contexts.h" nogil:
    # Begins as zeroes, as the fields of a cdef class do.
    ctypedef struct context_pool:
        pass
    ctypedef void (*release_context)(void* context) noexcept

    # A context for one thread, or NULL where none is kept.
    void* context_take(context_pool* pool) noexcept
    # Keeps a context, or releases the context where the pool is full.
    void context_give(context_pool* pool, void* context, release_context release) noexcept
    # Releases all contexts kept.
    void contexts_release(context_pool* pool, release_context release) noexcept
