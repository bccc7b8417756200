/* SPDX-License-Identifier: MIT */
/* Walks the stack from the top, one sublayer boundary at a time, with three
 * vectors: the true gradient (one pass for a whole block, looked at on its
 * way), the lane (branches cut, carried from the top), and the lane inside this
 * sublayer only. */
#include "flow/walk.h"

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* --- one boundary ------------------------------------------------------------
 */

tb_lengths tb_walk_lengths(const tb_walk *w, const void *part,
                           const void *whole)
{
    return tb_flow_lengths(w->ctx, w->k, w->n, part, whole);
}

void tb_walk_gains(tb_walk *w, const void *total, tb_flow_row *row)
{
    const tb_lengths l = tb_walk_lengths(w, w->lane, total);
    row->lane = ratio(l.part, w->top);
    row->total = ratio(l.whole, w->top);
    row->branch = ratio(l.rest, w->top);
    row->cos = l.cos;
    size_t d = w->m->sizes.s.width;
    double one = w->top / tb_sqrt((double)(w->nx / d)), low, high;
    tb_flow_tokens(w->ctx, w->k, w->nx / d, d, w->nstreams, total, &low, &high);
    row->total_min = ratio(low, one);
    row->total_max = ratio(high, one);
    size_t at;
    row->top_g = tb_flow_largest(w->ctx, w->k, w->n, total, &at);
    row->top_g_token = at % w->nx / d + 1;
    row->top_g_channel = at % d + 1;
    w->arrived = l.whole;
    row->nonfinite += l.nonfinite;
    w->nonfinite += l.nonfinite;
}

void tb_walk_split(tb_walk *w, const void *left, tb_flow_row *row)
{
    const tb_lengths l = tb_walk_lengths(w, w->local, left);
    row->local_lane = ratio(l.part, w->arrived);
    row->local_branch = ratio(l.rest, w->arrived);
    row->local_cos = l.cos;
}

static tb_status branch_size(tb_walk *w, const tb_run *run, const tb_graph *g,
                             int lo, int hi, const void *x, double *out)
{
    enum { MOST = 16 };
    tb_contribution parts[MOST];
    tb_flow_term terms[MOST];
    int n = tb_graph_contributions(g, lo, hi, parts, MOST);
    if (n < 0)
        return TB_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        terms[i] =
            (tb_flow_term){tb_plan_value(run, parts[i].node), parts[i].factor};
    *out = tb_flow_beside(w->ctx, w->k, w->nx, terms, (size_t)n, x);
    return TB_OK;
}

/* --- tolls -------------------------------------------------------------------
 */

/* Boundaries are in the order of their nodes; what stands before all of them
 * belongs to the first. */
bool tb_walk_between(const tb_graph *g, int lo, int hi, int i)
{
    bool after = lo == 0 || i > g->boundaries[lo].node;
    return after && (hi == g->nboundaries - 1 || i <= g->boundaries[hi].node);
}

tb_status tb_walk_audit(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                        tb_flow_row *row)
{
    return w->auditor ? w->auditor->row(w, run, p, lo, hi, row) : TB_OK;
}

tb_status tb_walk_audit_part(tb_walk *w, const tb_run *run, size_t p)
{
    return w->auditor ? w->auditor->part(w, run, p) : TB_OK;
}

tb_status tb_walk_tolls(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                        tb_flow_row *row)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    unsigned char *marks = tb_alloc(w->ctx, (size_t)g->nnodes, 1);
    tb_status s = TB_OK;
    if (!marks)
        return TB_ERR_MEMORY;
    row->toll = row->toll_max = 1;
    tb_graph_on_lane(g, lo, hi, marks);
    for (int i = g->nnodes - 1; i >= 0 && s == TB_OK; i--) {
        const tb_flow_norm *norm;
        bool lane = marks[i] && g->nodes[i].op->lane == TB_LANE_TOLL;
        if (!g->nodes[i].op->gain || (!lane && !tb_walk_between(g, lo, hi, i)))
            continue;
        s = tb_walk_norm(w, run, p, i, lane, &norm);
        if (s != TB_OK || !lane)
            continue;
        row->toll *= norm->toll;
        row->toll_max *= norm->toll_max;
        row->norms++;
    }
    tb_free(w->ctx, marks);
    return s;
}

