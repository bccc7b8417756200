/* SPDX-License-Identifier: MIT */
/* E10: a part once more in double, at the values it has. What a tangent pass
 * says of one random direction t is held against a central difference along t,
 * and, by a random cotangent, against what a backward pass says. Every number
 * of t is +-max(1, |x|), so that h = 1e-5 of it is the step of each; where a
 * kink (of relu) lies within it, one a hundred times smaller. Masks of drop are
 * the same in all runs. */
#include "flow/audit.h"

/** A part of its own, in double. */
typedef struct twin {
    tb_arena a;
    const tb_graph *g;
    tb_plan *plan;
    tb_run run;
    size_t batch, time;
    double **x, **t, **g_x; /* per input: value, direction, gradient */
    void **inputs;          /* what a run reads: x, or beside it */
    double **y, **ty, **up, **down, **u; /* per output */
} twin;

static size_t count_of(const twin *s, int node)
{
    return tb_shape_count(s->g->nodes[node].shape, s->batch, s->time);
}

static double *room(twin *s, int node)
{
    return tb_arena_alloc(&s->a, count_of(s, node) * sizeof(double));
}

static double *copy_of(twin *s, tb_dtype t, int node, const void *from)
{
    double *out = room(s, node);
    for (size_t i = 0; out && i < count_of(s, node); i++)
        out[i] = tb_elem_get(t, from, i);
    return out;
}

/* --- making --------------------------------------------------------------- */

static tb_status make_tables(twin *s)
{
    double ***of_inputs[] = {&s->x, &s->t, &s->g_x};
    double ***of_outputs[] = {&s->y, &s->ty, &s->up, &s->down, &s->u};
    size_t nin = (size_t)s->g->ninputs + 1, nout = (size_t)s->g->noutputs + 1;
    for (size_t i = 0; i < TB_LEN(of_inputs); i++)
        if (!(*of_inputs[i] = tb_arena_alloc(&s->a, nin * sizeof(double *))))
            return TB_ERR_MEMORY;
    for (size_t i = 0; i < TB_LEN(of_outputs); i++)
        if (!(*of_outputs[i] = tb_arena_alloc(&s->a, nout * sizeof(double *))))
            return TB_ERR_MEMORY;
    s->inputs = tb_arena_alloc(&s->a, nin * sizeof *s->inputs);
    return s->inputs ? TB_OK : TB_ERR_MEMORY;
}

/* Inputs that move are streams that another part made; not masks. */
static tb_status copy_inputs(twin *s, tb_walk *w, const tb_run *run,
                             size_t part, uint64_t seed)
{
    tb_rng r = tb_rng_make(seed, "check");
    for (int i = 0; i < s->g->ninputs; i++) {
        int node = s->g->inputs[i];
        s->x[i] = copy_of(s, w->m->dtype, node, run->inputs[i]);
        s->inputs[i] = s->x[i];
        if (!s->x[i])
            return TB_ERR_MEMORY;
        if (tb_model_in_value(w->m, part, (size_t)i) < 0)
            continue;
        s->t[i] = room(s, node);
        s->g_x[i] = room(s, node);
        if (!s->t[i] || !s->g_x[i])
            return TB_ERR_MEMORY;
        for (size_t e = 0; e < count_of(s, node); e++) {
            double size = tb_fabs(s->x[i][e]);
            uint64_t at = ((uint64_t)i << 40) + e;
            s->t[i][e] =
                (size > 1 ? size : 1) * (tb_rng_below(r, at, 2) ? 1.0 : -1.0);
        }
    }
    return TB_OK;
}

static tb_status make_outputs(twin *s, uint64_t seed)
{
    tb_rng r = tb_rng_make(seed, "check up");
    for (int o = 0; o < s->g->noutputs; o++) {
        double **all[] = {&s->y[o], &s->ty[o], &s->up[o], &s->down[o],
                          &s->u[o]};
        int node = s->g->outputs[o].node;
        for (size_t i = 0; i < TB_LEN(all); i++)
            if (!(*all[i] = room(s, node)))
                return TB_ERR_MEMORY;
        for (size_t e = 0; e < count_of(s, node); e++)
            s->u[o][e] = tb_rng_normal(r, ((uint64_t)o << 40) + e);
    }
    return TB_OK;
}

static tb_status copy_params(twin *s, tb_walk *w, const tb_run *run)
{
    size_t n = (size_t)s->g->nparams;
    const void **params = tb_arena_alloc(&s->a, (n + 1) * sizeof *params);
    for (size_t i = 0; params && i < n; i++) {
        params[i] =
            copy_of(s, w->m->dtype, s->g->params[i].node, run->params[i]);
        if (!params[i])
            return TB_ERR_MEMORY;
    }
    s->run.params = params;
    return params ? TB_OK : TB_ERR_MEMORY;
}

