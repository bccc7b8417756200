/* SPDX-License-Identifier: MIT */
/* What the checks want to know of one graph, found once: who reads a node,
 * what lies on the lane, what is normed, what starts at zero, and how each
 * sublayer joins. Every pass is linear in the nodes. */
#include "equation/names.h"
#include "graph/init_rules.h"
#include "graph/lint.h"

/* --- constants ----------------------------------------------------------- */

double lint_fold(tb_lint *L, const tb_expr *e, double N, double l, double k)
{
    const tb_settings *s = &L->sizes.s;
    double M = L->sizes.M * (N / L->sizes.N); /* both deepen */
    tb_consts c = {N, M, l, k, (double)s->width, (double)s->heads};
    double v;
    if (tb_expr_fold(L->ctx, L->b, e, &c, NULL, NULL, &v) == TB_OK)
        return v;
    tb_error_clear(L->ctx);
    return __builtin_nan("");
}

static lint_factor factor_of(tb_lint *L, const tb_expr *e, size_t l, int k)
{
    double N = L->sizes.N, at_l = l ? (double)l : 1, at_k = k ? (double)k : 1;
    if (e->kind == TB_EXPR_NUMBER)
        return (lint_factor){e->number, e->number, e->number};
    return (lint_factor){lint_fold(L, e, N, at_l, at_k),
                         lint_fold(L, e, 4 * N, at_l, at_k),
                         lint_fold(L, e, N, 4 * at_l, at_k)};
}

static int compare(double a, double b)
{
    a = tb_fabs(a);
    b = tb_fabs(b);
    if (b > a * (1 + 1e-9))
        return 1;
    return b < a * (1 - 1e-9) ? -1 : 0; /* NaN: 0 */
}

int lint_by_N(lint_factor f)
{
    return compare(f.at, f.at_4N);
}

int lint_by_l(lint_factor f)
{
    return compare(f.at, f.at_4l);
}

static void multiply(lint_factor *f, lint_factor by)
{
    f->at *= by.at;
    f->at_4N *= by.at_4N;
    f->at_4l *= by.at_4l;
}

static lint_factor scale_of(tb_lint *L, const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    const tb_attr *a = &n->attr[TB_ATTR_AFFINE_SCALE];
    if (n->op->jac != TB_JAC_AFFINE)
        return (lint_factor){1, 1, 1};
    if (!a->expr)
        return (lint_factor){a->value, a->value, a->value};
    return factor_of(L, a->expr, g->first, n->k);
}

/* --- nodes --------------------------------------------------------------- */

bool lint_is_norm(const lint_graph *g, int node)
{
    return node >= 0 && g->g->nodes[node].op->lane == TB_LANE_TOLL;
}

bool lint_is_entry(const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    return n->op == &tb_op_input;
}

static bool is_stream(const lint_graph *g, int node)
{
    return g->g->nodes[node].shape.kind == TB_SHAPE_STREAM;
}

bool lint_is_sum(const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    return (n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF) &&
           n->nin == 2 && is_stream(g, n->in[0]) && is_stream(g, n->in[1]);
}

static bool passes(const tb_node *n)
{
    return n->op->lane == TB_LANE_PASS && n->op->jac != TB_JAC_ZERO;
}

/* The stream a node passes on with a factor, -1: it has none or several. */
static int only_stream(const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    int found = -1;
    if (!passes(n))
        return -1;
    for (int i = 0; i < n->nin; i++)
        if (is_stream(g, n->in[i])) {
            if (found >= 0)
                return -1;
            found = n->in[i];
        }
    return found;
}

int lint_below(const lint_graph *g, int node)
{
    for (int in; (in = only_stream(g, node)) >= 0;)
        node = in;
    return node;
}

bool lint_any_norm(const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++)
        if (lint_is_norm(g, i) && g->reach[i])
            return true;
    return false;
}

bool lint_normed_off_lane(const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++)
        if (lint_is_norm(g, i) && g->reach[i] && !g->lane[i])
            return true;
    return false;
}

/* --- passes over all nodes ----------------------------------------------- */

