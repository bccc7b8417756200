/* SPDX-License-Identifier: MIT */
/* The symbolic Jacobian of one layer on random numbers, against backward
 * passes, tangent passes and central differences. */
#include "model/symbolic.h"

/* --- a piece of it: one node in, one node out ----------------------------- */

/** The same graph on the same numbers in which the value of `from` is given
 * and the value of `to` is the only output. */
typedef struct piece {
    tb_trial t;
    int from, to;
    const void **data; /* its inputs */
    int slot;          /* of `from` among them */
    double *x;         /* the value of `from` */
    size_t in, out;
} piece;

static tb_status copy_graph(piece *p, const tb_trial *t)
{
    const tb_graph *g = t->graph;
    size_t n = (size_t)g->nnodes;
    tb_graph *copy = TB_NEW(&p->t.arena, tb_graph);
    tb_node *nodes = tb_arena_alloc(&p->t.arena, n * sizeof *nodes);
    int *inputs = tb_arena_alloc(&p->t.arena, n * sizeof *inputs);
    tb_output *out = TB_NEW(&p->t.arena, tb_output);
    const void **data = tb_arena_alloc(&p->t.arena, n * sizeof *data);
    if (!copy || !nodes || !inputs || !out || !data)
        return TB_ERR_MEMORY;
    memcpy(nodes, g->nodes, n * sizeof *nodes);
    memcpy(inputs, g->inputs, (size_t)g->ninputs * sizeof *inputs);
    memcpy(data, t->run.inputs, (size_t)g->ninputs * sizeof *data);
    *copy = *g;
    *out = (tb_output){"", p->to};
    copy->nodes = nodes;
    copy->inputs = inputs;
    copy->outputs = out;
    copy->noutputs = 1;
    p->t.graph = copy;
    p->t.run.inputs = p->data = data;
    return TB_OK;
}

/* Node i becomes an input that holds the value it has in `t`; its address. */
static double *hold(piece *p, const tb_trial *t, int i)
{
    tb_graph *g = p->t.graph;
    size_t n = tb_shape_count(g->nodes[i].shape, 1, t->time);
    double *v = tb_arena_alloc(&p->t.arena, n * sizeof *v);
    if (!v)
        return NULL;
    memcpy(v, tb_plan_value(&t->run, i), n * sizeof *v);
    p->slot = 0;
    while (p->slot < g->ninputs && g->inputs[p->slot] != i)
        p->slot++;
    if (p->slot == g->ninputs)
        g->inputs[g->ninputs++] = i;
    g->nodes[i].op = &tb_op_input;
    g->nodes[i].nin = 0;
    g->nodes[i].name = "x";
    p->data[p->slot] = v;
    return v;
}

/* frozen: stopped values are given too. */
static tb_status cut_out(piece *p, const tb_trial *t, int from, int to,
                         bool frozen)
{
    *p = (piece){.t = *t, .from = from, .to = to};
    p->t.plan = NULL;
    tb_arena_init(&p->t.arena, t->ctx);
    TB_TRY(copy_graph(p, t));
    for (int i = 0; frozen && i < t->graph->nnodes; i++)
        if (t->graph->nodes[i].op == &tb_op_stop && i != from && !hold(p, t, i))
            return TB_ERR_MEMORY;
    p->x = hold(p, t, from);
    if (!p->x)
        return TB_ERR_MEMORY;
    p->in = tb_shape_count(t->graph->nodes[from].shape, 1, t->time);
    p->out = tb_shape_count(t->graph->nodes[to].shape, 1, t->time);
    return tb_trial_plan(&p->t, frozen ? 0 : TB_PASS_BWD | TB_PASS_TAN);
}

/* --- three other ways ----------------------------------------------------- */

/** What is compared: the symbolic matrix, and scratch of its size. */
typedef struct test {
    piece *p;
    const double *symbolic; /* [out, in] */
    double *column;         /* [out] and more */
    double *unit;           /* [in or out], zero between passes */
    const void **tin;
    void **gin;
} test;

