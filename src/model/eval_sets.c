/* SPDX-License-Identifier: MIT */
/* What the given numbers are for: which are inputs, their common rank, batch
 * and time; and from them the sizes and the graph. */
#include "model/eval_state.h"

static size_t count_of(const tb_eval_value *v)
{
    size_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    return n;
}

static const char *dims_text(int rank, const size_t *dims, char out[80])
{
    size_t at = tb_format(out, 80, "[");
    for (int i = 0; i < rank; i++)
        at += tb_format(out + at, 80 - at, "%s%zu", i ? "," : "", dims[i]);
    tb_format(out + at, 80 - at, "]");
    return rank ? out : "a number";
}

tb_status tb_eval_fits(tb_eval_state *s, const char *what,
                       const tb_eval_value *v, int rank, const size_t *dims)
{
    char got[80], wanted[80];
    bool same = v->rank == rank;
    for (int i = 0; i < rank && same; i++)
        same = v->dims[i] == dims[i];
    if (same)
        return TB_OK;
    return TB_FAIL(s->ctx, TB_ERR_SHAPE, "%s: got %s, wanted %s", what,
                   dims_text(v->rank, v->dims, got),
                   dims_text(rank, dims, wanted));
}

static bool is_declared(const tb_block *b, const char *name)
{
    static const char *const words[] = {"scalar", "vector", "linear"};
    for (int i = 0; i < b->nsections; i++)
        for (int j = 0; j < b->sections[i].nstmts; j++) {
            const tb_stmt *t = &b->sections[i].stmts[j];
            if (!tb_streq(t->name, name) || t->value->kind != TB_EXPR_CALL)
                continue;
            for (size_t w = 0; w < TB_LEN(words); w++)
                if (tb_streq(t->value->name, words[w]))
                    return true;
        }
    return false;
}

/* A list enters as an input unless its name belongs to a parameter. */
static bool is_input(const tb_eval_state *s, const tb_eval_value *v)
{
    return !strchr(v->name, '.') && !is_declared(s->block, v->name);
}

static tb_status check_value(tb_eval_state *s, const tb_eval_value *v)
{
    char text[80];
    if (!v->name || !*v->name)
        return TB_FAIL(s->ctx, TB_ERR_INPUT, "set: a value without a name");
    if (v->rank < 0 || v->rank > TB_EVAL_RANK)
        return TB_FAIL(s->ctx, TB_ERR_SHAPE,
                       "%s: got %d nested lists, wanted at most %d", v->name,
                       v->rank, TB_EVAL_RANK);
    if (!count_of(v))
        return TB_FAIL(s->ctx, TB_ERR_SHAPE, "%s: got an empty list %s",
                       v->name, dims_text(v->rank, v->dims, text));
    for (const tb_eval_value *w = s->spec->sets; w < v; w++)
        if (tb_streq(w->name, v->name))
            return TB_FAIL(s->ctx, TB_ERR_INPUT, "%s: set twice", v->name);
    return TB_OK;
}

/* The lists' common rank and batch: all lists of the highest rank must agree,
 * a [d] beside them is a vector. Each has its own number of tokens; that of x,
 * or of the first list, is the time of what has none. */
static tb_status find_rank(tb_eval_state *s)
{
    const tb_eval_value *first = NULL;
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *v = &s->spec->sets[i];
        TB_TRY(check_value(s, v));
        if (is_input(s, v) && v->rank > s->rank) {
            s->rank = v->rank;
            first = v;
        }
    }
    s->batch = s->rank == 3 ? first->dims[0] : 1;
    s->time = s->rank >= 2 ? first->dims[s->rank - 2] : 1;
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *v = &s->spec->sets[i];
        if (!is_input(s, v) || v->rank <= 1 || v == first)
            continue;
        size_t dims[TB_EVAL_RANK];
        memcpy(dims, first->dims, sizeof dims);
        for (int k = 1; k <= 2 && v->rank == s->rank; k++)
            dims[s->rank - k] = v->dims[s->rank - k];
        TB_TRY(tb_eval_fits(s, v->name, v, s->rank, dims));
        if (tb_streq(v->name, "x"))
            s->time = v->dims[s->rank - 2];
    }
    return TB_OK;
}

static tb_shape input_shape(const tb_eval_state *s, const tb_eval_value *v)
{
    if (v->rank == 0)
        return (tb_shape){TB_SHAPE_SCALAR, 1, 1};
    bool vector = v->rank == 1 && s->rank > 1;
    return (tb_shape){vector ? TB_SHAPE_VECTOR : TB_SHAPE_STREAM,
                      v->dims[v->rank - 1], 1};
}

/* d: the width of x, or of the first list. */
static size_t width_of(const tb_eval_state *s)
{
    size_t width = 0;
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *v = &s->spec->sets[i];
        if (!is_input(s, v) || v->rank == 0)
            continue;
        if (!width || tb_streq(v->name, "x"))
            width = v->dims[v->rank - 1];
    }
    return width ? width : 1;
}

static tb_status find_sizes(tb_eval_state *s)
{
    const tb_eval *e = s->spec;
    tb_settings set = TB_SETTINGS_UNSET;
    set.depth = 1;
    set.width = e->width ? e->width : width_of(s);
    set.heads = e->heads ? e->heads : 1;
    set.kv_heads = e->kv_heads;
    set.context = s->time;
    set.norm = e->norm;
    set.init = e->init;
    if (e->eps && !(*e->eps >= 0))
        return TB_FAIL(s->ctx, TB_ERR_ARG, "eps: got %g, wanted 0 or more",
                       *e->eps);
    set.eps = e->eps ? *e->eps : -1;
    set.causal =
        e->mask == TB_EVAL_MASK_DEFAULT ? -1 : e->mask == TB_EVAL_MASK_CAUSAL;
    return tb_sizes_resolve(s->ctx, s->block, &set, &s->sizes);
}

static tb_status build_graph(tb_eval_state *s)
{
    int n = 0;
    tb_eval_input *in = tb_eval_buffer(s, s->spec->nsets + 1, sizeof *in);
    if (!in)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *v = &s->spec->sets[i];
        if (is_input(s, v))
            in[n++] = (tb_eval_input){v->name, input_shape(s, v)};
    }
    return tb_graph_eval(s->ctx, &s->arena, s->block, &s->sizes, in, n,
                         &s->graph);
}

tb_status tb_eval_make_graph(tb_eval_state *s)
{
    TB_TRY(find_rank(s));
    TB_TRY(find_sizes(s));
    return build_graph(s);
}
