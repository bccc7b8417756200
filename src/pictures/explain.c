/* SPDX-License-Identifier: MIT */
/* explain: everything the text alone gives, for a program. */
#include "pictures/explain_parts.h"
#include "pictures/wiring.h"

/* --- kinds of blocks ------------------------------------------------------ */

/* Of an outline: "1-250000", or "1, ..., 999999" with others between. */
static size_t runs_of_outline(const tb_model *m, size_t p, tb_buf *b)
{
    size_t first = tb_model_layer(m, p), last = tb_model_last(m, p);
    size_t many = tb_model_blocks(m, p);
    tb_buf_printf(b, "%zu", first);
    if (many > 1)
        tb_buf_printf(b, many == last - first + 1 ? "-%zu" : ", ..., %zu",
                      last);
    return many;
}

/* The runs of a kind: "1", "2-6", "1, 3, 5, 7, ..."; how many blocks. */
static size_t runs_of(const tb_model *m, const tb_explained_kind *k, tb_buf *b)
{
    size_t many = 0, runs = 0;
    for (size_t p = k->part; p < m->nparts; p++) {
        size_t first = p;
        if (tb_model_graph(m, p) != k->g)
            continue;
        while (p + 1 < m->nparts && tb_model_graph(m, p + 1) == k->g)
            p++;
        many += p - first + 1;
        if (++runs == 5)
            tb_buf_puts(b, ", ...");
        if (runs > 4)
            continue;
        tb_buf_printf(b, runs > 1 ? ", %zu" : "%zu", tb_model_layer(m, first));
        if (p > first)
            tb_buf_printf(b, "-%zu", tb_model_layer(m, p));
    }
    return many;
}

static bool has_two_stacks(const tb_explained *e)
{
    return tb_model_side(e->model, 0) == TB_SIDE_ENCODER;
}

/* "block 1", "blocks 2-6", "encoder blocks 1-6" */
static tb_status name_blocks(tb_explained *e, tb_explained_kind *k)
{
    tb_buf b;
    tb_buf_init(&b, e->arena.ctx);
    bool many = (e->model->outline ? runs_of_outline(e->model, k->part, &b)
                                   : runs_of(e->model, k, &b)) > 1;
    const char *side = !has_two_stacks(e) ? ""
                       : k->encoder       ? "encoder "
                                          : "decoder ";
    k->blocks = b.failed ? NULL
                         : tb_arena_printf(&e->arena, "%sblock%s %s", side,
                                           many ? "s" : "", tb_buf_str(&b));
    tb_buf_clear(&b);
    return k->blocks ? TB_OK : TB_ERR_MEMORY;
}

static tb_status look_at(tb_ctx *ctx, tb_explained *e, tb_explained_kind *k)
{
    tb_arena *a = &e->arena;
    TB_TRY(tb_jacobian_build(ctx, a, k->g, TB_JAC_CLOSED, &k->closed));
    TB_TRY(tb_jacobian_build(ctx, a, k->g, TB_JAC_OPEN, &k->open));
    TB_TRY(tb_jacobian_build(ctx, a, k->g, TB_JAC_SILENT, &k->silent));
    TB_TRY(tb_jacobian_build(ctx, a, k->g, TB_JAC_LANE, &k->lane));
    TB_TRY(tb_jacobian_memory(ctx, a, k->g, TB_JAC_CLOSED, &k->memory,
                              &k->has_memory));
    TB_TRY(tb_jacobian_memory(ctx, a, k->g, TB_JAC_OPEN, &k->memory_open,
                              &k->has_memory));
    TB_TRY(tb_graph_lane(ctx, k->g, a, &k->info));
    return name_blocks(e, k);
}

/* As formulas write it: past[1]. */
static const char *element_name(tb_arena *a, const tb_graph *g, int node)
{
    tb_buf b;
    tb_buf_init(&b, a->ctx);
    tb_status s = tb_formula_print(a->ctx, g, node, TB_NOTE_TEXT, &b);
    const char *name = s == TB_OK ? tb_arena_strdup(a, tb_buf_str(&b)) : NULL;
    tb_buf_clear(&b);
    return name;
}