static tb_status find_users(tb_lint *L, lint_graph *g)
{
    const tb_graph *t = g->g;
    size_t n = (size_t)t->nnodes, edges = 0;
    for (int i = 0; i < t->nnodes; i++)
        edges += (size_t)t->nodes[i].nin;
    g->users_at = tb_arena_alloc(&L->arena, (n + 2) * sizeof *g->users_at);
    g->users = tb_arena_alloc(&L->arena, (edges + 1) * sizeof *g->users);
    if (!g->users_at || !g->users)
        return TB_ERR_MEMORY;
    int *at = g->users_at + 1; /* ends of the lists, while they fill */
    for (int i = 0; i < t->nnodes; i++)
        for (int j = 0; j < t->nodes[i].nin; j++)
            at[t->nodes[i].in[j] + 1]++;
    for (int i = 1; i <= t->nnodes; i++)
        at[i] += at[i - 1];
    for (int i = 0; i < t->nnodes; i++)
        for (int j = 0; j < t->nodes[i].nin; j++)
            g->users[at[t->nodes[i].in[j]]++] = i;
    return TB_OK;
}

enum { FROM_IN = 1, TO_OUT = 2, BETWEEN = 3 };

static bool carries(const tb_node *n, bool loose)
{
    bool norm = n->op->lane == TB_LANE_TOLL;
    return passes(n) || norm || (loose && n->op->jac == TB_JAC_DIAG);
}

/* Nodes between where streams enter and where they leave. */
static void find_lane(const lint_graph *g, bool loose, unsigned char *bits)
{
    const tb_graph *t = g->g;
    for (int i = 0; i < t->ninputs; i++)
        if (is_stream(g, t->inputs[i]))
            bits[t->inputs[i]] |= FROM_IN;
    for (int i = 0; i < t->nnodes; i++)
        for (int j = 0; carries(&t->nodes[i], loose) && j < t->nodes[i].nin;
             j++)
            if (is_stream(g, t->nodes[i].in[j]))
                bits[i] |= bits[t->nodes[i].in[j]] & FROM_IN;
    bits[g->top] |= TO_OUT;
    for (int i = 0; g->first && i < t->noutputs; i++)
        bits[t->outputs[i].node] |= TO_OUT;
    for (int i = t->nnodes - 1; i >= 0; i--)
        for (int j = 0; (bits[i] & TO_OUT) && carries(&t->nodes[i], loose) &&
                        j < t->nodes[i].nin;
             j++)
            if (is_stream(g, t->nodes[i].in[j]))
                bits[t->nodes[i].in[j]] |= TO_OUT;
    for (int i = 0; i < t->nnodes; i++)
        bits[i] = bits[i] == BETWEEN;
}

/* What an output depends on, at all or without going through a sublayer. */
static void find_reach(const lint_graph *g, bool around, unsigned char *bits)
{
    const tb_graph *t = g->g;
    for (int i = 0; i < t->noutputs; i++)
        bits[t->outputs[i].node] = 1;
    for (int i = t->nnodes - 1; i >= 0; i--) {
        bool open = bits[i] && !(around && t->nodes[i].region >= 0);
        for (int j = 0; open && j < t->nodes[i].nin; j++)
            bits[t->nodes[i].in[j]] = 1;
    }
}

/* Values that hold a sublayer's output beside the lane. */
static void find_branches(const lint_graph *g)
{
    const tb_graph *t = g->g;
    for (int i = 0; i < t->nnodes; i++) {
        bool branch = t->nodes[i].op == &tb_op_branch;
        for (int j = 0; !g->lane[i] && j < t->nodes[i].nin; j++)
            branch |= g->branch[t->nodes[i].in[j]];
        g->branch[i] = branch;
    }
}

/* Bounded functions norm in their way. */
static bool is_bounded(const tb_op *op)
{
    static const tb_op *const bounded[] = {&tb_op_sigmoid, &tb_op_tanh,
                                           &tb_op_softmax};
    for (size_t i = 0; i < TB_LEN(bounded); i++)
        if (op == bounded[i])
            return true;
    return false;
}

/* Does the stream grow from block to block? x does where it has a lane without
 * a norm, a further stream if it leaves as a sum. */
static bool enters_raw(const lint_graph *g, int node)
{
    const tb_graph *t = g->g;
    if (node == t->boundaries[0].node)
        return g->info.tolls == 0 && g->info.kind != TB_LANE_KIND_NONE;
    for (int i = 0; i < t->noutputs; i++)
        if (tb_streq(t->outputs[i].name, t->nodes[node].name))
            return g->lane[t->outputs[i].node] &&
                   lint_is_sum(g, t->outputs[i].node);
    return false;
}