void tb_walk_spread(tb_walk *w, const void *x, tb_flow_row *row)
{
    const tb_spread s = tb_flow_spread(w->ctx, w->k, w->nx, x);
    row->std_x = s.std;
    row->nonfinite_x = s.nonfinite;
    row->nonfinite += s.nonfinite;
    w->nonfinite += s.nonfinite;
}

tb_status tb_walk_values(tb_walk *w, const tb_run *run, size_t p, int lo,
                         int hi, const void *in, const void *out,
                         tb_flow_row *row)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    tb_walk_spread(w, out, row);
    TB_TRY(tb_walk_tolls(w, run, p, lo, hi, row));
    TB_TRY(tb_walk_stream(w, in, out, row));
    return branch_size(w, run, g, lo, hi, in, &row->branch_ratio);
}

/* --- the walk ----------------------------------------------------------------
 */

void tb_walk_pieces(const tb_walk *w, void *vector, void **out)
{
    size_t bytes = w->nx * tb_dtype_size(w->m->dtype);
    for (size_t i = 0; i < w->nstreams; i++)
        out[i] = vector ? (char *)vector + i * bytes : NULL;
}

/* A cut pass from boundary s to the one below; of several streams through the
 * whole block. */
static tb_status pull_lane(tb_walk *w, const tb_run *run, int s, void *g,
                           void *out)
{
    bool one = w->nstreams == 1;
    void *from[TB_WALK_STREAMS], *gin[TB_WALK_INPUTS] = {NULL};
    tb_walk_pieces(w, g, from);
    tb_walk_pieces(w, out, gin);
    tb_bwd b = {.hi = one ? s : -1,
                .lo = one ? s - 1 : -1,
                .cut = true,
                .gout = (const void *const *)from,
                .gin = gin};
    return tb_plan_backward(w->ctx, run, &b);
}

static void swap(void **a, void **b)
{
    void *t = *a;
    *a = *b;
    *b = t;
}

static int input_called(const tb_graph *g, const char *name)
{
    for (int i = 0; i < g->ninputs; i++)
        if (tb_streq(g->nodes[g->inputs[i]].name, name))
            return i;
    return -1;
}

/* Where the gradient of x at boundary s stands after pull_total: on top what
 * came, at the bottom what goes on; several boundaries may be one node. */
static void *total_at(const tb_walk *w, const tb_graph *g, int s)
{
    if (s == g->nboundaries - 1)
        return w->total;
    while (s > 0 && g->boundaries[s].node == g->boundaries[s - 1].node)
        s--;
    return s == 0 ? w->next : w->between[s - 1];
}

/* The true gradient through a whole part: to x, to the weights, to the memory,
 * and seen at all boundaries on its way. */
static tb_status pull_total(tb_walk *w, const tb_run *run, size_t p)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    int memory = w->memory ? input_called(g, "memory") : -1;
    void *from[TB_WALK_STREAMS], *gin[TB_WALK_INPUTS] = {NULL};
    bool adds[TB_WALK_INPUTS] = {false};
    tb_walk_pieces(w, w->total, from);
    tb_walk_pieces(w, w->next, gin);
    if (memory >= 0) {
        gin[memory] = w->memory;
        adds[memory] = true;
    }
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)from,
                .gin = gin,
                .adds = adds,
                .seen = w->seen,
                .gseen = w->between};
    for (int s = 1; s + 1 < g->nboundaries; s++)
        w->seen[b.nseen++] = g->boundaries[s].node;
    tb_walk_want_weights(w, p, &b);
    TB_TRY(tb_plan_backward(w->ctx, run, &b));
    tb_walk_measure_weights(w, p);
    return TB_OK;
}

