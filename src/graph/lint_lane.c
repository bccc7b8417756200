/* SPDX-License-Identifier: MIT */
/* Checks of the lane and of where norms stand around it. */
#include "graph/lint.h"

static const lint_graph *last_kind(const tb_lint *L)
{
    return &L->at->kinds[L->at->last];
}

/* Is any node on a path from a stream in to a stream out? */
static bool has_path(const lint_graph *g, const unsigned char *marks)
{
    return marks[g->top] &&
           (g->many || g->info.kind != TB_LANE_KIND_NONE || marks == g->loose);
}

/* x - x is no path, whatever the edges say. */
static bool cancels(const lint_graph *g)
{
    return !g->many && g->lane[g->top] && g->info.kind == TB_LANE_KIND_NONE;
}

/* The first step of the stack that x does not pass: where to point. */
static int lost_at(const lint_graph *g)
{
    const tb_graph *t = g->g;
    for (int i = 1; !g->many && i < t->nboundaries; i++) {
        int at = t->boundaries[i].node;
        bool fed = false;
        for (int j = 0; j < t->nodes[at].nin; j++)
            fed |= g->lane[t->nodes[at].in[j]] != 0;
        if (!fed)
            return at;
    }
    return g->top;
}

/* Elements of lists lead around sublayers, too. */
static bool reads_list(const tb_graph *g)
{
    for (int i = 0; i < g->ninputs; i++)
        if (strchr(g->nodes[g->inputs[i]].name, '.'))
            return true;
    return false;
}

tb_status lint_no_skip(tb_lint *L, const lint_graph *g)
{
    if (reads_list(g->g))
        return TB_OK;
    if (cancels(g) || !has_path(g, g->loose))
        lint_found(L, lint_pos(g, lost_at(g)));
    return TB_OK;
}

tb_status lint_nonlinear_lane(tb_lint *L, const lint_graph *g)
{
    if (cancels(g) || !has_path(g, g->loose) || has_path(g, g->lane))
        return TB_OK;
    for (int i = 0; i < g->g->nnodes; i++)
        if (g->loose[i] && g->g->nodes[i].op->jac == TB_JAC_DIAG)
            lint_found(L, lint_pos(g, i));
    return TB_OK;
}

/* --- factors on the lane ------------------------------------------------- */

/* What x is multiplied by in one block; NaN where a learned factor or a norm
 * stands on it. */
static double gain_of(const lint_graph *g, int node, const double *gain)
{
    const tb_node *n = &g->g->nodes[node];
    double sum = 0;
    if (lint_is_entry(g, node))
        return 1;
    if (lint_is_norm(g, node) || n->op->jac == TB_JAC_PROD ||
        n->op->jac == TB_JAC_QUOT)
        return __builtin_nan("");
    for (int i = 0; i < n->nin; i++)
        if (g->lane[n->in[i]])
            sum += (n->op->jac == TB_JAC_DIFF && i ? -1 : 1) * gain[n->in[i]];
    if (n->op->jac == TB_JAC_AFFINE)
        sum *= g->attr[node][TB_ATTR_AFFINE_SCALE];
    return sum;
}

static double block_gain(tb_lint *L, const lint_graph *g)
{
    double *gain =
        tb_arena_alloc(&L->arena, (size_t)g->g->nnodes * sizeof *gain);
    for (int i = 0; gain && i < g->g->nnodes; i++)
        gain[i] = g->lane[i] ? gain_of(g, i, gain) : 0;
    return gain && !g->many ? gain[g->top] : __builtin_nan("");
}

static int scaled_node(const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++)
        if (g->lane[i] && g->g->nodes[i].op->jac == TB_JAC_AFFINE &&
            g->attr[i][TB_ATTR_AFFINE_SCALE] != 1)
            return i;
    return g->top;
}

/* Skip and branch with weights whose squares add up to 1: the sum keeps its
 * size, whatever the lane alone does. */
static bool keeps_size(const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        double squares = u->skip.at * u->skip.at + u->output.at * u->output.at;
        if (u->sum < 0 || !u->skip_plain || tb_fabs(squares - 1) > 1e-6)
            return false;
    }
    return g->g->nregions > 0;
}

tb_status lint_lane_scaled(tb_lint *L, const lint_graph *g)
{
    double c = block_gain(L, g), size = tb_fabs(c);
    double all = tb_pow(size, (double)g->count);
    if (!(size > 0) || tb_fabs(size - 1) < 1e-9)
        return TB_OK;
    bool far = all < 1e-3 || all > 1e3;
    if (!far && keeps_size(g))
        return TB_OK;
    return lint_said(
        L, lint_pos(g, scaled_node(g)), far ? TB_LINT_WARN : TB_LINT_NOTE,
        tb_arena_printf(&L->arena,
                        "the lane is multiplied by %.3g a block, %.3g over %zu "
                        "blocks: signal and gradient %s with depth",
                        c, all, g->count, size < 1 ? "shrink" : "grow"));
}

