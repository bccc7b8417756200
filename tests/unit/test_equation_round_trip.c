/* SPDX-License-Identifier: MIT */
/* parse(print(x)) == x for every built-in block, for random texts, and for
 * what the fuzzer has seen. */
#include "unit/equation_help.h"

#include <dirent.h>
#include <stdio.h>

#include "fuzz/fuzz_equation.c"

TB_TEST(builtin_blocks)
{
    size_t n = 0;
    for (const tb_builtin *b = tb_builtins; b->name; b++, n++) {
        tb_block *block;
        eq_check_round_trip(T, b->text, TB_PARSE_BLOCK);
        TB_OKAY(T, tb_block_load(T->ctx, b->name, &block));
        TB_STR(T, block->name, b->name);
        TB_STR(T, block->source, b->text);
        /* Each says its name, its source and who uses it. */
        TB_CHECK(T, block->about && strstr(block->about, "\nused by: "));
        tb_block_destroy(T->ctx, block);
        TB_CHECK(T, n == 0 || strcmp(b[-1].name, b->name) < 0);
    }
    TB_CHECK(T, n >= 13);
}

/* --- random texts --------------------------------------------------------- */

static size_t below(tb_test *T, size_t n)
{
    return (size_t)(tb_test_uniform(T) * (double)n);
}

static const char *one_of(tb_test *T, const char *const *words, size_t n)
{
    return words[below(T, n)];
}

static void blank(tb_test *T, tb_buf *out)
{
    static const char *const blanks[] = {"", "", "", " ", "  ", "\t"};
    tb_buf_puts(out, one_of(T, blanks, TB_LEN(blanks)));
}

static void random_sum(tb_test *T, int depth, tb_buf *out);

static void random_primary(tb_test *T, int depth, tb_buf *out)
{
    static const char *const names[] = {"x", "y",        "x_i",    "alpha",
                                        "N", "\xce\xb3", "x_{ i }"};
    static const char *const calls[] = {"F", "norm", "LN", "MLP", "f", "sqrt"};
    static const char *const keys[] = {"eps", "\xce\xb5", "mode"};
    size_t kind = below(T, depth > 0 ? 6 : 2);
    if (kind == 0) {
        tb_buf_puts(out, one_of(T, names, TB_LEN(names)));
    } else if (kind == 1) {
        char number[TB_DOUBLE_CHARS];
        double v =
            tb_fabs(tb_test_normal(T)) * tb_pow(10, (double)below(T, 40) - 20);
        tb_buf_put(out, number, tb_double_text(v, number));
    } else if (kind <= 3) {
        size_t n = below(T, 4);
        tb_buf_puts(out, one_of(T, calls, TB_LEN(calls)));
        tb_buf_putc(out, '(');
        for (size_t i = 0; i < n; i++) {
            tb_buf_puts(out, i ? "," : "");
            random_sum(T, depth - 1, out);
        }
        if (below(T, 3) == 0) {
            tb_buf_printf(out, "%s%s=", n ? "," : "",
                          one_of(T, keys, TB_LEN(keys)));
            random_sum(T, depth - 1, out);
        }
        tb_buf_putc(out, ')');
    } else {
        size_t n = kind == 4 ? 1 : 2 + below(T, 2);
        tb_buf_putc(out, '(');
        for (size_t i = 0; i < n; i++) {
            tb_buf_puts(out, i ? ",\n" : "");
            random_sum(T, depth - 1, out);
        }
        tb_buf_putc(out, ')');
    }
}

static void random_sum(tb_test *T, int depth, tb_buf *out)
{
    static const char *const ops[] = {"+", "-", "*",        "/",
                                      "^", "+", "\xc2\xb7", "\xe2\x88\x92"};
    size_t terms = 1 + below(T, 4);
    for (size_t i = 0; i < terms; i++) {
        if (i > 0)
            tb_buf_puts(out, one_of(T, ops, TB_LEN(ops)));
        blank(T, out);
        if (below(T, 4) == 0)
            tb_buf_puts(out, below(T, 5) ? "-" : "- -");
        random_primary(T, depth, out);
        blank(T, out);
    }
}

static void random_text(tb_test *T, tb_buf *out)
{
    static const char *const heads[] = {
        "block[l < N/2]: ", "encoder block[k >= 2]:\n",
        "\nfinal:\n ",      "init: *, a.b*: normal(2/N)\nblock[d == 2]:",
        "# comment\n",
    };
    static const char *const left[] = {"x", "y", "z_1", "alpha"};
    tb_buf_puts(out, below(T, 2) ? "# about\n" : "");
    tb_buf_puts(out, below(T, 2) ? "expect: A-1, B\n" : "");
    tb_buf_puts(out, below(T, 2) ? "f(a, b) = -a^2*b\n" : "");
    tb_buf_puts(out, below(T, 2) ? "model: eps=1e-6;norm=LN\n" : "");
    tb_buf_puts(out, "stem:"); /* a bare block would cover the others */
    for (size_t i = 0, n = 1 + below(T, 6), final = 0; i < n; i++) {
        size_t head = below(T, 2 * TB_LEN(heads));
        if (head < TB_LEN(heads) && (head != 2 || !final++))
            tb_buf_puts(out, heads[head]);
        tb_buf_puts(out, one_of(T, left, TB_LEN(left)));
        tb_buf_puts(out, "=");
        random_sum(T, 3, out);
        tb_buf_puts(out, below(T, 2) ? "\n" : ";");
    }
}

TB_TEST(random_texts)
{
    for (int i = 0; i < 500 && !T->failed; i++) {
        tb_buf text;
        tb_buf_init(&text, T->ctx);
        random_text(T, &text);
        eq_check_round_trip(T, tb_buf_str(&text), TB_PARSE_BLOCK);
        tb_buf_clear(&text);
    }
}

/* --- the fuzzer's corpus -------------------------------------------------- */

static bool replay(const char *path)
{
    static uint8_t data[TB_TEXT_MAX + 1];
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, n);
    return true;
}

TB_TEST(fuzz_corpus)
{
    static const char folder[] = TB_SOURCE_DIR "/tests/fuzz/corpus/equation";
    int n = 0;
    DIR *dir = opendir(folder);
    TB_REQUIRE(T, dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];
        if (entry->d_name[0] == '.')
            continue;
        tb_format(path, sizeof path, "%s/%s", folder, entry->d_name);
        TB_CHECK(T, replay(path));
        n++;
    }
    (void)closedir(dir);
    TB_CHECK(T, n >= 10);
}
