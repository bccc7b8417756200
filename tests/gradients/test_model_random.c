/* SPDX-License-Identifier: MIT */
/* What must hold of every block, held on random ones in double: backward is
 * the adjoint of tangent, tangent the central difference, the dense Jacobian
 * both; pieces make the whole, lane and branch the total; no plan, no fusion
 * and no request changes what is computed; floats are near. */
#include "random_rig.h"

#include <stdio.h>

enum { BLOCKS = 1000, DEPTH = 3, LEVELS = 5, MANY = 25, OPS = 64 };

/* A fault is as large as what it spoils. Bounds leave room for the rounding of
 * one block in some 100000 whose attention sees seventh powers. */

/** One block under test, and the worst that was met of each kind. */
typedef struct trial {
    rig r;
    machine plain, keep;
    double scale, size; /* the largest gradient there is, and output */
    struct worst *worst;
} trial;

typedef struct worst {
    double adjoint, difference, jacobian, pieces, lane, split, added, floats;
    size_t graphs, nodes, rough, wild;
    size_t differences, jacobians, blocks, chains, once; /* not of all graphs */
    size_t ops[OPS]; /* how often each stood in a graph */
} worst;

static void largest(double *most, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        worse(most, tb_fabs(v[i]));
}

static void apart(double *most, const double *a, const double *b, size_t n,
                  double by)
{
    for (size_t i = 0; i < n; i++)
        worse(most, tb_fabs(a[i] - by * b[i]));
}

#define FAIL(t, ...) tb_test_fail((t)->r.T, __FILE__, __LINE__, __VA_ARGS__)
#define OKAY(t, call)                                                          \
    do {                                                                       \
        if ((call) != TB_OK) {                                                 \
            FAIL(t, "%s: %s", #call, tb_error((t)->r.T->ctx));                 \
            return;                                                            \
        }                                                                      \
    } while (0)

/* --- over all leaves ------------------------------------------------------ */

static size_t in_count(const trial *t, int i)
{
    const tb_graph *g = t->r.g;
    return rig_ids(g, g->inputs[i]) ? 0 : rig_count(&t->r, g, g->inputs[i]);
}

/* Running statistics have no gradient. */
static size_t par_count(const trial *t, int i)
{
    const tb_graph *g = t->r.g;
    return g->params[i].role == TB_ROLE_BUFFER
               ? 0
               : rig_count(&t->r, g, g->params[i].node);
}

static size_t out_count(const trial *t, int o)
{
    return rig_count(&t->r, t->r.g, t->r.g->outputs[o].node);
}

/* Of machines with any types. */
static void slots_apart(double *most, const machine *m, const void *a,
                        const machine *n, const void *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        worse(most, tb_fabs(tb_test_get(m->dtype, a, i) -
                            tb_test_get(n->dtype, b, i)));
}

static double leaves_apart(const trial *t, const machine *m, const machine *n)
{
    double most = 0;
    for (int i = 0; i < t->r.g->ninputs; i++)
        slots_apart(&most, m, m->gin[i], n, n->gin[i], in_count(t, i));
    for (int i = 0; i < t->r.g->nparams; i++)
        slots_apart(&most, m, m->gpar[i], n, n->gpar[i], par_count(t, i));
    return most;
}

static double dot(const double *a, const double *b, size_t n, double *absolute)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i], *absolute += tb_fabs(a[i] * b[i]);
    return sum;
}

static double leaves_dot(const trial *t, const machine *m, double *absolute)
{
    double sum = 0;
    for (int i = 0; i < t->r.g->ninputs; i++)
        sum += dot(m->gin[i], t->r.tin[i], in_count(t, i), absolute);
    for (int i = 0; i < t->r.g->nparams; i++)
        sum += dot(m->gpar[i], t->r.tpar[i], par_count(t, i), absolute);
    return sum;
}

static double outputs_dot(const trial *t, const machine *m, double *absolute)
{
    double sum = 0;
    for (int o = 0; o < t->r.g->noutputs; o++)
        sum += dot(m->tout[o], t->r.gout[o], out_count(t, o), absolute);
    return sum;
}

/* --- what may be lost ----------------------------------------------------- */

