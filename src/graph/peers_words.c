/* SPDX-License-Identifier: MIT */
/* What a stack does, in phrases: two blocks differ in the phrases that only
 * one of them has. Read from what lint knows of the graphs. */
#include "graph/lint.h"
#include "graph/peers.h"

typedef struct words {
    tb_lint *L;
    tb_arena *arena;
    tb_peer_phrase *out;
    size_t n, cap;
    bool failed;
} words;

static void say(words *w, const char *before, const char *name,
                const char *after)
{
    w->failed |= !before || !after;
    for (size_t i = 0; i < w->n && !w->failed; i++)
        if (tb_streq(w->out[i].before, before) &&
            tb_streq(w->out[i].name, name) && tb_streq(w->out[i].after, after))
            return;
    if (!w->failed && w->n < w->cap)
        w->out[w->n++] = (tb_peer_phrase){before, name, after};
}

static void say_all(words *w, const char *text)
{
    say(w, text, NULL, "");
}

/* --- one sublayer --------------------------------------------------------- */

typedef struct sub {
    words *w;
    const lint_graph *g;
    const tb_region *r;
    const lint_use *u;
} sub;

/* "rmsnorm", "rmsnorm without a gain" */
static const char *norm_name(tb_arena *a, const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    bool bare = n->nin == 1 && n->op != &tb_op_l2norm;
    return bare ? tb_arena_printf(a, "%s without a gain", n->op->name)
                : n->op->name;
}

/* The norm behind another sublayer's sum, which post-norm reads. */
static bool is_a_top(const sub *s, int node)
{
    for (int i = 0; i < s->g->g->nregions; i++)
        if (s->g->use[i].norm_top == node)
            return true;
    return false;
}

static void norms(const sub *s)
{
    int in = is_a_top(s, s->u->norm_in) ? -1 : s->u->norm_in;
    const struct {
        int node;
        const char *before, *after;
    } at[] = {{in, "x reaches ", " through"},
              {s->u->norm_inner, "inside ", ", before its last weight, stands"},
              {s->u->norm_out, "the output of ", " goes through"},
              {s->u->norm_top, "the sum behind ", " goes through"}};
    for (size_t i = 0; i < TB_LEN(at); i++)
        if (at[i].node >= 0)
            say(s->w, at[i].before, s->r->name,
                tb_arena_printf(s->w->arena, "%s %s", at[i].after,
                                norm_name(s->w->arena, s->g, at[i].node)));
}

static void factor(const sub *s, const char *what, lint_factor f)
{
    if (lint_by_l(f))
        say(s->w, what, s->r->name,
            " is multiplied by a factor that changes from block to block");
    else if (f.at != 1)
        say(s->w, what, s->r->name,
            tb_arena_printf(s->w->arena, " is multiplied by %.6g", f.at));
}

static void factors(const sub *s)
{
    const lint_use *u = s->u;
    factor(s, "the skip around ", u->skip);
    factor(s, "the branch of ", u->branch);
    if (!u->skip_plain && u->sum >= 0)
        say(s->w, "something learned stands on the skip around ", s->r->name,
            "");
}

/* A learned number or vector, with its start, or a gate that is computed. */
static void gate(const sub *s)
{
    const tb_graph *t = s->g->g;
    const tb_node *n = s->u->gate >= 0 ? &t->nodes[s->u->gate] : NULL;
    const char *what = " is multiplied by a gate";
    for (int i = 0; n && i < n->nin; i++) {
        int param = t->nodes[n->in[i]].param;
        if (param >= 0)
            what = tb_arena_printf(
                s->w->arena, " is multiplied by a learned %s that starts at %g",
                tb_role_name(t->params[param].role),
                s->g->start[param].size.at);
    }
    if (n)
        say(s->w, "the output of ", s->r->name, what);
}

static bool is_usual(const sub *s, int node)
{
    static const tb_op *const usual[] = {
        &tb_op_linear, &tb_op_param, &tb_op_mha, &tb_op_branch, &tb_op_drop};
    const tb_node *n = &s->g->g->nodes[node];
    for (size_t i = 0; i < TB_LEN(usual); i++)
        if (n->op == usual[i])
            return true;
    return node == s->u->norm_inner ||
           (n->op->jac == TB_JAC_DIAG && tb_streq(s->r->name, "ffn"));
}

static void inside(const sub *s)
{
    for (int i = s->r->first; i <= s->r->last; i++)
        if (s->g->reach[i] && !is_usual(s, i))
            say(s->w, "inside ", s->r->name,
                tb_arena_printf(s->w->arena, " stands %s",
                                s->g->g->nodes[i].op->name));
}

static void skip(const sub *s)
{
    const lint_use *u = s->u;
    if (u->sum < 0)
        say(s->w, "the output of ", s->r->name, " is not added to x");
    else if (lint_is_norm(s->g, u->base) && u->reads_base &&
             !is_a_top(s, u->base))
        say(s->w, "the skip around ", s->r->name, " starts behind a norm");
}

