/* SPDX-License-Identifier: MIT */
/* tb_export_pytorch as a call: what it prints for hard texts, and that it
 * gives everything back when memory runs out. */
#include "tb_test.h"
#include "tollbooth/export.h"

static char *exported(tb_test *T, const char *what, const tb_settings *s)
{
    tb_block *b;
    char *text = NULL;
    if (tb_block_load(T->ctx, what, &b) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return NULL;
    }
    if (tb_export_pytorch(T->ctx, b, s, &text) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    tb_block_destroy(T->ctx, b);
    return text;
}

static void has(tb_test *T, const char *what, const char *const *lines)
{
    tb_settings s = TB_SETTINGS_UNSET;
    char *text = exported(T, what, &s);
    for (; text && *lines; lines++)
        if (!strstr(text, *lines))
            tb_test_fail(T, __FILE__, __LINE__, "not there: %s", *lines);
    tb_text_free(T->ctx, text);
}

TB_TEST(constants_are_folded_with_their_text)
{
    has(T, "deepnorm",
        (const char *const[]){
            "        alpha = 1.8612097182041991  # (2*N)^0.25\n"
            "        x = self.attn.norm(alpha * x + self.attn(x))\n"
            "        x = self.ffn.norm(alpha * x + self.ffn(x))\n",
            "# xavier((8*N)^-0.25)\n", NULL});
    has(T, "x = x + F(norm(x)/sqrt(l))",
        (const char *const[]){
            "self.attn(self.attn.norm(x) / math.sqrt(self.l))\n",
            "nn.ModuleList(Block(l) for l in range(1, N + 1))\n", NULL});
}

TB_TEST(statements_keep_their_names)
{
    has(T, "r = x; x = norm(x); f = F(x); x = r + f",
        (const char *const[]){"        r = x\n"
                              "        x = self.attn.norm(x)\n"
                              "        f = self.attn(x)\n"
                              "        x = r + f\n"
                              "        r = x\n"
                              "        x = self.ffn.norm(x)\n"
                              "        f = self.ffn(x)\n"
                              "        x = r + f\n"
                              "        return x\n",
                              NULL});
}

TB_TEST(sections_are_classes)
{
    has(T, "block[l <= N/4]: x = norm(x + F(x)); block: x = x + F(norm(x))",
        (const char *const[]){"    block[l <= N/4]:\n",
                              "            Block1, *[Block2] * 5,\n",
                              "class Block2(nn.Module):\n", NULL});
}

TB_TEST(memory_running_out_leaves_nothing)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    char *text = NULL;
    s.depth = 3;
    TB_OKAY(T, tb_block_load(T->ctx,
                             "block[l == 2]: a = scalar(1/l); r = x; "
                             "x = norm(x); x = r + a*F(x)/sqrt(l)\n"
                             "block: x = x + F(norm(x))",
                             &b));
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    for (;; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        tb_status status = tb_export_pytorch(T->ctx, b, &s, &text);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        if (status == TB_OK)
            break;
        TB_CHECK(T, status == TB_ERR_MEMORY && !text);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, n > 100);
    tb_text_free(T->ctx, text);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    tb_block_destroy(T->ctx, b);
}

/* Definitions that expand a lot, sums of many terms, long names. */
TB_TEST(large_texts_end)
{
    tb_buf b;
    tb_settings s = TB_SETTINGS_UNSET;
    tb_buf_init(&b, T->ctx);
    tb_buf_puts(&b, "f0(a) = tanh(a*a + norm(a))\n");
    for (int i = 1; i < 60; i++)
        tb_buf_printf(&b, "f%d(a) = sigmoid(f%d(a) - x)*a\n", i, i - 1);
    tb_buf_puts(&b, "x = f59(x)");
    for (int i = 0; i < 400; i++)
        tb_buf_printf(&b, " + %d*norm(x)", i);
    tb_buf_puts(&b, "\n");
    for (int i = 0; i < 300; i++)
        tb_buf_puts(&b, "long_");
    tb_buf_puts(&b, "name = norm(x)\nx = x + attn(x) + ffn(x)\n");
    char *text = exported(T, tb_buf_str(&b), &s);
    TB_CHECK(T, text && strlen(text) < 1000000);
    tb_text_free(T->ctx, text);
    tb_buf_clear(&b);
}