/* From boundary s of part p down to s - 1; fills the row of s. */
static tb_status step_down(tb_walk *w, const tb_run *run, size_t p, int s)
{
    tb_flow_row *row = &w->f->rows[w->k_now];
    const tb_graph *g = tb_model_graph(w->m, p);
    void *total = total_at(w, g, s);
    tb_walk_gains(w, total, row);
    TB_TRY(pull_lane(w, run, s, total, w->local));
    TB_TRY(pull_lane(w, run, s, w->lane, w->spare));
    swap(&w->lane, &w->spare);
    tb_walk_split(w, total_at(w, g, s - 1), row);
    row->role = w->stack->role;
    row->k = w->k_now--;
    row->layer = tb_model_layer(w->m, p);
    return tb_walk_audit(w, run, p, s - 1, s, row);
}

static const char *kept_name(tb_flow_box *box, const char *name)
{
    return tb_arena_strdup(&box->arena, *name ? name : "block");
}

/* x at a boundary: what entered, what leaves, or a value between. */
static const void *stream_at(const tb_run *run, const tb_graph *g, int s)
{
    if (s == 0)
        return run->inputs[0];
    return s == g->nboundaries - 1 ? run->outputs[0]
                                   : tb_plan_value(run, g->boundaries[s].node);
}

static tb_status layer_down(tb_walk *w, tb_flow_box *box, size_t p)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    tb_run run;
    TB_TRY(tb_model_run(w->m, p, w->batch, &run));
    TB_TRY(pull_total(w, &run, p));
    for (int s = g->nboundaries - 1; s >= 1; s--) {
        tb_flow_row *row = &w->f->rows[w->k_now];
        TB_TRY(tb_walk_values(w, &run, p, s - 1, s, stream_at(&run, g, s - 1),
                              stream_at(&run, g, s), row));
        row->name = kept_name(box, g->boundaries[s].name);
        if (!row->name)
            return TB_ERR_MEMORY;
        TB_TRY(step_down(w, &run, p, s));
    }
    swap(&w->total, &w->next);
    return tb_walk_audit_part(w, &run, p);
}

static tb_status stem_row(tb_walk *w)
{
    tb_flow_row *row = &w->f->rows[w->k_now];
    *row = (tb_flow_row){.k = w->k_now,
                         .role = w->stack->role,
                         .name = "stem",
                         .toll = 1,
                         .toll_max = 1,
                         .local_lane = 1};
    size_t stem = w->layers.first - 1;
    tb_run run;
    void *from[TB_WALK_STREAMS], *gin[1] = {NULL};
    tb_walk_gains(w, w->total, row);
    tb_walk_spread(w, tb_model_stream(w->m, stem), row);
    TB_TRY(tb_walk_stream(w, NULL, tb_model_stream(w->m, stem), row));
    tb_walk_pieces(w, w->total, from);
    tb_bwd b = {
        .hi = -1, .lo = -1, .gout = (const void *const *)from, .gin = gin};
    if (!tb_walk_want_weights(w, stem, &b))
        return TB_OK;
    TB_TRY(tb_model_run(w->m, stem, w->batch, &run));
    TB_TRY(tb_plan_backward(w->ctx, &run, &b));
    tb_walk_measure_weights(w, stem);
    return TB_OK;
}

static void toll_products(tb_flow_row *rows, size_t n)
{
    double product = 1;
    for (size_t k = n; k-- > 0;) {
        rows[k].toll_product = product;
        product *= rows[k].toll;
    }
}

/* --- the top -----------------------------------------------------------------
 */

void tb_walk_cotangent(tb_walk *w, const tb_flow_spec *spec)
{
    tb_rng r = tb_rng_make(spec->seed, "cotangent");
    size_t d = w->m->sizes.s.width;
    for (size_t i = 0; i < w->n; i++) {
        size_t at = spec->cotangent == TB_COTANGENT_COHERENT ? i % d : i;
        tb_elem_set(w->m->dtype, w->total, i, tb_rng_normal(r, at));
    }
}

