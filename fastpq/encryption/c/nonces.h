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

static unsigned long fastpq_forks = 0;      /* forks between the process that imported the module and this process */

static _Thread_local struct {
    unsigned char bytes[FASTPQ_NONCES_A_DRAW * FASTPQ_NONCE_SIZE];
    int left;                               /* nonces not yet used, at the front */
    unsigned long forks;                    /* value of fastpq_forks at the draw */
} fastpq_pool;

static void fastpq_after_fork(void) { __atomic_add_fetch(&fastpq_forks, 1, __ATOMIC_RELAXED); }

/* Returns 0, or an error number; to be called once, when the module is imported. */
static int fastpq_watch_forks(void) { return pthread_atfork(NULL, NULL, fastpq_after_fork); }

/* Writes a fresh nonce to out; returns 1, or the result of a failed RAND_bytes. */
static int fastpq_next_nonce(unsigned char* out) {
    unsigned long forks = __atomic_load_n(&fastpq_forks, __ATOMIC_RELAXED);
    if (fastpq_pool.left == 0 || fastpq_pool.forks != forks) {
        int done;
        fastpq_pool.left = 0;
        done = RAND_bytes(fastpq_pool.bytes, sizeof fastpq_pool.bytes);
        if (done != 1) return done;
        fastpq_pool.left = FASTPQ_NONCES_A_DRAW;
        fastpq_pool.forks = forks;
    }
    fastpq_pool.left--;
    memcpy(out, fastpq_pool.bytes + fastpq_pool.left * FASTPQ_NONCE_SIZE, FASTPQ_NONCE_SIZE);
    return 1;
}

#endif
