/* SPDX-License-Identifier: MIT */
/* Texts made to hurt: too long, too deep, too many, out of memory. Each must
 * be an error or a tree, in time linear in the text. */
#include "unit/equation_help.h"

/* `piece` as often as it fits into n bytes, after `head`, before `tail`. */
static tb_status parse_repeated(tb_test *T, const char *head, const char *piece,
                                const char *tail, size_t n)
{
    tb_block *b;
    tb_buf text;
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, head);
    while (text.len + strlen(piece) + strlen(tail) <= n)
        tb_buf_puts(&text, piece);
    tb_buf_puts(&text, tail);
    tb_status s = tb_block_parse(T->ctx, NULL, tb_buf_str(&text), text.len,
                                 TB_PARSE_BLOCK, &b);
    if (s == TB_OK) { /* what parses also prints, and folds or fails */
        tb_buf print;
        double value;
        const tb_consts c = {.N = 1};
        tb_buf_init(&print, T->ctx);
        tb_block_print(b, &print);
        TB_CHECK(T, !print.failed);
        tb_buf_clear(&print);
        if (b->nsections && b->sections[0].nstmts)
            (void)tb_expr_fold(T->ctx, b, b->sections[0].stmts[0].value, &c,
                               NULL, NULL, &value);
    }
    tb_buf_clear(&text);
    tb_block_destroy(T->ctx, b);
    return s;
}

TB_TEST(a_megabyte_of_anything)
{
    static const struct {
        const char *head, *piece, *tail, *error; /* NULL: it parses */
    } texts[] = {
        {"x = x", " + x", "", "more than 1000 operations inside each other"},
        {"x = x", "*x", "", "more than 1000 operations inside each other"},
        {"x = ", "(", "", "nested more than 200 deep"},
        {"x = ", "f(", "", "nested more than 200 deep"},
        {"x = ", "-", "1", "nested more than 200 deep"},
        {"x = 2", "^2", "", "nested more than 200 deep"},
        {"x = f(x", ",x", ")", NULL},
        {"x = f(x", ",e=x", ")", "option 'e' given twice"},
        {"x = (x", ",x", ")", NULL},
        {"", "x=x\n", "", NULL},
        {"", "x=x;", "", NULL},
        {"", "block[l<1]:", "", NULL},
        {"", "block[l<1]:x=x;", "", NULL},
        {"", "block:", "", "never reached"},
        {"", "f(x)=x\n", "", "'f' is defined at 1:1"},
        {"f(x", ",x", ") = 1", "parameter 'x' stands twice"},
        {"x = x #", "comment ", "", NULL},
        {"x = ", "name", "", NULL},
        {"x = ", "\xce\xb3", "", NULL},
        {"x = 0.", "1", "", "a number of more than 1000 characters"},
        {"x = ", "x_{i", "", "only x takes a subscript"},
        {"x = x", "\n", "", NULL},
        {"x = x", "#\n", "", NULL},
        {"x = (x", "\n", ")", NULL},
        {"x = x", " ", "@", "'@' has no meaning here"},
        {"x = ", "\xe2\x89\xa4", "", "character U+2264"},
        {"init:", "a:zeros\n", "block: x = x", NULL},
        {"init:a", ",a", ":zeros;block: x = x", NULL},
        {"init:", "a*.b_", ":zeros;block: x = x", NULL},
        {"x=x;expect:A", ",A", "", NULL},
        {"model:", "eps=1\n", "", "'eps' is set at 1:7"},
        {"", ":", "", "expected a value, got ':'"},
        {"", "encoder ", "", "unknown section 'encoder'"},
        {"", "\xff", "", "not valid UTF-8"},
    };
    for (size_t i = 0; i < TB_LEN(texts); i++) {
        tb_status s = parse_repeated(T, texts[i].head, texts[i].piece,
                                     texts[i].tail, TB_TEXT_MAX);
        if (texts[i].error)
            TB_FAILS(T, s, TB_ERR_PARSE, texts[i].error);
        else
            TB_OKAY(T, s);
    }
}

