/* SPDX-License-Identifier: MIT */
/* Expressions by recursive descent, one function per grammar rule. Chains of
 * one operator are loops; everything that recurses counts as nesting. */
#include "equation/parser.h"

enum { OPTIONS_MAX = 16 };

/* --- nodes ---------------------------------------------------------------- */

static tb_expr *node(tb_parser *p, tb_expr_kind kind, tb_pos pos)
{
    tb_expr *e = TB_NEW(&p->lx.block->arena, tb_expr);
    if (!e) {
        p->lx.status = TB_ERR_MEMORY;
        return NULL;
    }
    e->kind = kind;
    e->pos = pos;
    e->depth = 1;
    return e;
}

/* Gives e the arguments pushed since `from`. */
static tb_expr *with_args(tb_parser *p, tb_expr *e, size_t from)
{
    e->nargs = (int)(p->args.n - from);
    if (e->nargs == 0)
        return e;
    e->args = tb_list_keep(p, &p->args, from);
    if (!e->args)
        return NULL;
    for (int i = 0; i < e->nargs; i++)
        if (e->args[i].value->depth >= e->depth)
            e->depth = e->args[i].value->depth + 1;
    if (e->depth <= TB_DEPTH_MAX)
        return e;
    tb_lexer_fail(&p->lx, e->pos,
                  "more than %d operations inside each other; give a part of "
                  "it a name",
                  TB_DEPTH_MAX);
    return NULL;
}

static bool push_arg(tb_parser *p, const tb_expr *value)
{
    tb_arg *a = value ? tb_list_push(p, &p->args) : NULL;
    if (a)
        a->value = value;
    return a;
}

static tb_expr *operation(tb_parser *p, tb_expr_kind kind, tb_token op,
                          const tb_expr *a, const tb_expr *b)
{
    size_t from = p->args.n;
    tb_expr *e = node(p, kind, op.pos);
    if (!e || !push_arg(p, a) || (b && !push_arg(p, b)))
        return NULL;
    e->op = op.op;
    return with_args(p, e, from);
}

/* --- failing well --------------------------------------------------------- */

static bool starts_value(const tb_token *t)
{
    return t->kind == TB_TOKEN_NAME || t->kind == TB_TOKEN_NUMBER ||
           (t->kind == TB_TOKEN_OP && t->op == '(');
}

static bool is_compare(const tb_token *t)
{
    return t->kind == TB_TOKEN_OP && t->op && strchr("<>lge", t->op);
}

void tb_parser_unexpected(tb_parser *p)
{
    char got[TB_TOKEN_CHARS];
    const tb_token *t = &p->tok;
    tb_token_text(t, got);
    if (starts_value(t) && p->nesting == 0)
        tb_lexer_fail(&p->lx, t->pos,
                      "no operator before %s; multiplication is written '*'",
                      got);
    else if (is_compare(t))
        tb_lexer_fail(&p->lx, t->pos,
                      "%s compares only in the condition of a section, as in "
                      "block[l <= N/4]:",
                      got);
    else if (tb_parser_at(p, ')') || tb_parser_at(p, ']'))
        tb_lexer_fail(&p->lx, t->pos, "%s closes nothing", got);
    else
        tb_lexer_fail(&p->lx, t->pos,
                      "expected an operator or the end of the statement, got "
                      "%s",
                      got);
}

/* Over the bracket that closes `open`, or why it does not stand here. */
static bool close_bracket(tb_parser *p, const tb_token *open, char op)
{
    char got[TB_TOKEN_CHARS];
    const tb_token *t = &p->tok;
    if (tb_parser_at(p, op)) {
        tb_parser_next(p);
        return tb_parser_ok(p);
    }
    tb_token_text(t, got);
    if (t->kind == TB_TOKEN_END || t->kind == TB_TOKEN_NEWLINE)
        tb_lexer_fail(&p->lx, open->pos, "'%c' is not closed before %s",
                      open->op, got);
    else if (is_compare(t))
        tb_parser_unexpected(p);
    else if (starts_value(t) && t->pos.line == open->pos.line)
        tb_lexer_fail(&p->lx, t->pos,
                      "no operator before %s; multiplication is written '*'",
                      got);
    else
        tb_lexer_fail(&p->lx, t->pos,
                      "expected '%c' for the '%c' of %d:%d, got %s", op,
                      open->op, open->pos.line, open->pos.column, got);
    return false;
}

