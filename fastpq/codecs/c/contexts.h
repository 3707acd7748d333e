/* A pool with contexts for a compression library. To make a context takes longer than to use it for a page, so contexts are
 * reused. Two threads may not use the same context at the same time. */
#ifndef FASTPQ_CONTEXTS_H
#define FASTPQ_CONTEXTS_H

#include <stddef.h>

enum { KEPT_CONTEXTS = 8 };

typedef struct {
    void *kept[KEPT_CONTEXTS];
} context_pool;

typedef void (*release_context)(void *context);

/* Returns a context for one thread, or NULL if the pool is empty. */
static void *context_take(context_pool *pool) {
    for (int i = 0; i < KEPT_CONTEXTS; i++) {
        void *context = __atomic_exchange_n(&pool->kept[i], NULL, __ATOMIC_ACQUIRE);
        if (context != NULL) return context;
    }
    return NULL;
}

/* Puts a context back, or releases it if the pool is full. */
static void context_give(context_pool *pool, void *context, release_context release) {
    for (int i = 0; i < KEPT_CONTEXTS; i++) {
        void *empty = NULL;
        if (__atomic_compare_exchange_n(&pool->kept[i], &empty, context, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    }
    release(context);
}

/* Releases all contexts in the pool. */
static void contexts_release(context_pool *pool, release_context release) {
    for (void *context = context_take(pool); context != NULL; context = context_take(pool)) release(context);
}

#endif