static bool is_element(const tb_graph *g, int node)
{
    const char *dot = strrchr(g->nodes[node].name, '.');
    return dot && dot[1] >= '0' && dot[1] <= '9' &&
           g->nodes[node].shape.width ==
               g->nodes[g->cuts[0].nodes[0]].shape.width;
}

tb_status tb_explained_elements(tb_explained *e, const tb_explained_kind *k,
                                tb_explained_element *out, int *n)
{
    const tb_graph *g = k->g;
    *n = 0;
    for (int i = 0; i < g->ninputs && g->nstreams == 1 && g->ncuts == 2; i++) {
        int from = g->inputs[i];
        if (!is_element(g, from) || *n == TB_ELEMENTS_MOST)
            continue;
        tb_explained_element *x = &out[(*n)++];
        const tb_jx **entry = tb_arena_alloc(&e->arena, sizeof *entry);
        if (!entry)
            return TB_ERR_MEMORY;
        TB_TRY(tb_jacobian_between(&e->arena, g, from, g->cuts[1].nodes[0],
                                   TB_JAC_CLOSED, entry));
        x->name = element_name(&e->arena, g, from);
        x->jacobian = k->closed;
        x->jacobian.entries = entry;
        if (!x->name)
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static bool is_known(const tb_explained *e, const tb_graph *g)
{
    for (size_t i = 0; i < e->nkinds; i++)
        if (e->kinds[i].g == g)
            return true;
    return false;
}

/* With lists every block has a graph of its own: the first, the middle and the
 * last of a stack stand for all. */
static bool is_sample(const tb_model *m, size_t p)
{
    size_t l = tb_model_layer(m, p), end = p;
    while (tb_model_role(m, end) == TB_PART_LAYER)
        end++;
    size_t n = tb_model_layers(m, end).n;
    return !tb_model_graph(m, p)->nlists || l == 1 || l == n ||
           l == (n + 1) / 2;
}

/* One for each graph that layers have, in the order of the blocks. */
static tb_status find_kinds(tb_ctx *ctx, tb_explained *e)
{
    const tb_model *m = e->model;
    e->kinds = tb_arena_alloc(&e->arena, m->nparts * sizeof *e->kinds);
    if (!e->kinds)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = tb_model_graph(m, p);
        if (tb_model_role(m, p) != TB_PART_LAYER || is_known(e, g) ||
            !is_sample(m, p))
            continue;
        tb_explained_kind *k = &e->kinds[e->nkinds++];
        *k = (tb_explained_kind){.g = g, .part = p};
        k->encoder = tb_model_side(m, p) == TB_SIDE_ENCODER;
        k->from = k->to = tb_model_layer(m, p);
        while (p + 1 < m->nparts && tb_model_graph(m, p + 1) == g) {
            p++;
            k->to++;
        }
        TB_TRY(look_at(ctx, e, k));
    }
    return TB_OK;
}

/* Up to so many weights are listed one by one: some 300 bytes each. */
enum { WEIGHTS_LISTED = 400000 };

/* The whole stack, or where it has too many weights its outline. */
static tb_status make_model(tb_ctx *ctx, tb_explained *e,
                            const tb_settings *settings)
{
    TB_TRY(tb_model_outline(ctx, e->block, settings, &e->model));
    if (e->model->nnames > WEIGHTS_LISTED)
        return TB_OK;
    tb_model_destroy(e->model);
    return tb_model_create(ctx, e->block, settings, TB_F32, &e->model);
}

/* --- parameters of norms -------------------------------------------------- */

static bool is_norm(const tb_op *op)
{
    return op->lane == TB_LANE_TOLL || op == &tb_op_dyt || op == &tb_op_derf;
}

/* Those that the norms of one part read, each once; running statistics are
 * none. */
static tb_status norms_of(const tb_model *m, size_t part, size_t *count)
{
    const tb_graph *g = tb_model_graph(m, part);
    unsigned char *seen = tb_alloc(m->ctx, (size_t)g->nparams + 1, 1);
    if (!seen)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->nnodes; i++)
        for (int k = 1; is_norm(g->nodes[i].op) && k < g->nodes[i].nin; k++) {
            int p = g->nodes[g->nodes[i].in[k]].param;
            if (p < 0 || seen[p] || g->params[p].role == TB_ROLE_BUFFER)
                continue;
            seen[p] = 1;
            *count += tb_model_part_view(m, part, (size_t)p)->count;
        }
    tb_free(m->ctx, seen);
    return TB_OK;
}

