/* SPDX-License-Identifier: MIT */
/* From EXPR and the numbers given for it to a graph with every input and
 * parameter in place. */
#include "model/eval_state.h"

/* --- small helpers
 * ---------------------------------------------------------------- */

void *tb_eval_buffer(tb_eval_state *s, size_t n, size_t size)
{
    size_t bytes;
    if (!tb_mul(n, size, &bytes) || !tb_add(bytes, 64, &bytes))
        bytes = SIZE_MAX; /* refused by the arena */
    char *p = tb_arena_alloc(&s->arena, bytes);
    return p ? p + (64 - (uintptr_t)p % 64) % 64 : NULL;
}

void tb_eval_load(const tb_eval_state *s, const double *from, size_t n,
                  void *to)
{
    for (size_t i = 0; i < n; i++)
        tb_elem_set(s->dtype, to, i, from[i]);
}

void tb_eval_store(const tb_eval_state *s, const void *from, size_t n,
                   double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = tb_elem_get(s->dtype, from, i);
}

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

/* --- what the numbers are for
 * -------------------------------------------------------- */

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

/* The lists' common rank, batch and time: all lists of the highest rank must
 * agree, a [d] beside them is a vector. */
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
        dims[s->rank - 1] = v->rank == s->rank ? v->dims[v->rank - 1]
                                               : first->dims[s->rank - 1];
        TB_TRY(tb_eval_fits(s, v->name, v, s->rank, dims));
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

/* --- variables
 * ---------------------------------------------------------------------------
 */

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

static tb_status add_var(tb_eval_state *s, tb_eval_var v)
{
    v.count = tb_shape_count(v.shape, s->batch, s->time);
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
        TB_TRY(add_var(s, v));
        tb_eval_load(s, set->data, s->vars[s->nvars - 1].count,
                     s->vars[s->nvars - 1].data);
    }
    return TB_OK;
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
                             owners, n, starts));
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
        tb_eval_var v = {
            .name = q->name, .is_param = true, .index = i, .shape = q->shape};
        param_dims(&v);
        TB_TRY(add_var(s, v));
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

/* Every set name is an input of the graph or one of its parameters. */
static tb_status place_sets(tb_eval_state *s)
{
    for (size_t i = 0; i < s->spec->nsets; i++) {
        const tb_eval_value *set = &s->spec->sets[i];
        tb_eval_var *v;
        TB_TRY(tb_eval_need(s, "set", set->name, &v));
        if (!v->is_param)
            continue;
        TB_TRY(tb_eval_fits(s, set->name, set, v->rank, v->dims));
        tb_eval_load(s, set->data, v->count, v->data);
    }
    return TB_OK;
}

static tb_status make_vars(tb_eval_state *s)
{
    size_t n = (size_t)s->graph->ninputs + (size_t)s->graph->nparams;
    s->vars = tb_eval_buffer(s, n + 1, sizeof *s->vars);
    if (!s->vars)
        return TB_ERR_MEMORY;
    TB_TRY(make_inputs(s));
    TB_TRY(make_params(s));
    return place_sets(s);
}

/* --- y
 * ---------------------------------------------------------------------------------------
 */

static size_t rows_of(const tb_eval_state *s, tb_shape shape)
{
    return shape.kind == TB_SHAPE_STREAM ? s->batch * s->time : 1;
}

static tb_status measure_y(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    tb_shape first = g->nodes[g->outputs[0].node].shape;
    s->rows = rows_of(s, first);
    for (int o = 0; o < g->noutputs; o++) {
        tb_shape shape = g->nodes[g->outputs[o].node].shape;
        if (rows_of(s, shape) != s->rows)
            return TB_FAIL(s->ctx, TB_ERR_SHAPE,
                           "value: its parts have %zu and %zu rows", s->rows,
                           rows_of(s, shape));
        s->width += shape.width;
    }
    bool stream = first.kind == TB_SHAPE_STREAM && s->rank;
    s->y_rank =
        stream ? s->rank : s->width > 1 || first.kind != TB_SHAPE_SCALAR;
    s->y_dims[0] = s->rank == 3 ? s->batch : s->time;
    s->y_dims[1] = s->time;
    if (s->y_rank)
        s->y_dims[s->y_rank - 1] = s->width;
    return TB_OK;
}