/* --- dropout ------------------------------------------------------------- */

static double survival(tb_lint *L, int *where, const lint_graph **of)
{
    double all = 1;
    for (int i = 0; i < L->at->nkinds; i++) {
        const lint_graph *g = &L->at->kinds[i];
        double here = 1;
        for (int j = 0; j < g->g->nnodes; j++) {
            const tb_op *op = g->g->nodes[j].op;
            if (!g->lane[j] || (op != &tb_op_drop && op != &tb_op_skipdrop))
                continue;
            here *= 1 - g->attr[j][TB_ATTR_DROP_P];
            if (!*of) {
                *of = g;
                *where = j;
            }
        }
        all *= tb_pow(here, (double)g->count);
    }
    return all;
}

tb_status lint_dropout_on_lane(tb_lint *L, const lint_graph *unused)
{
    const lint_graph *g = NULL;
    int node = 0;
    double all = survival(L, &node, &g);
    (void)unused;
    if (!g)
        return TB_OK;
    bool ours = !L->given_drop && !g->g->nodes[node].attr[TB_ATTR_DROP_P].expr;
    return lint_said(
        L, lint_pos(g, node), TB_LINT_WARN,
        tb_arena_printf(&L->arena,
                        "dropout stands on the lane and drops the skip too: at "
                        "rate %g%s a feature of x survives %zu blocks with "
                        "probability %.3g",
                        g->attr[node][TB_ATTR_DROP_P], ours ? " (assumed)" : "",
                        tb_sizes_depth(&L->sizes, L->at->which), all));
}

/* --- at the top and between blocks --------------------------------------- */

static tb_pos top_pos(const lint_graph *g)
{
    return lint_pos(g, g->top);
}

tb_status lint_no_final_norm(tb_lint *L, const lint_graph *unused)
{
    const lint_graph *g = last_kind(L);
    (void)unused;
    bool grows = g->info.kind == TB_LANE_KIND_CLEAN ||
                 g->info.kind == TB_LANE_KIND_SCALED;
    if (!grows || !lint_normed_off_lane(g) || lint_any_norm(&L->at->tail))
        return TB_OK;
    if (L->nstacks > 1 && L->at->which == TB_STACK_ENCODER)
        return lint_said(L, top_pos(g), TB_LINT_WARN,
                         "the norms stand on the branches only and none "
                         "follows the encoder's last block: the decoder reads "
                         "a memory that grows with depth");
    lint_found(L, top_pos(g));
    return TB_OK;
}

/* Do the branches of a kind start as large as they may? */
bool lint_starts_small(const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        bool small = u->gate >= 0 || lint_by_N(u->branch) < 0 ||
                     lint_by_l(u->branch) < 0;
        if (u->last >= 0)
            small |= g->start[u->last].zero ||
                     lint_by_N(g->start[u->last].size) < 0 ||
                     lint_by_l(g->start[u->last].size) < 0;
        if (!small)
            return false;
    }
    return true;
}

tb_status lint_unbounded_stream(tb_lint *L, const lint_graph *unused)
{
    const lint_graph *g = last_kind(L);
    (void)unused;
    if (g->info.kind == TB_LANE_KIND_CLEAN && g->g->nregions &&
        !lint_any_norm(g) && !lint_any_norm(&L->at->tail) &&
        !lint_starts_small(g))
        lint_found(L, top_pos(g));
    return TB_OK;
}

/* A norm that reads the x that enters, -1: none. */
static int norm_of_entry(const lint_graph *g, bool on_lane)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        if (!lint_is_norm(g, i) || (g->lane[i] != 0) != on_lane)
            continue;
        if (lint_below(g, g->g->nodes[i].in[0]) == g->g->boundaries[0].node)
            return i;
    }
    return -1;
}

bool lint_ends_normed(const lint_graph *g)
{
    return lint_is_norm(g, lint_below(g, g->top));
}

tb_status lint_two_norms(tb_lint *L, const lint_graph *unused)
{
    int norm = norm_of_entry(&L->at->tail, true);
    (void)unused;
    if (norm >= 0 && lint_ends_normed(last_kind(L)))
        lint_found(L, lint_pos(&L->at->tail, norm));
    return TB_OK;
}

static bool is_only_reader(const lint_graph *g, int node)
{
    return g->users_at[node + 1] - g->users_at[node] == 1;
}

/* A norm over tokens leaves something to one over features, and back. */
static bool same_axis(const lint_graph *g, int a, int b)
{
    return !g->g->nodes[a].op->state == !g->g->nodes[b].op->state;
}

