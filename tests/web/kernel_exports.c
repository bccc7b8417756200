/* SPDX-License-Identifier: MIT */
/* The kernels alone as a wasm module: tests/web/test_kernels.mjs asks it for
 * the lines of tests/golden/kernels/bits.txt. */
#include "../kernels/kernel_hash.h"

#define EXPORT(name) __attribute__((export_name(#name)))

EXPORT(kernel_count) size_t kernel_count(void);
size_t kernel_count(void)
{
    return HASH_KERNELS;
}

/** kernel_name - ASCII, ends with a zero. */
EXPORT(kernel_name) const char *kernel_name(size_t which);
const char *kernel_name(size_t which)
{
    return kernel_hash_name(which);
}

EXPORT(kernel_bits) uint64_t kernel_bits(int f64, size_t which);
uint64_t kernel_bits(int f64, size_t which)
{
    return kernel_hash(tb_kern_isa("wasm", f64 ? TB_F64 : TB_F32), which);
}