static tb_status count_norms(tb_explained *e)
{
    for (size_t p = 0; p < e->model->nparts; p++) {
        size_t one = 0;
        TB_TRY(norms_of(e->model, p, &one)); /* less than all parameters are */
        e->norms[tb_model_side(e->model, p)] +=
            one * tb_model_blocks(e->model, p);
    }
    return TB_OK;
}

static tb_status look(tb_ctx *ctx, tb_explained *e, const tb_settings *settings)
{
    TB_TRY(make_model(ctx, e, settings));
    size_t tail = tb_model_tail(e->model);
    e->tail = tb_model_graph(e->model, tail);
    e->layers = tb_model_layers(e->model, tail);
    TB_TRY(find_kinds(ctx, e));
    TB_TRY(count_norms(e));
    size_t n = (size_t)tb_model_graph(e->model, e->layers.first)->nstreams;
    e->through = tb_arena_alloc(&e->arena, n * n * sizeof *e->through);
    if (!e->through)
        return TB_ERR_MEMORY;
    if (e->model->outline)
        e->through = NULL;
    else
        TB_TRY(tb_lane_through(e->model, e->layers, e->through));
    TB_TRY(tb_lint_create(ctx, e->block, settings, &e->lint));
    return tb_graph_lane(ctx, e->tail, &e->arena, &e->final);
}

tb_status tb_explained_open(tb_ctx *ctx, tb_explained *e, const tb_block *b,
                            const tb_settings *settings)
{
    *e = (tb_explained){.block = b, .given = *settings};
    tb_arena_init(&e->arena, ctx);
    return look(ctx, e, settings);
}

void tb_explained_close(tb_explained *e)
{
    tb_lint_destroy(e->lint);
    tb_model_destroy(e->model);
    tb_arena_clear(&e->arena);
}

bool tb_explained_each(tb_ctx *ctx, const tb_jacobian *j)
{
    return j->nfactors > 1 && tb_jacobian_steps(ctx, j) == 1;
}

/* --- JSON --------------------------------------------------------------------
 */

static tb_status formula_json(tb_ctx *ctx, const tb_jacobian *j,
                              tb_notation note, const char *key, tb_json *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(ctx, j, note, &b);
    tb_json_string(out, key, tb_buf_str(&b));
    tb_buf_clear(&b);
    return s;
}

/* Formulas of one matrix, row by row. */
static void cells_json(const tb_jac_parts *p, int f, tb_json *j)
{
    int n = p->nstreams;
    tb_json_array(j, "blocks");
    for (int i = 0; i < n; i++) {
        tb_json_array(j, NULL);
        for (int k = 0; k < n; k++) {
            const char *cell = p->cells[(f * n + i) * n + k];
            tb_json_string(j, NULL, cell ? cell : "...");
        }
        tb_json_end(j);
    }
    tb_json_end(j);
}

