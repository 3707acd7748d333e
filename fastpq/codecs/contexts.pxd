"""Compression library contexts that are kept between calls."""

cdef extern from "c/contexts.h" nogil:
    # It must begin as zeroes, which a field in a cdef class does.
    ctypedef struct context_pool:
        pass
    ctypedef void (*release_context)(void* context) noexcept

    # Returns a context for one thread, or NULL if the pool is empty.
    void* context_take(context_pool* pool) noexcept
    # Puts a context back, or releases it if the pool is full.
    void context_give(context_pool* pool, void* context, release_context release) noexcept
    # Releases all contexts in the pool.
    void contexts_release(context_pool* pool, release_context release) noexcept