void tb_eval_join(const tb_eval_state *s, void *const *outputs, double *y)
{
    const tb_graph *g = s->graph;
    size_t at = 0;
    for (int o = 0; o < g->noutputs; o++) {
        size_t w = g->nodes[g->outputs[o].node].shape.width;
        for (size_t i = 0; i < s->rows * w; i++)
            y[i / w * s->width + at + i % w] =
                tb_elem_get(s->dtype, outputs[o], i);
        at += w;
    }
}

void tb_eval_split(const tb_eval_state *s, const double *y, void **outputs)
{
    const tb_graph *g = s->graph;
    size_t at = 0;
    for (int o = 0; o < g->noutputs; o++) {
        size_t w = g->nodes[g->outputs[o].node].shape.width;
        for (size_t i = 0; i < s->rows * w; i++)
            tb_elem_set(s->dtype, outputs[o], i,
                        y[i / w * s->width + at + i % w]);
        at += w;
    }
}

/* --- open, plan, close
 * ---------------------------------------------------------------------------
 */

tb_status tb_eval_open(tb_eval_state *s, tb_ctx *ctx, const tb_eval *spec,
                       tb_dtype dtype)
{
    *s = (tb_eval_state){.ctx = ctx, .spec = spec, .dtype = dtype};
    tb_arena_init(&s->arena, ctx);
    TB_TRY(tb_block_parse(ctx, NULL, spec->text, strlen(spec->text),
                          TB_PARSE_EVAL, &s->block));
    TB_TRY(find_rank(s));
    TB_TRY(find_sizes(s));
    TB_TRY(build_graph(s));
    TB_TRY(make_vars(s));
    return measure_y(s);
}

void tb_eval_close(tb_eval_state *s)
{
    if (s->plan)
        tb_plan_destroy(s->ctx, s->plan);
    if (s->block)
        tb_block_destroy(s->ctx, s->block);
    tb_arena_clear(&s->arena);
}

static tb_status make_outputs(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    s->outputs = tb_eval_buffer(s, (size_t)g->noutputs + 1, sizeof(void *));
    s->gout = tb_eval_buffer(s, (size_t)g->noutputs + 1, sizeof(void *));
    s->gin = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof(void *));
    s->gparams = tb_eval_buffer(s, (size_t)g->nparams + 1, sizeof(void *));
    if (!s->outputs || !s->gout || !s->gin || !s->gparams)
        return TB_ERR_MEMORY;
    for (int o = 0; o < g->noutputs; o++) {
        size_t n = s->rows * g->nodes[g->outputs[o].node].shape.width;
        s->outputs[o] = tb_eval_buffer(s, n, tb_dtype_size(s->dtype));
        s->gout[o] = tb_eval_buffer(s, n, tb_dtype_size(s->dtype));
        if (!s->outputs[o] || !s->gout[o])
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status make_run(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    const void **in = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof *in);
    const void **params =
        tb_eval_buffer(s, (size_t)g->nparams + 1, sizeof *params);
    double(*attr)[TB_OP_ATTRS] =
        tb_eval_buffer(s, (size_t)g->nnodes, sizeof *attr);
    void *saved = tb_eval_buffer(s, tb_plan_saved_bytes(s->plan), 1);
    void *work = tb_eval_buffer(s, tb_plan_work_bytes(s->plan), 1);
    if (!in || !params || !attr || !saved || !work)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_attrs(s->ctx, g, &s->sizes, 1, attr));
    for (size_t i = 0; i < s->nvars; i++)
        (s->vars[i].is_param ? params : in)[s->vars[i].index] = s->vars[i].data;
    s->run = (tb_run){.plan = s->plan,
                      .saved = saved,
                      .work = work,
                      .inputs = in,
                      .outputs = s->outputs,
                      .params = params,
                      .attr = (const double(*)[TB_OP_ATTRS])attr,
                      .seed = s->spec->seed,
                      .scope = "eval"};
    return TB_OK;
}

tb_status tb_eval_plan(tb_eval_state *s, unsigned passes)
{
    tb_plan_spec spec = {.graph = s->graph,
                         .batch = s->batch,
                         .time = s->time,
                         .dtype = s->dtype,
                         .passes = passes | TB_PASS_KEEP,
                         .name = "eval"};
    TB_TRY(tb_plan_create(s->ctx, &spec, &s->plan));
    TB_TRY(make_outputs(s));
    TB_TRY(make_run(s));
    return tb_eval_forward(s);
}

tb_status tb_eval_forward(tb_eval_state *s)
{
    return tb_plan_forward(s->ctx, &s->run);
}