static tb_status make_twin(twin *s, tb_walk *w, const tb_run *run, size_t part)
{
    uint64_t seed = w->audit->seed + 1000003 * (uint64_t)part;
    tb_plan_spec spec = {.graph = s->g,
                         .batch = s->batch,
                         .time = s->time,
                         .dtype = TB_F64,
                         .passes = TB_PASS_BWD | TB_PASS_TAN,
                         .name = "layer"};
    TB_TRY(tb_plan_create(w->ctx, &spec, &s->plan));
    TB_TRY(make_tables(s));
    s->run = *run;
    TB_TRY(copy_inputs(s, w, run, part, seed));
    TB_TRY(make_outputs(s, seed));
    TB_TRY(copy_params(s, w, run));
    s->run.profile = NULL;
    s->run.inputs = (const void *const *)s->inputs;
    return tb_run_on(&s->a, s->plan, &s->run);
}

/* --- running -------------------------------------------------------------- */

static tb_status derivatives(twin *s, tb_ctx *ctx)
{
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)s->u,
                .gin = (void *const *)s->g_x};
    s->run.outputs = (void *const *)s->y;
    TB_TRY(tb_plan_forward(ctx, &s->run));
    TB_TRY(tb_plan_tangent(ctx, &s->run, (const void *const *)s->t, NULL,
                           (void *const *)s->ty));
    return tb_plan_backward(ctx, &s->run, &b);
}

/* The values at x + by t. */
static tb_status beside(twin *s, tb_ctx *ctx, double by, double **out)
{
    for (int i = 0; i < s->g->ninputs; i++) {
        if (!s->t[i])
            continue;
        size_t n = count_of(s, s->g->inputs[i]);
        double *moved =
            s->inputs[i] == s->x[i] ? room(s, s->g->inputs[i]) : s->inputs[i];
        if (!moved)
            return TB_ERR_MEMORY;
        for (size_t e = 0; e < n; e++)
            moved[e] = s->x[i][e] + by * s->t[i][e];
        s->inputs[i] = moved;
    }
    s->run.outputs = (void *const *)out;
    return tb_plan_forward(ctx, &s->run);
}

/* --- comparing ------------------------------------------------------------ */

/* The better of this step and the one before. */
static void against_differences(const twin *s, double h, tb_flow_check *out)
{
    double most = 0, off = 0, one = 0;
    for (int o = 0; o < s->g->noutputs; o++)
        for (size_t e = 0; e < count_of(s, s->g->outputs[o].node); e++) {
            double a = s->ty[o][e], n = (s->up[o][e] - s->down[o][e]) / (2 * h);
            double d = tb_fabs(a - n), both = tb_fabs(a) + tb_fabs(n);
            off = d > off ? d : off;
            most = tb_fabs(a) > most ? tb_fabs(a) : most;
            one = both > 0 && d / both > one ? d / both : one;
        }
    double error = most > 0 ? off / most : off;
    if (!(error < out->error))
        return;
    out->error = error;
    out->elementwise = one;
}

/* <u, J t> and <J'u, t>, over the most they could be. */
static void against_backward(const twin *s, const tb_kern *k,
                             tb_flow_check *out)
{
    double up = 0, down = 0, u = 0, t = 0;
    for (int o = 0; o < s->g->noutputs; o++) {
        size_t n = count_of(s, s->g->outputs[o].node);
        up += k->dot(n, s->u[o], s->ty[o]);
        u += k->dot(n, s->u[o], s->u[o]);
        t += k->dot(n, s->ty[o], s->ty[o]);
    }
    for (int i = 0; i < s->g->ninputs; i++)
        if (s->t[i])
            down += k->dot(count_of(s, s->g->inputs[i]), s->g_x[i], s->t[i]);
    double most = tb_sqrt(u) * tb_sqrt(t);
    out->adjoint = most > 0 ? tb_fabs(up - down) / most : tb_fabs(down);
}

static tb_status measure(twin *s, tb_walk *w, tb_flow_check *out)
{
    static const double steps[] = {1e-5, 1e-7};
    TB_TRY(derivatives(s, w->ctx));
    against_backward(s, tb_kern_get(w->ctx, TB_F64), out);
    out->error = __builtin_inf();
    for (size_t i = 0; i < TB_LEN(steps) && out->error > 1e-7; i++) {
        TB_TRY(beside(s, w->ctx, steps[i], s->up));
        TB_TRY(beside(s, w->ctx, -steps[i], s->down));
        against_differences(s, steps[i], out);
    }
    return TB_OK;
}

/* What stop() holds moves a difference, as it should not. */
static bool stops(const tb_graph *g)
{
    for (int i = 0; i < g->nnodes; i++)
        if (g->nodes[i].op == &tb_op_stop)
            return true;
    return false;
}

tb_status tb_audit_check(tb_walk *w, const tb_run *run, size_t part)
{
    twin s = {.g = tb_model_graph(w->m, part),
              .batch = w->f->batch,
              .time = w->f->tokens};
    tb_flow_check *out = &w->f->checks[w->f->nchecks];
    if (stops(s.g))
        return TB_OK;
    *out = (tb_flow_check){.layer = tb_model_layer(w->m, part),
                           .role = w->stack->role};
    tb_arena_init(&s.a, w->ctx);
    tb_status status = make_twin(&s, w, run, part);
    if (status == TB_OK)
        status = measure(&s, w, out);
    if (s.plan)
        tb_plan_destroy(w->ctx, s.plan);
    tb_arena_clear(&s.a);
    w->f->nchecks += status == TB_OK;
    return status;
}