/* The largest gradient of any value inside. */
static double inner(trial *t)
{
    rig *r = &t->r;
    size_t n = 0;
    double most = t->scale, off = 0;
    int *seen = rig_room(r, (size_t)r->g->nnodes * sizeof *seen);
    void **gseen = rig_room(r, (size_t)r->g->nnodes * sizeof *gseen);
    for (int i = 0; i < r->g->nnodes; i++)
        if (r->g->nodes[i].op->shape) {
            seen[n] = i;
            gseen[n++] = rig_room(r, rig_count(r, r->g, i) * sizeof(double));
        }
    const tb_bwd b = {.hi = -1,
                      .lo = -1,
                      .gout = (const void *const *)t->keep.gout,
                      .gin = t->keep.gin,
                      .nseen = n,
                      .seen = seen,
                      .gseen = gseen};
    machine_dirty(&t->keep);
    if (tb_plan_backward(r->T->ctx, &t->keep.run, &b) != TB_OK)
        FAIL(t, "%s", tb_error(r->T->ctx));
    for (int i = 0; i < r->g->ninputs; i++) /* as without being looked at */
        apart(&off, t->keep.gin[i], t->plain.gin[i], in_count(t, i), 1);
    if (!(off <= 1e-11 * t->scale))
        FAIL(t, "seen from inside: another gradient");
    for (size_t i = 0; i < n; i++)
        largest(&most, gseen[i], rig_count(r, r->g, seen[i]));
    return most;
}

/* --- backward and tangent ------------------------------------------------- */

static void check_adjoint(trial *t)
{
    double absolute = 0;
    double want = outputs_dot(t, &t->plain, &absolute);
    double got = leaves_dot(t, &t->plain, &absolute);
    double error = tb_fabs(want - got) / (absolute + 1);
    worse(&t->worst->adjoint, error);
    if (!(error <= 1e-7 || tb_fabs(want - got) <= 1e-12 * inner(t)))
        FAIL(t, "backward %.17g, tangent %.17g", got, want);
}

/* --- central differences -------------------------------------------------- */

static bool is_stop(const tb_node *n)
{
    return n->op == &tb_op_stop;
}

/** What moves along the tangents, and what it gives. */
typedef struct mover {
    trial *t;
    machine m;
    double *table[LEVELS + 1]; /* of all outputs */
    size_t n;
} mover;

static tb_status values_at(mover *v, double h, double *out)
{
    const rig *r = &v->t->r;
    for (int i = 0; i < r->g->ninputs; i++)
        for (size_t k = 0; k < in_count(v->t, i); k++)
            ((double *)v->m.in[i])[k] = r->in[i][k] + h * r->tin[i][k];
    for (int i = 0; i < r->g->nparams; i++)
        for (size_t k = 0; k < par_count(v->t, i); k++)
            ((double *)v->m.par[i])[k] = r->par[i][k] + h * r->tpar[i][k];
    TB_TRY(tb_plan_forward(r->T->ctx, &v->m.run));
    for (int o = 0; o < r->g->noutputs; o++) {
        memcpy(out, v->m.out[o], out_count(v->t, o) * sizeof *out);
        out += out_count(v->t, o);
    }
    return TB_OK;
}

/* Steps h, h/4, h/16, ...: neighbours give values of higher order (Ridders
 * 1982), and how far they lie apart tells their error. One order is taken for
 * all outputs. */
static tb_status ridders(mover *v, double h, double *best, double *error)
{
    double *d = v->table[LEVELS], *low = best;
    double *down = rig_room(&v->t->r, v->n * sizeof *down);
    *error = __builtin_inf();
    best = rig_room(&v->t->r, v->n * sizeof *best);
    for (int row = 0; row < LEVELS; row++, h /= 4) {
        double errors[LEVELS] = {0};
        TB_TRY(values_at(v, h, d));
        TB_TRY(values_at(v, -h, down));
        for (size_t i = 0; i < v->n; i++) {
            double before = v->table[0][i], factor = 1;
            v->table[0][i] = (d[i] - down[i]) / (2 * h);
            for (int m = 1; m <= row; m++) {
                double lower = v->table[m - 1][i], next = v->table[m][i];
                factor *= 16;
                v->table[m][i] = (factor * lower - before) / (factor - 1);
                worse(&errors[m], tb_fabs(v->table[m][i] - lower));
                worse(&errors[m], tb_fabs(v->table[m][i] - before));
                before = next;
            }
        }
        for (int m = 1; m <= row; m++)
            if (errors[m] < *error) {
                *error = errors[m];
                memcpy(low, v->table[m], v->n * sizeof *low);
            }
    }
    return TB_OK;
}

