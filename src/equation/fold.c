/* SPDX-License-Identifier: MIT */
/* Constant expressions: is it one, and its value. Names are looked up again
 * at every use, so a = b+b; b = c+c; ... doubles per line: `fuel` bounds the
 * work and `depth` the recursion, also for a name that means itself. */
#include "equation/equation.h"

#include "base/number.h"

enum { FUEL = 200000, DEPTH = 2 * TB_DEPTH_MAX };

typedef struct folder {
    tb_ctx *ctx;
    const tb_block *block;
    const tb_consts *consts;
    tb_expr_lookup lookup;
    void *user;
    int fuel, depth;
} folder;

/* --- constants and functions ---------------------------------------------- */

/* The value of N M l k d h, or NULL for other names. */
static const double *constant(const tb_consts *c, const char *name)
{
    if (!name[0] || name[1])
        return NULL;
    switch (name[0]) {
    case 'N':
        return &c->N;
    case 'M':
        return &c->M;
    case 'l':
        return &c->l;
    case 'k':
        return &c->k;
    case 'd':
        return &c->d;
    case 'h':
        return &c->h;
    default:
        return NULL;
    }
}

static double f_sqrt(double a, double b)
{
    (void)b;
    return tb_sqrt(a);
}

static double f_log(double a, double b)
{
    (void)b;
    return tb_log(a);
}

static double f_exp(double a, double b)
{
    (void)b;
    return tb_exp(a);
}

static double f_abs(double a, double b)
{
    (void)b;
    return tb_fabs(a);
}

/* From 2^52 on every double is whole. */
static double f_floor(double a, double b)
{
    (void)b;
    if (!(tb_fabs(a) < 4503599627370496.0))
        return a;
    double whole = (double)(int64_t)a;
    return whole > a ? whole - 1 : whole;
}

static double f_min(double a, double b)
{
    return b < a ? b : a;
}

static double f_max(double a, double b)
{
    return b > a ? b : a;
}

typedef struct function {
    const char *name;
    double (*apply)(double, double);
    bool many; /* two or more arguments, joined from the left */
} function;

static const function functions[] = {
    {"sqrt", f_sqrt, false},   {"log", f_log, false}, {"exp", f_exp, false},
    {"abs", f_abs, false},     {"min", f_min, true},  {"max", f_max, true},
    {"floor", f_floor, false},
};