static tb_status loss_cotangent(tb_walk *w, const tb_run *run)
{
    const float one32 = 1;
    const double one64 = 1;
    size_t tail = tb_model_tail(w->m);
    const tb_graph *g = tb_model_graph(w->m, tail);
    const void *gout[2] = {NULL, NULL};
    void *gin[TB_WALK_STREAMS + 1] = {NULL}; /* the streams, then the targets */
    for (int i = 0; i < g->noutputs; i++)
        if (tb_streq(g->outputs[i].name, "loss"))
            gout[i] = w->m->dtype == TB_F64 ? (const void *)&one64 : &one32;
    tb_walk_pieces(w, w->total, gin);
    tb_bwd b = {.hi = -1, .lo = -1, .gout = gout, .gin = gin};
    tb_walk_want_weights(w, tail, &b);
    TB_TRY(tb_plan_backward(w->ctx, run, &b));
    tb_walk_measure_weights(w, tail);
    return TB_OK;
}

tb_status tb_walk_final(tb_walk *w, const tb_run *run, size_t part)
{
    tb_flow_row final = {0};
    TB_TRY(tb_walk_tolls(w, run, part, 0, 1, &final));
    w->stack->has_final = final.norms > 0;
    w->stack->final_toll = final.toll;
    return TB_OK;
}

static tb_status start_at_top(tb_walk *w, const tb_flow_spec *spec)
{
    size_t tail = tb_model_tail(w->m);
    tb_run run;
    TB_TRY(tb_model_run(w->m, tail, w->batch, &run));
    TB_TRY(tb_walk_final(w, &run, tail));
    if (spec->cotangent == TB_COTANGENT_LOSS)
        TB_TRY(loss_cotangent(w, &run));
    else
        tb_walk_cotangent(w, spec);
    memcpy(w->lane, w->total, w->n * tb_dtype_size(w->m->dtype));
    w->top = tb_walk_lengths(w, NULL, w->total).whole;
    return TB_OK;
}

/* The same of an encoder: what reached the memory, through its final. */
static tb_status start_at_memory(tb_walk *w, size_t part)
{
    const void *gout[] = {w->memory};
    void *gin[TB_WALK_INPUTS] = {NULL};
    tb_run run;
    TB_TRY(tb_model_run(w->m, part, w->batch, &run));
    TB_TRY(tb_walk_final(w, &run, part));
    tb_walk_pieces(w, w->total, gin);
    tb_bwd b = {.hi = -1, .lo = -1, .gout = gout, .gin = gin};
    tb_walk_want_weights(w, part, &b);
    TB_TRY(tb_plan_backward(w->ctx, &run, &b));
    tb_walk_measure_weights(w, part);
    memcpy(w->lane, w->total, w->n * tb_dtype_size(w->m->dtype));
    w->top = tb_walk_lengths(w, NULL, w->total).whole;
    return TB_OK;
}

/* --- data ------------------------------------------------------------------
 */

/* Random tokens where no text is given. The encoder of two stacks then reads
 * others, and of a text the window itself. */
static void fill_batch(const tb_model *m, const tb_flow_spec *spec, int32_t *x,
                       int32_t *y, int32_t *source)
{
    size_t B = spec->batch ? spec->batch : 1, T = m->sizes.s.context;
    uint64_t v = m->sizes.s.vocab, classes = tb_settings_outputs(&m->sizes.s);
    tb_rng r = tb_rng_make(spec->seed, "tokens");
    tb_rng other = tb_rng_make(spec->seed, "source");
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t < T; t++) {
            size_t at = b * (T + 1) + t, i = b * T + t;
            bool given = spec->ids != NULL;
            x[i] = given ? spec->ids[at] : (int32_t)tb_rng_below(r, at, v);
            source[i] = given ? x[i] : (int32_t)tb_rng_below(other, at, v);
            y[i] =
                given ? spec->ids[at + 1] : (int32_t)tb_rng_below(r, at + 1, v);
            if (m->sizes.s.classes)
                y[i] = t ? -1 : (int32_t)tb_rng_below(r, at, classes);
        }
}