/* How far the tangents are from differences that begin with step h. */
static tb_status difference(mover *v, double h, double *most, double *error)
{
    trial *t = v->t;
    double *at = rig_room(&t->r, v->n * sizeof *at);
    TB_TRY(ridders(v, h, at, error));
    *most = 0;
    for (int o = 0; o < t->r.g->noutputs; o++) {
        apart(most, at, t->plain.tout[o], out_count(t, o), 1);
        at += out_count(t, o);
    }
    return TB_OK;
}

/* Does a value stand on a kink: exactly 0, as of x - stop(x)? */
static bool on_a_kink(const trial *t)
{
    const tb_graph *g = t->r.g;
    for (int i = 0; i < g->nnodes; i++) {
        if (g->nodes[i].op != &tb_op_relu && g->nodes[i].op != &tb_op_abs)
            continue;
        const double *v = tb_plan_value(&t->keep.run, g->nodes[i].in[0]);
        for (size_t k = 0; k < rig_count(&t->r, g, i); k++)
            if (v[k] == 0)
                return true;
    }
    return false;
}

/* Where a kink lies within the steps, smaller ones, that know less, are on one
 * side of it. */
static void check_difference(trial *t)
{
    double **in, error, most, steepest = 1, size = 1, within = 1e-8;
    mover v = {.t = t};
    tb_graph *g = rig_hold(&t->keep, is_stop, &in);
    if (on_a_kink(t))
        return;
    OKAY(t, machine_make(&v.m, &t->r, g, in, TB_F64, 0));
    for (int o = 0; o < t->r.g->noutputs; o++) {
        v.n += out_count(t, o);
        largest(&steepest, t->plain.tout[o], out_count(t, o));
        largest(&size, t->plain.out[o], out_count(t, o));
    }
    double step = steepest > size ? size / steepest : 1;
    for (int i = 0; i <= LEVELS; i++)
        v.table[i] = rig_room(&t->r, v.n * sizeof(double));
    tb_status s = difference(&v, 4e-3 * step, &most, &error);
    for (double h = 1e-5; s == TB_OK && h > 1e-8; h /= 100)
        if (!(most <= 20 * error + within * steepest)) {
            within = 1e-11 / h;
            s = difference(&v, h * step, &most, &error);
        }
    machine_free(&v.m);
    OKAY(t, s);
    worse(&t->worst->difference, most / steepest);
    t->worst->differences += error <= 1e-4 * steepest;
    if (!(most <= 20 * error + within * steepest))
        FAIL(t, "tangent and difference %g apart, of %g (%g)", most, steepest,
             error);
}

/* --- dense Jacobian ------------------------------------------------------- */

/* J tin against the tangent without weights, and gout J against gin. A row is
 * of one token and one channel of all outputs. */
static void compare_jacobian(trial *t, const double *J, const int *inputs,
                             size_t ninputs, size_t columns)
{
    const rig *r = &t->r;
    double *back = rig_room(&t->r, columns * sizeof *back), most = 0, all = 1;
    for (size_t token = 0; token < r->batch * r->time; token++)
        for (int o = 0; o < r->g->noutputs; o++) {
            size_t d = r->g->nodes[r->g->outputs[o].node].shape.width;
            for (size_t k = token * d; k < (token + 1) * d; k++, J += columns) {
                double forth = 0, sum = 0;
                size_t c = 0;
                for (size_t i = 0; i < ninputs; i++)
                    for (size_t j = 0; j < in_count(t, inputs[i]); j++, c++) {
                        forth += J[c] * r->tin[inputs[i]][j];
                        sum += tb_fabs(J[c]);
                        back[c] += J[c] * r->gout[o][k];
                    }
                worse(&all, sum);
                worse(&most, tb_fabs(forth - ((double *)t->keep.tout[o])[k]));
            }
        }
    for (size_t i = 0, c = 0; i < ninputs; c += in_count(t, inputs[i++]))
        apart(&most, back + c, t->plain.gin[inputs[i]], in_count(t, inputs[i]),
              1);
    worse(&t->worst->jacobian, most / all);
    t->worst->jacobians++;
    if (!(most <= 1e-7 * all || most <= 1e-12 * inner(t)))
        FAIL(t, "dense Jacobian %g apart, of %g (%g)", most, all, inner(t));
}

/* By the last input alone, the blocks of each row's own token: those of the
 * full one, where that input's columns come last. */
