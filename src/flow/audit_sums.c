/* SPDX-License-Identifier: MIT */
/* E13: every sum on the lane of a row, taken again in double from the stream
 * that came in and from what the branches gave. Where the lane is no sum (a
 * norm, a gate) it starts anew from the value that is there. */
#include "flow/audit.h"

enum { BLOCK = 512 };

typedef struct sums {
    const tb_audit_piece *x;
    const tb_graph *g;
    unsigned char *lane;
    double *room;  /* a block for each node */
    double *error; /* per node: largest difference, */
    double *most;  /* largest magnitude */
} sums;

static bool is_stream(const sums *s, int node)
{
    tb_shape a = s->g->nodes[node].shape,
             x = s->g->nodes[s->g->inputs[0]].shape;
    return a.kind == TB_SHAPE_STREAM && a.width == x.width;
}

static bool is_sum(const sums *s, int node)
{
    const tb_node *n = &s->g->nodes[node];
    bool two = n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF;
    if (!s->lane[node] || !is_stream(s, n->in[0]))
        return false;
    return n->op == &tb_op_affine ||
           (two && n->nin == 2 && is_stream(s, n->in[1]));
}

/* Of elements [at, at + n) of a node: as it is, or as its sum says. */
static const double *look(const sums *s, int node, size_t at, size_t n)
{
    double *y = s->room + (size_t)node * BLOCK;
    const void *value = tb_plan_value(s->x->run, node);
    for (size_t i = 0; !is_sum(s, node) && i < n; i++)
        y[i] = tb_elem_get(s->x->w->m->dtype, value, at + i);
    return y;
}

static void add_up(const sums *s, int node, size_t at, size_t n)
{
    const tb_node *x = &s->g->nodes[node];
    double *y = s->room + (size_t)node * BLOCK;
    const double *a = look(s, x->in[0], at, n);
    if (x->op == &tb_op_affine) {
        const double *attr = s->x->run->attr[node];
        for (size_t i = 0; i < n; i++)
            y[i] =
                attr[TB_ATTR_AFFINE_SCALE] * a[i] + attr[TB_ATTR_AFFINE_OFFSET];
        return;
    }
    const double *b = look(s, x->in[1], at, n);
    double sign = x->op->jac == TB_JAC_SUM ? 1 : -1;
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + sign * b[i];
}

/* A number that is not finite is nothing to compare. */
static void compare(const sums *s, int node, size_t at, size_t n)
{
    const double *y = s->room + (size_t)node * BLOCK;
    const void *value = tb_plan_value(s->x->run, node);
    for (size_t i = 0; i < n; i++) {
        double is = tb_elem_get(s->x->w->m->dtype, value, at + i);
        double off = tb_fabs(is - y[i]), size = tb_fabs(is);
        s->error[node] = off > s->error[node] ? off : s->error[node];
        s->most[node] = size > s->most[node] ? size : s->most[node];
    }
}

static void all_sums(const sums *s)
{
    tb_flow_row *row = s->x->row;
    for (size_t at = 0; at < s->x->w->nx; at += BLOCK) {
        size_t left = s->x->w->nx - at, n = left < BLOCK ? left : BLOCK;
        for (int i = 0; i < s->g->nnodes; i++)
            if (is_sum(s, i)) {
                add_up(s, i, at, n);
                compare(s, i, at, n);
            }
    }
    for (int i = 0; i < s->g->nnodes; i++) {
        if (!is_sum(s, i) || !(s->most[i] > 0))
            continue;
        double error = s->error[i] / s->most[i];
        row->has_sums = true;
        row->identity_error =
            error > row->identity_error ? error : row->identity_error;
    }
}

tb_status tb_audit_sums(const tb_audit_piece *x)
{
    const tb_graph *g = tb_model_graph(x->w->m, x->part);
    size_t n = (size_t)g->nnodes;
    tb_arena a;
    tb_arena_init(&a, x->w->ctx);
    sums s = {x, g, NULL, NULL, NULL, NULL};
    s.lane = tb_arena_alloc(&a, n);
    s.room = tb_arena_alloc(&a, n * BLOCK * sizeof *s.room);
    s.error = tb_arena_alloc(&a, n * sizeof *s.error);
    s.most = tb_arena_alloc(&a, n * sizeof *s.most);
    bool ok = s.lane && s.room && s.error && s.most;
    if (ok) {
        tb_graph_on_lane(g, x->lo, x->hi, s.lane);
        all_sums(&s);
    }
    tb_arena_clear(&a);
    return ok ? TB_OK : TB_ERR_MEMORY;
}
