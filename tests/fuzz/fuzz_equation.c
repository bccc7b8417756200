/* SPDX-License-Identifier: MIT */
/* Any bytes: parsing neither crashes nor hangs, and what parses prints to a
 * text that parses to the same print. Built with clang -fsanitize=fuzzer;
 * tests replay the corpus through the same function. */
#include "equation/equation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(tb_ctx *ctx, const char *text, size_t n, tb_parse_mode mode)
{
    static const tb_consts c = {.N = 2, .M = 3, .l = 1, .k = 2, .d = 4, .h = 2};
    tb_block *a, *b;
    tb_buf first, second;
    double value;
    if (tb_block_parse(ctx, "fuzz", text, n, mode, &a) != TB_OK)
        return;
    tb_buf_init(&first, ctx);
    tb_buf_init(&second, ctx);
    tb_block_print(a, &first);
    if (tb_block_parse(ctx, NULL, tb_buf_str(&first), first.len, mode, &b) !=
        TB_OK)
        __builtin_trap();
    tb_block_print(b, &second);
    if (!tb_streq(tb_buf_str(&first), tb_buf_str(&second)))
        __builtin_trap();
    for (int i = 0; i < b->nsections; i++)
        for (int j = 0; j < b->sections[i].nstmts; j++)
            (void)tb_expr_fold(ctx, b, b->sections[i].stmts[j].value, &c, NULL,
                               NULL, &value);
    tb_buf_clear(&first);
    tb_buf_clear(&second);
    tb_block_destroy(ctx, a);
    tb_block_destroy(ctx, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_ctx *ctx;
    if (tb_ctx_create(&ctx) != TB_OK)
        return 0;
    check(ctx, (const char *)data, size, TB_PARSE_BLOCK);
    check(ctx, (const char *)data, size, TB_PARSE_EVAL);
    if (tb_ctx_blocks(ctx) != 0)
        __builtin_trap();
    tb_ctx_destroy(ctx);
    return 0;
}