static void worse(double *most, double v)
{
    if (*most == *most && !(v <= *most)) /* keeps a NaN */
        *most = v;
}

static tb_status backward_rows(const test *c, double *most)
{
    piece *p = c->p;
    const void *gout[1] = {c->unit};
    tb_bwd b = {.hi = -1, .lo = -1, .gout = gout, .gin = c->gin};
    c->gin[p->slot] = c->column;
    for (size_t i = 0; i < p->out; i++) {
        c->unit[i] = 1;
        TB_TRY(tb_plan_backward(p->t.ctx, &p->t.run, &b));
        c->unit[i] = 0;
        for (size_t j = 0; j < p->in; j++)
            worse(most, tb_fabs(c->column[j] - c->symbolic[i * p->in + j]));
    }
    return TB_OK;
}

static tb_status tangent_columns(const test *c, double *most)
{
    piece *p = c->p;
    void *tout[1] = {c->column};
    c->tin[p->slot] = c->unit;
    for (size_t j = 0; j < p->in; j++) {
        c->unit[j] = 1;
        TB_TRY(tb_plan_tangent(p->t.ctx, &p->t.run, c->tin, NULL, tout));
        c->unit[j] = 0;
        for (size_t i = 0; i < p->out; i++)
            worse(most, tb_fabs(c->column[i] - c->symbolic[i * p->in + j]));
    }
    return TB_OK;
}

static double largest_of(const double *m, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        worse(&most, tb_fabs(m[i]));
    return most;
}

/* Central differences with steps h, h/4, h/16, ...: neighbours give values of
 * higher order (Ridders 1982), and how far they lie apart tells their error.
 * One order is taken for a whole column, so that no entry agrees by chance.
 * h moves the output by at most some 4e-3: a steep layer bends early. */
enum { LEVELS = 5 };

static tb_status value_at(piece *p, size_t j, double x, double *out)
{
    p->x[j] = x;
    tb_status s = tb_plan_forward(p->t.ctx, &p->t.run);
    memcpy(out, tb_plan_value(&p->t.run, p->to), p->out * sizeof *out);
    return s;
}

/* below[p->out] is scratch. */
static tb_status one_difference(piece *p, size_t j, double h, double *below,
                                double *out)
{
    double at = p->x[j];
    volatile double up = at + h, down = at - h; /* the steps taken */
    tb_status s = value_at(p, j, up, out);
    if (s == TB_OK)
        s = value_at(p, j, down, below);
    p->x[j] = at;
    for (size_t i = 0; i < p->out; i++)
        out[i] = (out[i] - below[i]) / (up - down);
    return s;
}

/* The next row of the table, from `d`: t[m] holds order m of the row before.
 * error[m]: how far order m lies from its neighbours. */
static void next_row(double *t, size_t n, size_t row, const double *d,
                     double *error)
{
    memset(error, 0, LEVELS * sizeof *error);
    for (size_t i = 0; i < n; i++) {
        double before = t[i], factor = 1;
        t[i] = d[i];
        for (size_t m = 1; m <= row; m++) {
            double *now = &t[m * n + i], lower = t[(m - 1) * n + i];
            double next = *now;
            factor *= 16;
            *now = (factor * lower - before) / (factor - 1);
            worse(&error[m], tb_fabs(*now - lower));
            worse(&error[m], tb_fabs(*now - before));
            before = next;
        }
    }
}

/* Column j, into `best`, and its error. `t` is scratch, LEVELS + 1 columns. */
static tb_status difference_column(piece *p, size_t j, double h, double *t,
                                   double *below, double *best, double *error)
{
    double errors[LEVELS], *d = t + LEVELS * p->out;
    *error = __builtin_inf();
    for (size_t row = 0; row < LEVELS; row++, h /= 4) {
        TB_TRY(one_difference(p, j, h, below, d));
        next_row(t, p->out, row, d, errors);
        for (size_t m = 1; m <= row; m++) {
            if (!(errors[m] < *error))
                continue;
            *error = errors[m];
            memcpy(best, t + m * p->out, p->out * sizeof *best);
        }
    }
    return TB_OK;
}

