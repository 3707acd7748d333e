/* Contexts of a compression library kept between calls: making one takes longer than a page, and no two threads may share one. */
#ifndef FASTPQ_CONTEXTS_H
#define FASTPQ_CONTEXTS_H

#include <stddef.h>

enum { KEPT_CONTEXTS = 8 };

typedef struct {
    void *kept[KEPT_CONTEXTS];
} context_pool;

typedef void (*release_context)(void *context);

/* A context for one thread, or NULL where none is kept. */
static void *context_take(context_pool *pool) {
    for (int i = 0; i < KEPT_CONTEXTS; i++) {
        void *context = __atomic_exchange_n(&pool->kept[i], NULL, __ATOMIC_ACQUIRE);
        if (context != NULL) return context;
    }
    return NULL;
}

/* Keeps a context, or releases the context where the pool is full. */
static void context_give(context_pool *pool, void *context, release_context release) {
    for (int i = 0; i < KEPT_CONTEXTS; i++) {
        void *empty = NULL;
        if (__atomic_compare_exchange_n(&pool->kept[i], &empty, context, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    }
    release(context);
}

/* Releases all contexts kept. */
static void contexts_release(context_pool *pool, release_context release) {
    for (void *context = context_take(pool); context != NULL; context = context_take(pool)) release(context);
}

#endif