static void norm_of_norm(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        int under =
            lint_is_norm(g, i) ? lint_below(g, g->g->nodes[i].in[0]) : i;
        if (under != i && lint_is_norm(g, under) && is_only_reader(g, under) &&
            same_axis(g, i, under))
            lint_found(L, lint_pos(g, i));
    }
}

tb_status lint_double_norm(tb_lint *L, const lint_graph *g)
{
    norm_of_norm(L, g);
    int norm = g->first ? norm_of_entry(g, true) : -1;
    const lint_graph *below =
        g->below < 0 ? &L->at->stem : &L->at->kinds[g->below];
    if (norm >= 0 &&
        (lint_ends_normed(below) || (g->repeats && lint_ends_normed(g))))
        lint_found(L, lint_pos(g, norm));
    return TB_OK;
}

tb_status lint_stem_then_norm(tb_lint *L, const lint_graph *unused)
{
    int norm = norm_of_entry(&L->at->kinds[0], false);
    (void)unused;
    if (norm >= 0 && lint_ends_normed(&L->at->stem))
        lint_found(L, lint_pos(&L->at->kinds[0], norm));
    return TB_OK;
}

/* --- skip and norm ------------------------------------------------------- */

static bool any_pre_norm(const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++)
        if (g->use[i].norm_in >= 0 && !g->lane[g->use[i].norm_in])
            return true;
    return false;
}

/* Where x reaches the norm on the lane unsummed, or another sublayer has a
 * norm of its own. After a sum it is post-norm, which is meant. */
tb_status lint_normed_skip(tb_lint *L, const lint_graph *g)
{
    bool pre = any_pre_norm(g);
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->sum < 0 || u->norm_in < 0 || !g->lane[u->norm_in] ||
            lint_below(g, u->base) != u->norm_in)
            continue;
        int under = lint_below(g, g->g->nodes[u->norm_in].in[0]);
        if (!pre && !lint_is_entry(g, under))
            continue;
        /* GLM-130B, MiniMax: post-norm cut elsewhere */
        tb_lint_level level = u->skip.at > 1 ? TB_LINT_NOTE : TB_LINT_WARN;
        TB_TRY(lint_said(L, lint_pos(g, u->sum), level, L->row->say.message));
    }
    return TB_OK;
}

tb_status lint_skip_after_norm(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions && !g->many; i++) {
        const lint_use *u = &g->use[i];
        if (u->sum < 0 || u->reads_base || !lint_is_norm(g, u->base))
            continue;
        int under = lint_below(g, g->g->nodes[u->base].in[0]);
        if (lint_is_entry(g, under) ||
            under == lint_below(g, g->g->regions[i].in[0]))
            lint_found(L, lint_pos(g, u->sum));
    }
    return TB_OK;
}

tb_status lint_norm_after_add(tb_lint *L, const lint_graph *g)
{
    unsigned char *feeds = tb_arena_alloc(&L->arena, (size_t)g->g->nnodes);
    if (!feeds)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->g->nregions; i++)
        feeds[lint_below(g, g->g->regions[i].in[0])] = 1;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->norm_top < 0 || u->norm_in < 0 || g->lane[u->norm_in] ||
            !u->reads_base || !u->skip_plain || u->skip.at != 1)
            continue;
        if (!feeds[u->norm_top]) /* else it is a skip that was normed */
            lint_found(L, lint_pos(g, u->norm_top));
    }
    return TB_OK;
}

tb_status lint_branch_not_added(tb_lint *L, const lint_graph *g)
{
    if (!has_path(g, g->lane))
        return TB_OK; /* no-skip says more */
    for (int i = 0; i < g->g->nregions; i++)
        if (g->reach[g->g->regions[i].out] && !g->joins[g->g->regions[i].out])
            lint_found(L, g->g->regions[i].pos);
    return TB_OK;
}

/* --- depth --------------------------------------------------------------- */

/* Post-norm without anything that makes it deep: a larger skip, a gate, small
 * branches, norms on them. */
static bool is_plain_post(const lint_graph *g)
{
    if (!g->info.tolls || lint_starts_small(g))
        return false;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->norm_top < 0 || !u->skip_plain || u->skip.at != 1)
            return false;
    }
    return g->g->nregions > 0;
}

tb_status lint_post_ln_deep(tb_lint *L, const lint_graph *unused)
{
    size_t n = 0;
    const lint_graph *g = NULL;
    (void)unused;
    for (int i = 0; i < L->at->nkinds; i++)
        if (is_plain_post(&L->at->kinds[i])) {
            n += L->at->kinds[i].count;
            g = &L->at->kinds[i];
        }
    if (n < 12)
        return TB_OK;
    return lint_said(
        L, top_pos(g), TB_LINT_NOTE,
        tb_arena_printf(&L->arena,
                        "%zu post-norm blocks without a scaled skip: such "
                        "stacks often diverge or stall without warm-up",
                        n));
}
