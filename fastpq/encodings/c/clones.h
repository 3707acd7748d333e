/* One body, compiled for several instruction sets: the best one that the machine has is chosen when the module is loaded. */
#ifndef FASTPQ_CLONES_H
#define FASTPQ_CLONES_H

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(FASTPQ_NO_CLONES)
#define FASTPQ_X86_CLONES 1
#define FASTPQ_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FASTPQ_CLONES
#endif

#endif