static tb_status difference_columns(const test *c, double *most, double *bound)
{
    piece *p = c->p;
    double *best = c->column, *t = c->column + p->out, error;
    double steepest = largest_of(c->symbolic, p->in * p->out);
    double h = 4e-3 / (steepest > 1 ? steepest : 1);
    for (size_t j = 0; j < p->in; j++) {
        memset(best, 0, p->out * sizeof *best);
        TB_TRY(difference_column(p, j, h, t, c->unit, best, &error));
        for (size_t i = 0; i < p->out; i++)
            worse(most, tb_fabs(best[i] - c->symbolic[i * p->in + j]));
        worse(bound, error);
    }
    return TB_OK;
}

/* --- all of them ---------------------------------------------------------- */

static tb_status test_for(piece *p, const double *symbolic, test *c)
{
    size_t most = p->in > p->out ? p->in : p->out;
    size_t inputs = (size_t)p->t.graph->ninputs;
    *c = (test){.p = p, .symbolic = symbolic};
    c->column =
        tb_arena_alloc(&p->t.arena, most * (LEVELS + 2) * sizeof *c->column);
    c->unit = tb_arena_alloc(&p->t.arena, (most + 1) * sizeof *c->unit);
    c->tin = tb_arena_alloc(&p->t.arena, inputs * sizeof *c->tin);
    c->gin = tb_arena_alloc(&p->t.arena, inputs * sizeof *c->gin);
    return c->column && c->unit && c->tin && c->gin ? TB_OK : TB_ERR_MEMORY;
}

/* Errors of one matrix over its largest entry, into the worst so far. On
 * numbers around 1, a matrix below 1e-12 is 0 but for rounding: over 1. */
static void conclude(tb_agreement *a, const tb_agreement *now, double largest)
{
    double over = largest > 1e-12 ? largest : 1;
    worse(&a->tangent, now->tangent / over);
    worse(&a->backward, now->backward / over);
    worse(&a->difference, now->difference / over);
    worse(&a->bound, now->bound / over);
    worse(&a->largest, largest);
}

static tb_status passes(const tb_trial *t, int from, int to,
                        const double *symbolic, tb_agreement *now)
{
    piece p;
    test c;
    tb_status s = cut_out(&p, t, from, to, false);
    if (s == TB_OK)
        s = test_for(&p, symbolic, &c);
    if (s == TB_OK)
        s = backward_rows(&c, &now->backward);
    if (s == TB_OK)
        s = tangent_columns(&c, &now->tangent);
    tb_trial_close(&p.t);
    return s;
}

static tb_status differences(const tb_trial *t, int from, int to,
                             const double *symbolic, tb_agreement *now)
{
    piece p;
    test c;
    tb_status s = cut_out(&p, t, from, to, true);
    if (s == TB_OK)
        s = test_for(&p, symbolic, &c);
    if (s == TB_OK)
        s = difference_columns(&c, &now->difference, &now->bound);
    tb_trial_close(&p.t);
    return s;
}

static tb_status compare(const tb_trial *t, int from, int to,
                         const double *symbolic, bool differs, tb_agreement *a)
{
    tb_agreement now = {0};
    const tb_symbolic s = tb_trial_symbolic(t);
    TB_TRY(passes(t, from, to, symbolic, &now));
    if (differs)
        TB_TRY(differences(t, from, to, symbolic, &now));
    size_t n = tb_symbolic_count(&s, from) * tb_symbolic_count(&s, to);
    conclude(a, &now, largest_of(symbolic, n));
    return TB_OK;
}