static const function *find_function(const char *name)
{
    for (size_t i = 0; i < TB_LEN(functions); i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

static const tb_expr *look_up(const folder *f, const char *name)
{
    return f->lookup ? f->lookup(f->user, name) : NULL;
}

/* --- is it constant? ------------------------------------------------------ */

static bool is_const(folder *f, const tb_expr *e)
{
    static const tb_consts none;
    if (f->fuel-- <= 0 || f->depth >= DEPTH)
        return false;
    if (e->kind == TB_EXPR_NUMBER ||
        (e->kind == TB_EXPR_NAME && constant(&none, e->name)))
        return true;
    if (e->kind == TB_EXPR_TUPLE ||
        (e->kind == TB_EXPR_CALL && !find_function(e->name)))
        return false;
    bool yes = true;
    f->depth++;
    if (e->kind == TB_EXPR_NAME) {
        const tb_expr *meaning = look_up(f, e->name);
        yes = meaning && is_const(f, meaning);
    }
    for (int i = 0; yes && i < e->nargs; i++)
        yes = !e->args[i].key && is_const(f, e->args[i].value);
    f->depth--;
    return yes;
}

bool tb_expr_is_const(const tb_expr *e, tb_expr_lookup lookup, void *user)
{
    folder f = {.lookup = lookup, .user = user, .fuel = FUEL};
    return is_const(&f, e);
}

/* --- its value ------------------------------------------------------------ */

static tb_status fold(folder *f, const tb_expr *e, double *out);

static tb_status fold_name(folder *f, const tb_expr *e, double *out)
{
    const double *value = constant(f->consts, e->name);
    if (value && *value != *value)
        return tb_block_fail(f->ctx, f->block, e->pos, "'%s' has no value here",
                             e->name);
    if (value) {
        *out = *value;
        return TB_OK;
    }
    const tb_expr *meaning = look_up(f, e->name);
    if (!meaning)
        return tb_block_fail(f->ctx, f->block, e->pos,
                             "'%.40s' is not a constant", e->name);
    return fold(f, meaning, out);
}

static tb_status fold_call(folder *f, const tb_expr *e, double *out)
{
    const function *g = find_function(e->name);
    if (!g)
        return tb_block_fail(f->ctx, f->block, e->pos,
                             "'%.40s' is not a function of constants", e->name);
    if (g->many ? e->nargs < 2 : e->nargs != 1)
        return tb_block_fail(
            f->ctx, f->block, e->pos, "'%s' takes %s, got %d", e->name,
            g->many ? "two or more arguments" : "one argument", e->nargs);
    double value = 0, next;
    for (int i = 0; i < e->nargs; i++) {
        if (e->args[i].key)
            return tb_block_fail(f->ctx, f->block, e->args[i].key_pos,
                                 "'%s' takes no options", e->name);
        TB_TRY(fold(f, e->args[i].value, &next));
        value = g->many && i > 0 ? g->apply(value, next) : next;
    }
    *out = g->many ? value : g->apply(value, 0);
    return TB_OK;
}

static tb_status fold_binary(folder *f, const tb_expr *e, double *out)
{
    double a, b;
    TB_TRY(fold(f, e->args[0].value, &a));
    TB_TRY(fold(f, e->args[1].value, &b));
    if (e->op == '/' && tb_fabs(b) <= 0)
        return tb_block_fail(f->ctx, f->block, e->pos, "division by zero");
    switch (e->op) {
    case '+':
        *out = a + b;
        break;
    case '-':
        *out = a - b;
        break;
    case '*':
        *out = a * b;
        break;
    case '/':
        *out = a / b;
        break;
    case '^':
        *out = tb_pow(a, b);
        break;
    case '<':
        *out = a < b;
        break;
    case '>':
        *out = a > b;
        break;
    case 'l':
        *out = a <= b;
        break;
    case 'g':
        *out = a >= b;
        break;
    default: /* '=' */
        *out = a <= b && a >= b;
        break;
    }
    return TB_OK;
}

static tb_status fold_kind(folder *f, const tb_expr *e, double *out)
{
    switch (e->kind) {
    case TB_EXPR_NUMBER:
        *out = e->number;
        return TB_OK;
    case TB_EXPR_NAME:
        return fold_name(f, e, out);
    case TB_EXPR_CALL:
        return fold_call(f, e, out);
    case TB_EXPR_NEG:
        TB_TRY(fold(f, e->args[0].value, out));
        *out = -*out;
        return TB_OK;
    case TB_EXPR_BINARY:
    case TB_EXPR_COMPARE:
        return fold_binary(f, e, out);
    case TB_EXPR_TUPLE:
        break;
    }
    return tb_block_fail(f->ctx, f->block, e->pos, "a tuple is not a constant");
}

static tb_status fold(folder *f, const tb_expr *e, double *out)
{
    if (f->fuel-- <= 0 || f->depth >= DEPTH)
        return tb_block_fail(f->ctx, f->block, e->pos,
                             "constant expression too large, or defined by "
                             "itself");
    f->depth++;
    tb_status s = fold_kind(f, e, out);
    f->depth--;
    if (s == TB_OK && !tb_isfinite(*out))
        return tb_block_fail(f->ctx, f->block, e->pos,
                             "the result is not a finite number");
    return s;
}

tb_status tb_expr_fold(tb_ctx *ctx, const tb_block *b, const tb_expr *e,
                       const tb_consts *c, tb_expr_lookup lookup, void *user,
                       double *out)
{
    folder f = {.ctx = ctx,
                .block = b,
                .consts = c,
                .lookup = lookup,
                .user = user,
                .fuel = FUEL};
    return fold(&f, e, out);
}