static bool enter(tb_parser *p)
{
    if (++p->nesting <= TB_NESTING_MAX)
        return true;
    tb_lexer_fail(&p->lx, p->tok.pos, "nested more than %d deep",
                  TB_NESTING_MAX);
    return false;
}

/* --- the grammar ---------------------------------------------------------- */

/* x_i and x_{i+1} both become x, so each must mean what x then holds. */
static bool check_read(tb_parser *p, const tb_token *t)
{
    if (t->subscript == TB_SUB_THIS && p->next_assigned)
        tb_lexer_fail(&p->lx, t->pos,
                      "x was replaced by x_{i+1} above; give the old value a "
                      "name first, as in r = x_i");
    else if (t->subscript == TB_SUB_NEXT && !p->next_assigned)
        tb_lexer_fail(&p->lx, t->pos, "x_{i+1} is read before it is assigned");
    return tb_parser_ok(p);
}

/* arg = [ name "=" ] sum */
static bool parse_arg(tb_parser *p, size_t from, const tb_token *callee)
{
    tb_token first = p->tok;
    const tb_expr *e = tb_parse_sum(p);
    const char *key = NULL;
    if (!e)
        return false;
    if (tb_parser_at(p, '=') && first.kind == TB_TOKEN_NAME &&
        e->kind == TB_EXPR_NAME) {
        key = e->name;
        tb_parser_next(p);
        e = tb_parse_sum(p);
    }
    const tb_arg *args = p->args.data;
    size_t options = 0;
    for (size_t i = p->args.n; e && i > from && args[i - 1].key; i--) {
        if (!key)
            tb_lexer_fail(&p->lx, first.pos,
                          "plain arguments stand before options");
        else if (!strcmp(args[i - 1].key, key))
            tb_lexer_fail(&p->lx, first.pos, "option '%.40s' given twice", key);
        else if (++options >= OPTIONS_MAX)
            tb_lexer_fail(&p->lx, first.pos, "more than %d options for '%.40s'",
                          OPTIONS_MAX, callee->name);
        if (!tb_parser_ok(p))
            return false;
    }
    if (!push_arg(p, e))
        return false;
    tb_arg *a = (tb_arg *)p->args.data + (p->args.n - 1);
    a->key = key;
    if (key)
        a->key_pos = first.pos;
    return true;
}

/* call = name "(" [ arg { "," arg } ] ")" */
static tb_expr *parse_call(tb_parser *p, const tb_token *callee)
{
    size_t from = p->args.n;
    tb_token open = p->tok;
    tb_expr *e = node(p, TB_EXPR_CALL, callee->pos);
    if (!e || !enter(p))
        return NULL;
    e->name = callee->name;
    tb_parser_next(p);
    if (!tb_parser_at(p, ')')) {
        if (!parse_arg(p, from, callee))
            return NULL;
        while (tb_parser_at(p, ',')) {
            tb_parser_next(p);
            if (!parse_arg(p, from, callee))
                return NULL;
        }
    }
    if (!close_bracket(p, &open, ')'))
        return NULL;
    p->nesting--;
    return with_args(p, e, from);
}

/* bracket = "(" sum { "," sum } ")"; two or more make a tuple */
static tb_expr *parse_bracket(tb_parser *p)
{
    size_t from = p->args.n;
    tb_token open = p->tok;
    if (!enter(p))
        return NULL;
    tb_parser_next(p);
    tb_expr *first = tb_parse_sum(p);
    if (!first)
        return NULL;
    if (tb_parser_at(p, ',')) {
        if (!push_arg(p, first))
            return NULL;
        while (tb_parser_at(p, ',')) {
            tb_parser_next(p);
            if (!push_arg(p, tb_parse_sum(p)))
                return NULL;
        }
    }
    if (!close_bracket(p, &open, ')'))
        return NULL;
    p->nesting--;
    if (p->args.n == from)
        return first;
    tb_expr *tuple = node(p, TB_EXPR_TUPLE, open.pos);
    return tuple ? with_args(p, tuple, from) : NULL;
}

