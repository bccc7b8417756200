/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the equation room: parse, dump, compare. */
#ifndef TB_TESTS_EQUATION_HELP_H
#define TB_TESTS_EQUATION_HELP_H

#include "equation/equation.h"
#include "tb_test.h"

/* --- a tree as text: (+ x (call f x)) ------------------------------------- */

static inline void eq_dump(const tb_expr *e, tb_buf *out)
{
    switch (e->kind) {
    case TB_EXPR_NUMBER:
        tb_buf_printf(out, "%g", e->number);
        return;
    case TB_EXPR_NAME:
        tb_buf_puts(out, e->name);
        return;
    case TB_EXPR_CALL:
        tb_buf_printf(out, "(%s()", e->name);
        break;
    case TB_EXPR_NEG:
        tb_buf_puts(out, "(neg");
        break;
    case TB_EXPR_BINARY:
        tb_buf_printf(out, "(%c", e->op);
        break;
    case TB_EXPR_TUPLE:
        tb_buf_puts(out, "(tuple");
        break;
    case TB_EXPR_COMPARE:
        tb_buf_printf(out, "(compare%c", e->op);
        break;
    }
    for (int i = 0; i < e->nargs; i++) {
        tb_buf_putc(out, ' ');
        if (e->args[i].key)
            tb_buf_printf(out, "%s=", e->args[i].key);
        eq_dump(e->args[i].value, out);
    }
    tb_buf_putc(out, ')');
}

/* Everything but positions, source and comments. Exact: %g reads back. */
static inline void eq_dump_block(const tb_block *b, tb_buf *out)
{
    for (int i = 0; i < b->ndefs; i++) {
        tb_buf_printf(out, "def %s", b->defs[i].name);
        for (int j = 0; j < b->defs[i].nparams; j++)
            tb_buf_printf(out, " %s", b->defs[i].params[j]);
        tb_buf_puts(out, " = ");
        eq_dump(b->defs[i].body, out);
        tb_buf_putc(out, '\n');
    }
    for (int i = 0; i < b->nsections; i++) {
        const tb_section *s = &b->sections[i];
        tb_buf_printf(out, "section %d %s ", (int)s->kind,
                      s->role ? s->role : "-");
        if (s->condition)
            eq_dump(s->condition, out);
        tb_buf_putc(out, '\n');
        for (int j = 0; j < s->nstmts; j++) {
            tb_buf_printf(out, "%s = ",
                          s->stmts[j].kind == TB_STMT_ASSIGN ? s->stmts[j].name
                                                             : "(value)");
            eq_dump(s->stmts[j].value, out);
            tb_buf_putc(out, '\n');
        }
    }
    for (int i = 0; i < b->ninit; i++) {
        tb_buf_puts(out, "init");
        for (int j = 0; j < b->init[i].nglobs; j++)
            tb_buf_printf(out, " %s", b->init[i].globs[j]);
        tb_buf_puts(out, ": ");
        eq_dump(b->init[i].rule, out);
        tb_buf_putc(out, '\n');
    }
    for (int i = 0; i < b->nsettings; i++) {
        tb_buf_printf(out, "set %s = ", b->settings[i].key);
        eq_dump(b->settings[i].value, out);
        tb_buf_putc(out, '\n');
    }
    for (int i = 0; i < b->nexpect; i++)
        tb_buf_printf(out, "expect %s\n", b->expect[i]);
}

static inline tb_status eq_parse(tb_ctx *ctx, const char *text,
                                 tb_parse_mode mode, tb_block **out)
{
    return tb_block_parse(ctx, NULL, text, strlen(text), mode, out);
}

/* The dump of `text` must be `want`. */
static inline void eq_check_dump(tb_test *T, const char *text,
                                 tb_parse_mode mode, const char *want)
{
    tb_block *b;
    tb_buf got;
    TB_OKAY(T, eq_parse(T->ctx, text, mode, &b));
    tb_buf_init(&got, T->ctx);
    eq_dump_block(b, &got);
    TB_STR(T, tb_buf_str(&got), want);
    tb_buf_clear(&got);
    tb_block_destroy(T->ctx, b);
}

/* The canonical text of `text` must be `want`. */
static inline void eq_check_print(tb_test *T, const char *text,
                                  tb_parse_mode mode, const char *want)
{
    tb_block *b;
    tb_buf got;
    TB_OKAY(T, eq_parse(T->ctx, text, mode, &b));
    tb_buf_init(&got, T->ctx);
    tb_block_print(b, &got);
    TB_STR(T, tb_buf_str(&got), want);
    tb_buf_clear(&got);
    tb_block_destroy(T->ctx, b);
}

/* parse(print(parse(text))) is the same tree and prints the same. */
static inline void eq_check_round_trip(tb_test *T, const char *text,
                                       tb_parse_mode mode)
{
    tb_block *a, *b = NULL;
    tb_buf print[2], dump[2];
    TB_OKAY(T, eq_parse(T->ctx, text, mode, &a));
    for (int i = 0; i < 2; i++) {
        tb_buf_init(&print[i], T->ctx);
        tb_buf_init(&dump[i], T->ctx);
    }
    tb_block_print(a, &print[0]);
    eq_dump_block(a, &dump[0]);
    if (eq_parse(T->ctx, tb_buf_str(&print[0]), mode, &b) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s\nfrom: %s\nprinted: %s",
                     tb_error(T->ctx), text, tb_buf_str(&print[0]));
    } else {
        tb_block_print(b, &print[1]);
        eq_dump_block(b, &dump[1]);
        TB_STR(T, tb_buf_str(&print[1]), tb_buf_str(&print[0]));
        TB_STR(T, tb_buf_str(&dump[1]), tb_buf_str(&dump[0]));
        TB_CHECK(T, tb_block_hash(a) == tb_block_hash(b));
    }
    for (int i = 0; i < 2; i++) {
        tb_buf_clear(&print[i]);
        tb_buf_clear(&dump[i]);
    }
    tb_block_destroy(T->ctx, b);
    tb_block_destroy(T->ctx, a);
}

#endif