static tb_status make_batch(const tb_model *m, const tb_flow_spec *spec,
                            tb_arena *a, tb_batch *out)
{
    size_t B = spec->batch ? spec->batch : 1, n = B * m->sizes.s.context;
    int32_t *ids = tb_arena_alloc(a, 3 * n * sizeof *ids);
    bool both = m->sizes.s.stack == TB_STACKS_BOTH;
    if (!ids)
        return TB_ERR_MEMORY;
    fill_batch(m, spec, ids, ids + n, ids + 2 * n);
    *out = (tb_batch){.tokens = ids,
                      .targets = ids + n,
                      .seed = spec->seed,
                      .source = both ? ids + 2 * n : NULL};
    return TB_OK;
}

static void describe(tb_flow *f, const tb_model *m, const tb_flow_spec *spec)
{
    const tb_settings *s = &m->sizes.s;
    f->depth = s->depth;
    f->width = s->width;
    f->heads = s->heads;
    f->tokens = s->context;
    f->batch = spec->batch ? spec->batch : 1;
    f->seed = spec->seed;
    f->dtype = m->dtype;
    f->has_spread = spec->weights;
}

static const char *block_label(tb_flow_box *box, const tb_block *b)
{
    tb_buf text;
    const char *label;
    if (b->name)
        return tb_arena_strdup(&box->arena, b->name);
    tb_buf_init(&text, box->arena.ctx);
    tb_block_print(b, &text);
    label =
        text.failed ? NULL : tb_arena_strdup(&box->arena, tb_buf_str(&text));
    tb_buf_clear(&text);
    return label;
}

/* Ends of the stacks, in running order: an encoder's final, the tail. */
static size_t stack_ends(const tb_model *m, size_t ends[2])
{
    size_t n = 0;
    for (size_t p = 0; p < m->nparts; p++)
        if (tb_model_role(m, p) == TB_PART_FINAL ||
            tb_model_role(m, p) == TB_PART_TAIL)
            ends[n++] = p;
    return n;
}

bool tb_walk_has_lists(const tb_model *m)
{
    size_t ends[2], n = stack_ends(m, ends);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || tb_model_graph(m, ends[i] - 1)->nlists > 0;
    return any;
}

static size_t rows_of(const tb_model *m, size_t p)
{
    return tb_walk_has_lists(m) ? 1
                                : (size_t)tb_model_graph(m, p)->nboundaries - 1;
}

static tb_status make_rows(tb_flow_box *box, const tb_model *m)
{
    tb_flow *f = &box->flow;
    size_t ends[2];
    f->nstacks = stack_ends(m, ends);
    for (size_t i = 0; i < f->nstacks; i++) {
        tb_layers layers = tb_model_layers(m, ends[i]);
        tb_flow_stack *s = &f->stacks[i];
        *s = (tb_flow_stack){.depth = layers.n, .first = f->nrows, .nrows = 1};
        if (f->nstacks > 1)
            s->role = i ? "decoder" : "encoder";
        for (size_t p = 0; p < layers.n; p++)
            s->nrows += rows_of(m, layers.first + p);
        f->nrows += s->nrows;
    }
    f->rows = tb_arena_alloc(&box->arena, f->nrows * sizeof *f->rows);
    return f->rows ? TB_OK : TB_ERR_MEMORY;
}

/* Room for the gradients between the boundaries of any block. */
static tb_status make_between(tb_walk *w, tb_arena *a, size_t bytes)
{
    size_t most = 0;
    for (size_t p = 0; p < w->m->nparts; p++) {
        size_t n = (size_t)tb_model_graph(w->m, p)->nboundaries;
        most = n > most ? n : most;
    }
    w->seen = tb_arena_alloc(a, (most + 1) * sizeof *w->seen);
    w->between = tb_arena_alloc(a, (most + 1) * sizeof *w->between);
    if (!w->seen || !w->between)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i + 2 < most; i++)
        if (!(w->between[i] = tb_arena_alloc(a, bytes)))
            return TB_ERR_MEMORY;
    return TB_OK;
}