static void check_blocks(trial *t, const tb_jacobian_spec *full, size_t rows)
{
    rig *r = &t->r;
    int input = full->inputs[full->ninputs - 1];
    size_t d = r->g->nodes[r->g->inputs[input]].shape.width;
    size_t before = full->columns - in_count(t, input);
    size_t channels = rows / (r->batch * r->time);
    const tb_jacobian_spec j = {.inputs = &input,
                                .ninputs = 1,
                                .columns = d,
                                .blocks = true,
                                .out = rig_room(r, rows * d * sizeof(double))};
    double most = 0;
    bool done;
    OKAY(t, tb_plan_jacobian(r->T->ctx, &t->keep.run, &j, &done));
    for (size_t row = 0; done && row < rows; row++)
        apart(&most, j.out + row * d,
              full->out + row * full->columns + before + row / channels * d, d,
              1);
    t->worst->blocks += done;
    if (!(most <= 1e-12 * t->scale || most <= 1e-12 * inner(t)))
        FAIL(t, "blocks of the Jacobian: %g apart", most);
}

static void check_jacobian(trial *t)
{
    rig *r = &t->r;
    size_t rows = 0, columns = 0, n = 0;
    int *inputs = rig_room(r, (size_t)r->g->ninputs * sizeof *inputs);
    bool done;
    for (int i = 0; i < r->g->ninputs; i++)
        if (in_count(t, i)) {
            columns += in_count(t, i);
            inputs[n++] = i;
        }
    for (int o = 0; o < r->g->noutputs; o++)
        rows += out_count(t, o);
    const tb_jacobian_spec j = {
        .inputs = inputs,
        .ninputs = n,
        .columns = columns,
        .out = rig_room(r, rows * columns * sizeof(double))};
    if (n == 0)
        return;
    OKAY(t, tb_plan_jacobian(r->T->ctx, &t->keep.run, &j, &done));
    OKAY(t, machine_tangent(&t->keep, false));
    if (!done)
        return;
    compare_jacobian(t, j.out, inputs, n, columns);
    check_blocks(t, &j, rows);
}

/* --- pieces --------------------------------------------------------------- */

/* Down from boundary to boundary: the same gradients of x and of the weights,
 * and what each boundary gets is what is seen there on the way. */
static void check_pieces(trial *t)
{
    rig *r = &t->r;
    tb_graph *g = r->g;
    int last = g->nboundaries - 1, n = g->inputs[0];
    size_t count = rig_count(r, g, n);
    void **gpar = t->keep.gpar;
    double *above = rig_room(r, count * sizeof *above), most = 0;
    int *seen = rig_room(r, (size_t)g->nboundaries * sizeof *seen);
    void **gseen = rig_room(r, (size_t)g->nboundaries * sizeof *gseen);
    bool *fresh = rig_room(r, (size_t)g->nparams);
    if (last < 1 || g->noutputs != 1 || !in_count(t, 0) ||
        g->boundaries[0].node != n ||
        g->boundaries[last].node != g->outputs[0].node)
        return;
    for (int i = 0; i <= last; i++) {
        seen[i] = g->boundaries[i].node;
        gseen[i] = rig_room(r, count * sizeof(double));
    }
    memset(fresh, 1, (size_t)g->nparams);
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)t->keep.gout,
                .gin = t->keep.gin,
                .gparams = gpar,
                .fresh = fresh,
                .nseen = (size_t)last - 1,
                .seen = seen + 1,
                .gseen = gseen + 1};
    OKAY(t, tb_plan_backward(r->T->ctx, &t->keep.run, &b));
    worse(&most, leaves_apart(t, &t->keep, &t->plain));
    memcpy(above, t->keep.gout[0], count * sizeof *above);
    for (int i = 0; i < g->nparams; i++)
        memset(gpar[i], 0, rig_count(r, g, g->params[i].node) * 8);
    for (int i = last; i > 0; i--) {
        double *below = rig_room(r, count * sizeof *below);
        const void *gout[1] = {above};
        void *gin[1] = {below};
        b = (tb_bwd){
            .hi = i, .lo = i - 1, .gout = gout, .gin = gin, .gparams = gpar};
        machine_dirty(&t->keep);
        OKAY(t, tb_plan_backward(r->T->ctx, &t->keep.run, &b));
        int same = i - 1; /* several boundaries may be one node */
        while (same > 0 && seen[same - 1] == seen[i - 1])
            same--;
        apart(&most, below, same ? gseen[same] : t->plain.gin[0], count, 1);
        above = below;
    }
    for (int i = 0; i < g->nparams; i++)
        apart(&most, gpar[i], t->plain.gpar[i], par_count(t, i), 1);
    worse(&t->worst->pieces, most / t->scale);
    t->worst->chains++;
    if (!(most <= 1e-11 * t->scale || most <= 1e-12 * inner(t)))
        FAIL(t, "pieces %g apart, of %g", most, t->scale);
}