static tb_status parts_json(tb_ctx *ctx, const tb_jacobian *jac, tb_json *j)
{
    tb_arena a;
    tb_jac_parts p;
    tb_arena_init(&a, ctx);
    tb_status s = tb_jacobian_parts(ctx, &a, jac, TB_NOTE_TEXT, &p);
    tb_json_array(j, "streams");
    for (int i = 0; s == TB_OK && i < p.nstreams; i++)
        tb_json_string(j, NULL, p.streams[i]);
    tb_json_end(j);
    tb_json_array(j, "factors");
    for (int f = p.nfactors - 1; s == TB_OK && f >= 0; f--) {
        const char *name = jac->graph->cuts[f + 1].name;
        tb_json_object(j, NULL);
        tb_json_string(j, "sublayer", tb_explained_each(ctx, jac) ? "F" : name);
        cells_json(&p, f, j);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_array(j, "where");
    for (int i = 0; s == TB_OK && i < p.nwhere; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", p.where[i].name);
        tb_json_string(j, "text", p.where[i].is);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_arena_clear(&a);
    return s;
}

static void run_json(const tb_explained *e, const tb_explained_kind *k,
                     tb_json *j)
{
    if (has_two_stacks(e))
        tb_json_string(j, "stack", k->encoder ? "encoder" : "decoder");
    tb_json_int(j, "from", (int64_t)k->from);
    tb_json_int(j, "to", (int64_t)k->to);
}

/* The formulas of each kind of block, for stacks that have several. */
static tb_status kinds_json(tb_ctx *ctx, const tb_explained *e, tb_json *j)
{
    tb_json_array(j, "layers");
    for (size_t i = 0; i < e->nkinds; i++) {
        const tb_explained_kind *k = &e->kinds[i];
        tb_json_object(j, NULL);
        run_json(e, k, j);
        TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_TEXT, "text", j));
        TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_LATEX, "latex", j));
        TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_MATHML, "mathml", j));
        if (k->has_memory)
            TB_TRY(formula_json(ctx, &k->memory, TB_NOTE_TEXT, "memory", j));
        tb_json_end(j);
    }
    tb_json_end(j);
    return TB_OK;
}

/* Lists go past the stream: what x takes from their elements. */
static tb_status elements_json(tb_ctx *ctx, tb_explained *e,
                               const tb_explained_kind *k, tb_json *j)
{
    tb_explained_element all[TB_ELEMENTS_MOST];
    int n;
    TB_TRY(tb_explained_elements(e, k, all, &n));
    tb_json_array(j, "elements");
    for (int i = 0; i < n; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", all[i].name);
        TB_TRY(formula_json(ctx, &all[i].jacobian, TB_NOTE_TEXT, "text", j));
        tb_json_end(j);
    }
    tb_json_end(j);
    return TB_OK;
}

static tb_status jacobian_json(tb_ctx *ctx, tb_explained *e, tb_json *j)
{
    const tb_explained_kind *k = &e->kinds[0];
    tb_json_object(j, "jacobian");
    TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_TEXT, "text", j));
    TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_LATEX, "latex", j));
    TB_TRY(formula_json(ctx, &k->closed, TB_NOTE_MATHML, "mathml", j));
    TB_TRY(formula_json(ctx, &k->open, TB_NOTE_TEXT, "expanded", j));
    TB_TRY(formula_json(ctx, &k->open, TB_NOTE_LATEX, "expanded_latex", j));
    TB_TRY(formula_json(ctx, &k->open, TB_NOTE_MATHML, "expanded_mathml", j));
    tb_json_int(j, "sublayers_per_block", k->closed.nfactors);
    tb_json_bool(j, "per_sublayer", tb_explained_each(ctx, &k->closed));
    TB_TRY(parts_json(ctx, &k->closed, j));
    if (k->g->nlists)
        TB_TRY(elements_json(ctx, e, k, j));
    TB_TRY(kinds_json(ctx, e, j));
    tb_json_end(j);
    return TB_OK;
}

/* Neighbouring blocks of one graph read the same. */
static tb_status lane_layers(tb_ctx *ctx, const tb_explained *e, tb_json *j)
{
    const tb_model *m = e->model;
    tb_json_array(j, "layers");
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = tb_model_graph(m, p);
        tb_explained_kind run = {.g = g};
        if (tb_model_role(m, p) != TB_PART_LAYER || !is_known(e, g))
            continue;
        for (size_t i = 0; i < e->nkinds; i++)
            if (e->kinds[i].g == g)
                run = e->kinds[i];
        run.from = run.to = tb_model_layer(m, p);
        while (p + 1 < m->nparts && tb_model_graph(m, p + 1) == g) {
            p++;
            run.to++;
        }
        tb_json_object(j, NULL);
        run_json(e, &run, j);
        tb_json_string(j, "kind", tb_lane_kind_name(run.info.kind));
        tb_json_int(j, "tolls", run.info.tolls);
        TB_TRY(formula_json(ctx, &run.lane, TB_NOTE_TEXT, "text", j));
        tb_json_end(j);
    }
    tb_json_end(j);
    return TB_OK;
}