/* Gradients of weights only where they are those of the loss. */
static tb_status make_vectors(tb_walk *w, tb_flow_box *box,
                              const tb_flow_spec *spec, tb_arena *a)
{
    void **all[] = {&w->total, &w->lane, &w->next, &w->local, &w->spare};
    size_t bytes = w->n * tb_dtype_size(w->m->dtype);
    for (size_t i = 0; i < TB_LEN(all); i++)
        if (!(*all[i] = tb_arena_alloc(a, bytes)))
            return TB_ERR_MEMORY;
    TB_TRY(make_between(w, a, bytes));
    if (w->m->sizes.s.stack == TB_STACKS_BOTH &&
        !(w->memory = tb_arena_alloc(a, w->nx * tb_dtype_size(w->m->dtype))))
        return TB_ERR_MEMORY;
    if (spec->cotangent != TB_COTANGENT_LOSS)
        return TB_OK;
    return tb_walk_make_weights(w, box, a);
}

/* The stack that ends in part `end`: its layers, and lengths of its vectors. */
static void enter_stack(tb_walk *w, tb_flow_stack *stack, size_t end)
{
    w->stack = stack;
    w->layers = tb_model_layers(w->m, end);
    w->nstreams =
        tb_walk_has_lists(w->m)
            ? 1
            : (size_t)tb_model_graph(w->m, w->layers.first - 1)->noutputs;
    w->n = w->nx * w->nstreams;
    w->k_now = stack->first + stack->nrows - 1;
    w->nonfinite = 0;
}

static tb_status walk_stack(tb_walk *w, tb_flow_box *box,
                            const tb_flow_spec *spec, size_t end)
{
    if (end == tb_model_tail(w->m))
        TB_TRY(start_at_top(w, spec));
    else
        TB_TRY(start_at_memory(w, end));
    for (size_t i = w->layers.n; i-- > 0;) {
        TB_TRY(layer_down(w, box, w->layers.first + i));
        if (tb_ctx_interrupted(w->ctx))
            return TB_FAIL(w->ctx, TB_INTERRUPTED, "flow: interrupted");
    }
    return stem_row(w);
}

/* Down the stack with the head, then down the encoder that it read. */
static tb_status run_walk(tb_walk *w, tb_flow_box *box,
                          const tb_flow_spec *spec, tb_arena *scratch,
                          size_t nonfinite[2])
{
    tb_flow *f = &box->flow;
    size_t ends[2], n = stack_ends(w->m, ends);
    tb_history *h = NULL;
    TB_TRY(tb_model_forward(w->m, w->batch, &f->loss));
    if (tb_walk_has_lists(w->m))
        TB_TRY(tb_history_make(w, box, scratch, &h));
    for (size_t i = n; i-- > 0;) {
        enter_stack(w, &f->stacks[i], ends[i]);
        TB_TRY(h ? tb_history_walk(h, spec, ends[i])
                 : walk_stack(w, box, spec, ends[i]));
        toll_products(f->rows + f->stacks[i].first, f->stacks[i].nrows);
        nonfinite[i] = w->nonfinite;
    }
    nonfinite[n - 1] += tb_walk_weights_nonfinite(w);
    tb_walk_keep_norms(w);
    return TB_OK;
}

/* The most streams of a stack, if they can be followed. */
static tb_status check_streams(const tb_model *m, const tb_flow_spec *spec,
                               size_t *most)
{
    size_t ends[2], n = stack_ends(m, ends);
    *most = 1;
    if (spec->spectrum && tb_walk_has_lists(m))
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "spectrum: got a block with lists, wanted one stream");
    if (tb_walk_has_lists(m))
        return TB_OK;
    for (size_t i = 0; i < n; i++) {
        size_t stem = tb_model_layers(m, ends[i]).first - 1;
        size_t here = (size_t)tb_model_graph(m, stem)->noutputs;
        *most = here > *most ? here : *most;
    }
    if (*most > TB_WALK_STREAMS)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "flow: got a block of %zu streams, wanted at most %d",
                       *most, (int)TB_WALK_STREAMS);
    if (spec->spectrum && *most > 1)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "spectrum: got a block of %zu streams, wanted one",
                       *most);
    return TB_OK;
}