/* Each step of one stream. */
static tb_status check_steps(const tb_trial *t, const tb_jacobian *j, size_t n,
                             double *m, tb_agreement *a)
{
    const tb_symbolic s = tb_trial_symbolic(t);
    const tb_boundary *b = t->graph->boundaries;
    for (int i = 0; i < j->nfactors; i++) {
        TB_TRY(tb_symbolic_term(&s, j->entries[i], n, n, m));
        TB_TRY(compare(t, b[i].node, b[i + 1].node, m, false, a));
    }
    return TB_OK;
}

/* The product of the steps: every stream out by every stream in. `block` is
 * scratch of n*n. */
static tb_status check_whole(const tb_trial *t, const tb_jacobian *j, size_t n,
                             double *whole, double *block, bool differs,
                             tb_agreement *a)
{
    const tb_symbolic s = tb_trial_symbolic(t);
    const tb_cut *in = &t->graph->cuts[0], *out = &t->graph->cuts[j->nfactors];
    size_t count = (size_t)j->nstreams, width = count * n;
    TB_TRY(tb_symbolic_matrix(&s, j, n, whole));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            for (size_t r = 0; r < n; r++)
                memcpy(block + r * n, whole + (i * n + r) * width + k * n,
                       n * sizeof *block);
            TB_TRY(compare(t, in->nodes[k], out->nodes[i], block, differs, a));
        }
    return TB_OK;
}

static bool stands_in(const tb_cut *c, int nstreams, int node)
{
    for (int i = 0; i < nstreams; i++)
        if (c->nodes[i] == node)
            return true;
    return false;
}

/* What is no stream: elements of lists and a memory in, elements of lists out.
 * Masks are no numbers to differentiate by. */
static tb_status check_others(const tb_trial *t, size_t n, double *m,
                              tb_jac_mode mode, tb_agreement *a)
{
    const tb_graph *g = t->graph;
    const tb_symbolic s = tb_trial_symbolic(t);
    const tb_cut *in = &g->cuts[0], *out = &g->cuts[g->ncuts - 1];
    for (int o = 0; o < g->noutputs; o++)
        for (int i = 0; i < g->ninputs; i++) {
            int from = g->inputs[i], to = g->outputs[o].node;
            bool both = stands_in(in, g->nstreams, from) &&
                        stands_in(out, g->nstreams, to);
            if (both || tb_symbolic_count(&s, from) != n ||
                tb_symbolic_count(&s, to) != n)
                continue;
            TB_TRY(tb_symbolic_between(&s, from, to, mode, m));
            TB_TRY(compare(t, from, to, m, false, a));
        }
    return TB_OK;
}

static tb_status check_all(const tb_trial *t, tb_arena *arena, tb_agreement *a)
{
    static const tb_jac_mode modes[] = {TB_JAC_CLOSED, TB_JAC_OPEN};
    const tb_symbolic s = tb_trial_symbolic(t);
    size_t n = tb_symbolic_count(&s, t->graph->cuts[0].nodes[0]);
    size_t width = n * (size_t)t->graph->nstreams;
    double *block = tb_arena_alloc(arena, n * n * sizeof *block);
    double *whole = tb_arena_alloc(arena, width * width * sizeof *whole);
    if (!block || !whole)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < TB_LEN(modes); i++) {
        tb_jacobian j;
        TB_TRY(tb_jacobian_build(t->ctx, arena, t->graph, modes[i], &j));
        if (j.nstreams == 1)
            TB_TRY(check_steps(t, &j, n, block, a));
        TB_TRY(check_whole(t, &j, n, whole, block, i == 0, a));
        TB_TRY(check_others(t, n, block, modes[i], a));
    }
    return TB_OK;
}

tb_status tb_trial_check(const tb_trial *t, tb_agreement *out)
{
    tb_arena arena;
    int threads = tb_ctx_thread_limit(t->ctx);
    *out = (tb_agreement){0};
    tb_arena_init(&arena, t->ctx);
    tb_ctx_threads(t->ctx, 1); /* thousands of passes too small to share */
    tb_status s = check_all(t, &arena, out);
    tb_ctx_threads(t->ctx, threads);
    tb_arena_clear(&arena);
    return s;
}
