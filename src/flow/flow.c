/* SPDX-License-Identifier: MIT */
/* Walks the stack from the top, one sublayer boundary at a time, with three
 * backward passes each: the true gradient, the lane (branches cut, carried
 * from the top), and the lane inside this sublayer only. */
#include "flow/flow_model.h"

/** State of one measurement. Vectors are [streams, B, T, d] in the model's
 * dtype; with several streams the walk goes down a whole block at a time,
 * because only there do all of them meet. */
typedef struct walk {
    tb_ctx *ctx;
    tb_model *m;
    const tb_kern *k;
    tb_flow *f;
    const tb_batch *batch;
    size_t n;  /* elements of a vector */
    size_t nx; /* of one stream of it */
    size_t nstreams;
    tb_layers layers;   /* those below the tail */
    void *total, *lane; /* at the boundary reached so far */
    void *next, *local, *tmp;
    void *grads; /* of the parameters, or NULL */
    double top;  /* |g_K| */
    size_t nonfinite;
    size_t k_now;
} walk;

enum { FLOW_STREAMS = 32 };

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double cosine(const walk *w, const void *a, const void *b)
{
    double l = w->k->norm2(w->n, a) * w->k->norm2(w->n, b);
    return ratio(w->k->dot(w->n, a, b), l);
}

/* --- one boundary ------------------------------------------------------------
 */

static void gains_at(walk *w, tb_flow_row *row)
{
    w->k->sub(w->n, w->total, w->lane, w->tmp);
    row->lane = ratio(w->k->norm2(w->n, w->lane), w->top);
    row->total = ratio(w->k->norm2(w->n, w->total), w->top);
    row->branch = ratio(w->k->norm2(w->n, w->tmp), w->top);
    row->cos = cosine(w, w->lane, w->tmp);
    w->nonfinite += w->k->nonfinite(w->n, w->total);
}

/* arrived: length of the gradient that came to this sublayer; w->total is
 * what left it, w->local its lane part. */
static void split_of(walk *w, double arrived, tb_flow_row *row)
{
    w->k->sub(w->n, w->total, w->local, w->tmp);
    row->local_lane = ratio(w->k->norm2(w->n, w->local), arrived);
    row->local_branch = ratio(w->k->norm2(w->n, w->tmp), arrived);
    row->local_cos = cosine(w, w->local, w->tmp);
}

static double spread(const walk *w, const void *x)
{
    double n = (double)w->nx, mean = w->k->sum(w->nx, x) / n;
    double square = w->k->norm2(w->nx, x);
    double var = square * square / n - mean * mean;
    return tb_sqrt(var > 0 ? var : 0);
}

static tb_status branch_size(walk *w, const tb_run *run, const tb_graph *g,
                             int s, const void *x, double *out)
{
    tb_contribution parts[16];
    int n = tb_graph_contributions(g, s - 1, s, parts, (int)TB_LEN(parts));
    if (n < 0)
        return TB_ERR_MEMORY;
    memset(w->tmp, 0, w->nx * tb_dtype_size(w->m->dtype));
    for (int i = 0; i < n; i++)
        w->k->axpy(w->nx, parts[i].factor, tb_plan_value(run, parts[i].node),
                   w->tmp);
    *out = ratio(w->k->norm2(w->nx, w->tmp), w->k->norm2(w->nx, x));
    return TB_OK;
}

/* --- tolls -------------------------------------------------------------------
 */

static tb_status tolls_between(walk *w, const tb_run *run, const tb_graph *g,
                               int lo, int hi, tb_flow_row *row)
{
    unsigned char *marks = tb_alloc(w->ctx, (size_t)g->nnodes, 1);
    tb_status s = TB_OK;
    if (!marks)
        return TB_ERR_MEMORY;
    row->toll = row->toll_max = 1;
    tb_graph_on_lane(g, lo, hi, marks);
    for (int i = 0; i < g->nnodes && s == TB_OK; i++) {
        double rms, max;
        if (!marks[i] || g->nodes[i].op->lane != TB_LANE_TOLL)
            continue;
        s = tb_plan_gain(w->ctx, run, i, &rms, &max);
        row->toll *= rms;
        row->toll_max *= max;
        row->norms++;
    }
    tb_free(w->ctx, marks);
    return s;
}

/* --- the walk ----------------------------------------------------------------
 */