/* --- the lane ------------------------------------------------------------- */

static bool is_cut(const tb_node *n)
{
    return n->op->shape && n->op->lane == TB_LANE_CUT;
}

/* A cut pass is the pass of the graph in which what is cut is given. */
static void check_lane(trial *t)
{
    machine m;
    double **in;
    tb_graph *g = rig_hold(&t->keep, is_cut, &in);
    tb_status s = machine_make(&m, &t->r, g, in, TB_F64, TB_PASS_BWD);
    if (s == TB_OK)
        s = machine_backward(&m, false);
    machine_free(&m);
    OKAY(t, s);
    OKAY(t, machine_backward(&t->keep, true));
    double most = leaves_apart(t, &t->keep, &m);
    worse(&t->worst->lane, most / t->scale);
    if (!(most <= 1e-12 * t->scale))
        FAIL(t, "the lane: %g apart, of %g", most, t->scale);
}

/* <gout, dy> = <lane, dx> + the sum over all that is cut of what reaches it
 * along the lane, times how it moves: the branches. */
static void check_split(trial *t)
{
    rig *r = &t->r;
    machine m;
    tb_graph *g = rig_graph(r);
    size_t n = 0;
    int *cut = rig_room(r, (size_t)g->nnodes * sizeof *cut);
    void **gcut = rig_room(r, (size_t)g->nnodes * sizeof *gcut);
    for (int i = 0; i < g->nnodes; i++)
        if (is_cut(&g->nodes[i])) {
            g->outputs[g->noutputs++] = (tb_output){"cut", i};
            cut[n] = i;
            gcut[n++] = rig_room(r, rig_count(r, g, i) * sizeof(double));
        }
    OKAY(t, machine_make(&m, r, g, r->in, TB_F64, TB_PASS_BWD | TB_PASS_TAN));
    bool *fresh = rig_room(r, (size_t)g->nparams);
    memset(fresh, 1, (size_t)g->nparams);
    const tb_bwd b = {.hi = -1,
                      .lo = -1,
                      .cut = true,
                      .gout = (const void *const *)m.gout,
                      .gin = m.gin,
                      .gparams = m.gpar,
                      .fresh = fresh,
                      .nseen = n,
                      .seen = cut,
                      .gseen = gcut};
    tb_status s = tb_plan_backward(r->T->ctx, &m.run, &b);
    if (s == TB_OK)
        s = machine_tangent(&m, true);
    machine_free(&m);
    OKAY(t, s);
    double absolute = 0, want = outputs_dot(t, &m, &absolute);
    double got = leaves_dot(t, &m, &absolute);
    for (size_t i = 0; i < n; i++)
        got += dot(gcut[i], m.tout[r->g->noutputs + (int)i],
                   rig_count(r, g, cut[i]), &absolute);
    double error = tb_fabs(want - got) / (absolute + 1);
    worse(&t->worst->split, error);
    if (!(error <= 1e-11 || tb_fabs(want - got) <= 1e-12 * inner(t)))
        FAIL(t, "lane and branches %.17g, total %.17g", got, want);
}

/* --- requests ------------------------------------------------------------- */

/* Gradients of every second leaf added to what is there, those of the others
 * fresh; then only every third is wanted. */
