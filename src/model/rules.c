/* SPDX-License-Identifier: MIT */
/* Init rules (ruling 12). The prelude starts matrices as Xavier normal with
 * gain 1, biases at 0, gains at 1, embeddings as normal(1), and scalars and
 * vectors as the text says. Then come the block's init: rules and those of
 * the settings; the last match wins (graph/init_rules.h says what matches).
 */
#include "equation/names.h"
#include "graph/init_rules.h"
#include "model/parts.h"

bool tb_glob_match(const char *glob, const tb_view *v)
{
    return tb_init_glob(glob, v->name, v->role);
}

/* --- kinds of rules ------------------------------------------------------ */

typedef struct tb_rule_kind {
    const char *name;
    tb_start_kind start;
    bool fans;     /* divided by the fans of a matrix */
    bool signed_;  /* a negative argument has a meaning */
    double fixed;  /* value without an argument */
    bool profiled; /* found by a forward pass (profile.c) */
} tb_rule_kind;

static const tb_rule_kind rule_kinds[] = {
    {"const", TB_START_CONST, false, true, 0, false},
    {"identity", TB_START_IDENTITY, false, false, 1, false},
    {"normal", TB_START_NORMAL, false, false, 0, false},
    {"onehot", TB_START_ONEHOT, false, true, 1, false},
    {"ones", TB_START_CONST, false, true, 1, false},
    {"orthogonal", TB_START_ORTHOGONAL, false, false, 1, false},
    {"profiled", TB_START_CONST, false, true, 1, true},
    {"uniform", TB_START_UNIFORM, false, false, 0, false},
    {"xavier", TB_START_NORMAL, true, false, 1, false},
    {"xavier_uniform", TB_START_UNIFORM, true, false, 1, false},
    {"zeros", TB_START_CONST, false, true, 0, false},
};

/** One rule of a block or of the settings. */
typedef struct tb_rule {
    const tb_block *block;
    const tb_init_rule *line;
    const tb_rule_kind *kind;
    bool *hit; /* per glob */
} tb_rule;

/* The parser knows the names and counts of arguments. */
static tb_status rule_kind_of(tb_ctx *ctx, const tb_block *b, const tb_expr *e,
                              const tb_rule_kind **out)
{
    for (size_t i = 0; i < TB_LEN(rule_kinds); i++)
        if (tb_streq(rule_kinds[i].name, e->name)) {
            *out = &rule_kinds[i];
            return TB_OK;
        }
    return tb_block_fail(ctx, b, e->pos, "%s: cannot be computed yet", e->name);
}

/* --- the list of rules --------------------------------------------------- */

typedef struct tb_rules {
    tb_ctx *ctx;
    tb_arena *arena;
    const tb_sizes *sizes;
    tb_block *extra; /* the settings' rules, or NULL */
    size_t n;
    tb_rule *rules;
} tb_rules;

