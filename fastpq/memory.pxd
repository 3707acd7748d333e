cdef void* block_take(size_t size, size_t* capacity) noexcept nogil
cdef void block_give(void* block, size_t capacity) noexcept nogil
