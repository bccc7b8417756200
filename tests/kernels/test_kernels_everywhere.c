/* SPDX-License-Identifier: MIT */
/* Every kernel of every instruction set gives the bits that are written down
 * in tests/golden/kernels/bits.txt: those of x86, ARM (tools/aarch64.mk) and
 * the browser (tests/web/test_kernels.mjs) agree. TB_GOLDEN=write rewrites
 * the file with what ref gives. */
#include "tb_test.h"
#include "kernel_hash.h"

#include <stdio.h>
#include <stdlib.h>

#define GOLDEN TB_SOURCE_DIR "/tests/golden/kernels/bits.txt"

enum { LINE_CHARS = 64, LINES = 2 * HASH_KERNELS };

typedef struct lines {
    char text[LINES][LINE_CHARS];
    size_t count;
} lines;

static void line_of(const tb_kern *k, size_t which, char *line)
{
    unsigned long long h = kernel_hash(k, which);
    snprintf(line, LINE_CHARS, "%s %s %016llx",
             k->dtype == TB_F32 ? "f32" : "f64", kernel_hash_name(which), h);
}

static void golden_write(tb_test *T)
{
    char line[LINE_CHARS];
    FILE *f = fopen(GOLDEN, "w");
    TB_REQUIRE(T, f);
    for (size_t i = 0; i < LINES; i++) {
        line_of(tb_kern_isa("ref", i / HASH_KERNELS ? TB_F64 : TB_F32),
                i % HASH_KERNELS, line);
        fprintf(f, "%s\n", line);
    }
    fclose(f);
}

static void golden_read(tb_test *T, lines *out)
{
    const char *mode = getenv("TB_GOLDEN");
    if (tb_streq(mode, "write"))
        golden_write(T);
    FILE *f = fopen(GOLDEN, "r");
    TB_REQUIRE(T, f);
    while (out->count < LINES && fgets(out->text[out->count], LINE_CHARS, f)) {
        char *end = strchr(out->text[out->count++], '\n');
        if (end)
            *end = 0;
    }
    fclose(f);
}

static void all_kernels(tb_test *T, const char *isa, const lines *golden)
{
    for (size_t i = 0; i < LINES; i++) {
        char line[LINE_CHARS];
        const tb_kern *k = tb_kern_isa(isa, i / HASH_KERNELS ? TB_F64 : TB_F32);
        if (!k)
            TB_SKIP(T, isa);
        line_of(k, i % HASH_KERNELS, line);
        if (i >= golden->count || !tb_streq(line, golden->text[i]))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s, wanted %s", isa, line,
                         i < golden->count ? golden->text[i] : "no such line");
    }
}

TB_TEST(every_instruction_set_has_the_bits_written_down)
{
    static lines golden;
    golden_read(T, &golden);
    for (size_t i = 0; tb_isas[i]; i++)
        all_kernels(T, tb_isas[i], &golden);
}
