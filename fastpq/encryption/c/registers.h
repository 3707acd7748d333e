/* Clears the vector registers after a key was used.
 *
 * memcpy and AES leave parts of a key schedule in vector registers. The dynamic linker saves all vector registers on the
 * thread's stack when a function is called for the first time (_dl_runtime_resolve), and the kernel does so on a signal.
 */
#ifndef FASTPQ_REGISTERS_H
#define FASTPQ_REGISTERS_H

#if defined(__x86_64__) && defined(__GNUC__)

__attribute__((target("avx512f"), noinline)) static void wipe_upper_registers(void) {
    __asm__ volatile(
        "vpxorq %%zmm16, %%zmm16, %%zmm16\n\t"
        "vpxorq %%zmm17, %%zmm17, %%zmm17\n\t"
        "vpxorq %%zmm18, %%zmm18, %%zmm18\n\t"
        "vpxorq %%zmm19, %%zmm19, %%zmm19\n\t"
        "vpxorq %%zmm20, %%zmm20, %%zmm20\n\t"
        "vpxorq %%zmm21, %%zmm21, %%zmm21\n\t"
        "vpxorq %%zmm22, %%zmm22, %%zmm22\n\t"
        "vpxorq %%zmm23, %%zmm23, %%zmm23\n\t"
        "vpxorq %%zmm24, %%zmm24, %%zmm24\n\t"
        "vpxorq %%zmm25, %%zmm25, %%zmm25\n\t"
        "vpxorq %%zmm26, %%zmm26, %%zmm26\n\t"
        "vpxorq %%zmm27, %%zmm27, %%zmm27\n\t"
        "vpxorq %%zmm28, %%zmm28, %%zmm28\n\t"
        "vpxorq %%zmm29, %%zmm29, %%zmm29\n\t"
        "vpxorq %%zmm30, %%zmm30, %%zmm30\n\t"
        "vpxorq %%zmm31, %%zmm31, %%zmm31" ::
            : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28",
              "xmm29", "xmm30", "xmm31");
}

__attribute__((target("avx"), noinline)) static void wipe_lower_registers(void) {
    __asm__ volatile("vzeroall" ::
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                           "xmm12", "xmm13", "xmm14", "xmm15");
}

static void wipe_registers(void) {
    if (__builtin_cpu_supports("avx512f")) wipe_upper_registers();
    if (__builtin_cpu_supports("avx")) {
        wipe_lower_registers();
        return;
    }
    __asm__ volatile(
        "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\tpxor %%xmm3, %%xmm3\n\t"
        "pxor %%xmm4, %%xmm4\n\tpxor %%xmm5, %%xmm5\n\tpxor %%xmm6, %%xmm6\n\tpxor %%xmm7, %%xmm7\n\t"
        "pxor %%xmm8, %%xmm8\n\tpxor %%xmm9, %%xmm9\n\tpxor %%xmm10, %%xmm10\n\tpxor %%xmm11, %%xmm11\n\t"
        "pxor %%xmm12, %%xmm12\n\tpxor %%xmm13, %%xmm13\n\tpxor %%xmm14, %%xmm14\n\tpxor %%xmm15, %%xmm15" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
              "xmm14", "xmm15");
}

#elif defined(__aarch64__) && defined(__GNUC__)

/* v8 to v15 belong to the caller: a function that uses them saves and restores them. */
static void wipe_registers(void) {
    __asm__ volatile(
        "movi v0.2d, #0\n\tmovi v1.2d, #0\n\tmovi v2.2d, #0\n\tmovi v3.2d, #0\n\t"
        "movi v4.2d, #0\n\tmovi v5.2d, #0\n\tmovi v6.2d, #0\n\tmovi v7.2d, #0\n\t"
        "movi v16.2d, #0\n\tmovi v17.2d, #0\n\tmovi v18.2d, #0\n\tmovi v19.2d, #0\n\t"
        "movi v20.2d, #0\n\tmovi v21.2d, #0\n\tmovi v22.2d, #0\n\tmovi v23.2d, #0\n\t"
        "movi v24.2d, #0\n\tmovi v25.2d, #0\n\tmovi v26.2d, #0\n\tmovi v27.2d, #0\n\t"
        "movi v28.2d, #0\n\tmovi v29.2d, #0\n\tmovi v30.2d, #0\n\tmovi v31.2d, #0" ::
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
              "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

#else

static void wipe_registers(void) {} /* other processors' registers are not known here */

#endif

#endif
