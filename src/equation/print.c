/* SPDX-License-Identifier: MIT */
/* The canonical text of a tree: one spelling per meaning, brackets only where
 * the tree needs them. Trees are at most TB_DEPTH_MAX deep, so recursion is
 * safe. */
#include "equation/equation.h"

#include "base/number.h"

/* How tight an expression binds; an operand that binds looser than its place
 * asks for gets brackets. */
enum { BIND_COMPARE, BIND_SUM, BIND_PRODUCT, BIND_UNARY, BIND_POWER, BIND_ALL };

static int binding(const tb_expr *e)
{
    if (e->kind == TB_EXPR_COMPARE)
        return BIND_COMPARE;
    if (e->kind == TB_EXPR_NEG)
        return BIND_UNARY;
    if (e->kind == TB_EXPR_NUMBER && e->number < 0) /* never from a text */
        return BIND_UNARY;
    if (e->kind != TB_EXPR_BINARY)
        return BIND_ALL;
    if (e->op == '^')
        return BIND_POWER;
    return e->op == '*' || e->op == '/' ? BIND_PRODUCT : BIND_SUM;
}

static void print(const tb_expr *e, int least, tb_buf *out);

static void print_args(const tb_expr *e, tb_buf *out)
{
    tb_buf_putc(out, '(');
    for (int i = 0; i < e->nargs; i++) {
        if (i > 0)
            tb_buf_puts(out, ", ");
        if (e->args[i].key)
            tb_buf_printf(out, "%s=", e->args[i].key);
        print(e->args[i].value, BIND_SUM, out);
    }
    tb_buf_putc(out, ')');
}

static const char *operator_text(const tb_expr *e)
{
    static const char *const text[][2] = {
        {"l", " <= "}, {"g", " >= "}, {"<", " < "}, {">", " > "}, {"=", " == "},
        {"+", " + "},  {"-", " - "},  {"*", "*"},   {"/", "/"},   {"^", "^"},
    };
    for (size_t i = 0; i < TB_LEN(text); i++)
        if (text[i][0][0] == e->op)
            return text[i][1];
    return "?";
}

/* Left-associative: the right operand binds tighter. '^' the other way
 * round, and its exponent may be a minus: 2^-3. */
static void print_binary(const tb_expr *e, tb_buf *out)
{
    int here = binding(e);
    bool power = here == BIND_POWER;
    print(e->args[0].value, power ? BIND_ALL : here, out);
    tb_buf_puts(out, operator_text(e));
    print(e->args[1].value, power ? BIND_UNARY : here + 1, out);
}

static void print_number(const tb_expr *e, tb_buf *out)
{
    char text[TB_DOUBLE_CHARS];
    tb_buf_put(out, text, tb_double_text(e->number, text));
}

static void print(const tb_expr *e, int least, tb_buf *out)
{
    bool brackets = binding(e) < least;
    if (brackets)
        tb_buf_putc(out, '(');
    switch (e->kind) {
    case TB_EXPR_NUMBER:
        print_number(e, out);
        break;
    case TB_EXPR_NAME:
        tb_buf_puts(out, e->name);
        break;
    case TB_EXPR_CALL:
        tb_buf_puts(out, e->name);
        print_args(e, out);
        break;
    case TB_EXPR_TUPLE:
        print_args(e, out);
        break;
    case TB_EXPR_NEG:
        tb_buf_putc(out, '-');
        print(e->args[0].value, BIND_UNARY, out);
        break;
    case TB_EXPR_BINARY:
    case TB_EXPR_COMPARE:
        print_binary(e, out);
        break;
    }
    if (brackets)
        tb_buf_putc(out, ')');
}

void tb_expr_print(const tb_expr *e, tb_buf *out)
{
    print(e, BIND_COMPARE, out);
}

/* --- the whole text ------------------------------------------------------- */

static void print_stmts(const tb_section *s, const char *indent, tb_buf *out)
{
    for (int i = 0; i < s->nstmts; i++) {
        tb_buf_puts(out, indent);
        if (s->stmts[i].kind == TB_STMT_ASSIGN)
            tb_buf_printf(out, "%s = ", s->stmts[i].name);
        tb_expr_print(s->stmts[i].value, out);
        tb_buf_putc(out, '\n');
    }
}

static void print_list(const char *const *words, int n, tb_buf *out)
{
    for (int i = 0; i < n; i++)
        tb_buf_printf(out, "%s%s", i > 0 ? ", " : "", words[i]);
}

static void print_def(const tb_def *d, tb_buf *out)
{
    tb_buf_printf(out, "%s(", d->name);
    print_list(d->params, d->nparams, out);
    tb_buf_puts(out, ") = ");
    tb_expr_print(d->body, out);
    tb_buf_putc(out, '\n');
}

static void print_section(const tb_section *s, tb_buf *out)
{
    static const char *const word[] = {"block", "stem", "final"};
    if (s->role)
        tb_buf_printf(out, "%s ", s->role);
    tb_buf_puts(out, word[s->kind]);
    if (s->condition) {
        tb_buf_putc(out, '[');
        tb_expr_print(s->condition, out);
        tb_buf_putc(out, ']');
    }
    tb_buf_puts(out, ":\n");
    print_stmts(s, "    ", out);
}

/* Lines of init: or after:. */
static void print_rules(const char *header, const tb_init_rule *rules, int n,
                        tb_buf *out)
{
    if (n > 0)
        tb_buf_printf(out, "%s:\n", header);
    for (int i = 0; i < n; i++) {
        tb_buf_puts(out, "    ");
        print_list(rules[i].globs, rules[i].nglobs, out);
        tb_buf_puts(out, ": ");
        tb_expr_print(rules[i].rule, out);
        tb_buf_putc(out, '\n');
    }
}

static void print_settings(const tb_block *b, tb_buf *out)
{
    tb_buf_puts(out, "model:\n");
    for (int i = 0; i < b->nsettings; i++) {
        tb_buf_printf(out, "    %s = ", b->settings[i].key);
        tb_expr_print(b->settings[i].value, out);
        tb_buf_putc(out, '\n');
    }
}

/* A text that needs no header: statements of one ordinary block section. */
static bool is_bare(const tb_block *b)
{
    const tb_section *s = b->sections;
    return b->nsections == 1 && s->kind == TB_SECTION_BLOCK && !s->role &&
           !s->condition && s->nstmts > 0 &&
           b->ninit + b->nafter + b->nsettings + b->nexpect == 0;
}

void tb_block_print(const tb_block *b, tb_buf *out)
{
    for (int i = 0; i < b->ndefs; i++)
        print_def(&b->defs[i], out);
    if (is_bare(b)) {
        print_stmts(b->sections, "", out);
        return;
    }
    for (int i = 0; i < b->nsections; i++)
        print_section(&b->sections[i], out);
    print_rules("init", b->init, b->ninit, out);
    print_rules("after", b->after, b->nafter, out);
    if (b->nsettings > 0)
        print_settings(b, out);
    if (b->nexpect > 0) {
        tb_buf_puts(out, "expect: ");
        print_list(b->expect, b->nexpect, out);
        tb_buf_putc(out, '\n');
    }
}

uint64_t tb_block_hash(const tb_block *b)
{
    tb_buf text;
    tb_buf_init(&text, b->arena.ctx);
    tb_block_print(b, &text);
    uint64_t hash = text.failed ? 0 : tb_hash(tb_buf_str(&text), text.len);
    tb_buf_clear(&text);
    return hash;
}
