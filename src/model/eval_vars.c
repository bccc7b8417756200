/* SPDX-License-Identifier: MIT */
/* The inputs and parameters of an equation, by name: the given numbers where
 * there are some, else the start values a model would have. */
#include "model/eval_state.h"

static const tb_eval_value *set_named(const tb_eval_state *s, const char *name)
{
    for (size_t i = 0; i < s->spec->nsets; i++)
        if (tb_streq(s->spec->sets[i].name, name))
            return &s->spec->sets[i];
    return NULL;
}

static void param_dims(tb_eval_var *v)
{
    v->rank = v->shape.kind == TB_SHAPE_SCALAR   ? 0
              : v->shape.kind == TB_SHAPE_VECTOR ? 1
                                                 : 2;
    v->dims[0] = v->rank == 2 ? v->shape.height : v->shape.width;
    v->dims[1] = v->shape.width;
}

static tb_status add_var(tb_eval_state *s, tb_eval_var v, size_t time)
{
    v.count = tb_shape_count(v.shape, s->batch, time);
    v.data = tb_eval_buffer(s, v.count, tb_dtype_size(s->dtype));
    s->vars[s->nvars++] = v;
    return v.data ? TB_OK : TB_ERR_MEMORY;
}

static tb_status make_inputs(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    for (int i = 0; i < g->ninputs; i++) {
        const tb_node *n = &g->nodes[g->inputs[i]];
        const tb_eval_value *set = set_named(s, n->name);
        tb_eval_var v = {
            .name = n->name, .index = i, .shape = n->shape, .rank = set->rank};
        memcpy(v.dims, set->dims, sizeof v.dims);
        if (v.rank >= 2)
            s->times[g->inputs[i]] = v.dims[v.rank - 2];
        TB_TRY(add_var(s, v, s->times[g->inputs[i]]));
        tb_eval_load(s, set->data, s->vars[s->nvars - 1].count,
                     s->vars[s->nvars - 1].data);
    }
    return TB_OK;
}

/* As the plan counts them: the tokens of the first operand that has some. */
static void find_times(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    for (int i = 0; i < g->nnodes; i++)
        for (int k = g->nodes[i].nin - 1; k >= 0; k--)
            if (g->nodes[g->nodes[i].in[k]].shape.kind == TB_SHAPE_STREAM)
                s->times[i] = s->times[g->nodes[i].in[k]];
}

/* Parameters start as a model's would, with the seed. */
static tb_status start_params(tb_eval_state *s, tb_eval_var *vars)
{
    size_t n = (size_t)s->graph->nparams;
    tb_view *views = tb_eval_buffer(s, n, sizeof *views);
    tb_owner *owners = tb_eval_buffer(s, n, sizeof *owners);
    tb_start *starts = tb_eval_buffer(s, n, sizeof *starts);
    if (!views || !owners || !starts)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const tb_param *q = &s->graph->params[i];
        views[i] = (tb_view){.name = q->name,
                             .role = q->role,
                             .shape = q->shape,
                             .count = vars[i].count,
                             .layer = 1};
        owners[i] = (tb_owner){s->graph, (int)i};
    }
    TB_TRY(tb_starts_resolve(s->ctx, &s->arena, s->block, &s->sizes, views,
                             owners, n, false, starts));
    for (size_t i = 0; i < n; i++)
        TB_TRY(tb_start_fill(s->ctx, s->dtype, &starts[i], views[i].name,
                             views[i].shape, s->spec->seed, vars[i].data));
    return TB_OK;
}

static tb_status make_params(tb_eval_state *s)
{
    tb_eval_var *first = s->vars + s->nvars;
    for (int i = 0; i < s->graph->nparams; i++) {
        const tb_param *q = &s->graph->params[i];
        tb_eval_var v = {.name = q->name,
                         .is_param = true,
                         .is_buffer = q->role == TB_ROLE_BUFFER,
                         .index = i,
                         .shape = q->shape};
        param_dims(&v);
        TB_TRY(add_var(s, v, s->time));
    }
    return start_params(s, first);
}

tb_eval_var *tb_eval_find(tb_eval_state *s, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < s->nvars; i++)
        if (tb_streq(s->vars[i].name, name))
            return &s->vars[i];
    for (size_t i = 0; i < s->nvars; i++)
        if (s->vars[i].is_param && strncmp(s->vars[i].name, name, n) == 0 &&
            tb_streq(s->vars[i].name + n, ".weight"))
            return &s->vars[i];
    return NULL;
}

tb_status tb_eval_need(tb_eval_state *s, const char *what, const char *name,
                       tb_eval_var **out)
{
    *out = tb_eval_find(s, name);
    if (*out)
        return TB_OK;
    const char **names = tb_eval_buffer(s, s->nvars + 1, sizeof *names);
    if (!names)
        return TB_ERR_MEMORY;
    tb_buf all;
    tb_buf_init(&all, s->ctx);
    for (size_t i = 0; i < s->nvars; i++) {
        names[i] = s->vars[i].name;
        tb_buf_printf(&all, "%s%s", i ? " " : "", names[i]);
    }
    const char *near = tb_nearest(name, names, s->nvars);
    tb_status status = near ? TB_FAIL(s->ctx, TB_ERR_INPUT,
                                      "%s %s: not used here; did you mean %s?",
                                      what, name, near)
                            : TB_FAIL(s->ctx, TB_ERR_INPUT,
                                      "%s %s: not used here; there are: %s",
                                      what, name, tb_buf_str(&all));
    tb_buf_clear(&all);
    return status;
}

tb_status tb_eval_need_input(tb_eval_state *s, const char *what,
                             const char *name, tb_eval_var **out)
{
    TB_TRY(tb_eval_need(s, what, name, out));
    if (!(*out)->is_buffer)
        return TB_OK;
    return TB_FAIL(s->ctx, TB_ERR_INPUT,
                   "%s %s: a running statistic, wanted an input or a weight",
                   what, name);
}

/* Every set name is an input of the graph or one of its parameters. */
static tb_status place_sets(tb_eval_state *s)
{
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *set = &s->spec->sets[i];
        tb_eval_var *v;
        TB_TRY(tb_eval_need(s, "set", set->name, &v));
        if (!v->is_param)
            continue;
        if (!tb_streq(v->name, set->name))
            v->alias = set->name;
        TB_TRY(tb_eval_fits(s, set->name, set, v->rank, v->dims));
        tb_eval_load(s, set->data, v->count, v->data);
    }
    return TB_OK;
}

tb_status tb_eval_make_vars(tb_eval_state *s)
{
    size_t n = (size_t)s->graph->ninputs + (size_t)s->graph->nparams;
    s->vars = tb_eval_buffer(s, n + 1, sizeof *s->vars);
    s->times = tb_eval_buffer(s, (size_t)s->graph->nnodes, sizeof *s->times);
    if (!s->vars || !s->times)
        return TB_ERR_MEMORY;
    for (int i = 0; i < s->graph->nnodes; i++)
        s->times[i] = s->time;
    TB_TRY(make_inputs(s));
    find_times(s);
    TB_TRY(make_params(s));
    return place_sets(s);
}
