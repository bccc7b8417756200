/* SPDX-License-Identifier: MIT */
/* Checks of constants, gates and initial weights against each other. */
#include "graph/init_rules.h"
#include "graph/lint.h"

/* Start of the weight that ends the sublayer. */
static const lint_start *last_start(const lint_graph *g, const lint_use *u)
{
    static const lint_start none = {{0, 0, 0}, false, -1};
    return u->last >= 0 ? &g->start[u->last] : &none;
}

static const char *last_name(const lint_graph *g, const lint_use *u)
{
    return g->g->params[u->last].name;
}

static bool falls(lint_factor f)
{
    return lint_by_N(f) < 0 || lint_by_l(f) < 0;
}

/* A line of init: makes the sublayer end smaller in deeper stacks. */
static bool init_falls(const lint_graph *g, const lint_use *u)
{
    const lint_start *s = last_start(g, u);
    return s->rule >= 0 && falls(s->size);
}

/* A norm on the sum and none between it and the sublayer. */
static bool is_post(const lint_graph *g, const lint_use *u)
{
    return u->norm_top >= 0 && (u->norm_in < 0 || g->lane[u->norm_in]);
}

/* --- DeepNorm and what looks like it ------------------------------------- */

tb_status lint_branch_scaled(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        bool up = u->output.at > 1 && (lint_by_N(u->output) > 0 ||
                                       u->norm_top >= 0 || !lint_any_norm(g));
        if (u->sum >= 0 && up && u->skip_plain && u->skip.at == 1)
            lint_found(L, lint_pos(g, u->sum));
    }
    return TB_OK;
}

static bool grows_with_depth(const lint_graph *g, const lint_use *u)
{
    return is_post(g, u) && u->last >= 0 && u->skip_plain && u->skip.at > 1 &&
           lint_by_N(u->skip) > 0;
}

tb_status lint_alpha_without_init(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (!grows_with_depth(g, u) || lint_by_N(last_start(g, u)->size) != 0)
            continue;
        TB_TRY(lint_said(
            L, lint_pos(g, u->sum), TB_LINT_WARN,
            tb_arena_printf(&L->arena,
                            "the skip grows with depth as in DeepNorm, but %s "
                            "starts as large as ever: the bound on updates "
                            "needs both",
                            last_name(g, u))));
    }
    return TB_OK;
}

tb_status lint_alpha_fixed(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (is_post(g, u) && u->skip_plain && u->skip.at > 1 &&
            lint_by_N(u->skip) == 0 && lint_by_l(u->skip) == 0)
            lint_found(L, lint_pos(g, u->sum));
    }
    return TB_OK;
}

tb_status lint_gain_inverted(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        const lint_start *s = last_start(g, u);
        if (grows_with_depth(g, u) && s->rule >= 0 && lint_by_N(s->size) > 0)
            lint_found(L, s->rule < L->b->ninit ? L->b->init[s->rule].pos
                                                : lint_pos(g, u->sum));
    }
    return TB_OK;
}

tb_status lint_deepnorm_and_subln(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->norm_top >= 0 && u->norm_inner >= 0 && u->skip.at > 1)
            lint_found(L, lint_pos(g, u->norm_inner));
    }
    return TB_OK;
}

/* --- depth scaled twice, or in vain -------------------------------------- */

tb_status lint_scale_and_init(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        bool gate = u->gate >= 0 && u->gate_zero;
        if (u->sum < 0 || !init_falls(g, u) || !(falls(u->branch) || gate))
            continue;
        TB_TRY(lint_said(
            L, lint_pos(g, u->sum), gate ? TB_LINT_NOTE : TB_LINT_WARN,
            tb_arena_printf(&L->arena,
                            "the branch is made smaller twice: by the %s in "
                            "the block and by the start of %s",
                            gate ? "gate" : "constant", last_name(g, u))));
    }
    return TB_OK;
}

static bool all_post(const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++)
        if (!is_post(g, &g->use[i]))
            return false;
    return true;
}