/* The piece of each stream, in the order graphs list them. */
static void pieces(const walk *w, void *vector, void **out)
{
    size_t bytes = w->nx * tb_dtype_size(w->m->dtype);
    for (size_t i = 0; i < w->nstreams; i++)
        out[i] = vector ? (char *)vector + i * bytes : NULL;
}

static tb_status pull(walk *w, const tb_run *run, int hi, bool cut, void *g,
                      void *out, void *const *gparams)
{
    bool one = w->nstreams == 1;
    void *from[FLOW_STREAMS], *gin[FLOW_STREAMS];
    const void *gout[FLOW_STREAMS];
    pieces(w, g, from);
    pieces(w, out, gin);
    for (size_t i = 0; i < w->nstreams; i++)
        gout[i] = from[i];
    tb_bwd b = {.hi = one ? hi : -1,
                .lo = one ? hi - 1 : -1,
                .cut = cut,
                .gout = gout,
                .gin = gin,
                .gparams = gparams};
    return tb_plan_backward(w->ctx, run, &b);
}

static void swap(void **a, void **b)
{
    void *t = *a;
    *a = *b;
    *b = t;
}

/* From boundary s of part p down to s - 1; fills the row of s. */
static tb_status step_down(walk *w, const tb_run *run, const tb_graph *g,
                           size_t p, int s, void *const *gparams)
{
    tb_flow_row *row = &w->f->rows[w->k_now];
    double arrived = w->k->norm2(w->n, w->total);
    const void *x =
        s == 1 ? run->inputs[0] : tb_plan_value(run, g->boundaries[s - 1].node);
    gains_at(w, row);
    TB_TRY(tolls_between(w, run, g, s - 1, s, row));
    TB_TRY(branch_size(w, run, g, s, x, &row->branch_ratio));
    TB_TRY(pull(w, run, s, true, w->total, w->local, NULL));
    TB_TRY(pull(w, run, s, true, w->lane, w->next, NULL));
    swap(&w->lane, &w->next);
    TB_TRY(pull(w, run, s, false, w->total, w->next, gparams));
    swap(&w->total, &w->next);
    split_of(w, arrived, row);
    row->k = w->k_now--;
    row->layer = tb_model_layer(w->m, p);
    return TB_OK;
}

static const char *kept_name(tb_flow_box *box, const char *name)
{
    return tb_arena_strdup(&box->arena, *name ? name : "block");
}

static tb_status layer_down(walk *w, tb_flow_box *box, size_t p)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    void *const *gparams =
        w->grads ? tb_model_gparams(w->m, p, w->grads) : NULL;
    tb_run run;
    TB_TRY(tb_model_run(w->m, p, w->batch, &run));
    for (int s = g->nboundaries - 1; s >= 1; s--) {
        tb_flow_row *row = &w->f->rows[w->k_now];
        const void *x = s == g->nboundaries - 1
                            ? run.outputs[0]
                            : tb_plan_value(&run, g->boundaries[s].node);
        row->std_x = spread(w, x);
        w->nonfinite += w->k->nonfinite(w->n, x);
        row->name = kept_name(box, g->boundaries[s].name);
        if (!row->name)
            return TB_ERR_MEMORY;
        TB_TRY(step_down(w, &run, g, p, s, gparams));
    }
    return TB_OK;
}

static tb_status stem_row(walk *w)
{
    tb_flow_row *row = &w->f->rows[0];
    *row = (tb_flow_row){
        .name = "stem", .toll = 1, .toll_max = 1, .local_lane = 1};
    size_t stem = w->layers.first - 1;
    gains_at(w, row);
    row->std_x = spread(w, tb_model_stream(w->m, stem));
    if (!w->grads)
        return TB_OK;
    tb_run run;
    void *from[FLOW_STREAMS], *gin[1] = {NULL};
    const void *gout[FLOW_STREAMS];
    pieces(w, w->total, from);
    for (size_t i = 0; i < w->nstreams; i++)
        gout[i] = from[i];
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = gout,
                .gin = gin,
                .gparams = tb_model_gparams(w->m, stem, w->grads)};
    TB_TRY(tb_model_run(w->m, stem, w->batch, &run));
    return tb_plan_backward(w->ctx, &run, &b);
}

static void toll_products(tb_flow *f)
{
    double product = 1;
    for (size_t k = f->nrows; k-- > 0;) {
        f->rows[k].toll_product = product;
        product *= f->rows[k].toll;
    }
}

/* --- the top -----------------------------------------------------------------
 */