/* Another sublayer that reads what this one does. */
static void parallel(const sub *s)
{
    const tb_graph *t = s->g->g;
    for (int i = 0; i < t->nregions; i++) {
        const tb_region *r = &t->regions[i];
        const lint_use *v = &s->g->use[i];
        int a = s->u->norm_in, b = v->norm_in;
        int mine = a < 0 ? s->r->in[0] : t->nodes[a].in[0];
        int its = b < 0 ? r->in[0] : t->nodes[b].in[0];
        if (r > s->r && lint_below(s->g, mine) == lint_below(s->g, its))
            say_all(s->w,
                    tb_arena_printf(s->w->arena, "%s and %s read the same x",
                                    s->r->name, r->name));
    }
}

static void sublayer(words *w, const lint_graph *g, int region)
{
    sub s = {w, g, &g->g->regions[region], &g->use[region]};
    parallel(&s);
    factors(&s);
    gate(&s);
    skip(&s);
    norms(&s);
    inside(&s);
}

/* --- one layer ------------------------------------------------------------ */

static bool is_between(const tb_op *op)
{
    static const tb_op *const usual[] = {
        &tb_op_add,   &tb_op_affine, &tb_op_mul,   &tb_op_drop,    &tb_op_param,
        &tb_op_input, &tb_op_branch, &tb_op_embed, &tb_op_position};
    for (size_t i = 0; i < TB_LEN(usual); i++)
        if (op == usual[i])
            return true;
    return op->lane == TB_LANE_TOLL || op->lane == TB_LANE_LEAF;
}

static void outside(words *w, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        const tb_op *op = g->g->nodes[i].op;
        bool branch = op == &tb_op_skipdrop; /* its word is another */
        if (g->g->nodes[i].region < 0 && g->reach[i] && !is_between(op))
            say_all(w,
                    tb_arena_printf(w->arena, "outside the sublayers stands %s",
                                    branch ? "drop_branch" : op->name));
    }
}

/* A learned thing with a name may stand in several places. */
static void shared(words *w, const lint_graph *g)
{
    for (int i = 0; i < g->g->nparams; i++) {
        const tb_param *p = &g->g->params[i];
        int at = p->node;
        if (g->reach[at] && g->users_at[at + 1] - g->users_at[at] > 1)
            say_all(w, tb_arena_printf(w->arena,
                                       "one learned %s serves several times",
                                       tb_role_name(p->role)));
    }
}

static int streams_changed(const tb_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->ninputs && i < g->noutputs; i++)
        n += g->outputs[i].node != g->inputs[i];
    return n;
}

static void lane(words *w, const lint_graph *g)
{
    say_all(w, tb_arena_printf(w->arena, "the lane of a block is %s",
                               tb_lane_kind_name(g->info.kind)));
}

/* --- around the blocks ---------------------------------------------------- */

static void ends(words *w, const lint_graph *g, const char *where)
{
    for (int i = 0; i <= g->top; i++)
        if (lint_is_norm(g, i) && g->reach[i])
            say_all(w, tb_arena_printf(w->arena, "%s stands %s", where,
                                       norm_name(w->arena, g, i)));
}

/* A final section may do more than norm. */
static void final_sums(words *w, const lint_graph *g)
{
    for (int i = 0; i <= g->top; i++)
        if (g->g->nodes[i].op == &tb_op_add && g->reach[i])
            say_all(w, "behind the last block streams are added");
}

enum { REGIONS = 64 }; /* of a block that are spoken of */

static void stack(words *w, const lint_stack *at)
{
    if (at->nkinds > 1)
        say_all(w, tb_arena_printf(w->arena, "the blocks are of %d kinds",
                                   at->nkinds));
    int streams = streams_changed(at->kinds[at->nkinds - 1].g);
    if (streams > 1)
        say_all(
            w, tb_arena_printf(w->arena, "blocks hand on %d streams", streams));
    for (int i = 0; i < at->nkinds; i++)
        for (int r = 0; r < at->kinds[i].g->nregions && r < REGIONS; r++)
            sublayer(w, &at->kinds[i], r);
    for (int i = 0; i < at->nkinds; i++) {
        shared(w, &at->kinds[i]);
        outside(w, &at->kinds[i]);
    }
    ends(w, &at->stem, "before the first block");
    ends(w, &at->tail, "behind the last block");
    final_sums(w, &at->tail);
    for (int i = 0; i < at->nkinds; i++)
        lane(w, &at->kinds[i]);
}