static void find_raw(const lint_graph *g)
{
    const tb_graph *t = g->g;
    for (int i = 0; i < t->nnodes; i++) {
        const tb_node *n = &t->nodes[i];
        g->raw[i] = lint_is_entry(g, i) && enters_raw(g, i);
        if (lint_is_norm(g, i) || is_bounded(n->op))
            continue;
        for (int j = n->op == &tb_op_mha ? 2 : 0; j < n->nin; j++)
            g->raw[i] |= g->raw[n->in[j]];
    }
}

/* --- what starts at zero ------------------------------------------------- */

/* How many factors of a value are 0 at the start: from two on no parameter in
 * it gets a gradient. LINT_DEAD: it is 0 whatever they become. */
static int order_of(const lint_graph *g, int i)
{
    const tb_node *n = &g->g->nodes[i];
    const unsigned char *o = g->order;
    int a = n->nin > 0 ? o[n->in[0]] : 0, b = n->nin > 1 ? o[n->in[1]] : 0;
    int c = n->nin > 2 ? o[n->in[2]] : LINT_DEAD;
    const double *attr = g->attr[i];
    if (n->op == &tb_op_affine && attr[TB_ATTR_AFFINE_OFFSET] != 0)
        return 0;
    if (n->op == &tb_op_affine)
        return attr[TB_ATTR_AFFINE_SCALE] == 0 ? LINT_DEAD : a;
    if (n->op == &tb_op_mha)
        return c; /* the values; queries and keys only weigh them */
    if (n->op == &tb_op_linear || n->op->lane == TB_LANE_TOLL)
        return c ? a + b : 0; /* a bias that moves helps no other weight */
    if (n->op->jac == TB_JAC_PROD)
        return a + b;
    if (lint_is_sum(g, i))
        return a < b ? a : b;
    if (n->op == &tb_op_relu) /* its slope at 0 is 0 */
        return a ? LINT_DEAD : 0;
    if (n->op == &tb_op_sigmoid || n->op == &tb_op_softmax ||
        n->op == &tb_op_embed)
        return 0;
    return a;
}

static void find_orders(const lint_graph *g)
{
    const tb_graph *t = g->g;
    for (int i = 0; i < t->nnodes; i++) {
        int param = t->nodes[i].param, order;
        order = param >= 0 ? g->start[param].zero : order_of(g, i);
        g->order[i] = (unsigned char)(order > LINT_DEAD ? LINT_DEAD : order);
    }
}

/* --- starts -------------------------------------------------------------- */

static const tb_init_rule *rule_at(const tb_lint *L, int i)
{
    return i < L->b->ninit ? &L->b->init[i] : &L->extra->init[i - L->b->ninit];
}

/* The parameter's name in the model. */
static void full_name(const tb_lint *L, const lint_graph *g, const tb_param *p,
                      char *out, size_t cap)
{
    bool both = L->nstacks > 1 && !p->shared;
    const char *side =
        L->at->which == TB_STACK_ENCODER ? "encoder." : "decoder.";
    if (g->first)
        tb_format(out, cap, "%slayers.%zu.%s", both ? side : "", g->first - 1,
                  p->name);
    else
        tb_format(out, cap, "%s%s", both ? side : "", p->name);
}

/* The last rule that means the parameter, -1: none. */
static int rule_for(tb_lint *L, const lint_graph *g, const tb_param *p)
{
    int n = L->b->ninit + (L->extra ? L->extra->ninit : 0), last = -1;
    char name[256];
    full_name(L, g, p, name, sizeof name);
    for (int i = 0; i < n; i++) {
        const tb_init_rule *r = rule_at(L, i);
        for (int j = 0; j < r->nglobs; j++)
            if (tb_init_glob(r->globs[j], name, p->role)) {
                L->rule_hit[i] = true;
                L->glob_hit[i] |= j < 64 ? UINT64_C(1) << j : 0;
                last = i;
            }
    }
    if (last >= 0)
        L->rule_won[last] = true;
    return last;
}

/* Some words stand for a number. */
static double fixed_value(const char *rule, bool *known)
{
    static const struct {
        const char *rule;
        double value;
    } fixed[] = {{"zeros", 0}, {"const", 0}, {"normal", 0}, {"uniform", 0}};
    for (size_t i = 0; i < TB_LEN(fixed); i++)
        if (tb_streq(rule, fixed[i].rule))
            return *known = true, fixed[i].value;
    *known = false;
    return 1;
}