static void fill_cotangent(walk *w, const tb_flow_spec *spec)
{
    tb_rng r = tb_rng_make(spec->seed, "cotangent");
    size_t d = w->m->sizes.s.width;
    for (size_t i = 0; i < w->n; i++) {
        size_t at = spec->cotangent == TB_COTANGENT_COHERENT ? i % d : i;
        tb_flow_put(w->m->dtype, w->total, i, tb_rng_normal(r, at));
    }
}

static tb_status loss_cotangent(walk *w, const tb_run *run)
{
    const float one32 = 1;
    const double one64 = 1;
    size_t tail = tb_model_tail(w->m);
    const tb_graph *g = tb_model_graph(w->m, tail);
    const void *gout[2] = {NULL, NULL};
    void *gin[FLOW_STREAMS + 1] = {NULL}; /* the streams, then the targets */
    for (int i = 0; i < g->noutputs; i++)
        if (tb_streq(g->outputs[i].name, "loss"))
            gout[i] = w->m->dtype == TB_F64 ? (const void *)&one64 : &one32;
    pieces(w, w->total, gin);
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = gout,
                .gin = gin,
                .gparams = tb_model_gparams(w->m, tail, w->grads)};
    return tb_plan_backward(w->ctx, run, &b);
}

static tb_status start_at_top(walk *w, const tb_flow_spec *spec)
{
    size_t tail = tb_model_tail(w->m);
    const tb_graph *g = tb_model_graph(w->m, tail);
    tb_flow_row final = {0};
    tb_run run;
    TB_TRY(tb_model_run(w->m, tail, w->batch, &run));
    TB_TRY(tolls_between(w, &run, g, 0, 1, &final));
    w->f->has_final = final.norms > 0;
    w->f->final_toll = final.toll;
    if (spec->cotangent == TB_COTANGENT_LOSS)
        TB_TRY(loss_cotangent(w, &run));
    else
        fill_cotangent(w, spec);
    memcpy(w->lane, w->total, w->n * tb_dtype_size(w->m->dtype));
    w->top = w->k->norm2(w->n, w->total);
    return TB_OK;
}

/* --- weights -------------------------------------------------------------- */

static double element(tb_dtype t, const void *x, size_t i)
{
    return t == TB_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* In two passes: a constant has a standard deviation of exactly 0. */
static void weight_spread(const tb_model *m, const tb_view *v,
                          tb_flow_weight *out)
{
    const char *all = m->params;
    const void *x = all + v->offset * tb_dtype_size(m->dtype);
    double sum = 0, squares = 0, n = (double)v->count;
    for (size_t i = 0; i < v->count; i++)
        sum += element(m->dtype, x, i);
    out->mean = sum / n;
    for (size_t i = 0; i < v->count; i++) {
        double c = element(m->dtype, x, i) - out->mean;
        squares += c * c;
    }
    out->std = tb_sqrt(squares / n);
}

static tb_status weight_norms(walk *w, tb_flow_box *box)
{
    const tb_model *m = w->m;
    size_t size = tb_dtype_size(m->dtype);
    w->f->weights =
        tb_arena_alloc(&box->arena, m->nviews * sizeof *w->f->weights);
    if (!w->f->weights)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        if (v->role == TB_ROLE_BUFFER)
            continue;
        const void *g = (const char *)w->grads + v->offset * size;
        tb_flow_weight *out = &w->f->weights[w->f->nweights++];
        *out = (tb_flow_weight){.name = tb_arena_strdup(&box->arena, v->name),
                                .layer = v->layer,
                                .grad_norm = w->k->norm2(v->count, g),
                                .start = tb_arena_strdup(&box->arena, v->rule)};
        if (!out->name || !out->start)
            return TB_ERR_MEMORY;
        if (w->f->has_spread)
            weight_spread(m, v, out);
        w->nonfinite += w->k->nonfinite(v->count, g);
    }
    return TB_OK;
}

/* --- data ------------------------------------------------------------------
 */

static tb_status make_batch(const tb_model *m, const tb_flow_spec *spec,
                            tb_arena *a, tb_batch *out)
{
    size_t B = spec->batch ? spec->batch : 1, T = m->sizes.s.context;
    int32_t *x = tb_arena_alloc(a, B * T * sizeof *x);
    int32_t *y = tb_arena_alloc(a, B * T * sizeof *y);
    tb_rng r = tb_rng_make(spec->seed, "tokens");
    if (!x || !y)
        return TB_ERR_MEMORY;
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t < T; t++) {
            size_t at = b * (T + 1) + t;
            uint64_t v = m->sizes.s.vocab;
            x[b * T + t] =
                spec->ids ? spec->ids[at] : (int32_t)tb_rng_below(r, at, v);
            y[b * T + t] = spec->ids ? spec->ids[at + 1]
                                     : (int32_t)tb_rng_below(r, at + 1, v);
        }
    *out = (tb_batch){.tokens = x, .targets = y, .seed = spec->seed};
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

