/* SPDX-License-Identifier: MIT */
/* The examples of docs/language.md: ```block parses and round-trips,
 * ```block-error fails, and the error shown below it is the one we give. */
#include "unit/equation_help.h"

#include <stdio.h>

/* The text of a file, or NULL. */
static char *read_file(tb_test *T, const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "rb");
    char *text = f ? tb_alloc(T->ctx, MOST + 1, 1) : NULL;
    if (text)
        text[fread(text, 1, MOST, f)] = '\0';
    if (f)
        (void)fclose(f);
    return text;
}

/* The indented lines after a fence (and a blank line), or "". */
static void shown_error(const char *after, tb_buf *out)
{
    if (strncmp(after, "\n    ", 5) != 0)
        return;
    for (after++; !strncmp(after, "    ", 4); after++) {
        size_t n = strcspn(after, "\n");
        tb_buf_put(out, after + 4, n - 4);
        tb_buf_putc(out, '\n');
        after += n;
    }
    out->data[--out->len] = '\0';
}

static void check_error(tb_test *T, const char *text, const char *after)
{
    tb_block *b;
    tb_buf shown;
    tb_buf_init(&shown, T->ctx);
    shown_error(after, &shown);
    TB_FAILS(T, eq_parse(T->ctx, text, TB_PARSE_BLOCK, &b), TB_ERR_PARSE, "");
    if (shown.len)
        TB_STR(T, tb_error(T->ctx), tb_buf_str(&shown));
    tb_buf_clear(&shown);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(examples)
{
    int good = 0, bad = 0, eval = 0;
    char *text = read_file(T, TB_SOURCE_DIR "/docs/language.md");
    TB_REQUIRE(T, text);
    for (char *at = text; (at = strstr(at, "\n```block"));) {
        char *kind = at + strlen("\n```"), *start = strchr(kind, '\n') + 1;
        char *end = strstr(start, "\n```");
        TB_REQUIRE(T, end);
        *end = '\0';
        if (!strncmp(kind, "block\n", 6)) {
            eq_check_round_trip(T, start, TB_PARSE_BLOCK);
            good++;
        } else if (!strncmp(kind, "block-eval\n", 11)) {
            eq_check_round_trip(T, start, TB_PARSE_EVAL);
            eval++;
        } else {
            TB_CHECK(T, !strncmp(kind, "block-error\n", 12));
            check_error(T, start, end + strlen("\n```\n"));
            bad++;
        }
        at = end + strlen("\n```");
    }
    tb_free(T->ctx, text);
    TB_CHECK(T, good >= 10 && bad >= 5 && eval >= 1);
}