static void check_added(trial *t)
{
    rig *r = &t->r;
    tb_graph *g = r->g;
    machine *m = &t->keep;
    double most = 0;
    bool *adds = rig_room(r, (size_t)g->ninputs);
    bool *fresh = rig_room(r, (size_t)g->nparams);
    void **gin = rig_room(r, (size_t)g->ninputs * sizeof *gin);
    void **gpar = rig_room(r, (size_t)g->nparams * sizeof *gpar);
    OKAY(t, machine_backward(m, false));
    for (int i = 0; i < g->ninputs; i++)
        adds[i] = i % 2 == 0;
    for (int i = 0; i < g->nparams; i++)
        fresh[i] = i % 2 == 0;
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)m->gout,
                .gin = m->gin,
                .gparams = m->gpar,
                .adds = adds,
                .fresh = fresh};
    machine_dirty(m);
    OKAY(t, tb_plan_backward(r->T->ctx, &m->run, &b));
    for (int i = 0; i < g->ninputs; i++)
        apart(&most, m->gin[i], t->plain.gin[i], in_count(t, i),
              adds[i] ? 2 : 1);
    for (int i = 0; i < g->nparams; i++)
        apart(&most, m->gpar[i], t->plain.gpar[i], par_count(t, i),
              fresh[i] ? 1 : 2);
    size_t third = r->seed % 3;
    for (int i = 0; i < g->ninputs; i++)
        gin[i] = (size_t)i % 3 == third ? m->gin[i] : NULL;
    for (int i = 0; i < g->nparams; i++)
        gpar[i] = (size_t)i % 3 == third ? m->gpar[i] : NULL;
    memset(fresh, 1, (size_t)g->nparams);
    b.gin = gin, b.gparams = gpar, b.adds = NULL;
    machine_dirty(m);
    OKAY(t, tb_plan_backward(r->T->ctx, &m->run, &b));
    for (int i = 0; i < g->ninputs; i++)
        if (gin[i])
            apart(&most, gin[i], t->plain.gin[i], in_count(t, i), 1);
    for (int i = 0; i < g->nparams; i++)
        if (gpar[i])
            apart(&most, gpar[i], t->plain.gpar[i], par_count(t, i), 1);
    worse(&t->worst->added, most / t->scale);
    if (!(most <= 1e-11 * t->scale || most <= 1e-12 * inner(t)))
        FAIL(t, "requests: %g apart, of %g", most, t->scale);
}

/* --- plans ---------------------------------------------------------------- */

/** A way to run the same graph. */
static const struct {
    const char *name;
    unsigned passes;
    int threads;
} ways[] = {{"kept values", TB_PASS_KEEP, 1},
            {"ops alone", TB_PASS_ALONE, 1},
            {"over values", TB_PASS_ONCE, 1},
            {"alone and kept", TB_PASS_ALONE | TB_PASS_KEEP, 1},
            {"three threads", TB_PASS_TAN, 3}};

/* Kept values, ops that run alone, gradients over values, threads: the same
 * bits. */
static void check_plans(trial *t, tb_dtype type, const machine *plain)
{
    for (size_t p = 0; p < TB_LEN(ways); p++) {
        machine m;
        tb_graph *g = t->r.g;
        double most = 0;
        tb_ctx_threads(t->r.T->ctx, ways[p].threads);
        tb_status s = machine_make(&m, &t->r, g, t->r.in, type,
                                   TB_PASS_BWD | ways[p].passes);
        for (int o = 0; s == TB_OK && o < g->noutputs; o++)
            slots_apart(&most, &m, m.out[o], plain, plain->out[o],
                        out_count(t, o));
        bool spent = (ways[p].passes & TB_PASS_ONCE) != 0;
        if (s == TB_OK)
            s = machine_backward(&m, false);
        machine_free(&m);
        tb_ctx_threads(t->r.T->ctx, 1);
        if (s == TB_OK)
            worse(&most, leaves_apart(t, &m, plain));
        else if (s != TB_ERR_ARG || !spent) /* whose output takes no gradient */
            OKAY(t, s);
        t->worst->once += s == TB_OK && spent && type == TB_F64;
        if (!(most == 0))
            FAIL(t, "%s: %g apart", ways[p].name, most);
    }
}

/* The numbers that go in, all moved by some `by` of them. */
static void moved(trial *t, double by, double **in, double **par)
{
    rig *r = &t->r;
    for (int i = 0; i < r->g->ninputs; i++) {
        in[i] = in_count(t, i) ? rig_copy(r, TB_F64, r->in[i], in_count(t, i))
                               : r->in[i];
        for (size_t k = 0; k < in_count(t, i); k++)
            in[i][k] *= 1 + by * r->tin[i][k];
    }
    for (int i = 0; i < r->g->nparams; i++) {
        size_t n = rig_count(r, r->g, r->g->params[i].node);
        par[i] = rig_copy(r, TB_F64, r->par[i], n);
        for (size_t k = 0; k < n; k++)
            par[i][k] *= 1 + by * r->tpar[i][k];
    }
}

/* How far the floats' gradients lie apart where all that goes in is moved by so
 * little that they round otherwise. Tokens that are one but for rounding leave
 * a softmax nothing else to tell them by. */
static double unsteady(trial *t, const machine *at)
{
    rig *r = &t->r;
    double most = 0, **par = r->par;
    double **in = rig_numbers(r, (size_t)r->g->ninputs);
    double **to = rig_numbers(r, (size_t)r->g->nparams);
    for (int i = 1; i <= 8; i++) {
        machine m;
        moved(t, 1e-7 * i, in, to);
        r->par = to;
        tb_status s = machine_make(&m, r, r->g, in, TB_F32, TB_PASS_BWD);
        if (s == TB_OK)
            s = machine_backward(&m, false);
        machine_free(&m);
        r->par = par;
        if (s == TB_OK)
            worse(&most, leaves_apart(t, &m, at));
    }
    return most;
}