static lint_start by_rule(tb_lint *L, const lint_graph *g, const tb_param *p,
                          const tb_expr *e, int rule)
{
    bool known;
    double v = fixed_value(e->name, &known);
    lint_start s = {{v, v, v}, v == 0, rule};
    if (e->kind != TB_EXPR_CALL || !e->nargs || tb_streq(e->name, "onehot"))
        return s;
    s.size = factor_of(L, e->args[0].value, g->first, g->g->nodes[p->node].k);
    s.zero = s.size.at == 0;
    return s;
}

static lint_start start_of(tb_lint *L, const lint_graph *g, const tb_param *p)
{
    int rule = rule_for(L, g, p);
    bool small = p->role == TB_ROLE_BIAS || p->role == TB_ROLE_SCALAR ||
                 p->role == TB_ROLE_VECTOR || p->role == TB_ROLE_TABLE;
    lint_start s = {{1, 1, 1}, false, -1};
    if (rule >= 0)
        return by_rule(L, g, p, rule_at(L, rule)->rule, rule);
    if (p->start && p->start->name && tb_init_kind_find(p->start->name))
        return by_rule(L, g, p, p->start, -1);
    if (p->start) {
        s.size = factor_of(L, p->start, g->first, g->g->nodes[p->node].k);
        s.zero = s.size.at == 0;
    } else if (small) {
        s = (lint_start){{0, 0, 0}, true, -1};
    }
    return s;
}

/* --- how a sublayer joins ------------------------------------------------ */

/* Up from a branch: the sum on the lane that reads it, else the first reader
 * that passes it on. */
static int reader(const lint_graph *g, int node)
{
    int first = -1;
    for (int i = g->users_at[node]; i < g->users_at[node + 1]; i++) {
        int u = g->users[i];
        if (g->lane[u] && lint_is_sum(g, u))
            return u;
        if (first < 0 && (passes(&g->g->nodes[u]) || lint_is_norm(g, u)))
            first = u;
    }
    return first;
}

/* The learned factor of a product, -1: it is none. */
static int learned_factor(const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    for (int i = 0; n->op->jac == TB_JAC_PROD && i < n->nin; i++)
        if (!is_stream(g, n->in[i]))
            return n->in[i];
    return -1;
}

enum { STEPS = 1000 }; /* of one walk: hostile texts have long chains */

static void walk_up(tb_lint *L, const lint_graph *g, const tb_region *r,
                    lint_use *u)
{
    int at = r->out;
    for (int i = 0; i < STEPS && (at = reader(g, at)) >= 0; i++) {
        const tb_node *n = &g->g->nodes[at];
        int learned = learned_factor(g, at);
        if (g->lane[at] && lint_is_sum(g, at)) {
            u->sum = at;
            return;
        }
        if (lint_is_norm(g, at))
            u->norm_out = at;
        multiply(&u->output, scale_of(L, g, at));
        if (n->op->jac == TB_JAC_PROD) {
            u->gate = at;
            u->gate_zero |= learned >= 0 && g->order[learned] > 0;
        }
    }
}

static void walk_into(tb_lint *L, const lint_graph *g, const tb_region *r,
                      lint_use *u)
{
    int at = r->in[0], below = lint_below(g, at);
    if (lint_is_norm(g, below))
        u->norm_in = below;
    for (int in; (in = only_stream(g, at)) >= 0; at = in)
        multiply(&u->branch, scale_of(L, g, at));
    at = lint_below(g, g->g->nodes[r->out].in[0]);
    if (g->g->nodes[at].op->jac != TB_JAC_WEIGHT)
        return;
    u->last = g->g->nodes[g->g->nodes[at].in[1]].param;
    at = lint_below(g, g->g->nodes[at].in[0]);
    if (lint_is_norm(g, at))
        u->norm_inner = at;
}

/* Does the sublayer read this node, itself or through its norm? */
static bool is_read(const lint_graph *g, const tb_region *r, const lint_use *u,
                    int node)
{
    int norm = u->norm_in, under = norm < 0 ? -1 : g->g->nodes[norm].in[0];
    return node == r->in[0] || node == lint_below(g, r->in[0]) ||
           node == under || (under >= 0 && node == lint_below(g, under));
}