static tb_status rules_add(tb_rules *r, const tb_block *b)
{
    for (int i = 0; i < b->ninit; i++) {
        tb_rule *t = &r->rules[r->n++];
        *t = (tb_rule){.block = b, .line = &b->init[i]};
        TB_TRY(rule_kind_of(r->ctx, b, t->line->rule, &t->kind));
        t->hit = tb_arena_alloc(r->arena, (size_t)t->line->nglobs + 1);
        if (!t->hit)
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status rules_begin(tb_rules *r, const tb_block *b)
{
    TB_TRY(tb_init_extra(r->ctx, &r->sizes->s, &r->extra));
    size_t n = (size_t)b->ninit + (r->extra ? (size_t)r->extra->ninit : 0);
    r->rules = tb_arena_alloc(r->arena, (n + 1) * sizeof *r->rules);
    if (!r->rules)
        return TB_ERR_MEMORY;
    TB_TRY(rules_add(r, b));
    return r->extra ? rules_add(r, r->extra) : TB_OK;
}

/* The last rule with a glob for this view, marking every glob that matches. */
static const tb_rule *rule_for(tb_rules *r, const tb_view *v)
{
    const tb_rule *last = NULL;
    for (size_t i = 0; i < r->n; i++) {
        tb_rule *t = &r->rules[i];
        for (int g = 0; g < t->line->nglobs; g++)
            if (tb_glob_match(t->line->globs[g], v)) {
                t->hit[g] = true;
                last = t;
            }
    }
    return last;
}

static tb_status all_hit(tb_rules *r, bool outline)
{
    bool both = r->sizes->s.stack == TB_STACKS_BOTH;
    for (size_t i = 0; i < r->n; i++)
        for (int g = 0; g < r->rules[i].line->nglobs; g++)
            if (!r->rules[i].hit[g] &&
                (both || !tb_init_of_side(r->rules[i].line->globs[g])) &&
                !(outline && tb_init_of_layer(r->rules[i].line->globs[g])))
                return tb_block_fail(
                    r->ctx, r->rules[i].block,
                    tb_init_glob_pos(r->rules[i].block, r->rules[i].line, g),
                    "'%s' matches no weight", r->rules[i].line->globs[g]);
    return TB_OK;
}

/* --- from a rule to numbers ---------------------------------------------- */

/* k of the sublayer that uses the param, NaN where there is none. */
static double sublayer_of(const tb_owner *o)
{
    int leaf = o->graph->params[o->param].node;
    for (int i = 0; i < o->graph->nnodes; i++)
        for (int j = 0; j < o->graph->nodes[i].nin; j++)
            if (o->graph->nodes[i].in[j] == leaf && o->graph->nodes[i].k)
                return (double)o->graph->nodes[i].k;
    return __builtin_nan("");
}

static tb_consts consts_of(const tb_rules *r, const tb_view *v,
                           const tb_owner *o)
{
    const tb_sizes *s = r->sizes;
    return (tb_consts){s->N,
                       s->M,
                       v->layer ? (double)v->layer : __builtin_nan(""),
                       sublayer_of(o),
                       (double)s->s.width,
                       (double)s->s.heads};
}

/* sqrt(2 / (in + out)); a uniform needs sqrt(3) times that as its bound. */
static double fan_scale(const tb_rule_kind *k, tb_shape s)
{
    double fans = (double)s.width + (double)s.height;
    return tb_sqrt((k->start == TB_START_UNIFORM ? 6.0 : 2.0) / fans);
}

static const char *shown(tb_rules *r, const tb_expr *e, const tb_expr *arg,
                         double value)
{
    tb_buf b;
    tb_buf_init(&b, r->ctx);
    tb_expr_print(e, &b);
    if (arg && arg->kind != TB_EXPR_NUMBER)
        tb_buf_printf(&b, " = %.6g", value);
    char *text = tb_buf_status(&b) == TB_OK
                     ? tb_arena_strndup(r->arena, b.data, b.len)
                     : NULL;
    tb_buf_clear(&b);
    return text;
}

static tb_status check_profiled(tb_rules *r, const tb_rule *t, const tb_view *v,
                                const tb_owner *o)
{
    tb_pos pos = t->line->rule->pos;
    const char *why;
    if (v->role != TB_ROLE_SCALAR && v->role != TB_ROLE_VECTOR)
        return tb_block_fail(r->ctx, t->block, pos,
                             "profiled: needs a learned scalar or vector, %s "
                             "is none",
                             v->name);
    if (tb_profile_product(o->graph, o->param, &why) < 0)
        return tb_block_fail(r->ctx, t->block, pos, "profiled: %s is %s",
                             v->name, why);
    return TB_OK;
}

/* Rules that mean one kind of shape only. */
static tb_status check_shape(tb_rules *r, const tb_rule *t, const tb_view *v)
{
    tb_start_kind start = t->kind->start;
    bool matrix = t->kind->fans || start == TB_START_ORTHOGONAL ||
                  start == TB_START_IDENTITY;
    tb_shape_kind wanted = matrix ? TB_SHAPE_MATRIX : TB_SHAPE_VECTOR;
    if ((!matrix && start != TB_START_ONEHOT) || v->shape.kind == wanted)
        return TB_OK;
    return tb_block_fail(r->ctx, t->block, t->line->rule->pos,
                         "%s: needs a %s, %s is none", t->kind->name,
                         matrix ? "matrix" : "vector", v->name);
}

static tb_status check_value(tb_rules *r, const tb_rule *t, const tb_view *v,
                             const tb_expr *arg, double value)
{
    double n = (double)v->count;
    if (value < 0 && !t->kind->signed_)
        return tb_block_fail(r->ctx, t->block, arg->pos,
                             "%s: got %g, wanted at least 0", t->kind->name,
                             value);
    if (t->kind->start != TB_START_ONEHOT ||
        (value >= 1 && value <= n && value == (double)(size_t)value))
        return TB_OK;
    return tb_block_fail(r->ctx, t->block, arg->pos,
                         "onehot: got %g, wanted a whole number from 1 to %zu, "
                         "the elements of %s",
                         value, v->count, v->name);
}

static tb_status apply_rule(tb_rules *r, const tb_rule *t, tb_view *v,
                            const tb_owner *o, tb_start *out)
{
    const tb_expr *e = t->line->rule;
    const tb_expr *arg =
        e->kind == TB_EXPR_CALL && e->nargs ? e->args[0].value : NULL;
    double value = t->kind->fixed;
    TB_TRY(check_shape(r, t, v));
    if (t->kind->profiled)
        TB_TRY(check_profiled(r, t, v, o));
    tb_consts c = consts_of(r, v, o);
    if (arg)
        TB_TRY(tb_expr_fold(r->ctx, t->block, arg, &c, NULL, NULL, &value));
    TB_TRY(check_value(r, t, v, arg, value));
    v->rule = shown(r, e, arg, value);
    out->kind = t->kind->start;
    out->profiled = t->kind->profiled;
    out->value = t->kind->fans ? value * fan_scale(t->kind, v->shape) : value;
    return v->rule ? TB_OK : TB_ERR_MEMORY;
}

/* A start written in the text: scalar(0), vector(1e-4), or by a rule,
 * matrix(4, 4, identity). */
static tb_status apply_text(tb_rules *r, const tb_block *b, const tb_param *q,
                            tb_view *v, const tb_owner *o, tb_start *out)
{
    bool rule = q->start->name && tb_init_kind_find(q->start->name);
    if (rule) {
        const tb_init_rule line = {.pos = q->start->pos, .rule = q->start};
        tb_rule t = {.block = b, .line = &line};
        TB_TRY(rule_kind_of(r->ctx, b, q->start, &t.kind));
        return apply_rule(r, &t, v, o, out);
    }
    tb_consts c = consts_of(r, v, o);
    out->kind = TB_START_CONST;
    TB_TRY(tb_expr_fold(r->ctx, b, q->start, &c, NULL, NULL, &out->value));
    const char *text = shown(r, q->start, NULL, 0);
    if (!text)
        return TB_ERR_MEMORY;
    bool number = q->start->kind == TB_EXPR_NUMBER;
    v->rule = number ? tb_arena_printf(r->arena, "const(%s)", text)
                     : tb_arena_printf(r->arena, "const(%s) = %.6g", text,
                                       out->value);
    return v->rule ? TB_OK : TB_ERR_MEMORY;
}

static const struct {
    const char *rule;
    tb_start start;
} prelude[] = {
    [TB_ROLE_MATRIX] = {"xavier(1)", {TB_START_NORMAL, 1, false}},
    [TB_ROLE_BIAS] = {"zeros", {TB_START_CONST, 0, false}},
    [TB_ROLE_GAIN] = {"ones", {TB_START_CONST, 1, false}},
    [TB_ROLE_SCALAR] = {"zeros", {TB_START_CONST, 0, false}},
    [TB_ROLE_VECTOR] = {"zeros", {TB_START_CONST, 0, false}},
    [TB_ROLE_EMBEDDING] = {"normal(1)", {TB_START_NORMAL, 1, false}},
    [TB_ROLE_TABLE] = {"zeros", {TB_START_CONST, 0, false}},
    [TB_ROLE_BUFFER] = {"zeros", {TB_START_CONST, 0, false}},
};

static void apply_prelude(tb_view *v, tb_start *out)
{
    static const tb_rule_kind xavier = {.start = TB_START_NORMAL};
    v->rule = prelude[v->role].rule;
    *out = prelude[v->role].start;
    if (v->role == TB_ROLE_MATRIX)
        out->value = fan_scale(&xavier, v->shape);
}

static bool ends_with(const char *s, size_t n, const char *tail)
{
    size_t k = strlen(tail);
    return n >= k && memcmp(s + n - k, tail, k) == 0;
}

/* Weights whose zero makes attention uniform: queries and keys. */
static bool is_query_or_key(const tb_view *v)
{
    static const char *const slots[] = {".q.weight", ".k.weight"};
    size_t n = strlen(v->name);
    return v->role == TB_ROLE_MATRIX &&
           (ends_with(v->name, n, slots[0]) || ends_with(v->name, n, slots[1]));
}

static tb_status resolve_one(tb_rules *r, const tb_block *b, tb_view *v,
                             const tb_owner *o, tb_start *out)
{
    const tb_param *q = &o->graph->params[o->param];
    const tb_rule *t = rule_for(r, v);
    if (r->sizes->s.uniform_attention == 1 && is_query_or_key(v)) {
        v->rule = "zeros (uniform attention)";
        *out = (tb_start){TB_START_CONST, 0, false};
        return TB_OK;
    }
    if (t)
        return apply_rule(r, t, v, o, out);
    if (q->start)
        return apply_text(r, b, q, v, o, out);
    apply_prelude(v, out);
    return TB_OK;
}

tb_status tb_starts_resolve(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                            const tb_sizes *sizes, tb_view *views,
                            const tb_owner *owners, size_t n, bool outline,
                            tb_start *out)
{
    tb_rules r = {.ctx = ctx, .arena = arena, .sizes = sizes};
    tb_status s = rules_begin(&r, b);
    for (size_t i = 0; i < n && s == TB_OK; i++)
        s = resolve_one(&r, b, &views[i], &owners[i], &out[i]);
    if (s == TB_OK)
        s = all_hit(&r, outline);
    if (r.extra)
        tb_block_destroy(ctx, r.extra);
    return s;
}