/** What is said of each stream out by each stream in. */
typedef enum tb_path_key { PATH_KIND, PATH_TOLLS, PATH_VALUE } tb_path_key;

static void path_json(const tb_lane_path *p, tb_path_key key, tb_json *j)
{
    bool constant =
        p->kind != TB_LANE_KIND_GATED && p->kind != TB_LANE_KIND_TOLL;
    if (key == PATH_KIND)
        tb_json_string(j, NULL, tb_lane_kind_name(p->kind));
    else if (key == PATH_TOLLS)
        tb_json_int(j, NULL, (int64_t)p->tolls);
    else
        tb_json_number(j, NULL, constant ? p->value : __builtin_nan(""));
}

/* All blocks of the head's stack, from below the first to above the last. */
static void through_json(const tb_explained *e, tb_json *j)
{
    static const char *const keys[] = {"kinds", "tolls", "values"};
    int n = tb_model_graph(e->model, e->layers.first)->nstreams;
    tb_json_object(j, "through");
    tb_json_int(j, "blocks", (int64_t)e->layers.n);
    for (int key = PATH_KIND; key <= PATH_VALUE; key++) {
        tb_json_array(j, keys[key]);
        for (int i = 0; i < n; i++) {
            tb_json_array(j, NULL);
            for (int k = 0; k < n; k++)
                path_json(&e->through[i * n + k], (tb_path_key)key, j);
            tb_json_end(j);
        }
        tb_json_end(j);
    }
    tb_json_end(j);
}

static tb_status lane_json(tb_ctx *ctx, const tb_explained *e, tb_json *j)
{
    const tb_explained_kind *k = &e->kinds[0];
    tb_json_object(j, "lane");
    tb_json_string(j, "kind", tb_lane_kind_name(k->info.kind));
    tb_json_string(j, "coefficient", k->info.coefficient);
    if (k->info.kind == TB_LANE_KIND_NONE)
        tb_json_null(j, "tolls_per_block");
    else
        tb_json_int(j, "tolls_per_block", k->info.tolls);
    tb_json_bool(j, "final_toll", e->final.tolls > 0);
    TB_TRY(lane_layers(ctx, e, j));
    through_json(e, j);
    tb_json_end(j);
    return TB_OK;
}

static tb_status corners_json(tb_ctx *ctx, tb_explained *e, tb_json *j)
{
    tb_json_object(j, "corners");
    TB_TRY(
        formula_json(ctx, &e->kinds[0].silent, TB_NOTE_TEXT, "zero_branch", j));
    TB_TRY(tb_explain_corners_json(ctx, e, j));
    tb_json_end(j);
    return TB_OK;
}

static void shape_json(const tb_view *v, tb_json *j)
{
    tb_json_array(j, "shape");
    if (v->shape.kind == TB_SHAPE_MATRIX)
        tb_json_int(j, NULL, (int64_t)v->shape.height);
    tb_json_int(j, NULL, (int64_t)v->shape.width);
    tb_json_end(j);
}

/* Parameters, or what is none: running statistics. */
static void views_json(const tb_explained *e, const char *key, bool buffers,
                       tb_json *j)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < e->model->nviews; i++) {
        const tb_view *v = &e->model->views[i];
        if ((v->role == TB_ROLE_BUFFER) != buffers)
            continue;
        tb_json_object(j, NULL);
        tb_json_string(j, "name", v->name);
        shape_json(v, j);
        tb_json_string(j, "init", v->rule);
        tb_json_string(j, "role", tb_role_name(v->role));
        tb_json_end(j);
    }
    tb_json_end(j);
}

static bool has_buffers(const tb_explained *e)
{
    for (size_t i = 0; i < e->model->nviews; i++)
        if (e->model->views[i].role == TB_ROLE_BUFFER)
            return true;
    return false;
}

