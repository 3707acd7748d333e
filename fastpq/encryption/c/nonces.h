/* Random nonces for GCM (NIST SP 800-38D, 8.2.2): 96 bits each, from OpenSSL's generator.
 *
 * Each thread has a pool with a few nonces, which one draw from the generator fills: a draw takes several times as long as
 * sealing a page header. Before a draw the generator takes a new seed from the operating system (prediction resistance).
 * Therefore a copied virtual machine can repeat no more nonces than are left in a pool. No two threads draw the same bytes. A
 * child process throws away the pool that it inherited by fork. To notice a fork, even one that bypasses the C library, the
 * kernel zeroes a page in every child. Where there are no such pages, the process number is compared.
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

static unsigned long fork_count = 0;                 /* forks between the process that imported the module and this one */
static volatile unsigned char *wiped_on_fork = NULL; /* 1 in the process that wrote it, 0 in a child, NULL if not supported */

static _Thread_local struct {
    unsigned char bytes[FASTPQ_NONCES_A_DRAW * FASTPQ_NONCE_SIZE];
    int unused_count;    /* number of unused nonces, which are at the front */
    unsigned long forks; /* fork_count when the nonces were drawn */
    pid_t process;       /* process number when the nonces were drawn, or 0 if wiped_on_fork is supported */
} nonce_pool;

static void after_fork(void) { __atomic_add_fetch(&fork_count, 1, __ATOMIC_RELAXED); }

/* Returns 0, or an error number. Called once, when the module is imported. */
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

/* Returns the number of forks so far. In a new child, several threads may count the same fork: all their pools are older. */
static unsigned long count_forks(void) {
    if (wiped_on_fork != NULL && __atomic_load_n(wiped_on_fork, __ATOMIC_ACQUIRE) == 0) {
        after_fork();
        __atomic_store_n(wiped_on_fork, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&fork_count, __ATOMIC_RELAXED);
}

/* Writes a fresh nonce to out. Returns 1, or 0 if the generator failed. */
static int next_nonce(unsigned char *out) {
    unsigned long forks = count_forks();
    pid_t process = wiped_on_fork != NULL ? 0 : getpid();
    if (nonce_pool.unused_count == 0 || nonce_pool.forks != forks || nonce_pool.process != process) {
        EVP_RAND_CTX *generator = RAND_get0_public(NULL); /* the thread's own */
        nonce_pool.unused_count = 0;
        if (generator == NULL || EVP_RAND_generate(generator, nonce_pool.bytes, sizeof nonce_pool.bytes, 0, 1, NULL, 0) != 1)
            return 0;
        nonce_pool.unused_count = FASTPQ_NONCES_A_DRAW;
        nonce_pool.forks = forks;
        nonce_pool.process = process;
    }
    nonce_pool.unused_count--;
    memcpy(out, nonce_pool.bytes + nonce_pool.unused_count * FASTPQ_NONCE_SIZE, FASTPQ_NONCE_SIZE);
    return 1;
}

#endif