/* Floats against double: near, or as near as what cancels inside allows, or as
 * their own rounding does. */
static void check_floats(trial *t)
{
    machine m;
    tb_status s = machine_make(&m, &t->r, t->r.g, t->r.in, TB_F32,
                               TB_PASS_BWD | TB_PASS_TAN);
    bool none = s == TB_ERR_INPUT; /* a one-pass variance came out below 0 */
    if (s == TB_OK)
        s = machine_backward(&m, false);
    if (s == TB_OK)
        check_plans(t, TB_F32, &m);
    machine_free(&m);
    t->worst->rough += none;
    if (none)
        return;
    OKAY(t, s);
    double most = leaves_apart(t, &m, &t->plain);
    worse(&t->worst->floats, most / t->scale);
    if (most <= 1e-4 * t->scale)
        return;
    t->worst->rough++;
    if (!(most <= 1e-5 * inner(t) || most <= 0.1 * t->scale ||
          most <= 10 * unsteady(t, &m)))
        FAIL(t, "floats %g apart, of %g", most, t->scale);
}

/* --- one graph ------------------------------------------------------------ */

static tb_status begin(trial *t)
{
    rig *r = &t->r;
    const unsigned both = TB_PASS_BWD | TB_PASS_TAN;
    rig_fill(r);
    TB_TRY(machine_make(&t->plain, r, r->g, r->in, TB_F64, both));
    TB_TRY(machine_backward(&t->plain, false));
    TB_TRY(machine_tangent(&t->plain, true));
    TB_TRY(machine_make(&t->keep, r, r->g, r->in, TB_F64, both | TB_PASS_KEEP));
    t->scale = 1;
    for (int i = 0; i < r->g->ninputs; i++)
        largest(&t->scale, t->plain.gin[i], in_count(t, i));
    for (int i = 0; i < r->g->nparams; i++)
        largest(&t->scale, t->plain.gpar[i], par_count(t, i));
    for (int o = 0; o < r->g->noutputs; o++)
        largest(&t->size, t->plain.out[o], out_count(t, o));
    return TB_OK;
}

static void count_ops(const trial *t)
{
    for (size_t i = 0; tb_ops[i]; i++)
        for (int n = 0; n < t->r.g->nnodes; n++)
            t->worst->ops[i] += t->r.g->nodes[n].op == tb_ops[i];
}

static void check_graph(trial *t)
{
    tb_status s = begin(t);
    count_ops(t);
    if (s != TB_OK && s != TB_ERR_INPUT) {
        FAIL(t, "%s", tb_error(t->r.T->ctx));
    } else if (s != TB_OK || !(t->size <= 1e7) || t->scale > 1e8) {
        t->worst->wild++; /* a product of products: no digits are left */
    } else {
        check_adjoint(t);
        check_difference(t);
        check_jacobian(t);
        check_pieces(t);
        check_lane(t);
        check_split(t);
        check_added(t);
        check_plans(t, TB_F64, &t->plain);
        check_floats(t);
        t->worst->graphs++;
        t->worst->nodes += (size_t)t->r.g->nnodes;
    }
    machine_free(&t->plain);
    machine_free(&t->keep);
}

/** Which graph of a block. */
typedef enum part { PART_STEM, PART_BLOCK, PART_TAIL } part;

static void check_part(tb_test *T, const tb_block *b, const tb_sizes *sizes,
                       part p, size_t l, uint64_t seed, worst *w)
{
    tb_stack stack = tb_sizes_top(sizes);
    trial t = {.r = {.T = T, .seed = seed, .batch = 2}, .worst = w};
    t.r.time = 1 + seed / 2 % 4;
    if (seed % MANY == 0) /* rows of two tiles and part of one */
        t.r.time = 65 + seed / MANY % 4;
    t.r.other = 1 + seed / 3 % 4;
    tb_arena_init(&t.r.arena, T->ctx);
    tb_status s =
        p == PART_STEM
            ? tb_graph_stem(T->ctx, &t.r.arena, b, sizes, stack, &t.r.g)
        : p == PART_TAIL
            ? tb_graph_tail(T->ctx, &t.r.arena, b, sizes, &t.r.g)
            : tb_graph_layer(T->ctx, &t.r.arena, b, sizes, stack, l, &t.r.g);
    if (s == TB_OK) {
        double(*attr)[TB_OP_ATTRS] =
            rig_room(&t.r, (size_t)t.r.g->nnodes * sizeof *attr);
        s = tb_graph_attrs(T->ctx, t.r.g, sizes, l, attr);
        t.r.attr = (const double(*)[TB_OP_ATTRS])attr;
    }
    if (s == TB_OK)
        check_graph(&t);
    else
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    tb_arena_clear(&t.r.arena);
}