static void parameters_json(const tb_explained *e, tb_json *j)
{
    views_json(e, "parameters", false, j);
    if (has_buffers(e))
        views_json(e, "buffers", true, j);
    tb_json_int(j, "parameter_count", (int64_t)e->model->nparameters);
    size_t above = e->norms[TB_SIDE_DECODER];
    size_t below = e->norms[TB_SIDE_ENCODER];
    tb_json_int(j, "norm_parameter_count", (int64_t)(above + below));
    if (has_two_stacks(e)) {
        tb_json_object(j, "norm_parameters");
        tb_json_int(j, "encoder", (int64_t)below);
        tb_json_int(j, "decoder", (int64_t)above);
        tb_json_end(j);
    }
}

const char *tb_origin_name(tb_origin o)
{
    static const char *const names[] = {"default", "config", "model section",
                                        "option", "text"};
    return names[o];
}

static void norm_json(const tb_explained *e, tb_json *j)
{
    const tb_sizes *s = &e->model->sizes;
    tb_json_object(j, "norm");
    tb_json_string(j, "kind", s->s.norm);
    tb_json_string(j, "kind_from", tb_origin_name(s->norm_from));
    tb_json_number(j, "eps", s->s.eps);
    tb_json_string(j, "eps_from", tb_origin_name(s->eps_from));
    tb_json_end(j);
}

static tb_status block_json(tb_ctx *ctx, const tb_block *b, tb_json *j)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(b, &text);
    tb_json_object(j, "block");
    tb_json_string(j, "name", b->name);
    tb_json_string(j, "text", tb_buf_str(&text));
    tb_json_end(j);
    tb_status s = tb_buf_status(&text);
    tb_buf_clear(&text);
    return s;
}

static void numeric_json(const tb_numeric *n, tb_json *j)
{
    tb_json_object(j, "numeric");
    tb_json_number(j, "error", n->error);
    tb_json_object(j, "against");
    tb_json_number(j, "tangent", n->tangent);
    tb_json_number(j, "backward", n->backward);
    tb_json_number(j, "difference", n->difference);
    tb_json_end(j);
    tb_json_int(j, "width", (int64_t)n->width);
    tb_json_int(j, "tokens", (int64_t)n->tokens);
    tb_json_end(j);
}

/* What is drawn of each kind of block. */
static tb_status diagrams_json(tb_ctx *ctx, tb_explained *e, tb_json *j)
{
    tb_json_array(j, "diagrams");
    for (size_t i = 0; i < e->nkinds; i++) {
        tb_diagram d;
        TB_TRY(tb_explained_diagram(ctx, &e->arena, e, &e->kinds[i], &d));
        tb_json_object(j, NULL);
        tb_json_string(j, "blocks", e->kinds[i].blocks);
        tb_json_bool(j, "one_sublayer", d.wiring->step);
        tb_wiring_json(d.wiring, j);
        tb_json_end(j);
    }
    tb_json_end(j);
    return TB_OK;
}

static tb_status write_json(tb_ctx *ctx, tb_explained *e,
                            const tb_numeric *numeric, tb_json *j,
                            const char *key)
{
    tb_json_object(j, key);
    if (!key)
        tb_json_string(j, "tollbooth", TB_VERSION);
    TB_TRY(block_json(ctx, e->block, j));
    TB_TRY(jacobian_json(ctx, e, j));
    TB_TRY(lane_json(ctx, e, j));
    TB_TRY(diagrams_json(ctx, e, j));
    tb_json_array(j, "lint");
    tb_lint_json(e->lint, j, false, NULL);
    tb_json_end(j);
    TB_TRY(corners_json(ctx, e, j));
    if (numeric)
        numeric_json(numeric, j);
    norm_json(e, j);
    parameters_json(e, j);
    tb_json_end(j);
    return TB_OK;
}

tb_status tb_explain_json(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings,
                          const tb_numeric *numeric, tb_json *j,
                          const char *key)
{
    tb_explained e;
    tb_status s = tb_explained_open(ctx, &e, b, settings);
    if (s == TB_OK && e.model->outline)
        s = TB_FAIL(ctx, TB_ERR_ARG,
                    "explain: the JSON lists every weight, got %zu of them, "
                    "wanted at most %d; the text shows block 1 at any depth",
                    e.model->nnames, (int)WEIGHTS_LISTED);
    if (s == TB_OK)
        s = write_json(ctx, &e, numeric, j, key);
    tb_explained_close(&e);
    return s;
}
