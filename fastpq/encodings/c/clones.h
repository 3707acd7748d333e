/* FASTPQ_CLONES: the instruction sets that a vectorised loop is compiled for. All headers use this list. */
#ifndef FASTPQ_CLONES_H
#define FASTPQ_CLONES_H

#include <stdint.h> /* defines __GLIBC__ */

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(FASTPQ_NO_CLONES)
#define FASTPQ_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define FASTPQ_X86_CLONES 1 /* loops with intrinsics are compiled too, and chosen at run time for the processor */
#else
#define FASTPQ_CLONES
#endif

#endif
