/* Random nonces for GCM (NIST SP 800-38D, 8.2.2): 96 bits each from OpenSSL's generator.
 *
 * One draw from the generator fills a pool for a few nonces, because a draw costs several times as much as sealing a page
 * header: the generator is seeded anew from the operating system first (prediction resistance), so that copies of a machine
 * repeat no more than the rest of a pool. The pool belongs to a thread, so no two threads draw the same bytes, and to a process:
 * a child throws the pool inherited by fork away. The kernel zeroes a page in every child, also of a fork past the C library;
 * where there are no such pages, the number of the process tells.
 */
#ifndef FASTPQ_NONCES_H
#define FASTPQ_NONCES_H

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define FASTPQ_NONCE_SIZE 12
#define FASTPQ_NONCES_A_DRAW 8

static unsigned long fork_count = 0;                 /* forks between the process that imported the module and this process */
static volatile unsigned char *wiped_on_fork = NULL; /* 1 in the process that wrote it, 0 in a child; NULL: no such pages */

static _Thread_local struct {
    unsigned char bytes[FASTPQ_NONCES_A_DRAW * FASTPQ_NONCE_SIZE];
    int left;            /* nonces not yet used, at the front */
    unsigned long forks; /* value of fork_count at the draw */
    pid_t process;       /* number of the process at the draw; 0 where pages are wiped */
} nonce_pool;

static void after_fork(void) { __atomic_add_fetch(&fork_count, 1, __ATOMIC_RELAXED); }

/* Returns 0, or an error number; to be called once, when the module is imported. */
static int watch_forks(void) {
#if defined(MADV_WIPEONFORK) && !defined(FASTPQ_NO_WIPEONFORK)
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0) {
        wiped_on_fork = (volatile unsigned char *)page;
        *wiped_on_fork = 1;
    } else if (page != MAP_FAILED) {
        munmap(page, size); /* kernels before 4.14 */
    }
#endif
    return pthread_atfork(NULL, NULL, after_fork);
}

/* Forks so far. Of several threads of a new child each may count the same fork: their pools are as old. */
static unsigned long count_forks(void) {
    if (wiped_on_fork != NULL && __atomic_load_n(wiped_on_fork, __ATOMIC_ACQUIRE) == 0) {
        after_fork();
        __atomic_store_n(wiped_on_fork, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&fork_count, __ATOMIC_RELAXED);
}

/* Writes a fresh nonce to out; returns 1, or 0 if the generator failed. */
static int next_nonce(unsigned char *out) {
    unsigned long forks = count_forks();
    pid_t process = wiped_on_fork != NULL ? 0 : getpid();
    if (nonce_pool.left == 0 || nonce_pool.forks != forks || nonce_pool.process != process) {
        EVP_RAND_CTX *generator = RAND_get0_public(NULL); /* the thread's own */
        nonce_pool.left = 0;
        if (generator == NULL || EVP_RAND_generate(generator, nonce_pool.bytes, sizeof nonce_pool.bytes, 0, 1, NULL, 0) != 1)
            return 0;
        nonce_pool.left = FASTPQ_NONCES_A_DRAW;
        nonce_pool.forks = forks;
        nonce_pool.process = process;
    }
    nonce_pool.left--;
    memcpy(out, nonce_pool.bytes + nonce_pool.left * FASTPQ_NONCE_SIZE, FASTPQ_NONCE_SIZE);
    return 1;
}

#endif
