/* Random nonces for GCM (NIST SP 800-38D, 8.2.2): 96 bits each from OpenSSL's generator.
 *
 * One call of the generator fills a pool for many nonces, because the call costs as much as sealing a page header. The
 * pool belongs to a thread, so no two threads draw the same bytes, and to a process: a child throws the pool inherited by
 * fork away.
 */
#ifndef FASTPQ_NONCES_H
#define FASTPQ_NONCES_H

#include <pthread.h>
#include <string.h>
#include <openssl/rand.h>

#define FASTPQ_NONCE_SIZE 12
#define FASTPQ_NONCES_A_DRAW 32

static unsigned long fork_count = 0; /* forks between the process that imported the module and this process */

static _Thread_local struct {
    unsigned char bytes[FASTPQ_NONCES_A_DRAW * FASTPQ_NONCE_SIZE];
    int left;            /* nonces not yet used, at the front */
    unsigned long forks; /* value of fork_count at the draw */
} nonce_pool;

static void after_fork(void) { __atomic_add_fetch(&fork_count, 1, __ATOMIC_RELAXED); }

/* Returns 0, or an error number; to be called once, when the module is imported. */
static int watch_forks(void) { return pthread_atfork(NULL, NULL, after_fork); }

/* Writes a fresh nonce to out; returns 1, or the result of a failed RAND_bytes. */
static int next_nonce(unsigned char *out) {
    unsigned long forks = __atomic_load_n(&fork_count, __ATOMIC_RELAXED);
    if (nonce_pool.left == 0 || nonce_pool.forks != forks) {
        int done;
        nonce_pool.left = 0;
        done = RAND_bytes(nonce_pool.bytes, sizeof nonce_pool.bytes);
        if (done != 1) return done;
        nonce_pool.left = FASTPQ_NONCES_A_DRAW;
        nonce_pool.forks = forks;
    }
    nonce_pool.left--;
    memcpy(out, nonce_pool.bytes + nonce_pool.left * FASTPQ_NONCE_SIZE, FASTPQ_NONCE_SIZE);
    return 1;
}

#endif