TB_TEST(one_byte_too_many)
{
    TB_OKAY(T, parse_repeated(T, "x = x", " ", "", TB_TEXT_MAX));
    TB_FAILS(T, parse_repeated(T, "x = x", " ", "", TB_TEXT_MAX + 1),
             TB_ERR_PARSE, "a text of 1048577 bytes, at most 1048576 are read");
}

TB_TEST(limits_are_where_they_say)
{
    tb_buf text;
    tb_block *b;
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "x = ");
    for (int i = 0; i < TB_NESTING_MAX; i++)
        tb_buf_putc(&text, '(');
    tb_buf_putc(&text, 'x');
    for (int i = 0; i < TB_NESTING_MAX; i++)
        tb_buf_putc(&text, ')');
    tb_buf_puts(&text, "\ny = x");
    for (int i = 1; i < TB_DEPTH_MAX; i++)
        tb_buf_puts(&text, " + x");
    TB_OKAY(T, eq_parse(T->ctx, tb_buf_str(&text), TB_PARSE_BLOCK, &b));
    TB_CHECK(T, b->sections[0].stmts[1].value->depth == TB_DEPTH_MAX);
    tb_block_destroy(T->ctx, b);
    eq_check_round_trip(T, tb_buf_str(&text), TB_PARSE_BLOCK);
    tb_buf_puts(&text, " + x");
    TB_FAILS(T, eq_parse(T->ctx, tb_buf_str(&text), TB_PARSE_BLOCK, &b),
             TB_ERR_PARSE, "more than 1000 operations inside each other");
    tb_buf_clear(&text);
}

TB_TEST(many_definitions)
{
    tb_buf text;
    tb_block *b;
    tb_buf_init(&text, T->ctx);
    for (int i = 0; i < TB_DEFS_MAX; i++)
        tb_buf_printf(&text, "f%d(x) = x\n", i);
    TB_OKAY(T, eq_parse(T->ctx, tb_buf_str(&text), TB_PARSE_BLOCK, &b));
    tb_block_destroy(T->ctx, b);
    tb_buf_puts(&text, "g(x) = x");
    TB_FAILS(T, eq_parse(T->ctx, tb_buf_str(&text), TB_PARSE_BLOCK, &b),
             TB_ERR_PARSE, "more than 1000 definitions");
    tb_buf_clear(&text);
}

/* Every allocation fails once; nothing leaks, and the error says memory. */
TB_TEST(every_allocation_fails_once)
{
    static const char text[] =
        "# about\n"
        "f(a, b) = (a, b)\n"
        "stem: y = x\n"
        "block[l <= N/4]: \xce\xb3 = scalar(0); x = x + \xce\xb3*F(norm(x))\n"
        "block: x = -x^2 + LN(x, eps=1e-6)\n"
        "init: *, embed.*: normal(0.02/sqrt(2*N))\n"
        "model: norm = rmsnorm\n"
        "expect: A, B\n";
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    for (tb_status s = TB_ERR_MEMORY; s != TB_OK; n++) {
        tb_block *b;
        tb_buf print;
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = eq_parse(T->ctx, text, TB_PARSE_BLOCK, &b);
        TB_CHECK(T, (s == TB_OK) == (b != NULL));
        if (s == TB_OK) {
            tb_buf_init(&print, T->ctx);
            tb_block_print(b, &print);
            s = tb_buf_status(&print);
            tb_buf_clear(&print);
        }
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, s == TB_OK || s == TB_ERR_MEMORY);
        if (s != TB_OK)
            TB_CHECK(T, strstr(tb_error(T->ctx), "memory"));
        tb_block_destroy(T->ctx, b);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before && n < 1000);
    }
    TB_CHECK(T, n > 10); /* the loop met real failures */
}

TB_TEST(hash_without_memory_is_zero)
{
    tb_block *b;
    TB_OKAY(T, eq_parse(T->ctx, "x = x", TB_PARSE_BLOCK, &b));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    TB_CHECK(T, tb_block_hash(b) == 0);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    TB_CHECK(T, tb_block_hash(b) != 0);
    tb_block_destroy(T->ctx, b);
}
