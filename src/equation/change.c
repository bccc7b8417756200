/* SPDX-License-Identifier: MIT */
/* Other blocks from a block: its norm on the other side of the sum, its
 * branches scaled, a skip cut. Trees are rewritten in a copy, which is then
 * printed and read again like any text. */
#include "equation/equation.h"
#include "equation/names.h"

typedef struct changer {
    tb_block *b; /* the copy */
    tb_change what;
    double value;
    bool changed, failed;
} changer;

/* --- looking ------------------------------------------------------------- */

static bool calls(const tb_expr *e, tb_callable_kind kind)
{
    return e->kind == TB_EXPR_CALL && tb_callable_find(e->name) == kind;
}

static bool holds_sublayer(const tb_expr *e)
{
    if (calls(e, TB_CALLABLE_SUBLAYER))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (holds_sublayer(e->args[i].value))
            return true;
    return false;
}

/* A sum of which one side alone is a branch: that side, else -1. */
static int branch_of(const tb_expr *e)
{
    if (e->kind != TB_EXPR_BINARY || e->op != '+')
        return -1;
    bool left = holds_sublayer(e->args[0].value);
    bool right = holds_sublayer(e->args[1].value);
    return left == right ? -1 : right;
}

/* --- making -------------------------------------------------------------- */

static tb_expr *copy_of(changer *c, const tb_expr *e)
{
    tb_expr *out = TB_NEW(&c->b->arena, tb_expr);
    struct tb_arg *args =
        tb_arena_alloc(&c->b->arena, ((size_t)e->nargs + 1) * sizeof *args);
    if (!out || !args) {
        c->failed = true;
        return NULL;
    }
    *out = *e;
    if (e->nargs)
        memcpy(args, e->args, (size_t)e->nargs * sizeof *args);
    out->args = args;
    return out;
}

/* e with its first operand replaced. */
static const tb_expr *around(changer *c, const tb_expr *e, const tb_expr *first)
{
    tb_expr *out = copy_of(c, e);
    if (!out)
        return e;
    out->args[0].value = first;
    return out;
}

static const tb_expr *times(changer *c, double factor, const tb_expr *e)
{
    const tb_expr pattern = {.kind = TB_EXPR_BINARY,
                             .op = '*',
                             .nargs = 2,
                             .args =
                                 (struct tb_arg[]){{.value = e}, {.value = e}}};
    const tb_expr number = {.kind = TB_EXPR_NUMBER, .number = factor};
    tb_expr *out = copy_of(c, &pattern);
    const tb_expr *left = copy_of(c, &number);
    if (!out || !left)
        return e;
    out->args[0].value = left;
    return out;
}

/* Every node of a tree, from its leaves up. */
typedef const tb_expr *(*change_fn)(changer *c, const tb_expr *e, void *user);

static const tb_expr *everywhere(changer *c, const tb_expr *e, change_fn fn,
                                 void *user)
{
    tb_expr *out = NULL;
    for (int i = 0; i < e->nargs; i++) {
        const tb_expr *arg = everywhere(c, e->args[i].value, fn, user);
        if (arg == e->args[i].value)
            continue;
        out = out ? out : copy_of(c, e);
        if (!out)
            return e;
        out->args[i].value = arg;
    }
    return fn(c, out ? out : e, user);
}

/* --- changes of a statement ---------------------------------------------- */

static const tb_expr *scaled(changer *c, const tb_expr *e, void *user)
{
    (void)user;
    if (!calls(e, TB_CALLABLE_SUBLAYER))
        return e;
    c->changed = true;
    return times(c, c->value, e);
}

static const tb_expr *without_skip(changer *c, const tb_expr *e, void *user)
{
    int side = branch_of(e);
    (void)user;
    if (side < 0)
        return e;
    c->changed = true;
    return e->args[side].value;
}

/* F(x) to F(N(x)), N being the norm at `user`. */
static const tb_expr *norm_inside(changer *c, const tb_expr *e, void *user)
{
    bool plain = calls(e, TB_CALLABLE_SUBLAYER) && e->nargs > 0 &&
                 e->args[0].value->kind == TB_EXPR_NAME;
    if (!plain)
        return e;
    c->changed = true;
    return around(c, e, around(c, user, e->args[0].value));
}

/* F(N(x)) to F(x); N goes to `user`. */
static const tb_expr *norm_outside(changer *c, const tb_expr *e, void *user)
{
    const tb_expr **norm = user;
    bool normed = calls(e, TB_CALLABLE_SUBLAYER) && e->nargs > 0 &&
                  calls(e->args[0].value, TB_CALLABLE_NORM) &&
                  e->args[0].value->nargs > 0 &&
                  e->args[0].value->args[0].value->kind == TB_EXPR_NAME;
    if (!normed)
        return e;
    *norm = e->args[0].value;
    return around(c, e, (*norm)->args[0].value);
}