static tb_status measure(tb_model *m, const tb_flow_spec *spec,
                         tb_flow_box *box, tb_arena *scratch)
{
    tb_ctx *ctx = m->ctx;
    size_t B = spec->batch ? spec->batch : 1, most, nonfinite[2];
    tb_batch batch;
    tb_walk w = {.ctx = ctx,
                 .m = m,
                 .f = &box->flow,
                 .box = box,
                 .batch = &batch,
                 .auditor = spec->audit,
                 .k = tb_kern_get(ctx, m->dtype),
                 .nx = B * m->sizes.s.context * m->sizes.s.width};
    TB_TRY(check_streams(m, spec, &most));
    w.n = w.nx * most;
    describe(&box->flow, m, spec);
    if (spec->spectrum && w.n > TB_SPECTRUM_MAX)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "spectrum: got batch*tokens*width = %zu, wanted at "
                       "most %d",
                       w.n, (int)TB_SPECTRUM_MAX);
    box->flow.block = block_label(box, m->block);
    if (!box->flow.block)
        return TB_ERR_MEMORY;
    TB_TRY(tb_model_bind(m, B, m->sizes.s.context,
                         TB_PASS_BWD | TB_PASS_KEEP |
                             (spec->audit ? TB_PASS_TAN : 0u)));
    TB_TRY(make_batch(m, spec, scratch, &batch));
    TB_TRY(make_rows(box, m));
    TB_TRY(tb_walk_make_norms(&w, box));
    TB_TRY(make_vectors(&w, box, spec, scratch));
    if (w.auditor)
        TB_TRY(w.auditor->make(&w, spec->seed, scratch));
    TB_TRY(run_walk(&w, box, spec, scratch, nonfinite));
    if (w.auditor && spec->alpha)
        TB_TRY(w.auditor->alpha(&w));
    if (spec->spectrum)
        TB_TRY(tb_flow_spectrum(m, &batch, box));
    return tb_flow_judge(ctx, &box->flow, nonfinite, spec);
}

tb_status tb_flow_of_model(tb_model *m, const tb_flow_spec *spec, tb_flow **out)
{
    tb_flow_box *box = tb_alloc(m->ctx, 1, sizeof *box);
    tb_arena scratch;
    *out = NULL;
    if (!box)
        return TB_ERR_MEMORY;
    tb_arena_init(&box->arena, m->ctx);
    tb_arena_init(&scratch, m->ctx);
    tb_status s = measure(m, spec, box, &scratch);
    tb_arena_clear(&scratch);
    *out = &box->flow;
    if (s != TB_OK) {
        tb_flow_free(m->ctx, *out);
        *out = NULL;
    }
    return s;
}

void tb_flow_free(tb_ctx *ctx, tb_flow *f)
{
    tb_flow_box *box = (tb_flow_box *)f;
    if (!box)
        return;
    tb_arena_clear(&box->arena);
    tb_free(ctx, box);
}

static tb_status same_seed(void *user, const tb_block *b,
                           const tb_flow_spec *spec, tb_flow **out)
{
    return tb_flow_measure(user, b, spec, out);
}

tb_status tb_flow_measure(tb_ctx *ctx, const tb_block *b,
                          const tb_flow_spec *spec, tb_flow **out)
{
    tb_model *m;
    *out = NULL;
    TB_TRY(tb_model_create(ctx, b, &spec->settings, spec->dtype, &m));
    tb_status s = tb_model_init(m, spec->seed);
    if (s == TB_OK)
        s = tb_flow_of_model(m, spec, out);
    tb_model_destroy(m);
    if (s == TB_OK && spec->what_if)
        s = tb_flow_what_if(*out, b, spec, same_seed, ctx);
    if (s != TB_OK) {
        tb_flow_free(ctx, *out);
        *out = NULL;
    }
    return s;
}