tb_status lint_init_not_matching(tb_lint *L, const lint_graph *g)
{
    if (!all_post(g))
        return TB_OK;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        const lint_start *s = last_start(g, u);
        if (!u->skip_plain || u->skip.at != 1 || s->rule < 0 ||
            lint_by_N(s->size) >= 0 || s->rule >= L->b->ninit)
            continue;
        lint_found(L, L->b->init[s->rule].pos);
    }
    return TB_OK;
}

tb_status lint_norm_undoes_init(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->norm_out >= 0 && init_falls(g, u))
            lint_found(L, lint_pos(g, u->norm_out));
    }
    return TB_OK;
}

static bool is_normal(const tb_lint *L, const lint_start *s)
{
    return s->rule >= 0 && s->rule < L->b->ninit &&
           tb_streq(L->b->init[s->rule].rule->name, "normal");
}

/* What the other matrices of the layer start with: GPT-2's 0.02 where no rule
 * says it. */
static lint_factor base_size(const tb_lint *L, const lint_graph *g, int rule)
{
    for (int i = 0; i < g->g->nparams; i++)
        if (g->g->params[i].role == TB_ROLE_MATRIX &&
            is_normal(L, &g->start[i]) && g->start[i].rule != rule)
            return g->start[i].size;
    return (lint_factor){0.02, 0.02, 0.02};
}

tb_status lint_init_counts_blocks(tb_lint *L, const lint_graph *g)
{
    double N = (double)tb_sizes_depth(&L->sizes, L->at->which);
    double sublayers = (double)g->g->nregions;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_start *s = last_start(g, &g->use[i]);
        if (!is_normal(L, s) || sublayers < 2 || lint_by_N(s->size) >= 0)
            continue;
        double ratio = base_size(L, g, s->rule).at / s->size.at;
        if (tb_fabs(ratio * ratio / N - 1) < 1e-6)
            lint_found(L, L->b->init[s->rule].pos);
    }
    return TB_OK;
}

static bool names_a_layer(const tb_init_rule *r)
{
    static const char head[] = "layers.";
    for (int i = 0; i < r->nglobs; i++)
        if (!strncmp(r->globs[i], head, sizeof head - 1))
            return true;
    return false;
}

static bool of_side(const tb_init_rule *r)
{
    for (int i = 0; i < r->nglobs; i++)
        if (tb_init_of_side(r->globs[i]))
            return true;
    return false;
}

/* A line for single stacks: later lines say the same by role. */
static bool for_one_stack(const tb_lint *L, int rule)
{
    for (int i = rule + 1; i < L->b->ninit && L->nstacks > 1; i++)
        if (of_side(&L->b->init[i]))
            return !of_side(&L->b->init[rule]);
    return false;
}

/* The weights there are, as rules name them. */
static const char *near_weight(tb_lint *L, const char *glob)
{
    enum { MOST = 256 };
    const char **names = tb_arena_alloc(&L->arena, MOST * sizeof *names);
    size_t n = 0;
    for (int k = 0; names && k < L->at->nkinds; k++)
        for (int i = 0; i < L->at->kinds[k].g->nparams && n < MOST; i++) {
            const char *name = L->at->kinds[k].g->params[i].name;
            size_t len = strlen(name), tail = strlen(".weight");
            bool weight = len > tail && tb_streq(name + len - tail, ".weight");
            names[n] =
                tb_arena_strndup(&L->arena, name, weight ? len - tail : len);
            n += names[n] != NULL;
        }
    return names ? tb_nearest(glob, names, n) : NULL;
}

static tb_status unmatched(tb_lint *L, int rule, int g)
{
    const char *glob = L->b->init[rule].globs[g];
    const char *near = near_weight(L, glob);
    return lint_said(L, L->b->init[rule].pos, L->row->say.level,
                     tb_arena_printf(&L->arena,
                                     "'%.60s' matches no weight%s%s%s", glob,
                                     near ? "; did you mean '" : "",
                                     near ? near : "", near ? "'?" : ""));
}

/* Layers are looked at once for each kind: names of single ones are skipped,
 * and those of the other side. */
tb_status lint_init_unmatched(tb_lint *L, const lint_graph *unused)
{
    (void)unused;
    for (int i = 0; i < L->b->ninit; i++) {
        const tb_init_rule *r = &L->b->init[i];
        for (int g = 0; g < r->nglobs && g < 64; g++)
            if (!(L->glob_hit[i] >> g & 1) && !names_a_layer(r) &&
                (L->nstacks > 1 || !tb_init_of_side(r->globs[g])))
                TB_TRY(unmatched(L, i, g));
    }
    return TB_OK;
}