static const tb_expr *to_branch(changer *c, const tb_expr *e)
{
    bool post = calls(e, TB_CALLABLE_NORM) && e->nargs > 0 &&
                branch_of(e->args[0].value) >= 0;
    if (!post)
        return e;
    bool was = c->changed;
    c->changed = false;
    const tb_expr *out =
        everywhere(c, e->args[0].value, norm_inside, (void *)(uintptr_t)e);
    bool here = c->changed;
    c->changed = was || here;
    return here ? out : e;
}

static const tb_expr *to_lane(changer *c, const tb_expr *e)
{
    const tb_expr *norm = NULL;
    if (branch_of(e) < 0)
        return e;
    const tb_expr *sum = everywhere(c, e, norm_outside, &norm);
    if (!norm)
        return e;
    c->changed = true;
    return around(c, norm, sum);
}

static const tb_expr *changed(changer *c, const tb_expr *e)
{
    switch (c->what) {
    case TB_CHANGE_SCALE:
        return everywhere(c, e, scaled, NULL);
    case TB_CHANGE_CUT:
    case TB_CHANGE_CUT_ONE:
        return everywhere(c, e, without_skip, NULL);
    case TB_CHANGE_TO_BRANCH:
        return to_branch(c, e);
    case TB_CHANGE_TO_LANE:
        return to_lane(c, e);
    }
    return e;
}

/* --- changes of a text --------------------------------------------------- */

static void change_section(changer *c, tb_section *s)
{
    tb_stmt *stmts =
        tb_arena_alloc(&c->b->arena, ((size_t)s->nstmts + 1) * sizeof *stmts);
    if (!stmts) {
        c->failed = true;
        return;
    }
    for (int i = 0; i < s->nstmts; i++) {
        stmts[i] = s->stmts[i];
        stmts[i].value = changed(c, s->stmts[i].value);
    }
    s->stmts = stmts;
}

/* l == value */
static const tb_expr *one_block(changer *c)
{
    const tb_expr name = {.kind = TB_EXPR_NAME, .name = "l"};
    const tb_expr number = {.kind = TB_EXPR_NUMBER, .number = c->value};
    const tb_expr pattern = {
        .kind = TB_EXPR_COMPARE,
        .op = '=',
        .nargs = 2,
        .args = (struct tb_arg[]){{.value = &name}, {.value = &number}}};
    tb_expr *out = copy_of(c, &pattern);
    for (int i = 0; out && i < 2; i++)
        out->args[i].value = copy_of(c, pattern.args[i].value);
    return out;
}

/* The sections of the copy; a further one where a single block or a final norm
 * needs it. */
static void change_sections(changer *c)
{
    tb_block *b = c->b;
    int n = 0;
    tb_section *all =
        tb_arena_alloc(&b->arena, (2 * (size_t)b->nsections + 2) * sizeof *all);
    if (!all) {
        c->failed = true;
        return;
    }
    for (int i = 0; i < b->nsections; i++) {
        tb_section s = b->sections[i];
        bool block = s.kind == TB_SECTION_BLOCK;
        if (block && c->what == TB_CHANGE_CUT_ONE && !s.condition) {
            all[n] = s;
            all[n].condition = one_block(c);
            change_section(c, &all[n++]);
        } else if (block && c->what != TB_CHANGE_CUT_ONE) {
            change_section(c, &s);
        }
        all[n++] = s;
    }
    b->sections = all;
    b->nsections = n;
}

static bool has_final(const tb_block *b)
{
    for (int i = 0; i < b->nsections; i++)
        if (b->sections[i].kind == TB_SECTION_FINAL)
            return true;
    return false;
}

static tb_status copy_block(tb_ctx *ctx, const tb_block *b, tb_block **out)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(b, &text);
    tb_status s = tb_buf_status(&text);
    if (s == TB_OK)
        s = tb_block_parse(ctx, NULL, tb_buf_str(&text), text.len,
                           TB_PARSE_BLOCK, out);
    tb_buf_clear(&text);
    return s;
}

static tb_status reread(tb_ctx *ctx, const changer *c, tb_block **out)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(c->b, &text);
    if (c->what == TB_CHANGE_TO_BRANCH && !has_final(c->b))
        tb_buf_puts(&text, "final:\n    x = norm(x)\n");
    tb_status s = tb_buf_status(&text);
    if (s == TB_OK)
        s = tb_block_parse(ctx, NULL, tb_buf_str(&text), text.len,
                           TB_PARSE_BLOCK, out);
    tb_buf_clear(&text);
    return s;
}

tb_status tb_block_changed(tb_ctx *ctx, const tb_block *b, tb_change what,
                           double value, tb_block **out)
{
    changer c = {.what = what, .value = value};
    *out = NULL;
    TB_TRY(copy_block(ctx, b, &c.b));
    change_sections(&c);
    tb_status s = c.failed ? TB_ERR_MEMORY : TB_OK;
    if (s == TB_OK && c.changed)
        s = reread(ctx, &c, out);
    tb_block_destroy(ctx, c.b);
    return s;
}