static int skip_operand(const lint_graph *g, const tb_region *r,
                        const lint_use *u, int sum)
{
    const tb_node *n = &g->g->nodes[sum];
    for (int i = 0; i < 2; i++)
        if (is_read(g, r, u, n->in[i]))
            return n->in[i];
    return g->lane[n->in[0]] ? n->in[0] : n->in[1];
}

static void walk_skip(tb_lint *L, const lint_graph *g, const tb_region *r,
                      lint_use *u)
{
    int at = skip_operand(g, r, u, u->sum);
    u->skip_plain = true;
    for (int i = 0; i < STEPS && !is_read(g, r, u, at); i++) {
        int in = only_stream(g, at);
        if (in < 0 && !lint_is_sum(g, at))
            break;
        u->skip_plain &= g->g->nodes[at].op->jac != TB_JAC_PROD;
        multiply(&u->skip, scale_of(L, g, at));
        at = in >= 0 ? in : skip_operand(g, r, u, at);
    }
    u->base = at;
    u->reads_base = is_read(g, r, u, at);
}

static int only_user(const lint_graph *g, int node)
{
    bool one = g->users_at[node + 1] - g->users_at[node] == 1;
    return one ? g->users[g->users_at[node]] : -1;
}

static void walk_above(const lint_graph *g, lint_use *u)
{
    int at = only_user(g, u->sum);
    for (int i = 0; i < STEPS && at >= 0 && g->lane[at]; i++) {
        if (lint_is_norm(g, at)) {
            u->norm_top = at;
            return;
        }
        if (!passes(&g->g->nodes[at]))
            return;
        at = only_user(g, at);
    }
}

static void find_use(tb_lint *L, const lint_graph *g, int region)
{
    const tb_region *r = &g->g->regions[region];
    const lint_factor one = {1, 1, 1};
    lint_use *u = &g->use[region];
    *u = (lint_use){-1, -1,    -1, -1, -1,  one,   one,
                    -1, false, -1, -1, one, false, false};
    walk_into(L, g, r, u);
    walk_up(L, g, r, u);
    multiply(&u->branch, u->output);
    if (u->sum < 0)
        return;
    walk_skip(L, g, r, u);
    walk_above(g, u);
}

/* --- all of it ----------------------------------------------------------- */

static tb_status reserve(tb_lint *L, lint_graph *g)
{
    size_t n = (size_t)g->g->nnodes + 1, p = (size_t)g->g->nparams + 1;
    size_t r = (size_t)g->g->nregions + 1;
    unsigned char *bytes = tb_arena_alloc(&L->arena, 7 * n);
    g->attr = tb_arena_alloc(&L->arena, n * sizeof *g->attr);
    g->start = tb_arena_alloc(&L->arena, p * sizeof *g->start);
    g->use = tb_arena_alloc(&L->arena, r * sizeof *g->use);
    if (!bytes || !g->attr || !g->start || !g->use)
        return TB_ERR_MEMORY;
    g->lane = bytes;
    g->loose = bytes + n;
    g->reach = bytes + 2 * n;
    g->raw = bytes + 3 * n;
    g->order = bytes + 4 * n;
    g->joins = bytes + 5 * n;
    g->branch = bytes + 6 * n;
    return TB_OK;
}

tb_status lint_look(tb_lint *L, lint_graph *g)
{
    const tb_graph *t = g->g;
    g->top = t->boundaries[t->nboundaries - 1].node;
    g->many = t->noutputs > 1 && g->first;
    TB_TRY(reserve(L, g));
    TB_TRY(find_users(L, g));
    TB_TRY(
        tb_graph_attrs(L->ctx, t, &L->sizes, g->first ? g->first : 1, g->attr));
    TB_TRY(tb_graph_lane(L->ctx, t, &L->arena, &g->info));
    find_lane(g, false, g->lane);
    find_lane(g, true, g->loose);
    find_reach(g, false, g->reach);
    find_reach(g, true, g->joins);
    find_branches(g);
    find_raw(g);
    for (int i = 0; i < t->nparams; i++)
        g->start[i] = start_of(L, g, &t->params[i]);
    find_orders(g);
    for (int i = 0; i < t->nregions; i++)
        find_use(L, g, i);
    return TB_OK;
}
