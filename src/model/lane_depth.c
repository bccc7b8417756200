/* SPDX-License-Identifier: MIT */
/* Matrices of lanes multiplied: one path after the other, and side by side. */
#include "model/lane_depth.h"

static const tb_lane_path closed = {TB_LANE_KIND_NONE, 0, 0};

static tb_lane_kind of_value(double v)
{
    return v == 1   ? TB_LANE_KIND_CLEAN
           : v == 0 ? TB_LANE_KIND_NONE
                    : TB_LANE_KIND_SCALED;
}

/* The kinds rise in enum order; two constants make a constant. */
static tb_lane_kind busier(tb_lane_path a, tb_lane_path b, double value)
{
    tb_lane_kind most = a.kind > b.kind ? a.kind : b.kind;
    return most <= TB_LANE_KIND_SCALED ? of_value(value) : most;
}

static tb_lane_path after(tb_lane_path a, tb_lane_path b)
{
    double value = a.value * b.value;
    if (a.kind == TB_LANE_KIND_NONE || b.kind == TB_LANE_KIND_NONE)
        return closed;
    return (tb_lane_path){busier(a, b, value), a.tolls + b.tolls, value};
}

static tb_lane_path beside(tb_lane_path a, tb_lane_path b)
{
    double value = a.value + b.value;
    if (a.kind == TB_LANE_KIND_NONE || b.kind == TB_LANE_KIND_NONE)
        return a.kind == TB_LANE_KIND_NONE ? b : a;
    return (tb_lane_path){busier(a, b, value),
                          a.tolls > b.tolls ? a.tolls : b.tolls, value};
}

/* One block: all streams out by all streams in. */
static tb_status block_lanes(const tb_model *m, size_t part, tb_arena *a,
                             tb_lane_path *out)
{
    const tb_graph *g = tb_model_graph(m, part);
    const tb_cut *in = &g->cuts[0], *top = &g->cuts[g->ncuts - 1];
    int n = g->nstreams;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            tb_lane_info l;
            TB_TRY(tb_graph_lane_between(m->ctx, g, a, in->nodes[j],
                                         top->nodes[i], tb_model_attrs(m, part),
                                         &l));
            out[i * n + j] = (tb_lane_path){l.kind, (size_t)l.tolls, l.value};
            if (l.kind <= TB_LANE_KIND_SCALED)
                out[i * n + j].kind = of_value(l.value);
        }
    return TB_OK;
}

static void multiply(int n, const tb_lane_path *l, const tb_lane_path *r,
                     tb_lane_path *out)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            tb_lane_path sum = closed;
            for (int k = 0; k < n; k++)
                sum = beside(sum, after(r[k * n + j], l[i * n + k]));
            out[i * n + j] = sum;
        }
}

tb_status tb_lane_through(const tb_model *m, tb_layers layers,
                          tb_lane_path *out)
{
    enum { MOST = TB_STREAMS_MOST * TB_STREAMS_MOST };
    tb_lane_path one[MOST], product[MOST];
    int n = tb_model_graph(m, layers.first)->nstreams;
    for (int i = 0; i < n * n; i++)
        out[i] =
            i / n == i % n ? (tb_lane_path){TB_LANE_KIND_CLEAN, 0, 1} : closed;
    for (size_t p = layers.first; p < layers.first + layers.n; p++) {
        tb_arena a;
        tb_arena_init(&a, m->ctx);
        tb_status s = block_lanes(m, p, &a, one);
        tb_arena_clear(&a);
        TB_TRY(s);
        multiply(n, one, out, product);
        memcpy(out, product, (size_t)(n * n) * sizeof *out);
    }
    return TB_OK;
}