static void check_parts(tb_test *T, const tb_block *b, const random_drawn *d,
                        uint64_t seed, worst *w)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_sizes sizes;
    int before = -1, section;
    s.depth = DEPTH;
    s.width = d->width;
    s.heads = d->heads;
    s.stack = d->stack;
    s.vocab = 5;
    s.context = 70;
    s.dropout = seed % 5 ? 0 : 0.1;
    s.padding = seed % 6 == 0;
    TB_OKAY(T, tb_sizes_resolve(T->ctx, b, &s, &sizes));
    check_part(T, b, &sizes, PART_STEM, 1, seed, w);
    for (size_t l = 1; l <= DEPTH; l++) {
        TB_OKAY(T, tb_graph_section(T->ctx, b, &sizes, tb_sizes_top(&sizes), l,
                                    &section));
        if (section != before)
            check_part(T, b, &sizes, PART_BLOCK, l, seed, w);
        before = section;
    }
    check_part(T, b, &sizes, PART_TAIL, DEPTH, seed, w);
}

static void check_seed(tb_test *T, uint64_t seed, worst *w)
{
    tb_block *b;
    random_drawn d;
    int failed = T->failed;
    random_block(T->ctx, seed, 0, &d);
    if (tb_block_parse(T->ctx, NULL, tb_buf_str(&d.text), d.text.len,
                       TB_PARSE_BLOCK, &b) == TB_OK) {
        check_parts(T, b, &d, seed, w);
        tb_block_destroy(T->ctx, b);
    } else {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    }
    if (T->failed > failed)
        printf("seed %llu, width %zu:\n%s\n", (unsigned long long)seed, d.width,
               tb_buf_str(&d.text));
    tb_buf_clear(&d.text);
}

/* A new op has a row in random_forms.h; identity is no word, but how passes
 * move gradients. */
static void check_ops(tb_test *T, const worst *w)
{
    for (size_t i = 0; tb_ops[i]; i++) {
        TB_REQUIRE(T, i < OPS);
        if (w->ops[i] == 0 && tb_ops[i] != &tb_op_identity)
            tb_test_fail(T, __FILE__, __LINE__, "no random block has %s",
                         tb_ops[i]->name);
    }
}

/* A check that nearly all graphs are spared is none. */
static void check_counts(tb_test *T, const worst *w)
{
    const size_t ran[] = {w->differences, w->jacobians, w->blocks, w->chains,
                          w->once};
    for (size_t i = 0; i < TB_LEN(ran); i++)
        if (6 * ran[i] < w->graphs)
            tb_test_fail(T, __FILE__, __LINE__, "check %zu: %zu of %zu", i,
                         ran[i], w->graphs);
    if (w->wild * 100 > w->graphs || w->rough * 100 > w->graphs)
        tb_test_fail(T, __FILE__, __LINE__, "%zu wild and %zu rough of %zu",
                     w->wild, w->rough, w->graphs);
}

TB_TEST(random_blocks)
{
    worst w = {0};
    const random_seeds all = random_asked(BLOCKS);
    tb_ctx_threads(T->ctx, 1);  /* thousands of passes too small to share */
    tb_ctx_exact(T->ctx, true); /* products too have the same bits */
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++)
        check_seed(T, seed, &w);
    if (all.enough) {
        check_ops(T, &w);
        check_counts(T, &w);
    }
    printf("%zu graphs, %zu nodes, %zu dense Jacobians, %zu chains of pieces; "
           "largest errors: adjoint %.2g, difference %.2g, Jacobian %.2g, "
           "pieces %.2g, lane %.2g, its split %.2g, requests %.2g, floats "
           "%.2g (%zu rough, %zu wild)\n",
           w.graphs, w.nodes, w.jacobians, w.chains, w.adjoint, w.difference,
           w.jacobian, w.pieces, w.lane, w.split, w.added, w.floats, w.rough,
           w.wild);
}