/* primary = number | name | call | bracket */
static tb_expr *parse_primary(tb_parser *p)
{
    tb_token t = p->tok;
    if (tb_parser_at(p, '('))
        return parse_bracket(p);
    if (t.kind != TB_TOKEN_NAME && t.kind != TB_TOKEN_NUMBER) {
        char got[TB_TOKEN_CHARS];
        tb_lexer_fail(&p->lx, t.pos, "expected a value, got %s%s",
                      tb_token_text(&t, got),
                      t.kind == TB_TOKEN_NEWLINE && *t.start == '\n'
                          ? "; only inside brackets a statement goes on in the "
                            "next line"
                          : "");
        return NULL;
    }
    tb_parser_next(p);
    if (t.kind == TB_TOKEN_NAME && tb_parser_at(p, '('))
        return parse_call(p, &t);
    tb_expr *e =
        node(p, t.kind == TB_TOKEN_NAME ? TB_EXPR_NAME : TB_EXPR_NUMBER, t.pos);
    if (!e || !check_read(p, &t))
        return NULL;
    e->name = t.name;
    e->number = t.number;
    return e;
}

static tb_expr *parse_unary(tb_parser *p);

/* power = primary [ "^" unary ] */
static tb_expr *parse_power(tb_parser *p)
{
    tb_expr *base = parse_primary(p);
    if (!base || !tb_parser_at(p, '^'))
        return base;
    tb_token op = p->tok;
    if (!enter(p))
        return NULL;
    tb_parser_next(p);
    const tb_expr *exponent = parse_unary(p);
    p->nesting--;
    return exponent ? operation(p, TB_EXPR_BINARY, op, base, exponent) : NULL;
}

/* unary = "-" unary | power; so -0.5^2 is -(0.5^2) */
static tb_expr *parse_unary(tb_parser *p)
{
    tb_token op = p->tok;
    if (!tb_parser_at(p, '-'))
        return parse_power(p);
    if (!enter(p))
        return NULL;
    tb_parser_next(p);
    const tb_expr *e = parse_unary(p);
    p->nesting--;
    return e ? operation(p, TB_EXPR_NEG, op, e, NULL) : NULL;
}

/* product = unary { ( "*" | "/" ) unary } */
static tb_expr *parse_product(tb_parser *p)
{
    tb_expr *e = parse_unary(p);
    while (e && (tb_parser_at(p, '*') || tb_parser_at(p, '/'))) {
        tb_token op = p->tok;
        tb_parser_next(p);
        const tb_expr *right = parse_unary(p);
        e = right ? operation(p, TB_EXPR_BINARY, op, e, right) : NULL;
    }
    return e;
}

/* sum = product { ( "+" | "-" ) product } */
tb_expr *tb_parse_sum(tb_parser *p)
{
    tb_expr *e = parse_product(p);
    while (e && (tb_parser_at(p, '+') || tb_parser_at(p, '-'))) {
        tb_token op = p->tok;
        tb_parser_next(p);
        const tb_expr *right = parse_product(p);
        e = right ? operation(p, TB_EXPR_BINARY, op, e, right) : NULL;
    }
    return e;
}

/* condition = sum ( "<" | "<=" | "==" | ">=" | ">" ) sum, in "[" "]" */
tb_expr *tb_parse_condition(tb_parser *p)
{
    tb_token open = p->tok;
    if (!enter(p))
        return NULL;
    tb_parser_next(p);
    const tb_expr *a = tb_parse_sum(p);
    if (!a)
        return NULL;
    tb_token op = p->tok;
    if (!is_compare(&op)) {
        char got[TB_TOKEN_CHARS];
        tb_lexer_fail(&p->lx, op.pos,
                      "expected < <= == >= or >, as in block[l <= N/4]:, got "
                      "%s",
                      tb_token_text(&op, got));
        return NULL;
    }
    if (op.op == 'e')
        op.op = '=';
    tb_parser_next(p);
    const tb_expr *b = tb_parse_sum(p);
    if (!b)
        return NULL;
    if (is_compare(&p->tok)) {
        tb_lexer_fail(&p->lx, p->tok.pos, "a condition compares once");
        return NULL;
    }
    if (!close_bracket(p, &open, ']'))
        return NULL;
    p->nesting--;
    return operation(p, TB_EXPR_COMPARE, op, a, b);
}