tb_status lint_init_overridden(tb_lint *L, const lint_graph *unused)
{
    (void)unused;
    for (int i = 0; i < L->b->ninit && !L->extra; i++)
        if (L->rule_hit[i] && !L->rule_won[i] &&
            !names_a_layer(&L->b->init[i]) && !for_one_stack(L, i))
            lint_found(L, L->b->init[i].pos);
    return TB_OK;
}

/* --- the head ------------------------------------------------------------ */

static tb_pos setting_pos(const tb_block *b, const char *key)
{
    for (int i = 0; i < b->nsettings; i++)
        if (tb_streq(b->settings[i].key, key))
            return b->settings[i].pos;
    return (tb_pos){1, 1};
}

tb_status lint_tied_scale(tb_lint *L, const lint_graph *unused)
{
    const lint_graph *t = &L->at->tail;
    double d = (double)L->sizes.s.width;
    (void)unused;
    if (!L->sizes.s.tied || !lint_any_norm(t))
        return TB_OK;
    for (int i = 0; i < t->g->nparams; i++) {
        double std = t->start[i].size.at, logits = std * tb_sqrt(d);
        if (t->g->params[i].role != TB_ROLE_EMBEDDING || !(logits > 4))
            continue;
        TB_TRY(lint_said(
            L, setting_pos(L->b, "tied"), TB_LINT_WARN,
            tb_arena_printf(&L->arena,
                            "the head is the embedding, which starts at %.3g: "
                            "logits start at %.3g, far from uniform",
                            std, logits)));
    }
    return TB_OK;
}

/* --- zeros --------------------------------------------------------------- */

typedef tb_status (*joins_fn)(tb_lint *L, const lint_graph *g, int node);

/* Every value that is added to the lane. */
static tb_status each_joining(tb_lint *L, const lint_graph *g, joins_fn fn)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        const tb_node *n = &g->g->nodes[i];
        if (!g->lane[i] || !lint_is_sum(g, i))
            continue;
        for (int j = 0; j < 2; j++)
            if (g->branch[n->in[j]] && g->lane[n->in[1 - j]])
                TB_TRY(fn(L, g, n->in[j]));
    }
    return TB_OK;
}

static tb_status dead(tb_lint *L, const lint_graph *g, int node)
{
    if (g->order[node] >= LINT_DEAD)
        return lint_said(L, lint_pos(g, node), TB_LINT_FAIL,
                         "what is added here is 0 and stays 0: none of its "
                         "weights ever gets a gradient");
    if (g->order[node] >= 2)
        lint_found(L, lint_pos(g, node));
    return TB_OK;
}

tb_status lint_dead_branch(tb_lint *L, const lint_graph *g)
{
    return each_joining(L, g, dead);
}

tb_status lint_dead_lane(tb_lint *L, const lint_graph *g)
{
    if (g->order[g->top] > 0)
        lint_found(L, lint_pos(g, g->top));
    return TB_OK;
}

static tb_status zero(tb_lint *L, const lint_graph *g, int node)
{
    if (g->order[node] == 1)
        lint_found(L, lint_pos(g, node));
    return TB_OK;
}

tb_status lint_zero_start(tb_lint *L, const lint_graph *g)
{
    return each_joining(L, g, zero);
}

/* --- gates --------------------------------------------------------------- */

tb_status lint_rezero_norm(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->gate_zero && (u->norm_in >= 0 || u->norm_top >= 0))
            lint_found(L, lint_pos(g, u->gate));
    }
    return TB_OK;
}

tb_status lint_uneven_gate(tb_lint *L, const lint_graph *g)
{
    bool any = false;
    for (int i = 0; i < g->g->nregions; i++)
        any |= g->use[i].sum >= 0 && g->use[i].gate >= 0;
    for (int i = 0; i < g->g->nregions && any; i++)
        if (g->use[i].sum >= 0 && g->use[i].gate < 0)
            lint_found(L, g->g->regions[i].pos);
    return TB_OK;
}