static tb_status make_rows(tb_flow_box *box, const tb_model *m)
{
    tb_layers layers = tb_model_layers(m, tb_model_tail(m));
    size_t n = 1;
    for (size_t i = 0; i < layers.n; i++)
        n += (size_t)tb_model_graph(m, layers.first + i)->nboundaries - 1;
    box->flow.rows = tb_arena_alloc(&box->arena, n * sizeof *box->flow.rows);
    box->flow.nrows = n;
    return box->flow.rows ? TB_OK : TB_ERR_MEMORY;
}

/* Gradients of weights only where they are those of the loss. */
static tb_status make_vectors(walk *w, const tb_flow_spec *spec, tb_arena *a)
{
    void **all[] = {&w->total, &w->lane, &w->next, &w->local, &w->tmp};
    size_t bytes = w->n * tb_dtype_size(w->m->dtype);
    for (size_t i = 0; i < TB_LEN(all); i++)
        if (!(*all[i] = tb_arena_alloc(a, bytes)))
            return TB_ERR_MEMORY;
    if (spec->cotangent != TB_COTANGENT_LOSS)
        return TB_OK;
    w->grads = tb_arena_alloc(a, w->m->nelements * tb_dtype_size(w->m->dtype));
    return w->grads ? TB_OK : TB_ERR_MEMORY;
}

static tb_status run_walk(walk *w, tb_flow_box *box, const tb_flow_spec *spec)
{
    TB_TRY(tb_model_forward(w->m, w->batch, &w->f->loss));
    TB_TRY(start_at_top(w, spec));
    w->k_now = w->f->nrows - 1;
    for (size_t i = w->layers.n; i-- > 0;) {
        TB_TRY(layer_down(w, box, w->layers.first + i));
        if (tb_ctx_interrupted(w->ctx))
            return TB_FAIL(w->ctx, TB_INTERRUPTED, "flow: interrupted");
    }
    TB_TRY(stem_row(w));
    toll_products(w->f);
    return w->grads ? weight_norms(w, box) : TB_OK;
}

static tb_status measure(tb_model *m, const tb_flow_spec *spec,
                         tb_flow_box *box, tb_arena *scratch)
{
    tb_ctx *ctx = m->ctx;
    size_t B = spec->batch ? spec->batch : 1;
    tb_batch batch;
    walk w = {.ctx = ctx,
              .m = m,
              .f = &box->flow,
              .batch = &batch,
              .k = tb_kern_get(ctx, m->dtype),
              .nx = B * m->sizes.s.context * m->sizes.s.width,
              .layers = tb_model_layers(m, tb_model_tail(m))};
    w.nstreams = (size_t)tb_model_graph(m, w.layers.first - 1)->noutputs;
    w.n = w.nx * w.nstreams;
    if (w.nstreams > FLOW_STREAMS)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "flow: got a block of %zu streams, wanted at most %d",
                       w.nstreams, (int)FLOW_STREAMS);
    if (spec->spectrum && w.nstreams > 1)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "spectrum: got a block of %zu streams, wanted one",
                       w.nstreams);
    describe(&box->flow, m, spec);
    if (spec->spectrum && w.n > TB_SPECTRUM_MAX)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "spectrum: got batch*tokens*width = %zu, wanted at "
                       "most %d",
                       w.n, (int)TB_SPECTRUM_MAX);
    box->flow.block = block_label(box, m->block);
    if (!box->flow.block)
        return TB_ERR_MEMORY;
    TB_TRY(tb_model_bind(m, B, m->sizes.s.context, TB_PASS_BWD | TB_PASS_KEEP));
    TB_TRY(make_batch(m, spec, scratch, &batch));
    TB_TRY(make_rows(box, m));
    TB_TRY(make_vectors(&w, spec, scratch));
    TB_TRY(run_walk(&w, box, spec));
    if (spec->spectrum)
        TB_TRY(tb_flow_spectrum(m, &batch, box));
    return tb_flow_judge(ctx, &box->flow, w.nonfinite, spec);
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
    return s;
}
