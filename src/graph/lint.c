/* SPDX-License-Identifier: MIT */
/* Findings: one row per code, a check that reads the graphs only. */
#include "graph/lint.h"

typedef struct graphs {
    const tb_graph *layer, *tail;
    tb_lane_info lane, final;
} graphs;

typedef bool (*check_fn)(const graphs *g, tb_pos *pos);

typedef struct lint_row {
    const char *code;
    tb_lint_level level;
    check_fn check;
    const char *message;
} lint_row;

static bool no_skip(const graphs *g, tb_pos *pos)
{
    const tb_graph *l = g->layer;
    *pos = l->nodes[l->boundaries[l->nboundaries - 1].node].pos;
    return g->lane.kind == TB_LANE_KIND_NONE;
}

static bool normed_branch(const tb_graph *g)
{
    for (int i = 0; i < g->nregions; i++)
        if (g->nodes[g->regions[i].in[0]].op->lane == TB_LANE_TOLL)
            return true;
    return false;
}

static bool no_final_norm(const graphs *g, tb_pos *pos)
{
    const tb_graph *l = g->layer;
    *pos = l->nodes[l->boundaries[l->nboundaries - 1].node].pos;
    return g->lane.kind == TB_LANE_KIND_CLEAN && normed_branch(l) &&
           g->final.tolls == 0;
}

static bool two_norms(const graphs *g, tb_pos *pos)
{
    const tb_graph *l = g->layer, *t = g->tail;
    int top = l->boundaries[l->nboundaries - 1].node;
    int x = t->boundaries[0].node;
    for (int i = 0; i < t->nnodes; i++)
        if (t->nodes[i].op->lane == TB_LANE_TOLL && t->nodes[i].in[0] == x) {
            *pos = t->nodes[i].pos;
            return l->nodes[top].op->lane == TB_LANE_TOLL;
        }
    return false;
}

static bool normed_skip(const graphs *g, tb_pos *pos)
{
    const tb_graph *l = g->layer;
    for (int i = 0; i < l->nregions; i++) {
        int fed = l->regions[i].in[0], out = l->regions[i].out;
        /* after a sum it is post-norm, which is meant */
        if (l->nodes[fed].op->lane != TB_LANE_TOLL ||
            l->nodes[l->nodes[fed].in[0]].op->lane != TB_LANE_LEAF)
            continue;
        for (int j = out; j < l->nnodes; j++) {
            const tb_node *n = &l->nodes[j];
            bool sum = n->op->jac == TB_JAC_SUM && n->nin == 2;
            if (sum && ((n->in[0] == fed && n->in[1] == out) ||
                        (n->in[1] == fed && n->in[0] == out))) {
                *pos = n->pos;
                return true;
            }
        }
    }
    return false;
}

static const lint_row rows[] = {
    {"no-skip", TB_LINT_FAIL, no_skip,
     "no path leads from x to x around the sublayers: nothing carries the "
     "gradient when they are small"},
    {"no-final-norm", TB_LINT_WARN, no_final_norm,
     "the stream is never normed and there is no final norm: the head sees "
     "its growing scale; add final: x = norm(x)"},
    {"normed-skip", TB_LINT_WARN, normed_skip,
     "the skip starts at the norm's output: the lane pays a toll although the "
     "branch reads like pre-norm; write x = x + F(norm(x))"},
    {"two-norms", TB_LINT_WARN, two_norms,
     "the last block already ends in a norm and final: adds another"},
};

static bool expected(const tb_block *b, const char *code)
{
    for (int i = 0; i < b->nexpect; i++)
        if (tb_streq(b->expect[i], code))
            return true;
    return false;
}

int tb_lint(const tb_block *b, const tb_graph *layer, const tb_graph *tail,
            tb_finding *out, int cap)
{
    graphs g = {.layer = layer, .tail = tail};
    tb_ctx *ctx = layer->arena->ctx;
    int n = 0;
    if (tb_graph_lane(ctx, layer, layer->arena, &g.lane) != TB_OK ||
        tb_graph_lane(ctx, tail, tail->arena, &g.final) != TB_OK)
        return 0;
    for (size_t i = 0; i < TB_LEN(rows) && n < cap; i++) {
        tb_pos pos = {0, 0};
        if (!rows[i].check(&g, &pos))
            continue;
        out[n++] = (tb_finding){rows[i].code,
                                expected(b, rows[i].code) ? TB_LINT_NOTE
                                                          : rows[i].level,
                                rows[i].message, pos};
    }
    return n;
}

static const char *level_name(tb_lint_level l)
{
    return l == TB_LINT_NOTE ? "note" : l == TB_LINT_WARN ? "warn" : "fail";
}

tb_status tb_lint_json(tb_ctx *ctx, const tb_block *b, const tb_graph *layer,
                       const tb_graph *tail, tb_json *j)
{
    tb_finding f[TB_FINDINGS_MAX];
    int n = tb_lint(b, layer, tail, f, TB_FINDINGS_MAX);
    (void)ctx;
    tb_json_array(j, "lint");
    for (int i = 0; i < n; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "code", f[i].code);
        tb_json_string(j, "level", level_name(f[i].level));
        tb_json_string(j, "message", f[i].message);
        tb_json_int(j, "line", f[i].pos.line);
        tb_json_int(j, "column", f[i].pos.column);
        tb_json_end(j);
    }
    tb_json_end(j);
    return TB_OK;
}

void tb_lint_text(tb_ctx *ctx, const tb_block *b, const tb_graph *layer,
                  const tb_graph *tail, tb_buf *out)
{
    tb_finding f[TB_FINDINGS_MAX];
    int n = tb_lint(b, layer, tail, f, TB_FINDINGS_MAX);
    (void)ctx;
    for (int i = 0; i < n; i++)
        tb_buf_printf(out, "%-9s %s at %d:%d: %s\n", level_name(f[i].level),
                      f[i].code, f[i].pos.line, f[i].pos.column, f[i].message);
}