tb_status tb_peer_say(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                      const tb_settings *settings, tb_peer_phrase *out,
                      size_t cap, size_t *n)
{
    words w = {NULL, a, out, 0, cap, false};
    TB_TRY(tb_lint_create(ctx, b, settings, &w.L));
    for (int i = 0; i < w.L->nstacks; i++)
        stack(&w, &w.L->stacks[i]);
    tb_lint_destroy(w.L);
    *n = w.n;
    return w.failed ? TB_ERR_MEMORY : TB_OK;
}

/* --- what is no placement ------------------------------------------------- */

/* NaN where two differ. */
static void agree(double *all, bool *any, double v)
{
    *all = *any && *all != v ? __builtin_nan("") : v;
    *any = true;
}

static void look_at_norm(const lint_graph *g, int i, tb_peer_look *out,
                         bool *any)
{
    const tb_op *op = g->g->nodes[i].op;
    const double *attr = g->attr[i];
    out->layernorm |= op == &tb_op_layernorm && g->g->nodes[i].nin > 2;
    if (!op->nattr || !tb_streq(op->attr_name[TB_ATTR_NORM_EPS], "eps"))
        return;
    bool clamps = op == &tb_op_scalenorm || op == &tb_op_l2norm;
    int mode = (int)attr[TB_ATTR_NORM_EPS_MODE];
    agree(&out->eps, any, attr[TB_ATTR_NORM_EPS]);
    out->eps_mode = mode != TB_EPS_DEFAULT ? mode
                    : clamps               ? TB_EPS_CLAMP
                                           : TB_EPS_INSIDE;
}

static void look_at_ffn(const lint_graph *g, int i, tb_peer_look *out,
                        bool *any)
{
    const tb_node *n = &g->g->nodes[i];
    bool here = n->region >= 0 && n->op->jac == TB_JAC_DIAG &&
                tb_streq(g->g->regions[n->region].name, "ffn");
    if (!here)
        return;
    bool same = !*any || tb_streq(out->activation, n->op->name);
    out->activation = same ? n->op->name : NULL;
    *any = true;
}

static bool shrinks_with_l(const tb_lint *L, const lint_graph *g, int param)
{
    const lint_start *s = &g->start[param];
    double want = 1 / tb_sqrt((double)g->first);
    const tb_block *from = s->rule >= 0 && s->rule < L->b->ninit ? L->b : NULL;
    return from && tb_streq(from->init[s->rule].rule->name, "xavier") &&
           tb_fabs(s->size.at - want) < 1e-9 &&
           tb_fabs(s->size.at_4l - want / 2) < 1e-9 &&
           tb_fabs(s->size.at_4N - want) < 1e-9;
}

static void look_at_params(const tb_lint *L, const lint_graph *g,
                           tb_peer_look *out)
{
    for (int i = 0; i < g->g->nparams; i++) {
        const tb_param *p = &g->g->params[i];
        size_t n = strlen(p->name);
        out->bias |= p->role == TB_ROLE_BIAS;
        if (p->role == TB_ROLE_MATRIX)
            out->depth_init &= shrinks_with_l(L, g, i);
        if (n >= 6 && tb_streq(p->name + n - 6, ".alpha"))
            out->alpha = g->start[i].rule < 0 ? 0.5 : g->start[i].size.at;
    }
}

/* Do numbers that a setting may have to repeat follow the depth? */
static bool follows_depth(const lint_graph *g)
{
    bool any = false;
    for (int i = 0; i < g->g->nregions; i++)
        any |= lint_by_N(g->use[i].skip) || lint_by_N(g->use[i].branch);
    for (int i = 0; i < g->g->nparams; i++)
        any |= g->g->params[i].start && lint_by_N(g->start[i].size);
    return any;
}

static void look_at_graph(const tb_lint *L, const lint_graph *g,
                          tb_peer_look *out, bool any[2])
{
    for (int i = 0; i < g->g->nnodes; i++) {
        if (lint_is_norm(g, i) && g->reach[i])
            look_at_norm(g, i, out, &any[0]);
        look_at_ffn(g, i, out, &any[1]);
    }
    if (g->first) {
        look_at_params(L, g, out);
        out->by_depth |= follows_depth(g);
    }
}

tb_status tb_peer_look_at(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, tb_peer_look *out)
{
    tb_lint *L;
    bool any[2] = {false, false};
    TB_TRY(tb_lint_create(ctx, b, settings, &L));
    *out = (tb_peer_look){.eps = __builtin_nan(""),
                          .alpha = __builtin_nan(""),
                          .depth_init = true,
                          .head = L->sizes.s.width / L->sizes.s.heads};
    for (int s = 0; s < L->nstacks; s++) {
        const lint_stack *at = &L->stacks[s];
        for (int i = 0; i < at->nkinds; i++)
            look_at_graph(L, &at->kinds[i], out, any);
        look_at_graph(L, &at->stem, out, any);
        look_at_graph(L, &at->tail, out, any);
    }
    tb_lint_destroy(L);
    return TB_OK;
}
